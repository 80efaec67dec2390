"""Sets of a campaign on the page Reconstruct: how far each image is, what came back, as HTML."""

import os
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter
from fastapi.responses import Response

from semsim.base.errors import DataError, SemsimError
from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import Job, JobState
from semsim.base.sets.set_format import RUN
from semsim.base.storage.records import RECONSTRUCTION_SET, read_record
from semsim.base.threat import attacker_words
from semsim.base.words import counted, words_for_seconds, words_of_test
from semsim.campaign.campaign_job import CampaignOrder, load, name_of, plan_of, queue_campaign
from semsim.campaign.forecast import known_estimate, measure, outlook
from semsim.campaign.plan import Campaign, Cell, PlannedSet, data_content
from semsim.campaign.store import PieceStore
from semsim.campaign.watch import RunFolder, read_campaign
from semsim.device import cores
from semsim.grid.previews import STEPS
from semsim.grid.subprocess_worker import apart
from semsim.images import png_of, to_uint8
from semsim.lab import Effort
from semsim.lab.markup import pieces, rooted
from semsim.lab.sets import METHOD, chip, made_html
from semsim.reporting.writing import png_address
from semsim.sets.no_attack_baseline import NOTHING, Control, Count, Shown
from semsim.sets.recognition import STATISTIC, recognised_words
from semsim.targets.chance import target_facts
from semsim.ui import ScienceContext
from semsim.ui.answers import KEPT, GoneError, worded

FOLDER = "/studio/reconstruct-files"
_KEY = re.compile(r"[0-9a-f]{20}")
ROWS = 6  # images on one page of the grid
_STRIP = 8  # pictures that came back last
_SQUARES = 64  # images of a set shown one by one before only a bar fits
_VERDICTS = "reconstruct: how cells turned out"  # in what a context keeps
_TESTS = "reconstruct: how good targets are"
_LOOKED = 5.0  # seconds for which what is in a folder is taken to stay
_HTML, _LAB = pieces("reconstruct.html", "semsim.ui"), pieces("lab.html")
_NO_STEPS = (
    "Here is what an attack makes of a picture, step by step. Targets are trained first; R-GAP and "
    "COPA have a picture at their end only."
)
_planning = threading.Lock()  # a plan takes seconds: who asks meanwhile gets the same


class CellState(Enum):
    """State of one image of one set: what style files call it, and its words."""

    WAITING = "waiting", "waiting"
    RUNNING = "running", "being attacked"
    OK = "ok", "done"
    FAILED = "failed", "failed"


@dataclass(frozen=True, kw_only=True)
class CellView:
    """One image of one set.

    Attributes:
        share: Done of it, 0 to 1.
        changed: When, for addresses of pictures.
        worse_than_grey: Whether a grey image explains the gradient at least as well as the picture.
        blown_up: Whether the solution was farther from grey than any picture.
        shown: Whether it shows more than a guess, see `semsim.sets.no_attack_baseline`.
    """

    key: str
    image_id: str
    state: CellState
    share: float = 0.0
    changed: int = 0
    worse_than_grey: bool = False
    blown_up: bool = False
    shown: Shown = NOTHING


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """The attacked images of a data set: (H, W, 3) uint8 each, and the names of their classes."""

    dataset: str
    names: tuple[str, ...]
    pixels: tuple[np.ndarray, ...]

    @cached_property
    def control(self) -> Control:
        """Baseline of what can be guessed of the images."""
        return Control(self.pixels)


@dataclass(frozen=True, kw_only=True)
class PlanView:
    """View of a plan on a page, without a tensor.

    Attributes:
        pictures: By the text of their data set.
    """

    sets: tuple[PlannedSet, ...]
    pictures: Mapping[str, Pictures]


@dataclass(frozen=True, kw_only=True)
class SetView:
    """One target under one attack.

    Attributes:
        attacker: Of `attacker_words`; with the signs for a client once the set is written.
        target: How good it is at its own task, in words; "" until it is trained.
        training: Share done, None where it does not train now.
    """

    planned: PlannedSet
    attacker: str
    cells: tuple[CellView, ...]
    target: str
    training: float | None
    failure: str

    def count(self, state: CellState) -> int:
        """Count the images in `state`."""
        return sum(cell.state is state for cell in self.cells)


def kept_plan(campaign: Campaign) -> PlanView:
    """The plan of `campaign`; the last few are kept, as a page asks several times a second."""
    with _planning:
        about = int(time.monotonic() / _LOOKED)
        return _kept_plan(campaign, tuple(_content(text, about) for text in campaign.datasets))


@lru_cache(maxsize=8)
def _content(text: str, about: int) -> str:
    """Return the content of a data set's files;

    Args:
        about: When, as many files take long to look at.
    """
    return data_content(text)


@lru_cache(maxsize=4)
def _kept_plan(campaign: Campaign, contents: tuple[str, ...]) -> PlanView:
    """Return the plan of a campaign, worked out once.

    Args:
        contents: Of its data sets' files; once these have changed it is another plan.
    """
    view: PlanView = apart(f"{__name__}:planned", campaign)
    return view


def planned(campaign: Campaign) -> PlanView:
    """Return what `kept_plan` keeps; here and below are functions a page runs apart, by name."""
    plan = plan_of(campaign)
    pictures = {
        text: Pictures(
            dataset=one.dataset,
            names=tuple(one.classes[label] for label in one.labels.tolist()),
            pixels=tuple(map(to_uint8, one.images)),
        )
        for text, one in plan.images.items()
    }
    return PlanView(sets=plan.sets, pictures=pictures)


def effort(campaign: Campaign, data: Path, measuring: bool) -> Effort:
    """Return what is left to do; the cores here share its time.

    Args:
        measuring: Probe a few steps where no earlier probe is known.
    """
    plan = plan_of(campaign)
    view = outlook(
        plan, data, measure(plan, data, load) if measuring else known_estimate(plan, data)
    )
    reused = f" ({view.cells_done} are done already)" if view.cells_done else ""
    over = "Everything is done; starting it only writes the reconstruction sets."
    words = "not measured" if measuring else "being measured on a few steps"
    if view.seconds is not None:
        words = f"about {words_for_seconds(view.seconds / cores())} on {cores()} cores"
    return Effort(
        made=counted(view.targets, "target"),
        more=f", {view.to_train} of them to train",
        attacked=f"{counted(view.cells, 'picture')} to attack{reused}",
        disk=view.disk,
        time=words,
        note=over if view.cells == view.cells_done else "",
    )


def queued(campaign: Campaign, judge: str, data: Path, device: str, checkpoints: Path) -> Job:
    """The job of a campaign; data that is not there is said now, not by a failed job."""
    plan_of(campaign)
    order = CampaignOrder(
        campaign=campaign, data=data, device=device, judge=judge, checkpoints=checkpoints
    )
    return queue_campaign(order, data / "jobs")


def set_views(context: ScienceContext, campaign: Campaign) -> list[SetView]:
    """Return the progress of every set of `campaign`."""
    plan, store = kept_plan(campaign), PieceStore(context.data)
    shares = RunFolder(context.data, campaign.name).shares()
    there = _times(store)
    views = []
    for planned in plan.sets:
        key, control = planned.target.key, plan.pictures[planned.target.dataset].control
        cells = tuple(
            _done(context, store, cell, there[cell.key], control, place)
            if cell.key in there
            else _undone(cell, shares)
            for place, cell in enumerate(planned.cells)
        )
        folder = context.data / "runs" / campaign.name / planned.folder
        views.append(
            SetView(
                planned=planned,
                attacker=_attacker(folder, planned),
                cells=cells,
                target=_test_words(context, store, key),
                training=shares.get(key),
                failure=store.failure(key),
            )
        )
    return views


def _attacker(folder: Path, planned: PlannedSet) -> str:
    facts = planned.facts
    if facts["threat"]["changes_model"]:
        with suppress(DataError):
            kept = read_record(folder / RUN, RECONSTRUCTION_SET, DataError)
            if kept.get("key") == planned.key:
                facts = {**facts, "noticed": kept.get("noticed")}
    return attacker_words(facts)


def _done(
    context: ScienceContext, store: PieceStore, cell: Cell, at: int, control: Control, place: int
) -> CellView:
    """A cell that was written at `at`, of the original at `place`; each is read once."""
    known = context.kept.setdefault(_VERDICTS, {})
    key = cell.key, at, len(control.originals)  # of another campaign, it may be among others
    if key not in known:
        found = store.cells.read(cell.key).result
        picture, attacked = found.picture, found.attacked
        known[key] = CellView(
            key=cell.key,
            image_id=cell.image_id,
            state=CellState.OK if found.ok else CellState.FAILED,
            share=1.0,
            changed=at,
            worse_than_grey=found.worse_than_grey,
            blown_up=found.blown_up,
            shown=NOTHING if picture is None else control.judge(place, picture, attacked),
        )
    view: CellView = known[key]
    return view


def _undone(cell: Cell, shares: Mapping[str, float]) -> CellView:
    state = CellState.RUNNING if cell.key in shares else CellState.WAITING
    share = shares.get(cell.key, 0.0)
    return CellView(key=cell.key, image_id=cell.image_id, state=state, share=share)


def _test_words(context: ScienceContext, store: PieceStore, key: str) -> str:
    """Return the test result in a target's weight file, in words, read once; "" without one."""
    known = context.kept.setdefault(_TESTS, {})
    if key not in known and key in store.weights:
        known[key] = words_of_test(target_facts(store.weights.path(key)))
    return str(known.get(key, ""))


def _times(store: PieceStore) -> dict[str, int]:
    """Return the time at which each kept cell was written, in ns, by its key."""
    folder = store.cells.folder
    if not folder.is_dir():
        return {}
    with os.scandir(folder) as entries:
        return {
            entry.name.removesuffix(".npz"): entry.stat().st_mtime_ns
            for entry in entries
            if entry.name.endswith(".npz") and not entry.name.startswith(".")
        }


def draw(context: ScienceContext, job: Job) -> list[str]:
    """Pictures now and of late, progress by set, the verdict and, when it is done, the result.

    The result of a finished campaign stays where the pictures that it attacked are gone.
    """
    campaign, state = read_campaign(context.data, name_of(job)), jobs.state(job)
    done, now = state is JobState.DONE, ""
    result = jobs.result(job) if done else {}
    made = result_html(result) if done else ""
    try:
        views = set_views(context, campaign)
    except SemsimError as error:
        if not done:
            raise
        return ["", str(_HTML.gone(str(error))), "", made]
    if state in jobs.LIVE:
        now = steps_html(context, campaign, views)
    progress = _LAB.sets([one.value for one in CellState], [_set_row(view) for view in views])
    verdict = verdict_html(views, result.get("recognition"))
    return [now + strip_html(views), str(progress), verdict, made]


def _at_hand(
    context: ScienceContext, job: Job | None
) -> tuple[list[SetView], Mapping[str, Pictures]]:
    """The sets of a job's campaign and its pictures; none where `draw` says what is wrong."""
    if job is None:
        return [], {}
    try:
        campaign = read_campaign(context.data, name_of(job))
        return set_views(context, campaign), kept_plan(campaign).pictures
    except SemsimError:
        return [], {}


def offered(context: ScienceContext, job: Job | None) -> tuple[list[str], int]:
    """The attacks of a job's campaign by their labels, and the pages that its pictures fill."""
    views, images = _at_hand(context, job)
    return list(dict.fromkeys(view.planned.attack_label for view in views)), pages(images)


def grid_now(
    context: ScienceContext, job: Job | None, attack: str | None, page: float | None
) -> str:
    """Originals beside what one attack gave back, one page of them."""
    views, images = _at_hand(context, job)
    views = [view for view in views if view.planned.attack_label == attack]
    if not views:
        return ""
    last = pages(images)
    place = min(max(1, int(page or 1)), last)
    where = f'<p class="st-note">Page {place} of {last}</p>' if last > 1 else ""
    datasets = dict.fromkeys(view.planned.target.dataset for view in views)
    return where + "".join(
        _grid([v for v in views if v.planned.target.dataset == one], images[one], place)
        for one in datasets
    )


def steps_html(context: ScienceContext, campaign: Campaign, views: Sequence[SetView]) -> str:
    """The picture that is being attacked: as it was, and what the attack made of it so far."""
    seen = RunFolder(context.data, campaign.name).seen()
    found = [
        (view, place)
        for view in views
        for place, cell in enumerate(view.cells)
        if seen is not None and cell.key == seen.key and cell.state is CellState.RUNNING
    ]
    if seen is None or not found:
        return str(_HTML.no_steps(_NO_STEPS))
    view, place = found[0]
    images = kept_plan(campaign).pictures[view.planned.target.dataset]
    steps = [(f"{share:.0%}", png_address(png)) for share, png in seen.steps]
    original = png_address(png_of(images.pixels[place]))
    waiting = STEPS - len(steps)
    return str(_HTML.steps(images.names[place], view.planned.model, original, steps, waiting))


def strip_html(views: Sequence[SetView]) -> str:
    """The pictures that came back last, each beside what was attacked."""
    done = [(cell, view) for view in views for cell in view.cells if cell.state is CellState.OK]
    newest = sorted(done, key=lambda one: one[0].changed)[: -_STRIP - 1 : -1]
    pairs = [
        {
            "original": address(cell.key, "attacked", cell.changed),
            "result": address(cell.key, "picture", cell.changed),
            "words": view.planned.model,
            "chip": chip(cell.shown),
        }
        for cell, view in newest
    ]
    return str(_LAB.pairs(pairs)) if pairs else ""


def pages(images: Mapping[str, Pictures]) -> int:
    """Count the pages of the grid, 0 without images."""
    return max((-(-len(one.names) // ROWS) for one in images.values()), default=0)


def verdict_html(views: Sequence[SetView], named: Mapping[str, Any] | None) -> str:
    """Return what can be recognised, then the statistic, in all and by model.

    Args:
        named: As `semsim.metrics.reference_classifier.recognition`, None until the campaign is
            done.
    """
    if not _count(views).over:
        return ""
    rows = [
        (view.planned.model, _target_words(view), view.attacker, _count([view]).short)
        for view in views
    ]
    lead = recognised_words(named, [] if named is None else named["sets"])
    said = (lead, verdict_words(views))
    return str(_LAB.verdict(said, METHOD, rows))


def verdict_words(views: Sequence[SetView]) -> str:
    """The statistic in a sentence, and what follows where nothing came of undefended models."""
    first = f"{STATISTIC}what came back is {_count(views).words}."
    plain = [view for view in views if view.planned.target.plan.defence.name == "none"]
    mine = _count(plain)
    if len(plain) < len(views) and mine.over and not mine.comes_back:
        return (
            f"{first} Of the undefended models it is so on {mine.clearer} of {mine.over} only: the "
            "attacks fail there too, and nothing can be said of a defence."
        )
    return first


def result_html(result: Mapping[str, Any]) -> str:
    """Return what a finished campaign made, as HTML."""
    crashed = result["n_crashed"]
    broke = f", {crashed} of them broke with an error that is in the set's table" if crashed else ""
    undone = result["undone"]
    return made_html(_HTML.result(result, broke, undone), result["sets"])


def _count(views: Iterable[SetView]) -> Count:
    ended = (CellState.OK, CellState.FAILED)
    shown = [[cell.shown for cell in view.cells if cell.state in ended] for view in views]
    return Count.of(chain(*shown))._replace(units=max(map(len, shown), default=0))


def _set_row(view: SetView) -> tuple[Any, ...]:
    done, failed = view.count(CellState.OK), view.count(CellState.FAILED)
    words = f"{done} of {len(view.cells)} done" + (f", {failed} failed" if failed else "")
    share, squares = None, [(cell.state.value[0], _cell_words(cell)) for cell in view.cells]
    if len(squares) > _SQUARES:
        share, squares = sum(cell.share for cell in view.cells) / len(view.cells), []
    return view.planned.model, _target_words(view), words, share, squares


def _target_words(view: SetView) -> str:
    if view.failure:
        return f"failed: {view.failure.strip().splitlines()[-1]}"
    if view.training is not None:
        return f"training, {view.training:.0%}"
    return view.target or "not trained"


def _cell_words(cell: CellView) -> str:
    share = f" {cell.share:.0%}" if cell.state is CellState.RUNNING else ""
    return f"{cell.image_id}: {cell.state.value[1]}{share}"


def _grid(views: Sequence[SetView], images: Pictures, page: int) -> str:
    start = (page - 1) * ROWS
    rows = [
        (
            images.names[place],
            png_address(png_of(images.pixels[place])),
            [_picture(view, view.cells[place], images.names[place]) for view in views],
        )
        for place in range(start, min(start + ROWS, len(images.names)))
    ]
    return str(_HTML.grid(images.dataset, [view.planned.model for view in views], rows))


def _picture(view: SetView, cell: CellView, name: str) -> dict[str, Any]:
    if cell.state is CellState.OK:
        words = chip(cell.shown)
        flags = {
            words: bool(words),
            "worse than grey": cell.worse_than_grey,
            "blew up": cell.blown_up,
        }
        return {
            "address": address(cell.key, "picture", cell.changed),
            "alt": f"{name}, reconstructed from {view.planned.model}",
            "flags": [flag for flag, holds in flags.items() if holds],
        }
    share = f"{cell.share:.0%}" if cell.state is CellState.RUNNING else ""
    return {"address": "", "words": cell.state.value[1], "share": share}


def address(key: str, kind: str, changed: int) -> str:
    """Return a picture's address: `kind` is attacked or picture; `changed` tells versions apart."""
    return rooted(f"{FOLDER}/{key}/{kind}.png?v={changed}")


def router(context: ScienceContext) -> APIRouter:
    """The route of the pictures below `FOLDER`."""
    routes = APIRouter()
    store = PieceStore(context.data)

    @routes.get(FOLDER + "/{key}/{kind}.png")
    @worded
    def picture(key: str, kind: Literal["attacked", "picture"]) -> Response:
        if not _KEY.fullmatch(key):
            raise GoneError("No such cell.")
        result = store.cells.read(key).result
        found = result.attacked if kind == "attacked" else result.picture
        if found is None:
            raise GoneError("This attack gave no picture.")
        return Response(png_of(found), media_type="image/png", headers=KEPT)

    return routes
