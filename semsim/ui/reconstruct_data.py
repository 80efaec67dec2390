"""Data of the page Reconstruct: the campaign a form means, and the state of its cells."""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from semsim.base.jobs.folders import Job
from semsim.base.words import words_of_test
from semsim.campaign.campaign_job import CampaignOrder, load, plan_of, queue_campaign
from semsim.campaign.forecast import Outlook, known_estimate, measure, outlook
from semsim.campaign.plan import Campaign, Cell, PlannedSet, data_content
from semsim.campaign.store import PieceStore
from semsim.campaign.watch import RunFolder
from semsim.grid.subprocess_worker import apart
from semsim.images import to_uint8
from semsim.sets.no_attack_baseline import NOTHING, Control, Shown
from semsim.targets.chance import target_facts
from semsim.ui import ScienceContext

_VERDICTS = "reconstruct: how cells turned out"  # in what a context keeps
_TESTS = "reconstruct: how good targets are"
_LOOKED = 5.0  # seconds for which what is in a folder is taken to stay
_planning = threading.Lock()  # a plan takes seconds: who asks meanwhile gets the same


class CellState(Enum):
    """State of one image of one set."""

    WAITING = "waiting"
    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class CellView:
    """One image of one set.

    share: done of it, 0 to 1. changed: when, for addresses of pictures. worse_than_grey: whether a
    grey image explains the gradient at least as well as the picture. blown_up: whether the solution
    was farther from grey than any picture. shown: whether it
    shows more than a guess, see `semsim.sets.no_attack_baseline`.
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
class UnderAttack:
    """An image that is being attacked now.

    original: (H, W, 3) uint8. steps: share done, 0 to 1, and a PNG file, each.
    """

    model: str
    name: str
    original: np.ndarray
    steps: tuple[tuple[float, bytes], ...]


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
    """View of a plan on a page, without a tensor. pictures: by the text of their data set."""

    sets: tuple[PlannedSet, ...]
    pictures: Mapping[str, Pictures]


@dataclass(frozen=True, kw_only=True)
class SetView:
    """One target under one attack.

    target: how good it is at its own task, in words; "" until it is trained. training: share done,
    None where it does not train now.
    """

    planned: PlannedSet
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
    """Return the content of a data set's files; about: when, as many files take long to look at."""
    return data_content(text)


@lru_cache(maxsize=4)
def _kept_plan(campaign: Campaign, contents: tuple[str, ...]) -> PlanView:
    """contents: of its data sets' files; once these have changed it is another plan."""
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


def told(campaign: Campaign, data: Path, measuring: bool) -> Outlook:
    """Return what is left to do; measuring: probe a few steps where no earlier probe is known."""
    plan = plan_of(campaign)
    estimate = measure(plan, data, load) if measuring else known_estimate(plan, data)
    return outlook(plan, data, estimate)


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
        views.append(
            SetView(
                planned=planned,
                cells=cells,
                target=_target_words(context, store, key),
                training=shares.get(key),
                failure=store.failure(key),
            )
        )
    return views


def under_attack(
    context: ScienceContext, campaign: Campaign, views: Sequence[SetView]
) -> UnderAttack | None:
    """Return the image under attack and the steps seen of it; None where none are seen."""
    seen = RunFolder(context.data, campaign.name).seen()
    if seen is None:
        return None
    for view in views:
        for place, cell in enumerate(view.cells):
            if cell.key == seen.key and cell.state is CellState.RUNNING:
                images = kept_plan(campaign).pictures[view.planned.target.dataset]
                return UnderAttack(
                    model=view.planned.model,
                    name=images.names[place],
                    original=images.pixels[place],
                    steps=seen.steps,
                )
    return None


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


def _target_words(context: ScienceContext, store: PieceStore, key: str) -> str:
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
