"""How long a campaign takes and how much disk it needs, from a few steps measured here.

A probe trains on a few batches and runs each attack for a few iterations, in one thread and by CPU
time, so that it does not matter what else the machine does meanwhile. On a GPU it goes by the
clock, and nothing else may use it. What it finds is kept, see `semsim.campaign.costs`.
"""

import contextlib
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsim.attacks import ATTACKS, SHARED
from semsim.campaign.costs import Cost, found_seconds, keep_found, probe_key
from semsim.campaign.plan import ONE_GRADIENT, Plan, PlannedSet, PlannedTarget, parameters
from semsim.campaign.store import PieceStore
from semsim.datasets import DATASETS
from semsim.datasets.on_disk import present
from semsim.defences import DEFENCES
from semsim.device import device_name, now_on, one_thread, pick_device
from semsim.errors import StopRequestedError
from semsim.kept.places import checkout
from semsim.progress import Progress, Report, silent
from semsim.registry import Plugin, all_settings, build, read_plugin
from semsim.targets import NETWORKS
from semsim.targets.train_settings import TrainSettings
from semsim.types import LabelledImages

if TYPE_CHECKING:
    from torch import Tensor

    from semsim.defences.base import Defence
    from semsim.defences.dp_sgd import DpSgd
    from semsim.targets.model import TargetModel

_SETTLED = 16  # images whose statistics batch norm takes
_BATCHES = 3  # of training, after one that is not measured
_LONG_ENOUGH = 1.0  # seconds of attack that tell its pace
_FILE = 4096  # bytes a file takes at least
_START = """
import sys, time
from semsim.campaign.probe import begun
begun(*sys.argv[1:])
print(time.process_time())
"""
_PICTURES = 6  # original, attacked and reconstruction, each in the store and in the set

Load = Callable[[Plugin, str], LabelledImages]
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Seconds of one core: `trainings` by key of the target, `images` by folder of the set."""

    trainings: Mapping[str, float] = field(default_factory=dict)
    images: Mapping[str, float] = field(default_factory=dict)

    def training(self, target: PlannedTarget) -> float:
        """Of training a target; 1 where nothing was measured."""
        return self.trainings.get(target.key, 1.0)

    def image(self, planned: PlannedSet) -> float:
        """Of attacking one image; 1 where nothing was measured."""
        return self.images.get(planned.folder, 1.0)


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What carrying out a plan takes.

    cells, cells_done, cells_failed; targets and those still to train. seconds: of one core, for
    what is missing, or None where it was not measured. alone: until the work begins. disk: bytes,
    of everything.
    """

    cells: int
    cells_done: int
    targets: int
    to_train: int
    seconds: float | None
    disk: int
    alone: float = 0.0


def outlook(plan: Plan, data: Path, estimate: Estimate | None) -> Outlook:
    """What is left of `plan` below `data`; without `estimate` the time is not told."""
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


def cost_of(plan: Plan, estimate: Estimate) -> Cost:
    """What all of `plan` takes where nothing of it is done yet."""
    every = {cell.key for cell in plan.cells}
    return Cost(seconds=seconds_of(plan, estimate, every, plan.targets), disk=_disk(plan))


def seconds_of(
    plan: Plan, estimate: Estimate, cells: Set[str], targets: Sequence[PlannedTarget]
) -> float:
    """Of training `targets` and attacking `cells`, each once, however many sets have it."""
    trainings = {target.key: estimate.training(target) for target in targets}
    images = {c.key: estimate.image(s) for s in plan.sets for c in s.cells if c.key in cells}
    return sum(trainings.values()) + sum(images.values())


def known_estimate(plan: Plan, data: Path) -> Estimate | None:
    """What earlier probes say of `plan`, or None where one is missing."""
    kept = {key: found_seconds(data, key) for key in _probes(plan)}
    if None in kept.values():
        return None
    return _estimate(plan, {key: seconds or 0.0 for key, seconds in kept.items()})


def measure(
    plan: Plan, data: Path, load: Load, report: Report = silent, device: str = "cpu"
) -> Estimate:
    """Probe what `plan` needs and no earlier probe below `data` has measured.

    device: where it is computed. On another than "cpu" the seconds are its own, by the clock.
    """
    probes, seconds = _probes(plan, device), {}
    for done, (key, about) in enumerate(probes.items(), 1):
        with one_thread():
            seconds[key] = probed(data, key, partial(_probe, plan, about, load, device))
        report(Progress(done, len(probes), "measuring a few steps"))
    return _estimate(plan, seconds, device)


def probed(data: Path, key: str, measure: Callable[[], float]) -> float:
    """Seconds that an earlier probe kept under `key` below `data`, or those measured now."""
    kept = found_seconds(data, key)
    if kept is None:
        kept = measure()
        keep_found(data, key, {"seconds": kept})
    return kept


def starting(data: Path, module: str, *datasets: str) -> float:
    """CPU seconds of a fresh process before the first step of its work, see `begun`."""
    key = probe_key("start", module, datasets)
    return probed(data, key, lambda: _started(module, *datasets))


def begun(module: str, *datasets: str) -> None:
    """What a process does before its work begins: it imports `module` and reads the data sets.

    datasets: as text; one whose files are not on this machine is left out.
    """
    import_module(module)
    for text in datasets:
        plugin = read_plugin(DATASETS, text)
        dataset = build(DATASETS, plugin.name, plugin.settings)
        if present(dataset):
            dataset("train"), dataset("test")


def _started(*asked: str) -> float:
    command = [sys.executable, "-c", _START, *asked]
    done = subprocess.run(command, cwd=checkout(), check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def pace(work: Callable[[Report], object], clock: Callable[[], float] = time.process_time) -> float:
    """Seconds that all of `work` takes, from a second of it; CPU seconds by the usual clock."""
    watch = _Stopwatch(clock)
    with contextlib.suppress(_EnoughError):
        work(watch)
    return watch.seconds()


def _probes(plan: Plan, device: str = "cpu") -> dict[str, PlannedTarget | PlannedSet]:
    """What to measure, by its key; targets that differ in seed take as long, and so do those that
    differ in strategy, but for DP-SGD.
    """
    probes: dict[str, PlannedTarget | PlannedSet] = {_epoch_key(t, device): t for t in plan.targets}
    return probes | {_attack_key(planned, device): planned for planned in plan.sets}


def _estimate(plan: Plan, seconds: Mapping[str, float], device: str = "cpu") -> Estimate:
    epochs = {t.key: seconds[_epoch_key(t, device)] for t in plan.targets}
    return Estimate(
        trainings={t.key: epochs[t.key] * t.plan.train.epochs for t in plan.targets},
        images={s.folder: seconds[_attack_key(s, device)] for s in plan.sets},
    )


def _of(device: str) -> str:
    """Whose seconds they are, as keys say it."""
    return "CPU" if device == "cpu" else device_name(device)


def _epoch_key(target: PlannedTarget, device: str) -> str:
    train = target.plan.train
    how = [train.batch_size, *(["mixed_precision"] if train.mixed_precision else [])]
    how += [] if _shield(target) is None else ["dp-sgd"]
    return probe_key(f"{_of(device)} of an epoch", *_network(target), *how)


def _attack_key(planned: PlannedSet, device: str) -> str:
    size = len(next(planned.batches()))
    how = [all_settings(ATTACKS, planned.attack), size]
    if planned.shared != ONE_GRADIENT:
        how.append(all_settings(SHARED, planned.shared))
    return probe_key(f"{_of(device)} of an attack", *_network(planned.target), *how)


def _network(target: PlannedTarget) -> list[object]:
    return [target.data_settings, all_settings(NETWORKS, target.plan.architecture)]


def _shield(target: PlannedTarget) -> "DpSgd | None":
    """DP-SGD, where the target is trained by it: that takes the gradient of each image."""
    plugin = target.plan.defence
    private: DpSgd | None = build(DEFENCES, plugin.name, plugin.settings).private
    return private if private is not None and private.acts("train") else None


def _probe(plan: Plan, about: PlannedTarget | PlannedSet, load: Load, device: str) -> float:
    from semsim.campaign.cell import attack_images  # with torch, as below

    if isinstance(about, PlannedTarget):
        data = load(about.plan.dataset, "train")
        asked = _architecture(about), data, about.plan.train, device
        return epoch_seconds(*asked, defence=_shield(about))
    target, size = about.target, len(next(about.batches()))
    data = load(target.plan.dataset, "train")
    model = _train_on(_architecture(target), data, target.plan.train, 1, device)
    settle(model, data.images[:_SETTLED])
    images = plan.images[target.dataset].pick(range(size))
    seeds = list(range(size))

    def work(report: Report) -> object:
        how = about.attack, seeds, report, about.shared
        found = attack_images(model, images, Plugin(name="none"), *how)
        if all(one.error for one in found):
            label = f"{about.attack.name} on {target.plan.architecture.name}"
            log.warning("The probe of %s failed, so that its time is too short.", label)
        return found

    return pace(work, clock_of(device)) / size


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


def clock_of(device: str) -> Callable[[], float]:
    """Tells seconds of what is computed there: CPU seconds, or a GPU's once it has ended."""
    return time.process_time if device == "cpu" else partial(now_on, pick_device(device))


def epoch_seconds(
    architecture: Any,
    data: LabelledImages,
    train: TrainSettings,
    device: str = "cpu",
    defence: "Defence | None" = None,
) -> float:
    """Seconds by `clock_of` of an epoch of `architecture`, from a few batches of `data`.

    defence: what it is trained under, None for nothing.
    """
    size, clock = train.batch_size, clock_of(device)
    _train_on(architecture, data, train, 1, device, defence)
    began, batches = clock(), min(_BATCHES, -(-len(data) // size))
    _train_on(architecture, data, train, batches, device, defence)
    return (clock() - began) / min(len(data), batches * size) * len(data)


def _architecture(target: PlannedTarget) -> Any:
    return build(NETWORKS, target.plan.architecture.name, target.plan.architecture.settings)


def _train_on(
    architecture: Any,
    data: LabelledImages,
    train: TrainSettings,
    batches: int,
    device: str,
    defence: "Defence | None" = None,
) -> "TargetModel":
    from semsim.targets.train import train_target

    some = data.pick(range(min(len(data), batches * train.batch_size)))
    settings = replace(train, epochs=1, until=1.0)  # test images are not looked at
    where, shield = pick_device(device), defence or build(DEFENCES, "none")
    return train_target(architecture, some, shield, settings, device=where)


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


def picture_bytes(values: int) -> int:
    """Bytes of all that is kept of an attacked picture of so many values, as if none compressed."""
    return _PICTURES * (values + _FILE)


def _disk(plan: Plan) -> int:
    """Bytes of all pieces and sets."""
    pictures = sum(
        picture_bytes(plan.images[s.target.dataset].images[0].numel()) * len(s.cells)
        for s in plan.sets
    )
    weights = [parameters(target.plan, plan.images[target.dataset]) for target in plan.targets]
    return pictures + 4 * sum(weights)
