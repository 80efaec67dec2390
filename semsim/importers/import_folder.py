"""Writes an import: everything lies in a temporary folder before anything gets its name."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semsim.base.errors import DataError, SettingsError
from semsim.base.progress import Progress, Report, silent
from semsim.base.sets.imports import FORMAT, PATHS, RECORD, Places, read_import_record
from semsim.base.sets.reader import read_set
from semsim.base.storage.atomic import whole_folders
from semsim.base.storage.optional import arrow
from semsim.base.storage.records import write_record
from semsim.base.storage.versions import software_versions
from semsim.importers.image_sets import EVERY, copy_set, source_digest
from semsim.importers.import_plan import FoundPictures, HumanTables, ImportPlan
from semsim.weights import sha256_of

_SAME = ("name", "kind", "source", "sha256", "counts", "unread", "sets")  # of one source


def carry_out(plan: ImportPlan, places: Places, report: Report = silent) -> tuple[Path, ...]:
    """Write what `plan` found, all or nothing; returns the folders it made.

    Raises `SettingsError` where a folder is there already, `DataError` where one cannot be
    written or an image has gone since it was looked at.
    """
    arrow()  # before anything is copied
    finals = _folders(plan, places)
    taken = [folder for folder in finals if folder.exists()]
    if taken:
        raise SettingsError(f"{taken[0]} is there already; choose another --name or --out.")
    try:
        with whole_folders(*finals) as parts:
            _write(plan, places, dict(zip(finals, parts, strict=True)), report)
    except OSError as error:
        raise DataError(f"Nothing was imported: {error}.") from error
    return finals


def kept_already(plan: ImportPlan, places: Places) -> tuple[Path, ...]:
    """The folders that `carry_out` would make, where all hold just what `plan` found; else none.

    Votes or pictures still to be attacked that came as a folder count as others: nothing says what
    they were.
    """
    finals = _folders(plan, places)
    try:
        records = [read_import_record(folder, (RECORD,)) for folder in finals]
        sets = [read_set(places.sets / one.folder) for one in plan.found.sets]
    except DataError:
        return ()
    wanted = json.loads(json.dumps(_record_of(plan)))
    digests = [(one.run.get("import") or {}).get("source_sha256") for one in sets]
    if digests != [source_digest(one) for one in plan.found.sets] or not all(
        one.get(key) == wanted.get(key) for one in records for key in _SAME
    ):
        return ()
    return finals if sets or "sha256" in wanted else ()


def _folders(plan: ImportPlan, places: Places) -> tuple[Path, ...]:
    wanted = [places.sets] if plan.found.sets else []
    wanted += [places.tables] if plan.found.tables is not None else []
    wanted += [places.pictures] if plan.found.pictures is not None else []
    return tuple(dict.fromkeys(folder.resolve() for folder in wanted))


def _write(plan: ImportPlan, places: Places, staged: Mapping[Path, Path], report: Report) -> None:
    for temporary in staged.values():
        write_record(temporary / RECORD, FORMAT, _record_of(plan), sort=True)
    total = len(plan.found.sets) + (plan.found.tables is not None)
    for done, found in enumerate(plan.found.sets, start=1):
        folder = staged[places.sets.resolve()] / found.folder
        copy_set(found, folder, f"{plan.name}/{found.model}", _origin(plan))
        report(Progress(done, total, "copying images"))
    if plan.found.tables is not None:
        _write_tables(plan.found.tables, staged[places.tables.resolve()], places.sets.resolve())
        report(Progress(total, total, "writing tables"))
    if plan.found.pictures is not None:
        _copy(plan.found.pictures, staged[places.pictures.resolve()], report)


def _copy(found: FoundPictures, folder: Path, report: Report) -> None:
    for done, path in enumerate(found.paths, start=1):
        place = folder / path.relative_to(found.root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        if done % EVERY == 0 or done == len(found.paths):
            report(Progress(done, len(found.paths), "copying pictures"))


def _write_tables(tables: HumanTables, folder: Path, sets: Path) -> None:
    labels = tables.labels.copy()
    for column in (column for column in PATHS if column in labels):
        there = labels[column].notna()
        labels.loc[there, column] = [str(sets / path) for path in labels.loc[there, column]]
    tables.votes.to_parquet(folder / "votes.parquet", index=False)
    labels.to_parquet(folder / "labels.parquet", index=False)
    if tables.scores is not None:
        tables.scores.to_parquet(folder / "scores.parquet", index=False)


def _record_of(plan: ImportPlan) -> dict[str, Any]:
    """Everything there is to say about an import, ready for JSON."""
    tables = plan.found.tables
    return {
        "name": plan.name,
        **_origin(plan),
        "headline": None if tables is None else tables.headline,
        "simulated": False if tables is None else tables.simulated,
        "counts": dict(plan.found.counts),
        "unread": [
            {"where": one.where, "why": one.why.replace(f"{plan.source}{os.sep}", "")}
            for one in plan.found.unread
        ],
        "notes": list(plan.found.notes),
        "sets": [found.folder for found in plan.found.sets],
        "versions": software_versions(),
    }


def _origin(plan: ImportPlan) -> dict[str, Any]:
    """Return the facts on an import's source; paths on this machine become bare names."""
    source = plan.source
    return {
        "kind": plan.kind,
        "source": source.resolve().name,
        **({"sha256": sha256_of(source)} if source.is_file() else {}),
        "settings": {
            key: Path(value).name if _is_place(value) else value
            for key, value in plan.settings.items()
        },
    }


def _is_place(value: Any) -> bool:
    return isinstance(value, Path) or (isinstance(value, str) and os.path.isabs(value))
