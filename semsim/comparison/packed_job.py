"""The job that writes the report of a comparison, or everything about it, into its own folder."""

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import DataError
from semsim.base.jobs.folders import read_json
from semsim.base.progress import Progress, Report
from semsim.base.stats.analysis import AnalysisSettings
from semsim.base.storage.records import guarded
from semsim.comparison.compared import Scored, compared
from semsim.comparison.metric_facts import specs_of
from semsim.comparison.study_tables import StudyTables

PACK_JOB = "comparison"
REPORT, EVERYTHING = "report", "everything"
_TABLES = ("votes", "labels", "scores", "facts")


@dataclass(frozen=True, kw_only=True)
class PackOrder:
    """Order of files: `REPORT` or `EVERYTHING`, of one view of one study.

    Attributes:
        protocol: The human score the study's protocol fixed.
        rule: The one that is ranked by.
        importer: "" for none.
        unseen_by: As of `compared`.
        remarks: As those of `StudyTables`.
    """

    what: str
    study: str
    protocol: str
    importer: str
    rule: str
    unseen_by: str
    checkpoints: Path
    remarks: tuple[str, ...] = ()


def pack_files(tables: StudyTables, scored: Scored) -> dict[str, pd.DataFrame | Mapping[str, Any]]:
    """Return the files that the job needs in its folder beside its order."""
    found = (tables.votes, tables.labels, scored.table, scored.facts)
    named = zip(_TABLES, found, strict=True)
    frames = {f"{name}.parquet": table for name, table in named if table is not None}
    names = [spec.name for spec in scored.specs]
    order = {"metrics": names, "weights": scored.weights, "awaited": scored.awaited}
    return {**frames, "metrics.json": order}


def do_packed(order: PackOrder, folder: Path, report: Report) -> dict[str, str]:
    """Write `report.html` or `everything.zip` into `folder`; says which.

    Raises `DataError` for an order that asks for something else, or tables that are damaged.
    """
    if order.what not in (REPORT, EVERYTHING):
        raise DataError(f"Expected {REPORT} or {EVERYTHING}; got {order.what!r}.")
    votes, labels, scores, facts = (_read(folder / f"{name}.parquet") for name in _TABLES)
    if votes is None or scores is None:
        raise DataError(f"{folder} lacks its votes or its scores. Ask for the report anew.")
    study = StudyTables(
        votes=votes,
        labels=labels,
        name=order.study,
        headline=order.protocol,
        importer=order.importer,
        remarks=order.remarks,
    )
    kept = read_json(folder / "metrics.json")
    specs = {spec.name: spec for spec in specs_of(scores, absent=kept["metrics"])}
    scored = Scored(
        table=scores,
        specs=[specs[name] for name in kept["metrics"]],
        weights=kept["weights"],
        awaited=tuple(kept["awaited"]),
        facts=facts,
    )
    settings = AnalysisSettings(headline=order.rule)
    report(Progress(0, 1, "working out the comparison"))
    found = compared(study, scored, settings, order.checkpoints, order.unseen_by)
    if order.what == REPORT:
        report(Progress(0, 1, "drawing the report"))
        found.report(folder / "report.html")
        report(Progress(1, 1, "done"))
        return {"file": "report.html"}
    place = found.write(folder / "compare", overwrite=True, report=report)
    with zipfile.ZipFile(folder / "everything.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(place.rglob("*.*")):
            packed = zipfile.ZIP_STORED if path.suffix == ".png" else None  # it is compressed
            archive.write(path, path.relative_to(place), packed)
    return {"file": "everything.zip"}


def _read(path: Path) -> pd.DataFrame | None:
    with guarded(path, DataError):
        return pd.read_parquet(path) if path.exists() else None
