"""Writes an import: everything lies in a temporary folder before anything gets its name."""

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semsim.base.errors import DataError, SettingsError
from semsim.base.progress import Progress, Report, silent
from semsim.base.sets.imports import FORMAT, PATHS, RECORD, Places, read_import_record
from semsim.base.storage.atomic import whole_folders
from semsim.base.storage.optional import arrow
from semsim.base.storage.records import write_record
from semsim.base.storage.versions import software_versions
from semsim.importers.import_plan import EVERY, FoundPictures, FoundSet, HumanTables, ImportPlan
from semsim.sets.image import SetImage
from semsim.sets.writer import picture_format, write_set
from semsim.weights import sha256_of

_SAME = ("name", "kind", "source", "settings", "stamp")  # of one plan of one source


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
        records = [read_import_record(folder, (RECORD,)) for folder in finals]
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


def copy_set(found: FoundSet, folder: Path, name: str, record: Mapping[str, Any]) -> None:
    """Write `found` as a reconstruction set called `name`; its images become PNG, unchanged.

    Args:
        record: Where the set comes from.

    Raises:
        DataError: For an image that has gone since.
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
    for column in (column for column in PATHS if column in labels):
        there = labels[column].notna()
        labels.loc[there, column] = [str(sets / path) for path in labels.loc[there, column]]
    tables.votes.to_parquet(folder / "votes.parquet", index=False)
    labels.to_parquet(folder / "labels.parquet", index=False)
    for name, table in (("scores", tables.scores), ("people", tables.people)):
        if table is not None:
            table.to_parquet(folder / f"{name}.parquet", index=False)


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
