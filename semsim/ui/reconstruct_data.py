"""What the page Reconstruct reads: the campaign a form means, and how far its cells are."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path

from semsim.attacks.spec import with_preset
from semsim.campaign.orders import plan_of
from semsim.campaign.plan import Campaign, Cell, Plan, PlannedSet, campaign_to
from semsim.campaign.store import PieceStore
from semsim.campaign.watch import RunFolder
from semsim.errors import DataError, SettingsError
from semsim.jobs.folders import REPOSITORY
from semsim.kept.whole import write_json
from semsim.targets.train import TrainSettings, read_training
from semsim.ui import ScienceContext

_PATIENCE = 600  # seconds a measurement may take
_VERDICTS = "reconstruct: how cells turned out"  # in what a context keeps


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
class SetView:
    """One target under one attack. training: share done, None where it does not train now."""

    planned: PlannedSet
    cells: tuple[CellView, ...]
    trained: bool
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


@lru_cache(maxsize=4)
def kept_plan(campaign: Campaign) -> Plan:
    """The plan of `campaign`; the last few are kept, as a page asks once a second."""
    return plan_of(campaign)


def measure_apart(campaign: Campaign, data: Path) -> None:
    """Probe the campaign in a process of its own, so that the server's is not held up.

    What was measured is then known below `data`. Raises `DataError` with what it said.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "campaign.json"
        write_json(file, campaign_to(campaign))
        command = [sys.executable, "-m", "semsim", "campaign", "plan", "--file", str(file)]
        done = subprocess.run(
            [*command, "--data-dir", str(Path(data).resolve())],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    if done.returncode != 0:
        raise DataError(f"The time could not be measured: {done.stderr.strip()[-500:]}")


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
        trained=store.weights(key).exists(),
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


def _times(store: PieceStore) -> dict[str, int]:
    """When each kept cell was written, by its key."""
    folder = store.folder / "cells"
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
        cell = store.read_cell(key)
        known[key, at] = (cell.ok, cell.worse_than_grey, cell.blown_up)
    verdict: tuple[bool, bool, bool] = known[key, at]
    return verdict


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace(",", " ").split())
    except ValueError:
        raise SettingsError(f"Seeds are whole numbers, as 0 1 2; got {text!r}.") from None
