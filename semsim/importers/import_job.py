"""A drop on the page Pictures as two jobs: a look at it, and, when the user asks, its import.

What is kept is what was shown: a look leaves the plan itself, all that is told of it, and a strip
of a few pairs for each set. Keeping carries that plan out. Only where it does not hold any more, as
the files are others by then, they are read anew, and the result says why.

<job>/plan/plan.json       all that a plan says, the archives its files are from, and its tables
<job>/plan/votes.parquet   and the others of its tables
<job>/strip-<n>.png        a few pairs of each set
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import DataError, SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.jobs.orders import Place, from_record, to_record
from semsim.base.progress import Report
from semsim.base.sets.imports import places_of
from semsim.base.storage.atomic import whole_folder, write_bytes
from semsim.base.storage.folders import files_below
from semsim.base.storage.names import checked_name
from semsim.base.storage.records import read_record, write_record
from semsim.importers import AUTO, plan_import, uploads
from semsim.importers.archives import unpack
from semsim.importers.import_folder import carry_out, kept_already
from semsim.importers.import_plan import (
    FoundPictures,
    FoundSet,
    HumanTables,
    ImportPlan,
    Pair,
    Unread,
)
from semsim.sets.strip import SHOWN, spread, strip
from semsim.weights import sha256_of

LOOK, KEEP = "look", "import"  # kinds of jobs
PLAN_FORMAT = "semsim-import-plan/1"
_FILE = "plan.json"
_FRAMES = ("votes", "labels", "scores", "people")
_MOST_REASONS, _MOST_EACH = 40, 8  # told of what is left out
_PLAN = {"name", "kind", "source", "counts", "sets", "pictures", "human", "notes", "lost"}
_PLAN |= {"left_out", "reasons", "refusals", "sha256", "words"}
_MOST_WORDS = 200  # originals that get a field for what they show; of more a table says it
_NO_WORD = re.compile(r"[\W\d_]+")


@dataclass(frozen=True, kw_only=True)
class ImportOrder(Place):
    """A file or folder to look at or to keep as the import `name`.

    Attributes:
        originals: Where they lie apart.
        classes: Their names, a list or a table.
        dataset, attack: Names, where the source does not say them.
        uploads: Ids of those that hold the source, which are not needed once it is kept.
        judge: Reads the pictures once they are kept; "" for none.
        task: What people will be asked.
        words: The class of each image that the source gives none, by image id.
        look, plan: The folder of the look that was kept, and the sha256 of the plan that it left.
    """

    source: Path
    name: str
    checkpoints: Path
    originals: Path | None = None
    classes: Path | None = None
    dataset: str = ""
    attack: str = ""
    judge: str = ""
    task: str = ""
    uploads: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    look: Path | None = None
    plan: str = ""

    @property
    def spool(self) -> Path:
        """The folder of uploads."""
        return uploads.folder_of(self.data)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings for importers, without those that are empty."""
        names = ("originals", "classes", "dataset", "attack")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value}


Judge = Callable[[ImportOrder, Sequence[Path], Report], object]  # reads the sets in folders


def queue_look(order: ImportOrder, root: Path) -> Job:
    """The job that looks at a source; not yet started."""
    for one in order.uploads:
        with suppress(uploads.NoUploadError):
            uploads.hold(uploads.find(order.spool, one))
    return jobs.create(root, kind=LOOK, title=f"Look at {order.name}", order=order)


def queue_keep(order: ImportOrder, root: Path) -> Job:
    """The job that keeps it; not yet started.

    Raises `SettingsError` for a name that cannot be or is taken.
    """
    checked_name(order.name, "an import")
    places = places_of(order.name, order.data)
    if places.taken:
        raise SettingsError(f"There are pictures called {order.name!r} already; take another name.")
    return jobs.create(root, kind=KEEP, title=f"Keep {order.name}", order=order)


def order_of(job: Job) -> ImportOrder:
    """Return the order of a job."""
    return jobs.read_order(job, ImportOrder)


def do_look(order: ImportOrder, folder: Path, report: Report) -> dict[str, Any]:
    """The plan as `told`, with itself and a strip of each set in `folder`; nothing is kept."""
    plan = _planned(order, report)
    for place, found in enumerate(plan.found.sets):
        pairs = [(pair.original, pair.reconstruction) for pair in _shown(found)]
        write_bytes(strip_path(folder, place), strip(pairs))
    for place, pair in enumerate(_unnamed(plan)):
        write_bytes(strip_path(folder, -1 - place), strip([(pair.original, pair.reconstruction)]))
    if plan.found.pictures is not None:
        shown = _shown_pictures(plan.found.pictures)
        write_bytes(strip_path(folder, 0), strip([*zip(shown[::2], shown[1::2], strict=False)]))
    return {**told(plan), "sha256": write_plan(plan, folder / "plan")}


def _planned(order: ImportOrder, report: Report) -> ImportPlan:
    stamp = _stamp(order)  # before anything is read
    plan = plan_import(AUTO, order.source, order.name, order.settings, report, order.spool)
    return replace(plan, stamp=stamp)


def _stamp(order: ImportOrder) -> str:
    return stamp_of(one for one in (order.source, order.originals, order.classes) if one)


def _plan_to_keep(order: ImportOrder, report: Report) -> tuple[ImportPlan, str]:
    """The plan that was shown, under the names it is to have; or one made anew, and why."""
    if order.look is None:
        return _planned(order, report), ""
    try:
        plan = read_plan(order.look / "plan", order.plan, _stamp(order), report, order.spool)
        return plan.renamed(order.name, order.dataset, order.attack), ""
    except DataError as error:
        return _planned(order, report), str(error)


def stamp_of(sources: Iterable[Path]) -> str:
    """Return the state of all files of `sources`: the sha256 of name, size and time, in hex."""
    digest = hashlib.sha256()
    for source in sources:
        files = files_below(source).paths if source.is_dir() else [source]
        for path in filter(Path.exists, files):
            about = path.stat()
            digest.update(os.fsencode(path.relative_to(source)))
            digest.update(f"\0{about.st_size}\0{about.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def write_plan(plan: ImportPlan, folder: Path) -> str:
    """Write `plan` into `folder`, in the place of whatever that was; returns its sha256, in hex."""
    tables = plan.found.tables
    bare = replace(plan, held=(), found=replace(plan.found, tables=None))
    with whole_folder(folder) as part:
        if tables is not None:
            for name in _FRAMES:
                if (frame := getattr(tables, name)) is not None:
                    frame.to_parquet(part / f"{name}.parquet", index=False)
        record = {
            "plan": to_record(bare),
            "unpacked": [(str(one.archive), str(one.folder)) for one in plan.held],
            "tables": tables and {"headline": tables.headline, "simulated": tables.simulated},
            "sha256": {path.name: sha256_of(path) for path in sorted(part.iterdir())},
        }
        write_record(part / _FILE, PLAN_FORMAT, record)
    return sha256_of(folder / _FILE)


def read_plan(folder: Path, sha256: str, stamp: str, report: Report, room: Path) -> ImportPlan:
    """The plan in `folder` of this sha256 and stamp; its archives are unpacked in `room` again.

    Raises `DataError` where it is another or not there any more, or its files have changed.
    """
    path = folder / _FILE
    if not path.is_file() or sha256_of(path) != sha256:
        raise DataError("The plan that was shown is not there any more.")
    record = read_record(path, PLAN_FORMAT, DataError)
    if record["plan"]["stamp"] != stamp:
        raise DataError("Its files have changed since they were looked at.")
    for name, digest in record["sha256"].items():
        if not (folder / name).is_file() or sha256_of(folder / name) != digest:
            raise DataError(f"The plan that was shown has lost its {name}.")
    held = tuple(unpack(Path(archive), report, room) for archive, _ in record["unpacked"])
    text = json.dumps(record["plan"])
    for (_, before), now in zip(record["unpacked"], held, strict=True):
        text = text.replace(json.dumps(before)[1:-1], json.dumps(str(now.folder))[1:-1])
    plan = from_record(ImportPlan, json.loads(text))
    if record["tables"] is not None:
        facts: dict[str, Any] = {**record["tables"], "scores": None, "people": None}
        facts |= {Path(one).stem: pd.read_parquet(folder / one) for one in record["sha256"]}
        tables = HumanTables(**facts)
        plan = replace(plan, found=replace(plan.found, tables=tables))
    return replace(plan, held=held)


def strip_path(folder: Path, place: int) -> Path:
    """Return the path where a look leaves the pictures of the set at this place of the plan.

    Those that are still to be attacked come alone, and lie at place 0. What has no class lies at
    the places from -1 down, a pair each.
    """
    return folder / f"strip-{place}.png"


def do_keep(order: ImportOrder, folder: Path, report: Report, judged: Judge) -> dict[str, Any]:
    """Write the import, let `judged` read its sets where a judge was asked for, say what was made.

    What was written before the job was cut off stays, and the judge goes on.
    """
    plan, anew = _plan_to_keep(order, report)
    plan = plan.worded(order.words)
    places = places_of(order.name, order.data)
    made = kept_already(plan, places) or carry_out(plan, places, report)
    sets = [places.sets / found.folder for found in plan.found.sets]
    if order.judge and sets:
        judged(order, sets, report)
    for one in order.uploads:
        with suppress(uploads.NoUploadError):
            uploads.remove(order.spool, one)
    return {
        "kept": order.name,
        "folders": [str(one) for one in made],
        "sets": len(sets),
        "votes": plan.found.counts.get("votes", 0),
        "task": order.task,
        "anew": anew,
    }


def kept_text(outcome: Mapping[str, Any]) -> str:
    """Return the terminal output for a kept import."""
    anew = [f"Looked at anew: {outcome['anew']}"] if outcome["anew"] else []
    return "\n".join([*anew, *outcome["folders"]])


def look_text(outcome: Mapping[str, Any]) -> str:
    """Return the terminal output for a look."""
    told = [one["said"] for one in (*outcome["sets"], outcome["pictures"]) if one]
    return "\n".join([f"{outcome['kind']} reads it.", *told])


def told(plan: ImportPlan) -> dict[str, Any]:
    """A plan ready for JSON: all that a page shows before anything is kept."""
    tables = plan.found.tables
    return {
        "name": plan.name,
        "kind": plan.kind,
        "source": plan.source.name,
        "counts": dict(plan.found.counts),
        "sets": [_set_told(found) for found in plan.found.sets],
        "pictures": _pictures_told(plan.found.pictures),
        "human": None
        if tables is None
        else {
            "votes": plan.found.counts.get("votes", 0),
            "people": plan.found.counts.get("annotators", 0),
            "scores": [] if tables.scores is None else sorted(tables.scores["metric"].unique()),
        },
        "notes": list(plan.found.notes),
        "lost": list(plan.found.lost),
        "left_out": len(plan.found.unread),
        "reasons": _reasons(plan.found.unread),
        "refusals": dict(plan.refusals),
        "words": [(one.image_id, word_of(one.image_id)) for one in _unnamed(plan)],
    }


def _unnamed(plan: ImportPlan) -> list[Pair]:
    """The first pair of each original without a class; none of more originals than fields."""
    pairs = (pair for one in plan.found.sets for pair in one.pairs)
    found = {one.image_id: one for one in pairs if not one.error and not one.class_name}
    return list(found.values()) if len(found) <= _MOST_WORDS and not plan.found.tables else []


def word_of(image_id: str) -> str:
    """Return the words in the name of a file: its letters, without numbers and signs."""
    return _NO_WORD.sub(" ", image_id).strip()


def checked_words(plan: Mapping[str, Any], given: Mapping[str, str], task: str) -> dict[str, str]:
    """Return the words given to pictures of a plan, without the space around them.

    Raises `DataError` where people choose among words and a picture has none, or all have one.
    """
    words = {image: word.strip() for image, word in given.items()}
    lacking = [image for image, _ in plan["words"] if not words.get(image)]
    found = {*words.values(), *(name for one in plan["sets"] for name in one["classes"])} - {""}
    if task == "recognition" and plan["words"] and (lacking or len(found) < 2):
        what = f"{lacking[0]} has none" if lacking else "all are the same"
        raise DataError(f"Write a word under each picture, two different ones at least; {what}.")
    return words


def plan_of(look: Job) -> dict[str, Any]:
    """The plan that a look has left, as `told` made it; `DataError` where it has left another."""
    plan = jobs.result(look)
    if plan.keys() != _PLAN:
        raise DataError(f"{look.folder} holds no plan that can be read. Look again.")
    return plan


def _set_told(found: FoundSet) -> dict[str, Any]:
    whole = [pair for pair in found.pairs if not pair.error]
    names = ("folder", "model", "dataset", "attack", "said")
    return {
        **{name: getattr(found, name) for name in names},
        "size": list(found.size),
        "pairs": len(whole),
        "lacking": len(found.pairs) - len(whole),
        "attacked": sum(pair.attacked is not None for pair in whole),
        "unnamed": sum(not pair.class_name for pair in whole),
        "classes": list(found.classes),
        "shown": [pair.class_name for pair in _shown(found)],
    }


def _pictures_told(found: FoundPictures | None) -> dict[str, Any] | None:
    if found is None:
        return None
    shown = [path.parent.name for path in _shown_pictures(found)]
    return {"said": found.said, "classes": list(found.classes), "shown": shown}


def _shown_pictures(found: FoundPictures) -> list[Path]:
    """As many as a strip of pairs has; an even number."""
    most = min(2 * SHOWN, len(found.paths) // 2 * 2)
    return [found.paths[place] for place in spread(len(found.paths), most)]


def _shown(found: FoundSet) -> list[Pair]:
    whole = [pair for pair in found.pairs if not pair.error]
    return [whole[place] for place in spread(len(whole))]


def _reasons(unread: tuple[Unread, ...]) -> list[dict[str, Any]]:
    """Group what is left out by its reason, the most frequent first."""
    places: dict[str, list[str]] = {}
    for one in unread:
        places.setdefault(one.why, []).append(one.where)
    ordered = sorted(places.items(), key=lambda found: (-len(found[1]), found[0]))
    return [
        {"why": why, "n": len(where), "first": where[:_MOST_EACH]}
        for why, where in ordered[:_MOST_REASONS]
    ]


def tasks_for(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return, by task, why it cannot be asked about the findings of a plan; "" where it can.

    Args:
        plan: As `told` makes it.
    """
    if plan["words"]:
        return {"recognition": "", "pair": "", "rating": ""}
    classes = {name for one in plan["sets"] for name in one["classes"]}
    unnamed = sum(one["unnamed"] for one in plan["sets"])
    few = "" if len(classes) > 1 else "it takes the classes of the pictures, two at least"
    some = f"{unnamed} pictures have no class" if unnamed else ""
    return {"recognition": few or some, "pair": "", "rating": ""}
