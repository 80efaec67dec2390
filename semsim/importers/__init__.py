"""Importers: what others have published, as reconstruction sets and as votes, labels and scores,
and pictures that are still to be attacked.

An importer reads a source and reports what it found and what it leaves out (`plan_import`); nothing
is written before `carry_out`. To add one: a class of the form of `Importer`, and one line here.
Where the user names no importer for a source, all are tried.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from semsim.base.errors import DataError, SemsimError, SettingsError
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import Registry, setting
from semsim.base.storage.places import resolved
from semsim.base.table_files import first_problem
from semsim.images import is_image_file
from semsim.importers.annotator_files import AnnotatorFiles
from semsim.importers.archives import Unpacked, check_folder, inner, is_archive, unpack
from semsim.importers.import_plan import Findings, Importer, ImportPlan, Unread
from semsim.importers.layouts import (
    RELEASED,
    ClassFolders,
    ModelFolders,
    TrainWithOri,
    VariantFolders,
)
from semsim.importers.table import Table

IMPORTERS: Registry[Importer] = Registry(
    "importer",
    {
        "train-with-ori": TrainWithOri(),
        "model-folders": ModelFolders(),
        "variant-folders": VariantFolders(),
        "annotator-files": AnnotatorFiles(),
        "table": Table(),
        # The votes behind the paper's CIFAR-100 row, one row a reconstruction.
        "semsim-cifar100": Table(
            image_id="cifar100_test_index0",
            class_name="class_id",
            annotators="ann0,ann1,ann2,ann3,ann4",
            none="-1",
            given=f"{RELEASED}=released_recognizable",
            scores="psnr=psnr,mse=mse_uint8/65025",  # 255²: on the scale [0, 1]
            flags="released_label_inferred",
            architecture="model",  # begins with it
            dataset="cifar100",
            attack="invgrad",
            votes_per_item=5,
            headline=RELEASED,  # what the paper's own numbers use
        ),
        "class-folders": ClassFolders(),
    },
)


AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class Recognise:
    """A folder, a zip or a table of any layout that is known: shown first, kept when you say so."""

    dataset: str = setting("", text="Name of the data set.")
    attack: str = setting("", text="Name of the attack, where no folder has it.")
    originals: Path | None = setting(
        None, text="Folder or zip of the originals, where they lie apart; matched by name."
    )
    classes: Path | None = setting(
        None, text="File of class names: text, one a line, or a table of image_id and class_name."
    )


def plan_import(
    kind: str,
    source: Path,
    name: str,
    settings: Mapping[str, Any] | None = None,
    report: Report = silent,
    room: Path | None = None,
) -> ImportPlan:
    """Plan the import of `source`: what it would write and leave out; writes nothing.

    Args:
        kind: Of `IMPORTERS`, or `AUTO`, which tries them all; `settings` replace its own.
        room: The folder in which an archive is unpacked; None for that of temporary files.

    Raises:
        UnknownNameError: For another kind.
        SettingsError: For a setting it does not have.
        DataError: Where nothing can be imported.
    """
    source = resolved(source)
    importer = Recognise() if kind == AUTO else IMPORTERS[kind]
    known = [field.name for field in fields(importer)]
    for given in settings or {}:
        if given not in known:
            raise SettingsError(f"{kind!r} has no setting {given!r}. It has: {', '.join(known)}.")
    if isinstance(importer, Recognise):
        return _recognised(source, name, settings or {}, report, room)
    chosen = replace(importer, **(settings or {}))
    try:
        if not source.exists():
            raise DataError(f"There is nothing at {source}.")
        found = chosen(source, name, report)
    except OSError as error:  # a folder nobody may open, a disk that fails
        raise DataError(f"{source} cannot be read ({error}).") from error
    return ImportPlan(name=name, kind=kind, source=source, settings=asdict(chosen), found=found)


def _recognised(
    source: Path, name: str, settings: Mapping[str, Any], report: Report, room: Path | None
) -> ImportPlan:
    """The plan of the importer that leaves least of `source` out, and why no other was taken.

    Args:
        settings: Go to every importer that has them.

    Raises:
        DataError: With the reasons of all where none reads it, and where it is too large,
            encrypted, broken, or an archive made to do harm.
    """
    path, held = _opened(source, report, room)
    apart = settings.get("originals")
    clean, clean_held = (None, None) if apart is None else _opened(apart.resolve(), report, room)
    given = {**settings, **({} if clean is None else {"originals": clean})}
    tried: list[ImportPlan] = []
    refusals: dict[str, str] = {}
    for place, (kind, importer) in enumerate(IMPORTERS.items()):
        report(Progress(place, len(IMPORTERS), f"trying {kind}"))
        try:
            chosen = _with(importer, given)
            found = chosen(path, name, partial(_noted, report, kind))
            own = asdict(chosen)
            tried.append(ImportPlan(name=name, kind=kind, source=source, settings=own, found=found))
        except (SemsimError, OSError) as error:
            refusals[kind] = _without(path, str(error)) or type(error).__name__
    report(Progress(len(IMPORTERS), len(IMPORTERS), "tried"))
    if not tried:
        reasons = "\n".join(f"  {kind}: {why}" for kind, why in refusals.items())
        raise DataError(
            f"No importer reads {source.name}. Here belong originals/… beside what attacks "
            "made of them, as <model>/… or <attack>/<model>/…, or a table; or pictures that are "
            f"still to be attacked, as <class>/…. What each looked for:\n{reasons}"
            + first_problem(held.unread if held else ())
        )
    best, *others = sorted(tried, key=_rank)
    refusals |= {one.kind: f"reads it too, {_behind(one, best)}" for one in others}
    found = _told(_told(best.found, held), clean_held)
    both = tuple(one for one in (held, clean_held) if one is not None)
    return replace(best, found=found, refusals=refusals, held=both)


def _rank(plan: ImportPlan) -> tuple[bool, int, int]:
    """Return how badly a source is read, less being better; of equals the first is taken.

    A plan of pictures still to be attacked ranks last: it is for what no other importer reads. Then
    counts what is left out, then what is found.
    """
    found = plan.found
    size = found.counts.get("reconstructions", 0) + found.counts.get("votes", 0)
    return found.pictures is not None, len(found.unread), -size


def _noted(report: Report, kind: str, progress: Progress) -> None:
    report(replace(progress, note=f"{progress.note} ({kind})"))


def _with(importer: Importer, settings: Mapping[str, Any]) -> Importer:
    """An importer with those of the settings that it has; `DataError` for one that it must have."""
    kinds = {one.name: one.type for one in fields(importer)}
    for needed, called in (("originals", "originals that lie apart"), ("classes", "class names")):
        if needed in settings and needed not in kinds:
            raise DataError(f"takes no {called}")
    chosen = {key: value for key, value in settings.items() if key in kinds}
    return replace(
        importer, **{key: str(one) if kinds[key] is str else one for key, one in chosen.items()}
    )


def _opened(source: Path, report: Report, room: Path | None) -> tuple[Path, Unpacked | None]:
    """Return where importers can look at a source, and what must stay while they do."""
    if not source.exists():
        raise DataError(f"There is nothing at {source}.")
    if source.is_dir():
        check_folder(source)
        return inner(source), None
    if not is_archive(source):
        return source, None
    held = unpack(source, report, room)
    files = [path for path in held.folder.rglob("*") if path.is_file()]
    alone = len(files) == 1 and not is_image_file(files[0])
    return files[0] if alone else inner(held.folder), held


def _behind(one: ImportPlan, best: ImportPlan) -> str:
    if one.found.pictures is not None:
        return "but as pictures that nobody has attacked"
    if len(one.found.unread) > len(best.found.unread):
        return f"but leaves {len(one.found.unread):,} out where {best.kind} leaves out fewer"
    return f"but no better than {best.kind}"


def _told(found: Findings, held: Unpacked | None) -> Findings:
    """`found` with what the archive left out, and without the folder it was unpacked in."""
    if held is None:
        return found
    named = [Unread(one.where, _without(held.folder, one.why)) for one in found.unread]
    return replace(found, unread=(*held.unread, *named))


def _without(folder: Path, text: str) -> str:
    if folder == Path():
        return text  # it was named by no name
    return text.replace(f"{folder}/", "").replace(str(folder), folder.name)
