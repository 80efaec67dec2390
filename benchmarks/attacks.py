"""What gradient inversion costs beside other code, and how well our own attack sees.

python -m benchmarks.attacks [--quick] [--images FOLDER] [--device cpu]
    [--only speed|many|at-once|quality|tv|trained|curves|passes|layouts|mixed] [--net NAME]
    [--seeds 2] [--epochs 12] [--lr 0.02]

Times are CPU seconds of one thread, or wall seconds on a GPU. All contestants have their turn in
every round; a ratio is the median over rounds of the ratios within a round, since other programs
slow all of a round alike. FOLDER holds one folder of images a class; without it the built-in
symbols are attacked, which are easier than photographs.

`passes` measures a step of InvGrad with the hand-made passes of `fast_gradients` and without them,
as a network has it that they do not know; `layouts` one with weights that lie channels last, and
one compiled by torch, beside the plain one. Only what finds the plain one's slope is timed. `mixed`
attacks with mixed precision and without, and tells what pictures both find.
"""

import argparse
import copy
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean, median, stdev
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch._dynamo.utils import counters

from benchmarks.attacks_peers import breaching_attack, has_breaching, plain_loop
from benchmarks.keeping import Finds, Row, add_option
from benchmarks.measuring import begin, judge
from benchmarks.turns import ALIKE, interleaved, of_what, off, seconds
from semsim.attacks import ATTACKS, Attack, fast_gradients, run_many
from semsim.attacks.as_text import read_attack
from semsim.attacks.descent import first_order
from semsim.attacks.descent.distance import distance_from
from semsim.attacks.descent.first_order import Descent, FirstOrder, Objective, descend, slope_of
from semsim.attacks.invgrad import InvGrad
from semsim.attacks.labels import label_of
from semsim.attacks.observe import observe_gradient
from semsim.attacks.prior import Prior
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.progress import silent
from semsim.base.registry import built
from semsim.datasets.folder import Folder
from semsim.datasets.symbols import Symbols
from semsim.defences.none import NoDefence
from semsim.targets import Activation
from semsim.targets.convnet import ConvNet8
from semsim.targets.lenet import CNN4, LeNet, start_uniform
from semsim.targets.model import Architecture, TargetModel
from semsim.targets.resnet import ResNet20x4
from semsim.targets.train import accuracy, train_target
from semsim.targets.train_settings import TrainSettings
from semsim.types import GradientObservation, LabelledImages, Reconstruction

ONLY = (
    *("speed", "many", "at-once", "quality", "tv", "trained", "curves"),
    *("passes", "layouts", "mixed"),
)
TOGETHER = 16
CLASSES = 100
MEAN, STD = (0.507, 0.487, 0.441), (0.267, 0.256, 0.276)  # of CIFAR-100, as its papers give them


@dataclass(frozen=True, kw_only=True)
class Net:
    """A target as PyTorch starts it, or as Deep Leakage from Gradients does; never trained."""

    architecture: Architecture
    steps: int  # of a timing, so many that the residual after the last one does not weigh
    uniform: bool = False

    def model(self, seed: int, device: str) -> TargetModel:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            names = [str(i) for i in range(CLASSES)]
            model = TargetModel(self.architecture, names, mean=MEAN, std=STD, size=(32, 32))
        if self.uniform:
            start_uniform(model, torch.Generator().manual_seed(seed))
        return model.eval().to(device)


SPEED = {
    "lenet": Net(architecture=LeNet(), steps=100, uniform=True),
    "cnn4": Net(architecture=CNN4(activation="relu"), steps=100),
    "resnet20": Net(architecture=ResNet20x4(width=16), steps=60),
    "resnet20-4": Net(architecture=ResNet20x4(), steps=20),
    "convnet8": Net(architecture=ConvNet8(), steps=20),
}
QUALITY = {
    "lenet sigmoid": SPEED["lenet"],
    "cnn4 sigmoid": Net(architecture=CNN4(activation="sigmoid"), steps=100),
    "cnn4 relu": SPEED["cnn4"],
    "cnn4 tanh": Net(architecture=CNN4(activation="tanh"), steps=100),
}
# Times as fast as the plain loop, and `breaching`: one image, and many.
ALONE, MANY = 1.4, {"lenet": 5.0, "cnn4": 4.0, "resnet20": 4.0}
# As many at once as a campaign takes, and attacks long enough that what they begin with is little.
BATCHES = {"lenet sigmoid": 16, "cnn4 sigmoid": 16, "resnet20-4": 7, "convnet8": 10}
BATCHED = ("invgrad:steps=4", "dlg:steps=1", "prior:steps=8")
PASSES = 1.15  # times as fast with the hand-made passes as without: what they must be worth
TUNED = ("cnn4 relu", "lenet sigmoid")  # nets on which the weight of total variation was chosen


def rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def observed(model: TargetModel, images: LabelledImages) -> list[GradientObservation]:
    return [
        observe_gradient(model, image, label % CLASSES, NoDefence(), rng(0)).observation
        for image, label in zip(images.images, images.labels.tolist(), strict=True)
    ]


def ratio(rounds: list[dict[str, float]], theirs: str) -> float:
    return median(times[theirs] / times["semsim"] for times in rounds)


def times_as_fast(found: float, target: float) -> str:
    return f"×{found:.2f}, {judge(found, least=target)}"


def _inverted(seen: GradientObservation, steps: int) -> Reconstruction:
    return InvGrad(steps=steps)(seen, rng=rng(0))


def speed(images: LabelledImages, rounds: int, device: str, finds: Finds) -> None:
    """Keep milliseconds an iteration of InvGrad on one image, and how much less ours takes."""
    others = ["plain loop", *(["breaching"] if has_breaching() else [])]
    overs = [f"over the {who}".replace("the breaching", "breaching") for who in others]
    row = finds.table("speed", "net", "semsim", *others, *overs)
    for name, net in SPEED.items():
        (seen,) = observed(net.model(0, device), images.pick([0]))
        works: dict[str, Callable[[], object]] = {
            "semsim": partial(_inverted, seen, net.steps),
            "plain loop": partial(plain_loop, seen, net.steps, rng(0)),
        }
        if has_breaching():
            works["breaching"] = breaching_attack(seen, net.steps)
        times = interleaved(works, rounds, device)
        best = {who: min(each[who] for each in times) / net.steps * 1e3 for who in works}
        cells = [f"{best[who]:.2f}" for who in works]
        row(name, *cells, *(times_as_fast(ratio(times, who), ALONE) for who in others))


def many(images: LabelledImages, rounds: int, device: str, finds: Finds) -> None:
    """Keep milliseconds an iteration and image of 16 at once, against the plain loop's one."""
    row = finds.table("many", "net", "semsim", "plain loop", "times as fast, target")
    for name, target in MANY.items():
        net = SPEED[name]
        steps = net.steps
        seen = observed(net.model(0, device), images.pick(range(TOGETHER)))
        works = {
            "semsim": lambda seen=seen, steps=steps: run_many(
                InvGrad(steps=steps), seen, rngs=[rng(i) for i in range(TOGETHER)]
            ),
            "plain loop": lambda seen=seen, steps=steps: [
                plain_loop(one, steps, rng(0)) for one in seen
            ],
        }
        times = interleaved(works, rounds, device)
        best = {who: min(each[who] for each in times) / steps / TOGETHER * 1e3 for who in works}
        cells = [f"{best[who]:.2f}" for who in works]
        row(name, *cells, times_as_fast(ratio(times, "plain loop"), target))


def at_once(images: LabelledImages, rounds: int, device: str, finds: Finds) -> None:
    """Keep milliseconds an image of several at once, and how many times one by one takes."""
    row = finds.table("at-once", "attack, net", "images", "at once", "one by one", "times as fast")
    for (net, count), text in itertools.product(BATCHES.items(), BATCHED):
        model = (SPEED | QUALITY)[net].model(0, device)
        seen, plugin = observed(model, images.pick(range(count))), read_attack(text)
        attack = built(ATTACKS, plugin)
        works = {
            "semsim": partial(attacked, attack, [seen]),
            "one by one": partial(attacked, attack, [[one] for one in seen]),
        }
        times = interleaved(works, 1 if count < TOGETHER else rounds, device)
        best = {who: min(each[who] for each in times) / count * 1e3 for who in works}
        cells = [count, *(f"{best[who]:.1f}" for who in works)]
        row(f"{text}, {net}", *cells, f"×{ratio(times, 'one by one'):.2f}")


def attacked(attack: Attack, batches: Sequence[Sequence[GradientObservation]]) -> None:
    """All batches, one after the other."""
    for seen in batches:
        run_many(attack, seen, rngs=[rng(i) for i in range(len(seen))])


Wrap = Callable[[Objective], Objective]


def as_it_is(objective: Objective) -> Objective:
    return objective


def passes(images: LabelledImages, rounds: int, device: str, finds: Finds) -> None:
    """Keep the milliseconds a step and image with the hand-made passes and without them."""
    row = finds.table("passes", "network", "images", "with", "without", "")
    without = patch.object(fast_gradients, "plan_for", lambda *_: None)
    for name, seen, steps in contests(images, device):
        work = stepper(seen, steps)

        def bare(work: Callable[[], object] = work) -> object:
            with without:
                return work()

        with without:
            plain = value_and_slope(seen)
        if not (differ := off(value_and_slope(seen), plain)) <= ALIKE:
            raise SystemExit(f"{name}: the passes are {differ:.1e} off, so nothing is timed.")
        times = interleaved({"semsim": work, "without": bare}, rounds, device)
        tell(row, name, len(seen), steps, times, PASSES)


def layouts(images: LabelledImages, rounds: int, device: str, finds: Finds) -> None:
    """Keep the milliseconds a step and image as it is, and how many times as fast others are.

    Others: with channels last, and compiled by torch. What computes something else, or cannot be,
    is told and not timed.
    """
    others = ("channels last", "compiled")
    row = finds.table("layouts", "network", "images", "as it is", *others, "notes")
    for name, seen, steps in contests(images, device):
        last: Any = copy.deepcopy(seen[0].model)
        last.to(memory_format=torch.channels_last)
        ways: dict[str, tuple[list[GradientObservation], Wrap]] = {
            "channels last": ([replace(one, model=last) for one in seen], as_it_is),
            "compiled": (seen, torch.compile),
        }
        works, notes = {"semsim": stepper(seen, steps)}, list[str]()
        plain = value_and_slope(seen)
        torch.compiler.reset()
        counters.clear()
        for who, (given, wrap) in ways.items():
            try:
                differ = off(value_and_slope(given, wrap), plain)
                work = stepper(given, steps, wrap)
                work()
            except Exception as error:  # noqa: BLE001  whatever keeps it from that is told
                notes.append(f"{who} cannot be: {str(error).strip().splitlines()[0]}")
                continue
            if differ <= ALIKE:
                works[who] = work
            else:
                notes.append(f"{who} is {differ:.1e} off, so it is not timed")
        notes.append(f"compiled with {sum(counters['graph_break'].values())} breaks of the graph")
        times = interleaved(works, rounds, device)
        plain_ms = median(one["semsim"] for one in times) / steps / len(seen) * 1e3
        cells = [f"×{1 / ratio(times, who):.2f}" if who in works else "–" for who in others]
        row(name, len(seen), f"{plain_ms:.2f}", *cells, "; ".join(notes))


def mixed(images: LabelledImages, rounds: int, device: str, finds: Finds) -> None:
    """Keep milliseconds a step and image of InvGrad in float32 and bfloat16, and both PSNR."""
    row = finds.table("mixed", "network", "images", "float32", "bfloat16", "PSNR")
    for name, seen, steps in contests(images, device):
        part, rngs = images.pick(range(len(seen))), [rng(i) for i in range(len(seen))]
        attack = InvGrad(steps=steps, tv=2e-3)
        ways = {"semsim": attack, "bfloat16": replace(attack, mixed_precision=True)}
        try:
            found = {who: run_many(one, seen, rngs=rngs) for who, one in ways.items()}
        except SettingsError as refusal:
            row(name, len(seen), "", refusal, "")
            continue
        works = {who: partial(run_many, one, seen, rngs=rngs) for who, one in ways.items()}
        told = ", ".join(f"{who} {mean_psnr(one, part):.2f} dB" for who, one in found.items())
        tell(row, name, len(seen), steps, interleaved(works, rounds, device), note=told)


def mean_psnr(found: Sequence[Reconstruction | AttackFailedError], images: LabelledImages) -> float:
    """Of those that did not fail, in dB; NaN where all did."""
    values = [value for value in against(found, images) if value is not None]
    return mean(values) if values else math.nan


def contests(
    images: LabelledImages, device: str
) -> Iterator[tuple[str, list[GradientObservation], int]]:
    """A net's name, what was seen of one image or of TOGETHER, and the steps of a timing."""
    for name, net in SPEED.items():
        model = net.model(0, device)
        for count in (1, TOGETHER) if name in MANY else (1,):
            seen = observed(model, images.pick(range(count)))
            yield name, seen, net.steps if count == 1 else max(net.steps // 8, 2)


def objective_of(seen: Sequence[GradientObservation], matching: FirstOrder) -> Objective:
    distance = distance_from(seen, [label_of(one, "known") for one in seen], matching.distance)
    return first_order._objective(distance, (), matching)


def start_of(seen: Sequence[GradientObservation]) -> Tensor:
    shape = len(seen), *seen[0].shape
    return torch.randn(shape, generator=rng(0)).to(seen[0].model.mean)


def stepper(
    seen: Sequence[GradientObservation],
    steps: int,
    wrap: Wrap = as_it_is,
) -> Callable[[], object]:
    """A call that walks so many of InvGrad's steps, and nothing else, on an objective once made."""
    matching = InvGrad(steps=steps)
    sloped, start = partial(slope_of, wrap(objective_of(seen, matching))), start_of(seen)
    mean, std = seen[0].model.mean, seen[0].model.std
    return partial(
        descend,
        sloped,
        start,
        descent=Descent(steps=steps, lr=matching.lr, signed=matching.signed),
        keep=partial(torch.clamp, min=-mean / std, max=(1 - mean) / std),
        report=silent,
    )


def value_and_slope(
    seen: Sequence[GradientObservation],
    wrap: Wrap = as_it_is,
) -> tuple[Tensor, Tensor]:
    """The objective of each image at the start, and its slope by the images."""
    return slope_of(wrap(objective_of(seen, InvGrad())), start_of(seen))


def tell(
    row: Row,
    name: str,
    n: int,
    steps: int,
    times: list[dict[str, float]],
    least: float | None = None,
    note: str | None = None,
) -> None:
    """Add medians, and the median of the ratios within a round over the first contestant."""
    each = {who: median(one[who] for one in times) / steps / n * 1e3 for who in times[0]}
    ours = f"{each.pop('semsim'):.2f}"
    if least is not None:
        ((who, spent),) = each.items()
        row(name, n, ours, f"{spent:.2f}", times_as_fast(ratio(times, who), least))
        return
    others = [f"{who} {spent:.2f}: ×{1 / ratio(times, who):.2f}" for who, spent in each.items()]
    row(name, n, ours, ", ".join(others), note)


# Equal terms first: InvGrad under about as much total variation as `prior`, and from grey as well.
FAST = InvGrad.presets["fast"]
EQUAL = f"invgrad {FAST['steps']}, tv {FAST['tv']:g}"
CONTESTANTS: dict[str, Attack] = {
    EQUAL: InvGrad(**FAST),
    "prior": Prior(),
    "prior, curvature 0": Prior(curvature=0.0),
    f"{EQUAL}, curv. 0.1": InvGrad(**FAST, curvature=0.1),
    "invgrad 500, tv 1e-4": InvGrad(steps=500),
    "invgrad 4800, tv 1e-4": InvGrad(steps=4800),
}
TRAINED: dict[str, Attack] = {
    "invgrad 500, tv 0.005": InvGrad(**{**FAST, "tv": 0.005}),  # as much smoothing as `prior` has
    EQUAL: CONTESTANTS[EQUAL],
    "prior, not boxed": Prior(boxed=False),
    "prior": Prior(),
}
HELD_OUT = 6
CURVES = ("lenet sigmoid", "cnn4 tanh", "cnn4 relu")  # untrained
CURVES_TRAINED: tuple[Activation, ...] = ("tanh", "relu")  # activations of a CNN4 that has learned
BUDGETS = (50, 100, 200, 400)  # steps, to which each attack fits its own schedule
FEW = 3  # images of a curve
WEIGHTS = (1e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2)  # of total variation


# Makes a call that attacks and returns the image, from an observation, steps and a seed.
Racer = Callable[[GradientObservation, int, int], Callable[[], torch.Tensor]]


def psnr(found: torch.Tensor, image: torch.Tensor) -> float:
    return -10 * math.log10((found.cpu() - image).square().mean().item())


def psnrs(
    attack: Attack, net: Net, images: LabelledImages, seeds: int, device: str
) -> list[float | None]:
    """PSNR of each image in dB, None where the attack failed; the images dealt out to the nets."""
    values: list[float | None] = []
    for seed in range(seeds):
        part = images.pick(range(seed, len(images), seeds))
        rngs = [rng(1000 * seed + i) for i in range(len(part))]
        found = run_many(attack, observed(net.model(seed, device), part), rngs=rngs)
        values += against(found, part)
    return values


def trained(folder: str, settings: TrainSettings, finds: Finds) -> None:
    """Keep PSNR on test images of a ReLU CNN4 that the product trained."""
    data = Folder(root=folder) if folder else Symbols()
    images = data("test")
    model = train_target(CNN4(), data("train"), NoDefence(), settings)
    right = accuracy(model, images)
    few = images.pick(torch.randperm(len(images), generator=rng(2026))[:HELD_OUT].tolist())
    print(f"\n{settings.epochs} epochs on {images.dataset}: {right:.0%} of the test images right")
    finds.figure("right", right, n=f"{len(images)} pictures")
    row = finds.table("trained", "attack", "PSNR, dB")
    for title, attack in TRAINED.items():
        found = run_many(attack, observed(model, few), rngs=[rng(i) for i in range(len(few))])
        row(title, summary(against(found, few)))


def curves(images: LabelledImages, title: str, model: TargetModel, row: Row) -> None:
    """Add PSNR over CPU seconds an image, of images attacked one by one with budgets of steps.

    A line a contestant is printed: seconds, then dB, mean over the images, for each budget. The row
    has the seconds that `prior` takes with each, its dB, and the best of the others at as many
    seconds, read off between their budgets.
    """
    seen = observed(model, images)
    print(f"\n{title}: {len(images)} images of {images.dataset}; steps {BUDGETS}")
    points: dict[str, list[tuple[float, float]]] = {}
    for who, made in racers().items():
        made(seen[0], 2, 0)()  # what is loaded and built at first is not counted
        for steps in BUDGETS:
            spent, values = 0.0, list[float]()
            for i, (one, image) in enumerate(zip(seen, images.images, strict=True)):
                torch.manual_seed(i)
                kept: list[Tensor] = []
                spent += seconds(partial(_keep, kept, made(one, steps, i)), "cpu")
                values.append(psnr(kept[0], image))
            points.setdefault(who, []).append((spent / len(seen), mean(values)))
        told = ", ".join(f"{spent:.2f} s {value:.1f} dB" for spent, value in points[who])
        print(f"  {who:38}{told}", flush=True)
    ours = points.pop("prior")
    best: dict[str, list[float]] = {"invgrad": [], "breaching": []}
    for whose, found in best.items():
        lines = [line for who, line in points.items() if who.startswith(whose)]
        found += [max((read_off(line, at) for line in lines), default=-math.inf) for at, _ in ours]
    leads = [value - max(found) for (_, value), *found in zip(ours, *best.values(), strict=True)]
    row(
        title,
        ", ".join(f"{spent:.2f}" for spent, _ in ours),
        ", ".join(f"{value:.1f}" for _, value in ours),
        *(
            ", ".join(f"{one:.1f}" if math.isfinite(one) else "nothing yet" for one in found)
            if any(who.startswith(whose) for who in points)
            else "–"
            for whose, found in best.items()
        ),
        judge(min(leads), least=0, unit="dB"),
    )


def _keep(kept: list[Tensor], work: Callable[[], Tensor]) -> None:
    kept.append(work())


def racers() -> dict[str, Racer]:
    """By name: a call that attacks one observation for so many steps from such a start."""

    def ours(attack: Attack) -> Racer:
        def made(one: GradientObservation, steps: int, seed: int) -> Callable[[], Tensor]:
            given = replace(attack, steps=steps)
            return lambda: given(one, rng=rng(seed)).image.cpu()

        return made

    def theirs(name: str, scale: str) -> Racer:
        return lambda one, steps, seed: breaching_attack(one, steps, name, [scale])

    found = {
        "prior": ours(Prior()),
        "invgrad, tv 0.005": ours(InvGrad(**{**FAST, "tv": 0.005})),
        "invgrad, tv 0.02": ours(InvGrad(**FAST)),
    }
    if has_breaching():
        for name, tv in (("modern", 0.1), ("modern", 0.02), ("invertinggradients", 0.02)):
            scale = f"regularization.total_variation.scale={tv}"
            found[f"breaching {name}, tv {tv:g}"] = theirs(name, scale)
    return found


def read_off(line: Sequence[tuple[float, float]], at: float) -> float:
    """PSNR at so many seconds, along straight lines between the budgets; -inf before the first."""
    spent, values = zip(*line, strict=True)
    if at < spent[0]:
        return -math.inf
    return float(np.interp(at, spent, values))


def all_curves(folder: str, settings: TrainSettings, finds: Finds) -> None:
    """Keep the curves of untrained networks, and of a CNN4 that the product trained."""
    row = finds.table("curves", "network", "CPU s", "prior", "invgrad", "breaching", "")
    data = Folder(root=folder) if folder else Symbols()
    held = data("test")
    images = held.pick(torch.randperm(len(held), generator=rng(2027))[:FEW].tolist())
    for name in CURVES:
        curves(images, f"{name}, untrained", QUALITY[name].model(0, "cpu"), row)
    for activation in CURVES_TRAINED:
        model = train_target(CNN4(activation=activation), data("train"), NoDefence(), settings)
        right = f"{accuracy(model, held):.0%} of the test images right"
        curves(images, f"cnn4 {activation}, {settings.epochs} epochs, {right}", model, row)


def against(
    found: Sequence[Reconstruction | AttackFailedError], images: LabelledImages
) -> list[float | None]:
    return [
        psnr(one.image, image) if isinstance(one, Reconstruction) else None
        for one, image in zip(found, images.images, strict=True)
    ]


def weights(
    images: LabelledImages, nets: Mapping[str, Net], seeds: int, device: str, finds: Finds
) -> None:
    """Keep the mean PSNR of InvGrad's fast preset by its weight of total variation."""
    row = finds.table("tv", f"{images.dataset}, {seeds} nets", *(f"{tv:g}" for tv in WEIGHTS))
    for name, net in nets.items():
        made = (InvGrad(**{**FAST, "tv": tv}) for tv in WEIGHTS)
        found = (psnrs(one, net, images, seeds, device) for one in made)
        row(name, *(f"{mean(one for one in each if one is not None):.1f}" for each in found))


def quality(
    images: LabelledImages,
    nets: Mapping[str, Net],
    seeds: int,
    device: str,
    finds: Finds,
    *,
    long: bool,
) -> None:
    """Keep PSNR over images, nets and starts, and the share of InvGrad's seconds `prior` takes.

    The images are dealt out evenly to `seeds` nets, each of other weights; every image has a start
    of its own. Images are attacked together where that is the same walk and quicker.
    """
    grey = mean(-10 * math.log10((one - 0.5).square().mean().item()) for one in images.images)
    asked = {who: one for who, one in CONTESTANTS.items() if long or "4800" not in who}
    row = finds.table("quality", "net", *asked)
    for name, net in nets.items():
        found = (psnrs(attack, net, images, seeds, device) for attack in asked.values())
        row(name, *map(summary, found))
    finds.figure("quality.grey", grey, "dB", n=f"{len(images)} pictures")
    for name, net in nets.items():
        short = name.replace(" ", "-")
        finds.figure(f"one-image.{short}", cost(net, images, device))


def summary(found: list[float | None]) -> str:
    values = [value for value in found if value is not None]
    if len(values) < 2:
        return f"{len(values)} values of {len(found)}"
    lost = len(found) - len(values)
    told = f"{mean(values):.1f} ± {stdev(values):.1f}, worst {min(values):.1f}"
    return told + (f", {lost} failed" if lost else "")


def cost(net: Net, images: LabelledImages, device: str, rounds: int = 3) -> float:
    """Return what `prior` takes of the seconds of 500 steps of InvGrad, of one image alone."""
    (seen,) = observed(net.model(0, device), images.pick([0]))
    works = {
        "prior": lambda: Prior()(seen, rng=rng(0)),
        "invgrad 500": lambda: InvGrad(steps=500)(seen, rng=rng(0)),
    }
    times = interleaved(works, rounds, device)
    return median(each["prior"] / each["invgrad 500"] for each in times)


def images_of(folder: str, count: int, seed: int = 0) -> LabelledImages:
    """`count` images drawn by `seed`, all different."""
    found = Folder(root=folder, test_share=1.0)("test") if folder else Symbols()("test")
    return found.pick(torch.randperm(len(found), generator=rng(seed))[:count].tolist())


WITH_ROUNDS = {
    **{"speed": speed, "many": many, "at-once": at_once},
    **{"passes": passes, "layouts": layouts, "mixed": mixed},
}
USUAL = ("speed", "many")  # where nothing is asked for by its name


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--quick", action="store_true", help="few rounds, 4 images, no 4800 steps")
    options.add_argument("--images", default="", help="<folder>/<class>/<image>")
    options.add_argument("--device", default="cpu")
    options.add_argument("--seeds", type=int, default=2, help="nets that share the images")
    options.add_argument("--net", choices=list(QUALITY), help="quality on this net only")
    options.add_argument("--only", choices=ONLY)
    options.add_argument("--epochs", type=int, default=12, help="of --only trained and curves")
    options.add_argument("--lr", type=float, default=0.02, help="of --only trained and curves")
    add_option(options)
    given = options.parse_args()
    if given.only in ("trained", "curves") and given.device != "cpu":
        options.error(f"--only {given.only} is of the CPU alone; leave out --device.")
    begin()
    torch.set_num_threads(1)
    images = images_of(given.images, TOGETHER)
    print(f"{of_what(given.device)}, one thread, images of {images.dataset}")
    if not has_breaching():
        print("breaching is not installed and does not take part (pip install breaching).")
    with Finds(given.results) as finds:
        measure(given, images, 3 if given.quick else 7, finds)


def measure(given: argparse.Namespace, images: LabelledImages, rounds: int, finds: Finds) -> None:
    """Do what was asked for, or the speed of one and of many and the quality."""
    for name in USUAL if given.only is None else WITH_ROUNDS.keys() & {given.only}:
        WITH_ROUNDS[name](images, rounds, given.device, finds)
    if given.only in (None, "quality"):
        few = images.pick(range(4)) if given.quick else images
        nets = {given.net: QUALITY[given.net]} if given.net else QUALITY
        quality(few, nets, given.seeds, given.device, finds, long=not given.quick)
    if given.only == "trained":
        trained(given.images, TrainSettings(epochs=given.epochs, lr=given.lr), finds)
    if given.only == "curves":
        all_curves(given.images, TrainSettings(epochs=given.epochs, lr=given.lr), finds)
    if given.only == "tv":
        nets = {name: QUALITY[name] for name in ([given.net] if given.net else TUNED)}
        weights(images.pick(range(8)), nets, given.seeds, given.device, finds)


if __name__ == "__main__":
    main()
