"""Imports on disk, as both halves read them.

<tables>/import.json       what came from where, and what was left out
<tables>/votes.parquet     as a study exports them
<tables>/labels.parquet    likewise, and `human:<name>` for labels that came with the data
<tables>/scores.parquet    where scores came with the data
<tables>/people.parquet    where shares of single people did, columns `SHARE_COLUMNS`
<sets>/<model>/            one reconstruction set a model
<sets>/import.json
<pictures>/[<split>/]<class>/   pictures that are still to be attacked, as they came
<pictures>/import.json
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import DataError
from semsim.base.storage.folders import shown
from semsim.base.storage.optional import arrow
from semsim.base.storage.records import guarded, read_record

FORMAT = "semsim-import/1"
RECORD = "import.json"
_TABLES = ("votes.parquet", "labels.parquet")
_FILES = (RECORD, *_TABLES)  # without which a folder is no import
_ENTRIES = ("name", "kind", "source", "headline", "simulated", "counts", "unread")
PATHS = ("original", "reconstruction", "attacked")


@dataclass(frozen=True, kw_only=True)
class Places:
    """Folders of an import: its tables, all its sets, and its pictures that are to be attacked."""

    tables: Path
    sets: Path
    pictures: Path

    @property
    def taken(self) -> bool:
        """True if anything has this name already."""
        return any(one.exists() for one in (self.tables, self.sets, self.pictures))


def places_of(name: str, data: Path, out: Path | None = None) -> Places:
    """The folders `name` in `imports`, `runs` and `pictures` of `data`, or `out` for all three."""
    if out is not None:
        return Places(tables=out, sets=out, pictures=out)
    return Places(
        tables=data / "imports" / name, sets=data / "runs" / name, pictures=data / "pictures" / name
    )


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Human labels that were imported.

    Attributes:
        votes, labels, scores: As a study exports them, see `semsim.importers.human_tables`; labels
            have no columns of paths where no images came with them; scores is None where none did.
        people: Shares of single people, columns `SHARE_COLUMNS`; None where none came.
        record: What import.json says.
    """

    name: str
    votes: pd.DataFrame
    labels: pd.DataFrame
    scores: pd.DataFrame | None
    record: Mapping[str, Any]
    people: pd.DataFrame | None = None


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One folder among imports. For one that cannot be read `problem` says why.

    Its name then says so too, and its record has only a headline.
    """

    name: str
    record: Mapping[str, Any]
    problem: str | None = None

    def count(self, what: str) -> int:
        """Return the number of `what` in it, such as votes that count, from its record; else 0."""
        return int(self.record.get("counts", {}).get(what, 0))

    @property
    def holds(self) -> str:
        """Name of its content: "labels" where no votes of annotators came with them."""
        return "votes" if self.count("votes") or self.problem else "labels"


def read_import(folder: Path) -> Imported:
    """The imported labels in `folder`; `DataError` says what is missing or broken.

    Their pictures are those beside it, also where the data folder has moved since.
    """
    folder = Path(folder)
    record = read_import_record(folder, _FILES)
    scores, people = (_read_if_there(folder / f"{name}.parquet") for name in ("scores", "people"))
    return Imported(
        name=str(record["name"]),
        votes=_read_table(folder / "votes.parquet"),
        labels=_with_pictures_here(_read_table(folder / "labels.parquet"), folder),
        scores=scores,
        people=people,
        record=record,
    )


def _read_if_there(path: Path) -> pd.DataFrame | None:
    return _read_table(path) if path.exists() else None


def _with_pictures_here(labels: pd.DataFrame, folder: Path) -> pd.DataFrame:
    places = places_of(folder.name, folder.resolve().parent.parent)
    if places.tables != folder.resolve() or not places.sets.is_dir():
        return labels  # it was written elsewhere than in a data folder
    mark = f"/{places.sets.parent.name}/{folder.name}/"
    found = {
        column: labels[column].map(
            lambda path: str(places.sets / path.rpartition(mark)[2]) if mark in path else path,
            na_action="ignore",
        )
        for column in PATHS
        if column in labels
    }
    return labels.assign(**found)


def imported_votes(folder: str, *roots: Path) -> tuple[str, pd.DataFrame, int]:
    """Return name and votes of the import in `folder` of `roots`, and a number of their state.

    Raises `DataError` for a name that is none of a folder in `roots`, or a broken import.
    """
    places = {path.name: path for path, one in list_imports(*roots).items() if not one.problem}
    if folder not in places:
        raise DataError(f"There is no import {folder!r} in {roots[0]}, or it cannot be read.")
    found = read_import(places[folder])
    return found.name, found.votes, (places[folder] / _TABLES[0]).stat().st_mtime_ns


def import_names(*roots: Path) -> dict[str, tuple[str, str]]:
    """Return the name of every import in `roots` and what it `holds`, by folder; no broken ones."""
    found = list_imports(*roots).items()
    return {path.name: (one.name, one.holds) for path, one in found if not one.problem}


def list_imports(*roots: Path) -> dict[Path, Listed]:
    """Every import in the folders `roots`, in order of name; broken ones too, with the reason.

    Of several of one name that of the first root counts. Tables are not opened. A hidden folder is
    an import under way, or one that was cut off.
    """
    found: dict[str, Path] = {}
    for root in roots:
        found = {**{path.name: path for path in _folders(root)}, **found}
    return {path: _listed(path, _FILES) for path in found.values()}


def list_pictures(data: Path) -> dict[Path, Listed]:
    """Everything in the data folder that was brought in to be attacked, as `list_imports` does."""
    return {folder: _listed(folder, (RECORD,)) for folder in _folders(data / "pictures")}


def _folders(root: Path) -> list[Path]:
    return [folder for folder in shown(root) if folder.is_dir()]


def _listed(folder: Path, needed: Sequence[str]) -> Listed:
    try:
        record = read_import_record(folder, needed)
    except DataError as error:
        broken = f"{folder.name} (cannot be read)"
        return Listed(name=broken, record={"headline": "majority"}, problem=str(error))
    return Listed(name=str(record["name"]), record=record)


def read_import_record(folder: Path, needed: Sequence[str]) -> dict[str, Any]:
    path = folder / RECORD
    for name in needed:
        if not (folder / name).is_file():
            raise DataError(f"{folder} is not an import: {name} is missing.")
    record = read_record(path, FORMAT, DataError)
    absent = [name for name in _ENTRIES if name not in record]
    if absent:
        raise DataError(f"{path} lacks the entries {', '.join(absent)}.")
    counts = record["counts"]
    if not isinstance(counts, dict) or not all(isinstance(n, int) for n in counts.values()):
        raise DataError(f"{path} has counts {counts!r}; expected a number by name.")
    return record


def _read_table(path: Path) -> pd.DataFrame:
    arrow()
    with guarded(path, DataError, "is not a readable table ({})."):
        return pd.read_parquet(path)
