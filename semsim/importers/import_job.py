"""A drop on the page Pictures as two jobs: a look at it, and, when the user asks, its import.

Both are the same reading of the same file, so what is kept is what was shown. A look leaves the
plan as its result and, for each set, a strip of a few pairs beside it.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.base.errors import DataError, SettingsError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job
from semsim.base.jobs.orders import Place
from semsim.base.progress import Report
from semsim.base.sets.imports import places_of
from semsim.base.storage.atomic import write_bytes
from semsim.base.storage.names import checked_name
from semsim.distractors.registry import check_classes, classes_of, find_judge
from semsim.importers import AUTO, plan_import, uploads
from semsim.importers.class_names import UNKNOWN
from semsim.importers.import_folder import carry_out, kept_already
from semsim.importers.import_plan import FoundPictures, FoundSet, ImportPlan, Pair, Unread
from semsim.sets.strip import SHOWN, spread, strip

LOOK, KEEP = "look", "import"  # kinds of jobs
_MOST_REASONS, _MOST_EACH = 40, 8  # told of what is left out
_PLAN = {"name", "kind", "source", "counts", "sets", "pictures", "human", "notes", "lost"}
_PLAN |= {"left_out", "reasons", "refusals"}


@dataclass(frozen=True, kw_only=True)
class ImportOrder(Place):
    """A file or folder to look at or to keep as the import `name`.

    originals: where they lie apart. classes: their names, a list or a table. dataset, attack:
    names, where the source does not say them.
    uploads: ids of those that hold the source, which are not needed once it is kept.
    judge: reads the pictures once they are kept; "" for none. task: what people will be asked.
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


def queue_look(order: ImportOrder, root: Path) -> Job:
    """The job that looks at a source; not yet started."""
    for one in order.uploads:
        with suppress(uploads.NoUploadError):
            uploads.hold(uploads.find(order.spool, one))
    return jobs.create(root, kind=LOOK, title=f"Look at {order.name}", order=order.resolved())


def queue_keep(order: ImportOrder, classes: tuple[tuple[str, ...], ...], root: Path) -> Job:
    """The job that keeps it; not yet started. classes: of each set that was found.

    Raises `SettingsError` for a name that cannot be or is taken, `DataError` where the judge does
    not know just these classes.
    """
    checked_name(order.name, "an import")
    places = places_of(order.name, order.data)
    if places.taken:
        raise SettingsError(f"There are pictures called {order.name!r} already; take another name.")
    if order.judge:
        judge = find_judge(order.judge, order.checkpoints)
        for own in classes:
            check_classes(classes_of(judge), order.judge, own, "What was found")
    return jobs.create(root, kind=KEEP, title=f"Keep {order.name}", order=order.resolved())


def order_of(job: Job) -> ImportOrder:
    """Return the order of a job."""
    return jobs.read_order(job, ImportOrder)


def do_look(order: ImportOrder, folder: Path, report: Report) -> dict[str, Any]:
    """The plan as `told`, with a strip of each set in `folder`; nothing is kept."""
    plan = _planned(order, report)
    for place, found in enumerate(plan.found.sets):
        pairs = [(pair.original, pair.reconstruction) for pair in _shown(found)]
        write_bytes(strip_path(folder, place), strip(pairs))
    if plan.found.pictures is not None:
        shown = _shown_pictures(plan.found.pictures)
        write_bytes(strip_path(folder, 0), strip([*zip(shown[::2], shown[1::2], strict=False)]))
    return told(plan)


def _planned(order: ImportOrder, report: Report) -> ImportPlan:
    return plan_import(AUTO, order.source, order.name, order.settings, report, order.spool)


def strip_path(folder: Path, place: int) -> Path:
    """Return the path where a look leaves the pictures of the set at this place of the plan.

    Those that are still to be attacked come alone, and lie at place 0.
    """
    return folder / f"strip-{place}.png"


def do_keep(order: ImportOrder, folder: Path, report: Report) -> dict[str, Any]:
    """Write the import, let the judge read it, and say what was made.

    What was written before the job was cut off stays, and the judge goes on.
    """
    plan = _planned(order, report)
    places = places_of(order.name, order.data)
    made = kept_already(plan, places) or carry_out(plan, places, report)
    sets = [places.sets / found.folder for found in plan.found.sets]
    if order.judge and sets:
        from semsim.distractors.apply import judge_new  # torch, which takes seconds

        judge_new(find_judge(order.judge, order.checkpoints), sets, report=report)
    for one in order.uploads:
        with suppress(uploads.NoUploadError):
            uploads.remove(order.spool, one)
    return {
        "kept": order.name,
        "folders": [str(one) for one in made],
        "sets": len(sets),
        "votes": plan.found.counts.get("votes", 0),
        "task": order.task,
    }


def kept_text(outcome: Mapping[str, Any]) -> str:
    """Return the terminal output for a kept import."""
    return "\n".join(outcome["folders"])


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
    }


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
        "unnamed": sum(pair.class_name == UNKNOWN for pair in whole),
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

    plan: as `told` makes it.
    """
    classes = {name for one in plan["sets"] for name in one["classes"]} - {UNKNOWN}
    unnamed = sum(one["unnamed"] for one in plan["sets"])
    few = "" if len(classes) > 1 else "it takes the classes of the pictures, two at least"
    some = f"{unnamed} pictures have no class" if unnamed else ""
    return {"recognition": few or some, "pair": "", "rating": ""}
