"""Reading what has been imported."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from semsim.errors import DataError
from semsim.importers.findings import FORMAT
from semsim.importers.writing import RECORD

_ENTRIES = ("name", "kind", "source", "headline", "simulated", "counts", "unread")
_TABLES = ("votes.parquet", "labels.parquet")


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Human labels that were imported.

    votes, labels, scores: as a study exports them, see `semsim.importers.human_tables`; labels
    have no columns of paths where no images came with them; scores is None where none did.
    record: what import.json says.
    """

    name: str
    votes: pd.DataFrame
    labels: pd.DataFrame
    scores: pd.DataFrame | None
    record: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One folder among imports. For one that cannot be read `problem` says why.

    Its name then says so too, and its record has only a headline.
    """

    name: str
    record: Mapping[str, Any]
    problem: str | None = None


def read_import(folder: Path) -> Imported:
    """The imported labels in `folder`; `DataError` says what is missing or broken."""
    folder = Path(folder)
    record = _read_record(folder)
    scores = folder / "scores.parquet"
    return Imported(
        name=str(record["name"]),
        votes=_read_table(folder / "votes.parquet"),
        labels=_read_table(folder / "labels.parquet"),
        scores=_read_table(scores) if scores.exists() else None,
        record=record,
    )


def list_imports(root: Path) -> dict[Path, Listed]:
    """Every import in the folder `root`, in order of name; broken ones too, with the reason.

    Tables are not opened. A hidden folder is an import under way, or one that was cut off.
    """
    if not root.is_dir():
        return {}
    folders = [path for path in sorted(root.iterdir()) if path.is_dir()]
    return {folder: _listed(folder) for folder in folders if not folder.name.startswith(".")}


def _listed(folder: Path) -> Listed:
    try:
        record = _read_record(folder)
    except DataError as error:
        broken = f"{folder.name} (cannot be read)"
        return Listed(name=broken, record={"headline": "majority"}, problem=str(error))
    return Listed(name=str(record["name"]), record=record)


def _read_record(folder: Path) -> dict[str, Any]:
    path = folder / RECORD
    for name in (RECORD, *_TABLES):
        if not (folder / name).is_file():
            raise DataError(f"{folder} is not an import: {name} is missing.")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        got = record.get("format") if isinstance(record, dict) else record
        raise DataError(f"{path} has format {got!r}; expected {FORMAT!r}.")
    absent = [name for name in _ENTRIES if name not in record]
    if absent:
        raise DataError(f"{path} lacks the entries {', '.join(absent)}.")
    return record


def _read_table(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path} is not a readable table ({error}).") from error
