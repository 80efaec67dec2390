"""How long an experiment in split inference takes and how much disk it needs, from a few steps.

A training takes a time that grows with its epochs: a few of them, on a batch of the images, tell
what all of them take; where a batch takes long, fewer images do (`HOW`). Beside the trainings and
attacks of the plan, a job starts, and trains a recogniser of the data set. What is found is kept,
see `semsim.campaign.costs`.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from semsim.campaign.costs import Cost, keep_cost, probe_key
from semsim.campaign.probe import epoch_seconds, picture_bytes, probed, starting
from semsim.device import one_thread, pick_device
from semsim.layer_graph import count_parameters
from semsim.registry import plain
from semsim.split.defences import Ensembler, draw_selector
from semsim.split.experiment import attack as attacked
from semsim.split.networks import AnyTask, SplitNetwork, Task, task_of
from semsim.split.plan import (
    ALIGN,
    SplitPlan,
    attack_name,
    attacks_on,
    check,
    make_dataset,
    make_defence,
    make_network,
    model_name,
    set_folder,
    without_metrics,
)
from semsim.split.run import RECOGNISER, RECOGNISER_TRAIN
from semsim.split.system import SplitSystem, empty_system
from semsim.split.train_settings import STARTS, ShadowAttack
from semsim.split.training import Bench
from semsim.types import LabelledImages

_FEW = 8  # images of a first try, and measured at least
_LONG = 0.5  # seconds: as many images are measured as take that
_ENOUGH, _MOST = 0.3, 8  # seconds of epochs that tell the time of one, and the most of them
_WORK = "semsim.split.run"
_ATTACK = "CPU of a split attack"
_Data = tuple[LabelledImages, LabelledImages]
# For who reads an estimate; the second is not of sentences.
HOW = (
    "Extrapolated from steps of one batch, or of as many examples as half a second allows, 8 at "
    "least, as if each took as long, to all steps of all epochs; of Ensembler's first networks as "
    "many are measured as it selects."
)
ONCE = "Attacks through as many bodies, aligned or not, are measured once."


@dataclass(frozen=True, kw_only=True)
class SplitOutlook:
    """What carrying out a plan takes where nothing of it is done yet.

    attacks: each on `pictures` pictures. seconds: of one core where it computes on a CPU, None
    where it was not measured. disk: bytes.
    """

    systems: int
    attacks: int
    pictures: int
    seconds: float | None
    disk: int


def planned_sets(plan: SplitPlan, data: Path) -> tuple[tuple[str, str, Path], ...]:
    """What is attacked, by which attack, and where its set will be: all sets, in their order."""
    any_task = Task(size=(32, 32), classes=2, mean=(0.5,) * 3, std=(0.25,) * 3)
    found = []
    for network, seed, defence in product(plan.networks, plan.defence_seeds, plan.defences):
        made = untrained(make_network(network), defence, any_task)
        model = model_name(network, defence, seed)
        for arm in plan.attacks:
            for tool in attacks_on(made, arm, plan.shadow):
                attack = attack_name(arm, tool)
                found.append((model, attack, set_folder(data, plan, model, attack)))
    return tuple(found)


class _System(NamedTuple):
    """A kind of system of a plan, not trained; network, defence: as text."""

    network: str
    defence: str
    made: SplitSystem


def told(
    plan: SplitPlan, data: Path, device: str, measuring: bool, noise: _Data | None = None
) -> SplitOutlook:
    """What `plan` takes; measuring: probe where no earlier probe below `data` is known.

    noise: both splits, in the place of a data set that is not here. What it tells is kept under its
    own name, and not as what `plan` takes.
    """
    check(plan)
    both = noise or _both(plan.dataset)
    plan = plan if noise is None else replace(plan, dataset=noise[0].dataset)
    task = task_of(both[0])
    systems = [
        _System(n, d, untrained(make_network(n), d, task))
        for n in plan.networks
        for d in plan.defences
    ]
    attacks = sum(len(_tools(plan, one.made)) for one in systems) * len(plan.attack_seeds)
    seeds = len(plan.defence_seeds)
    pictures = min(plan.images, len(both[1]))
    outlook = SplitOutlook(
        systems=len(systems) * seeds,
        attacks=attacks * seeds,
        pictures=pictures,
        seconds=None,
        disk=seeds * sum(4 * count_parameters(one.made) for one in systems)
        + seeds * attacks * pictures * picture_bytes(both[1].images[0].numel()),
    )
    if not measuring:
        return outlook
    with one_thread():
        seconds = seeds * _seconds(plan, data, device, both, systems)
        seconds += _recogniser_seconds(plan, data, both[0])
    read = () if noise else (plan.dataset,)
    cost = Cost(seconds=seconds, alone=starting(data, _WORK, *read), disk=outlook.disk)
    if noise is None:
        keep_cost(without_metrics(plan), data, cost)
    return replace(outlook, seconds=cost.seconds + cost.alone)


def _both(dataset: str) -> _Data:
    made = make_dataset(dataset)
    return made("train"), made("test")


def untrained(network: SplitNetwork, defence: str, task: AnyTask) -> SplitSystem:
    """A system that has the parts of one with `defence`, written as text."""
    shield = make_defence(defence)
    bodies = getattr(shield, "bodies", 1)
    made = empty_system(network, task, bodies=bodies)
    made.selector = draw_selector(bodies, getattr(shield, "selected", bodies), 0)
    return made


def _seconds(
    plan: SplitPlan, data: Path, device: str, both: _Data, systems: Sequence[_System]
) -> float:
    """Of training each system once and attacking it in every way with every seed."""
    trainings = [
        probed(
            data,
            probe_key("CPU of a split training", plan.dataset, *one[:2], device, plain(plan.train)),
            partial(_training_seconds, plan, device, both[0], one),
        )
        for one in systems
    ]
    works = Counter(alike(one, tool) for one in systems for tool in _tools(plan, one.made))
    attacks = [
        times
        * probed(
            data,
            probe_key(_ATTACK, plan.dataset, *work[:2], device, plain(work.tool)),
            partial(_attack_seconds, device, both, work),
        )
        for work, times in works.items()
    ]
    return sum(trainings) + len(plan.attack_seeds) * sum(attacks)


class _Work(NamedTuple):
    """An attack on a network, as text, through so many bodies, whichever defence they are of."""

    network: str
    bodies: int
    tool: ShadowAttack


def alike(one: _System, tool: ShadowAttack) -> _Work:
    """What takes as long: it matters how many bodies an attack goes through, and not which.

    An alignment takes hardly longer than none, so that it is measured with one; a start no time.
    """
    bodies = len(one.made.bodies if tool.bodies is None else tool.bodies)
    same = replace(tool, bodies=None, align=ALIGN, start=STARTS[0])
    return _Work(one.network, bodies, same)


def cheaper(defence: str) -> tuple[Any, float]:
    """A defence whose training is measured for that written as `defence`, and its first stage's
    share of epochs: the networks of Ensembler's are trained apart, so that a few of them tell.
    """
    made = make_defence(defence)
    if not isinstance(made, Ensembler):
        return made, 1.0
    return replace(made, bodies=made.selected), made.bodies / made.selected


def _recogniser_seconds(plan: SplitPlan, data: Path, images: LabelledImages) -> float:
    """Of training what reads the pictures that came back, which every job does once."""
    settings = RECOGNISER_TRAIN
    epoch = probed(
        data,
        probe_key("split recogniser", plan.dataset, plain(RECOGNISER), plain(settings)),
        lambda: epoch_seconds(RECOGNISER, images, settings),
    )
    return settings.epochs * epoch


def _training_seconds(plan: SplitPlan, device: str, images: LabelledImages, one: _System) -> float:
    settings = plan.train
    shield, times = cheaper(one.defence)

    def epochs(size: int) -> Callable[[int, int], object]:
        def work(first: int, second: int) -> object:
            few = replace(settings, epochs=first, ensemble_epochs=second)
            bench = Bench(
                network=make_network(one.network),
                data=images.pick(range(size)),
                settings=few,
                seed=0,
                device=pick_device(device),
            )
            return shield(bench)

        return work

    wanted = (times * settings.epochs, settings.ensemble_epochs)
    return extrapolated(epochs, wanted, len(images), settings.batch_size, _clock(device))


def _attack_seconds(device: str, both: _Data, asked: _Work) -> float:
    network, tool = make_network(asked.network), asked.tool
    system = empty_system(network, task_of(both[0]), bodies=asked.bodies).to(pick_device(device))
    private = both[1].pick(range(min(len(both[1]), _FEW)))

    def epochs(size: int) -> Callable[[int, int], object]:
        data = both[0].pick(range(size)), private

        def work(first: int, second: int) -> object:
            few = replace(tool, epochs=first, decoder_epochs=second)
            return attacked(system, network, data, few, count=len(private), seed=0)

        return work

    wanted = (tool.epochs, tool.decoder_epochs)
    return extrapolated(epochs, wanted, len(both[0]), tool.batch_size, _clock(device))


def _clock(device: str) -> Callable[[], float]:
    """CPU seconds; where something else computes, those on the wall."""
    return time.process_time if pick_device(device).type == "cpu" else time.perf_counter


def extrapolated(
    epochs: Callable[[int], Callable[[int, int], object]],
    wanted: tuple[float, float],
    images: int,
    batch: int,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Seconds of all epochs on all images, from one epoch and a few on one batch, or on fewer.

    epochs: a number of images → what trains on them for that many epochs of two kinds. wanted: how
    many of each. clock: seconds.
    """

    def timed(work: Callable[[int, int], object], first: int, second: int) -> float:
        began = clock()
        work(first, second)
        return clock() - began

    few, size = min(_FEW, images), min(batch, images)
    tried = timed(epochs(few), 1, 1)
    size = max(min(few, size), min(size, int(few * _LONG / max(tried, 1e-3))))
    work = epochs(size)
    if size != few:
        work(1, 1)  # the first of a size takes longer
    once = timed(work, 1, 1)
    more = min(_MOST, max(1, math.ceil(_ENOUGH / max(once, 1e-3))))
    first, second = (
        max(0.0, timed(work, *counts) - once) / more for counts in ((1 + more, 1), (1, 1 + more))
    )
    rest = max(0.0, once - first - second)  # what does not grow with the epochs
    share = math.ceil(images / batch) * min(batch, images) / size
    return rest + share * (wanted[0] * first + wanted[1] * second)


def _tools(plan: SplitPlan, made: SplitSystem) -> Sequence[Any]:
    return [tool for arm in plan.attacks for tool in attacks_on(made, arm, plan.shadow)]
