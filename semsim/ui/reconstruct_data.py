"""What the page Reconstruct reads: the campaign a form means, and how far its cells are."""

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path

import numpy as np

from semsim.attacks.as_text import with_preset
from semsim.campaign.campaign_job import CampaignOrder, load, plan_of, queue_campaign
from semsim.campaign.plan import Campaign, Cell, PlannedSet
from semsim.campaign.probe import Outlook, known_estimate, measure, outlook
from semsim.campaign.store import PieceStore
from semsim.campaign.watch import RunFolder
from semsim.errors import SettingsError
from semsim.grid.apart import apart
from semsim.images import to_uint8
from semsim.jobs.folders import Job
from semsim.targets.chance import target_facts
from semsim.targets.train_settings import TrainSettings, read_training
from semsim.ui import ScienceContext
from semsim.words import words_of_test

_VERDICTS = "reconstruct: how cells turned out"  # in what a context keeps
_TESTS = "reconstruct: how good targets are"
_planning = threading.Lock()  # a plan takes seconds: who asks meanwhile gets the same


class CellState(Enum):
    """Where one image of one set is."""

    WAITING = "waiting"
    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class CellView:
    """One image of one set.

    share: done of it, 0 to 1. changed: when, for addresses of pictures. worse_than_grey: whether a
    grey image explains the gradient at least as well as the picture. blown_up: whether the solution
    was farther from grey than any picture.
    """

    key: str
    image_id: str
    state: CellState
    share: float = 0.0
    changed: int = 0
    worse_than_grey: bool = False
    blown_up: bool = False


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """The attacked images of a data set: (H, W, 3) uint8 each, and the names of their classes."""

    dataset: str
    names: tuple[str, ...]
    pixels: tuple[np.ndarray, ...]


@dataclass(frozen=True, kw_only=True)
class PlanView:
    """What a page shows of a plan, without a tensor. pictures: by the text of their data set."""

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
        """How many images are in `state`."""
        return sum(cell.state is state for cell in self.cells)


@dataclass(frozen=True, kw_only=True)
class Form:
    """What the form holds; `more` are lists written as text, one plug-in a line."""

    name: str
    chosen: Mapping[str, Sequence[str]]
    more: Mapping[str, str]
    preset: str
    images: float | None
    seeds: str
    training: str
    judge: str = ""


def campaign_of_form(form: Form) -> Campaign:
    """The campaign a form means; `SettingsError` where a field cannot be read."""
    if form.images is None:
        raise SettingsError("The number of images is empty; give at least 1.")
    lists = {
        name: (*chosen, *_lines(form.more.get(name, ""))) for name, chosen in form.chosen.items()
    }
    return Campaign(
        name=form.name.strip(),
        datasets=lists["datasets"],
        architectures=lists["architectures"],
        strategies=lists["strategies"],
        attacks=tuple(with_preset(lists["attacks"], form.preset)),
        images=int(form.images),
        seeds=_seeds(form.seeds),
        train=read_training(form.training, TrainSettings()),
    )


def kept_plan(campaign: Campaign) -> PlanView:
    """The plan of `campaign`; the last few are kept, as a page asks several times a second."""
    with _planning:
        return _kept_plan(campaign)


@lru_cache(maxsize=4)
def _kept_plan(campaign: Campaign) -> PlanView:
    view: PlanView = apart(f"{__name__}:planned", campaign)
    return view


def planned(campaign: Campaign) -> PlanView:
    """What `kept_plan` keeps; here and below what a page lets be done apart, by name."""
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


def told(form: Form, data: Path, measuring: bool) -> Outlook:
    """What is left to do; measuring: probe a few steps where no earlier probe is known."""
    plan = plan_of(campaign_of_form(form))
    estimate = measure(plan, data, load) if measuring else known_estimate(plan, data)
    return outlook(plan, data, estimate)


def queued(form: Form, data: Path, device: str, checkpoints: Path) -> Job:
    """The job of the form's campaign; data that is not there is said now, not by a failed job."""
    campaign = campaign_of_form(form)
    plan_of(campaign)
    order = CampaignOrder(
        campaign=campaign, data=data, device=device, judge=form.judge, checkpoints=checkpoints
    )
    return queue_campaign(order, data / "jobs")


def set_views(context: ScienceContext, campaign: Campaign) -> list[SetView]:
    """How far every set of `campaign` is."""
    plan, store = kept_plan(campaign), PieceStore(context.data)
    shares = RunFolder(context.data, campaign.name).shares()
    there = _times(store)
    return [_set_view(context, store, planned, shares, there) for planned in plan.sets]


def _set_view(
    context: ScienceContext,
    store: PieceStore,
    planned: PlannedSet,
    shares: Mapping[str, float],
    there: Mapping[str, int],
) -> SetView:
    cells = [_cell_view(context, store, cell, shares, there) for cell in planned.cells]
    key = planned.target.key
    return SetView(
        planned=planned,
        cells=tuple(cells),
        target=_target_words(context, store, key),
        training=shares.get(key),
        failure=store.failure(key),
    )


def _cell_view(
    context: ScienceContext,
    store: PieceStore,
    cell: Cell,
    shares: Mapping[str, float],
    there: Mapping[str, int],
) -> CellView:
    if cell.key in there:
        ok, worse, blown_up = _verdict(context, store, cell.key, there[cell.key])
        return CellView(
            key=cell.key,
            image_id=cell.image_id,
            state=CellState.OK if ok else CellState.FAILED,
            share=1.0,
            changed=there[cell.key],
            worse_than_grey=worse,
            blown_up=blown_up,
        )
    state = CellState.RUNNING if cell.key in shares else CellState.WAITING
    share = shares.get(cell.key, 0.0)
    return CellView(key=cell.key, image_id=cell.image_id, state=state, share=share)


def _target_words(context: ScienceContext, store: PieceStore, key: str) -> str:
    """What the weight file of a target says of its test, read once; "" without one."""
    known = context.kept.setdefault(_TESTS, {})
    if key not in known and key in store.weights:
        known[key] = words_of_test(target_facts(store.weights.path(key)))
    return str(known.get(key, ""))


def _times(store: PieceStore) -> dict[str, int]:
    """When each kept cell was written, by its key."""
    folder = store.cells.folder
    if not folder.is_dir():
        return {}
    with os.scandir(folder) as entries:
        return {
            entry.name.removesuffix(".npz"): entry.stat().st_mtime_ns
            for entry in entries
            if entry.name.endswith(".npz") and not entry.name.startswith(".")
        }


def _verdict(
    context: ScienceContext, store: PieceStore, key: str, at: int
) -> tuple[bool, bool, bool]:
    """Whether the cell succeeded, is worse than grey, blew up; each version is read once."""
    known = context.kept.setdefault(_VERDICTS, {})
    if (key, at) not in known:
        found = store.cells.read(key).result
        known[key, at] = (found.ok, found.worse_than_grey, found.blown_up)
    verdict: tuple[bool, bool, bool] = known[key, at]
    return verdict


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace(",", " ").split())
    except ValueError:
        raise SettingsError(f"Seeds are whole numbers, as 0 1 2; got {text!r}.") from None
