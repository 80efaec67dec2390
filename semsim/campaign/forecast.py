"""Forecast of the time and the disk that a campaign needs, from a few steps measured here.

A probe trains on a few batches and runs each attack for a few iterations, in one thread and by CPU
time, so that it does not matter what else the machine does meanwhile. What it finds is kept below
<data>/runs/_pieces/probes.
"""

import contextlib
import logging
import platform
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from semsim.attacks import ATTACKS, SHARED
from semsim.attacks.as_text import ONE_GRADIENT
from semsim.base.errors import StopRequestedError
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import Plugin, all_settings, build, built
from semsim.campaign.plan import Plan, PlannedSet, PlannedTarget, key_of
from semsim.campaign.store import PieceStore
from semsim.defences import DEFENCES
from semsim.device import one_thread, pick_device
from semsim.sets.image import picture_bytes
from semsim.targets import NETWORKS
from semsim.types import LabelledImages

if TYPE_CHECKING:
    from torch import Tensor

    from semsim.defences.base import Defence
    from semsim.defences.dp_sgd import DpSgd
    from semsim.targets.model import TargetModel

FORMAT = "semsim-probe/1"  # part of every key: raise it where seconds are measured in another way
_SETTLED = 16  # images whose statistics batch norm takes
_BATCHES = 3  # of training, after one that is not measured
_LONG_ENOUGH = 1.0  # seconds of attack that tell its pace
_MACHINE = [platform.node(), platform.machine(), platform.processor()]

Load = Callable[[Plugin, str], LabelledImages]
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Seconds of one core: `trainings` by key of the target, `images` by folder of the set."""

    trainings: Mapping[str, float] = field(default_factory=dict)
    images: Mapping[str, float] = field(default_factory=dict)

    def training(self, target: PlannedTarget) -> float:
        """Return those of training a target; 1 where nothing was measured."""
        return self.trainings.get(target.key, 1.0)

    def image(self, planned: PlannedSet) -> float:
        """Return those of attacking one image; 1 where nothing was measured."""
        return self.images.get(planned.folder, 1.0)


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """Cost of carrying out a plan.

    cells, cells_done, cells_failed; targets and those still to train.

    Attributes:
        seconds: Of one core, for what is missing, or None where it was not measured.
        disk: Bytes, of everything.
    """

    cells: int
    cells_done: int
    targets: int
    to_train: int
    seconds: float | None
    disk: int


def outlook(plan: Plan, data: Path, estimate: Estimate | None) -> Outlook:
    """Return what is left of `plan` below `data`; without `estimate` the time is not told."""
    store = PieceStore(data)
    keys = {cell.key for cell in plan.cells}
    missing = set(store.cells.missing(keys))
    needed = [
        target
        for target in plan.targets
        if target.key not in store.weights and _lacks(plan, target, missing)
    ]
    return Outlook(
        cells=len(keys),
        cells_done=len(keys) - len(missing),
        targets=len({target.key for target in plan.targets}),
        to_train=len({target.key for target in needed}),
        seconds=None if estimate is None else seconds_of(plan, estimate, missing, needed),
        disk=_disk(plan),
    )


def seconds_of(
    plan: Plan, estimate: Estimate, cells: Set[str], targets: Sequence[PlannedTarget]
) -> float:
    """Return those of training `targets` and attacking `cells`, each once."""
    trainings = {target.key: estimate.training(target) for target in targets}
    images = {c.key: estimate.image(s) for s in plan.sets for c in s.cells if c.key in cells}
    return sum(trainings.values()) + sum(images.values())


def known_estimate(plan: Plan, data: Path) -> Estimate | None:
    """Return what earlier probes say of `plan`, or None where one is missing."""
    probes = PieceStore(data).probes
    if any(key not in probes for key in _probes(plan)):
        return None
    return _estimate(plan, {key: float(probes.read(key)["seconds"]) for key in _probes(plan)})


def measure(plan: Plan, data: Path, load: Load, report: Report = silent) -> Estimate:
    """Probe what `plan` needs and no earlier probe below `data` has measured.

    Asking begins no data folder: where `data` is none, nothing is kept.
    """
    kept, asked, seconds = PieceStore(data).probes, _probes(plan), {}
    for done, (key, about) in enumerate(asked.items(), 1):
        if key in kept:
            seconds[key] = float(kept.read(key)["seconds"])
        else:
            with one_thread():
                seconds[key] = _probe(plan, about, load)
            if data.is_dir():
                kept.write(key, {"seconds": seconds[key]})
        report(Progress(done, len(asked), "measuring a few steps"))
    return _estimate(plan, seconds)


def pace(work: Callable[[Report], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return the seconds that all of `work` takes, from a second of it."""
    watch = _Stopwatch(clock)
    with contextlib.suppress(_EnoughError):
        work(watch)
    return watch.seconds()


def _probes(plan: Plan) -> dict[str, PlannedTarget | PlannedSet]:
    """Return what to measure, by its key.

    Targets that differ in seed take as long, and so do those that differ in strategy, but for
    DP-SGD.
    """
    probes: dict[str, PlannedTarget | PlannedSet] = {_epoch_key(t): t for t in plan.targets}
    return probes | {_attack_key(planned): planned for planned in plan.sets}


def _estimate(plan: Plan, seconds: Mapping[str, float]) -> Estimate:
    epochs = {t.key: seconds[_epoch_key(t)] for t in plan.targets}
    return Estimate(
        trainings={t.key: epochs[t.key] * t.plan.train.epochs for t in plan.targets},
        images={s.folder: seconds[_attack_key(s)] for s in plan.sets},
    )


def _epoch_key(target: PlannedTarget) -> str:
    train = target.plan.train
    how = [train.batch_size, *(["mixed_precision"] if train.mixed_precision else [])]
    how += [] if _shield(target) is None else ["dp-sgd"]
    return key_of(FORMAT, "epoch", _MACHINE, *_network(target), *how)


def _attack_key(planned: PlannedSet) -> str:
    how = [all_settings(ATTACKS, planned.attack), len(next(planned.batches()))]
    if planned.shared != ONE_GRADIENT:
        how.append(all_settings(SHARED, planned.shared))
    return key_of(FORMAT, "attack", _MACHINE, *_network(planned.target), *how)


def _network(target: PlannedTarget) -> list[object]:
    return [target.data_settings, all_settings(NETWORKS, target.plan.architecture)]


def _shield(target: PlannedTarget) -> "DpSgd | None":
    """Return DP-SGD where the target is trained by it: that takes the gradient of each image."""
    private: DpSgd | None = built(DEFENCES, target.plan.defence).private
    return private if private is not None and private.acts("train") else None


def _probe(plan: Plan, about: PlannedTarget | PlannedSet, load: Load) -> float:
    if isinstance(about, PlannedTarget):
        return _epoch_seconds(about, load(about.plan.dataset, "train"))
    return _image_seconds(plan, about, load(about.target.plan.dataset, "train"))


def _image_seconds(plan: Plan, about: PlannedSet, data: LabelledImages) -> float:
    from semsim.campaign.work import attack_images  # with torch, as below

    target, size = about.target, len(next(about.batches()))
    model = _train_on(target, data, 1)
    settle(model, data.images[:_SETTLED])
    images = plan.images[target.dataset].pick(range(size))

    def work(report: Report) -> object:
        how = about.attack, list(range(size)), report, about.shared
        found = attack_images(model, images, Plugin(name="none"), *how)
        if all(one.error for one in found):
            label = f"{about.attack.name} on {target.plan.architecture.name}"
            log.warning("The probe of %s failed, so that its time is too short.", label)
        return found

    return pace(work) / size


def settle(model: "TargetModel", images: "Tensor") -> None:
    """Give batch norm the statistics that images, (N, 3, H, W), now have in `model`.

    The running ones are far from them after one batch, and answers of a deep network overflow: an
    attack on it fails at once, which would tell a pace.
    """
    import torch

    from semsim.attacks.batch_norm import batch_norm_layers

    before = [(layer, layer.momentum) for layer in batch_norm_layers(model)]
    for layer, _ in before:
        layer.momentum = 1.0
        layer.train()
    with torch.no_grad():
        model(images.to(model.mean))
    for layer, momentum in before:
        layer.momentum = momentum
        layer.eval()


def _epoch_seconds(target: PlannedTarget, data: LabelledImages) -> float:
    """Return the CPU seconds of an epoch, from a few batches of `data`."""
    size, shield = target.plan.train.batch_size, _shield(target)
    _train_on(target, data, 1, shield)
    began, batches = time.process_time(), min(_BATCHES, -(-len(data) // size))
    _train_on(target, data, batches, shield)
    return (time.process_time() - began) / min(len(data), batches * size) * len(data)


def _train_on(
    target: PlannedTarget, data: LabelledImages, batches: int, defence: "Defence | None" = None
) -> "TargetModel":
    from semsim.targets.train import train_target

    plan = target.plan
    network = built(NETWORKS, plan.architecture)
    some = data.pick(range(min(len(data), batches * plan.train.batch_size)))
    settings = replace(plan.train, epochs=1, until=1.0)  # test images are not looked at
    shield = defence or build(DEFENCES, "none")
    return train_target(network, some, shield, settings, device=pick_device("cpu"))


class _EnoughError(StopRequestedError):
    """The pace of an attack is known."""


class _Stopwatch:
    """A report that ends the work once its pace is known."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._began = clock, clock()
        self._points: list[tuple[float, float]] = []  # share done, when

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        self._points.append((progress.done / max(1, progress.total), now))
        (share, began), (last_share, _) = self._points[0], self._points[-1]
        if last_share > share and now - began > _LONG_ENOUGH and progress.done < progress.total:
            raise _EnoughError("enough")

    def seconds(self) -> float:
        """The whole work takes: at the pace between the first report and the last, and before the
        first what that pace does not explain.
        """
        if len(self._points) > 1 and self._points[-1][0] > self._points[0][0]:
            (share, first), (last_share, last) = self._points[0], self._points[-1]
            all_steps = (last - first) / (last_share - share)
            return all_steps + max(0.0, first - self._began - share * all_steps)
        return self._clock() - self._began


def _lacks(plan: Plan, target: PlannedTarget, missing: set[str]) -> bool:
    mine = [planned for planned in plan.sets if planned.target.key == target.key]
    return any(cell.key in missing for planned in mine for cell in planned.cells)


def _disk(plan: Plan) -> int:
    """Return the bytes of all pieces and sets."""
    pictures = sum(
        picture_bytes(plan.images[s.target.dataset].images[0].numel()) * len(s.cells)
        for s in plan.sets
    )
    weights = {planned.target.key: planned.seen["of"] for planned in plan.sets}
    return pictures + 4 * sum(weights.values())
