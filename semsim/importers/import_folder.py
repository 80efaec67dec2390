"""An import on disk: everything lies in a temporary folder before anything gets its name.

<tables>/import.json       what came from where, and what was left out
<tables>/votes.parquet     as a study exports them
<tables>/labels.parquet    likewise, and `human:<name>` for labels that came with the data
<tables>/scores.parquet    where scores came with the data
<sets>/<model>/            one reconstruction set a model
<sets>/import.json
<pictures>/[<split>/]<class>/   pictures that are still to be attacked, as they came
<pictures>/import.json
"""

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import DataError, SettingsError
from semsim.base.progress import Progress, Report, silent
from semsim.base.storage.atomic import whole_folders
from semsim.base.storage.folders import shown
from semsim.base.storage.optional import arrow
from semsim.base.storage.records import guarded, read_record, write_record
from semsim.base.storage.versions import software_versions
from semsim.importers.import_plan import (
    EVERY,
    FORMAT,
    FoundPictures,
    FoundSet,
    HumanTables,
    ImportPlan,
)
from semsim.sets.image import SetImage
from semsim.sets.writer import picture_format, write_set
from semsim.weights import sha256_of

_RECORD = "import.json"
_TABLES = ("votes.parquet", "labels.parquet")
_FILES = (_RECORD, *_TABLES)  # without which a folder is no import
_ENTRIES = ("name", "kind", "source", "headline", "simulated", "counts", "unread")
_PATHS = ("original", "reconstruction", "attacked")
_SAME = ("name", "kind", "source", "settings", "stamp")  # of one plan of one source


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
    """The folders that `carry_out` would make, where all were made of `plan`; else none.

    Nothing is known again without the plan's stamp.
    """
    finals = _folders(plan, places)
    try:
        records = [_read_record(folder, (_RECORD,)) for folder in finals]
    except DataError:
        return ()
    wanted = json.loads(json.dumps(_record_of(plan)))
    same = all(one.get(key) == wanted.get(key) for one in records for key in _SAME)
    there = all((places.sets / one.folder).is_dir() for one in plan.found.sets)
    return finals if plan.stamp and same and there else ()


def _folders(plan: ImportPlan, places: Places) -> tuple[Path, ...]:
    wanted = [places.sets] if plan.found.sets else []
    wanted += [places.tables] if plan.found.tables is not None else []
    wanted += [places.pictures] if plan.found.pictures is not None else []
    return tuple(dict.fromkeys(folder.resolve() for folder in wanted))


def _write(plan: ImportPlan, places: Places, staged: Mapping[Path, Path], report: Report) -> None:
    for temporary in staged.values():
        write_record(temporary / _RECORD, FORMAT, _record_of(plan), sort=True)
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


def copy_set(found: FoundSet, folder: Path, name: str, record: Mapping[str, Any]) -> None:
    """Write `found` as a reconstruction set called `name`; its images become PNG, unchanged.

    record: where the set comes from. Raises `DataError` for an image that has gone since.
    """
    kinds = Counter(_format(path) for pair in found.pairs for path in pair.files.values())
    others = ", ".join(sorted({*kinds} - {"PNG"}))
    changed = f"{others} decoded as RGB and stored as PNG; what it had lost stays lost"
    run = {
        "name": name,
        "model": found.model,
        "dataset": {"name": found.dataset, "classes": found.classes, "size": found.size},
        "attack": {"name": found.attack},
        "status": "ok",
        "import": {
            **record,
            "source_formats": dict(sorted(kinds.items())),
            "conversion": changed if others else "none: PNG files copied byte for byte",
            "source_sha256": source_digest(found),
        },
        "versions": software_versions(),
    }
    numbers = {name: number for number, name in enumerate(found.classes)}
    same = ("image_id", "class_name", "original", "reconstruction", "attacked", "error")
    images = (
        SetImage(
            class_id=numbers.get(pair.class_name), **{name: getattr(pair, name) for name in same}
        )
        for pair in found.pairs
    )
    write_set(folder, run, images)


def source_digest(found: FoundSet) -> str:
    """The sha256 of a line "<kind>/<image_id> <sha256>" a file of `found`, in hex."""
    digest = hashlib.sha256()
    for pair in found.pairs:
        for kind, path in pair.files.items():
            digest.update(f"{kind}/{pair.image_id} {sha256_of(path)}\n".encode())
    return digest.hexdigest()


def _format(path: Path) -> str:
    try:
        return picture_format(path)
    except DataError as error:
        raise DataError(f"{path} could be read before and now cannot: {error}") from error


def _copy(found: FoundPictures, folder: Path, report: Report) -> None:
    for done, path in enumerate(found.paths, start=1):
        place = folder / path.relative_to(found.root)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        if done % EVERY == 0 or done == len(found.paths):
            report(Progress(done, len(found.paths), "copying pictures"))


def _write_tables(tables: HumanTables, folder: Path, sets: Path) -> None:
    labels = tables.labels.copy()
    for column in (column for column in _PATHS if column in labels):
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
        **({"stamp": plan.stamp} if plan.stamp else {}),
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
    record = _read_record(folder, _FILES)
    scores = folder / "scores.parquet"
    return Imported(
        name=str(record["name"]),
        votes=_read_table(folder / "votes.parquet"),
        labels=_with_pictures_here(_read_table(folder / "labels.parquet"), folder),
        scores=_read_table(scores) if scores.exists() else None,
        record=record,
    )


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
        for column in _PATHS
        if column in labels
    }
    return labels.assign(**found)


def imported_votes(root: Path, folder: str) -> tuple[str, pd.DataFrame, int]:
    """Return name and votes of the import in `folder` of `root`, and a number of their state.

    Raises `DataError` for a name that is none of a folder in `root`, or a broken import.
    """
    if folder not in import_names(root):
        raise DataError(f"There is no import {folder!r} in {root}, or it cannot be read.")
    found = read_import(root / folder)
    return found.name, found.votes, (root / folder / _TABLES[0]).stat().st_mtime_ns


def import_names(root: Path) -> dict[str, tuple[str, str]]:
    """Name of every import in the folder `root` and what it `holds`, by folder; no broken ones."""
    found = list_imports(root).items()
    return {path.name: (one.name, one.holds) for path, one in found if not one.problem}


def list_imports(root: Path) -> dict[Path, Listed]:
    """Every import in the folder `root`, in order of name; broken ones too, with the reason.

    Tables are not opened. A hidden folder is an import under way, or one that was cut off.
    """
    return _list(root, _FILES)


def list_pictures(data: Path) -> dict[Path, Listed]:
    """Everything in the data folder that was brought in to be attacked, as `list_imports` does."""
    return _list(data / "pictures", (_RECORD,))


def _list(root: Path, needed: Sequence[str]) -> dict[Path, Listed]:
    return {folder: _listed(folder, needed) for folder in shown(root) if folder.is_dir()}


def _listed(folder: Path, needed: Sequence[str]) -> Listed:
    try:
        record = _read_record(folder, needed)
    except DataError as error:
        broken = f"{folder.name} (cannot be read)"
        return Listed(name=broken, record={"headline": "majority"}, problem=str(error))
    return Listed(name=str(record["name"]), record=record)


def _read_record(folder: Path, needed: Sequence[str]) -> dict[str, Any]:
    path = folder / _RECORD
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
