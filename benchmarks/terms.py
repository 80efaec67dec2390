"""Measure terms that papers add to gradient matching, each against InvGrad at equal CPU time.

python -m benchmarks.terms [--only symbols|digits|summary] [--runs 8] [--steps 200]
    [--results terms]

A run trains a network with batch norm anew and draws eight test pictures: attacked one by one, as
one batch, and as a client's local epochs. Batch norm normalises as in training, labels are known.
Each weight is chosen by its PSNR on training pictures of a network that no run attacks. A
contestant gets the CPU time of `--steps` steps of InvGrad, by a timing of its own step. Intervals
are Student's t over runs of the difference to InvGrad in PSNR.

A term is kept where it is above InvGrad by more than its interval in two cells at least, and below
in none.

- Partial gradient matching (Fan et al. 2025, arXiv:2506.08435): a share of the gradient's elements
  is matched, drawn anew at each step, or the largest ones.
- Gradient regularisation (the same): the mean of the slopes here and a step up the slope, which
  is the slope with a penalty on its own norm to first order.
- Group consistency (Yin et al. 2021, arXiv:2104.07586): four starts, drawn to their mean. The
  control is the same without the pull.
- Data leakage in federated averaging (Dimitrov et al. 2022): a copy of each picture for each local
  epoch, drawn together by the mean of features over a copy, which does not depend on order.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from statistics import mean

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.attacks import psnr, rng
from benchmarks.claims import Claim, kept, rows_of
from benchmarks.keeping import Finds, add_option
from benchmarks.measuring import begin
from semsim.attacks.descent.distance import (
    Distance,
    distance_from,
    distance_of_each,
    simulated_update,
    total_variation_of_each,
)
from semsim.attacks.descent.first_order import Descent, descend, slope_of
from semsim.attacks.fast_gradients import gradient_of_each
from semsim.attacks.observe import (
    BatchGradient,
    Sharing,
    Update,
    assigned,
    observe_gradient,
    observe_round,
)
from semsim.base.progress import silent
from semsim.base.stats.intervals import of_means
from semsim.datasets.digits import Digits
from semsim.datasets.symbols import Symbols
from semsim.defences.none import NoDefence
from semsim.targets.lenet import CNN4
from semsim.targets.model import TargetModel
from semsim.targets.train import accuracy, train_target
from semsim.targets.train_settings import TrainSettings
from semsim.types import LabelledImages, UpdateObservation

Data = Callable[[str], LabelledImages]
PICTURES = 8
NETWORK = CNN4(width=16, batch_norm=True)
TRAINING = TrainSettings(epochs=10, lr=0.02)
DATA: dict[str, Data] = {"symbols": Symbols(train_per_class=20), "digits": Digits()}
EPOCHS = Update(steps=4, batch=4, held=PICTURES, lr=0.05)  # two local epochs
SHARED: dict[str, Sharing | None] = {  # None: the gradient of each picture alone
    "1": None,
    "8": BatchGradient(batch=PICTURES),
    "8, two local epochs": EPOCHS,
}
TVS, STARTS, TUNING = (2e-3, 2e-2, 1e-1), 4, 997  # the seed of the network that weights come from
_TIMED, _TINY = 5, 1e-12


@dataclass(frozen=True, kw_only=True)
class Terms:
    """A descent with InvGrad's distance and total variation, and what a paper adds.

    share, largest: of the gradient's elements that are matched, drawn at each step or the largest
    of what leaked. up: length of the step up the slope, as root mean square of a pixel. starts,
    pull: starts, and weight of their squared distance to their mean. copies: weight of the prior
    between a client's epochs, 0 for one copy. one_gradient: takes an update for one gradient.
    """

    tv: float = TVS[0]
    share: float = 1.0
    largest: bool = False
    up: float = 0.0
    starts: int = 1
    pull: float = 0.0
    copies: float = 0.0
    one_gradient: bool = False


INVGRAD, WITHOUT = "InvGrad", "InvGrad, four starts"
CONTROLS = {WITHOUT, f"{WITHOUT}, mean", "InvGrad, one gradient"}
LEAST = 2  # cells in which a term that is kept is above
# Name to the terms, and what each is tuned over on top of InvGrad's own weight.
OF_GRADIENTS: dict[str, list[Terms]] = {
    INVGRAD: [Terms(tv=tv) for tv in TVS],
    "partial matching, drawn": [Terms(share=share) for share in (0.1, 0.3, 0.7)],
    "partial matching, largest": [Terms(share=share, largest=True) for share in (0.1, 0.3, 0.7)],
    "gradient regularisation": [Terms(up=up) for up in (0.02, 0.1, 0.5)],
    WITHOUT: [Terms(starts=STARTS)],
    "group consistency": [Terms(starts=STARTS, pull=pull) for pull in (0.001, 0.01, 0.1)],
}
OF_UPDATES: dict[str, list[Terms]] = {
    INVGRAD: [Terms(tv=tv) for tv in TVS],
    "InvGrad, one gradient": [Terms(one_gradient=True)],
    "copies of each epoch": [Terms(copies=weight) for weight in (0.01, 1.0, 100.0)],
}


class Match:
    """The slope of one leak under some terms, and what a descent on it returns."""

    def __init__(self, terms: Terms, distance: Distance, epochs: int, seed: int) -> None:
        self.terms, self.distance, self.joint = terms, distance, distance.joint
        self.epochs = epochs if terms.copies else 1
        self.drawing = rng(seed)
        self.filters = torch.randn(16, 3, 3, 3, generator=rng(0)) / 27**0.5
        every = torch.cat([one.flatten(1) for one in distance.leaked], 1).abs()
        place = max(1, round((1 - terms.share) * every.shape[1]))
        self.least = every.kthvalue(place, dim=1).values
        if self.epochs > 1:
            self.distance = replace(distance, labels=distance.labels.repeat(self.epochs))

    def gradients(self, images: Tensor) -> Sequence[Tensor]:
        """Return what images, (N, C, H, W) in [0, 1], would leak."""
        asked = self.distance.model, images, self.distance.labels
        if self.joint:
            return [each[None] for each in simulated_update(*asked, self.distance.local)]  # type: ignore[attr-defined]
        return gradient_of_each(*asked, batch_norm=self.distance.batch_norm)

    def matched(self, images: Tensor) -> Tensor:
        """Return the distance of images from what leaked, (N,)."""
        terms, leaked = self.terms, self.distance.leaked
        if terms.share == 1:
            return self.distance(images)
        found = self.gradients(images)
        if terms.largest:
            masks = [one.abs() >= self.least.view(-1, *[1] * (one.dim() - 1)) for one in leaked]
        else:
            masks = [
                torch.rand(one.shape[1:], generator=self.drawing) < terms.share for one in leaked
            ]
        pairs = zip(found, leaked, masks, strict=True)
        made, told = zip(*((a * mask, b * mask) for a, b, mask in pairs), strict=True)
        return distance_of_each(made, told, "cosine").expand(len(images))

    def objective(self, unknown: Tensor) -> Tensor:
        """Return the objective of one start, unknown (N, C, H, W) in units of the network, (N,)."""
        model = self.distance.model
        variation = total_variation_of_each(unknown)
        value = self.matched(unknown * model.std + model.mean)
        value = value + self.terms.tv * (variation.mean() if self.joint else variation)
        if self.epochs > 1:
            sets = unknown.view(self.epochs, -1, *unknown.shape[1:])
            told = [F.relu(F.conv2d(one, self.filters)).mean((0, 2, 3)) for one in sets]
            value = value + self.terms.copies * sum(
                (a - b).square().mean() for a, b in pairwise(told)
            )
        return value

    def slope(self, unknown: Tensor) -> tuple[Tensor, Tensor]:
        """Return values and slopes of all starts, (starts × N, …)."""
        parts = [self._sloped(one) for one in unknown.chunk(self.terms.starts)]
        values, slopes = (torch.cat(each) for each in zip(*parts, strict=True))
        if self.terms.pull:
            starts = unknown.detach().view(self.terms.starts, -1, *unknown.shape[1:])
            slopes = slopes + 2 * self.terms.pull * (starts - starts.mean(0)).view_as(slopes)
        return values, slopes

    def _sloped(self, unknown: Tensor) -> tuple[Tensor, Tensor]:
        values, slope = slope_of(self.objective, unknown)
        if not self.terms.up:
            return values, slope
        dims = (0, 1, 2, 3) if self.joint else (1, 2, 3)
        norm = slope.square().mean(dims, keepdim=True).sqrt().clamp_min(_TINY)
        _, there = slope_of(self.objective, unknown.detach() + self.terms.up * slope / norm)
        return values, (slope + there) / 2

    def start(self, shape: Sequence[int], seed: int) -> Tensor:
        """Return normal noise for all starts and copies."""
        count = self.terms.starts * self.epochs * shape[0]
        return torch.randn(count, *shape[1:], generator=rng(seed))

    def found(self, shape: Sequence[int], steps: int, seed: int) -> list[Tensor]:
        """Return reconstructions, of `shape`, in [0, 1]: of several starts the best, and the mean.

        The best is that of the lowest objective, which is all that an attacker has to go by.
        """
        terms, model = self.terms, self.distance.model
        mean_, std = model.mean, model.std
        ended = descend(
            self.slope,
            self.start(shape, seed),
            descent=Descent(steps=steps, lr=0.1, signed=True),
            keep=partial(torch.clamp, min=-mean_ / std, max=(1 - mean_) / std),
            report=silent,
        )
        images = (ended.unknown * std + mean_).clamp(0, 1).view(terms.starts, -1, *shape[1:])
        if self.epochs > 1:
            first, *others = images[0].split(shape[0])
            return [torch.stack([first, *(one[assigned(one, first)] for one in others)]).mean(0)]
        best = ended.objective.view(terms.starts, -1).argmin(0)
        chosen = images[best, torch.arange(shape[0])]
        return [chosen] if terms.starts == 1 else [chosen, images.mean(0)]


@dataclass(frozen=True)
class Cell:
    """Leak of some pictures, one by one or together."""

    images: Tensor
    distance: Distance
    once: Distance
    epochs: int

    def match(self, terms: Terms, seed: int) -> Match:
        """Return the descent of some terms."""
        return Match(terms, self.once if terms.one_gradient else self.distance, self.epochs, seed)

    def quality(self, terms: Terms, steps: int, seed: int) -> list[float]:
        """Return the mean PSNR in dB of each of what `Match.found` returns."""
        every = self.match(terms, seed).found(self.images.shape, steps, seed)
        if self.distance.joint:
            every = [one[assigned(one, self.images)] for one in every]
        return [mean(map(psnr, one, self.images)) for one in every]

    def cost(self, terms: Terms) -> float:
        """Return CPU seconds of a step, the least of some."""
        match = self.match(terms, 0)
        unknown = match.start(self.images.shape, 0)
        spent = []
        for _ in range(_TIMED):
            begun = time.process_time()
            match.slope(unknown)
            spent.append(time.process_time() - begun)
        return min(spent)


def cell_of(model: TargetModel, pictures: LabelledImages, sharing: Sharing | None) -> Cell:
    """Return what leaks of pictures."""
    labels = pictures.labels.tolist()
    if not isinstance(sharing, BatchGradient | Update):
        seen = [
            observe_gradient(model, *one, NoDefence(), rng(0), batch_norm="train").observation
            for one in zip(pictures.images, labels, strict=True)
        ]
        distance = distance_from(seen, labels, "cosine", batch_norm="train")
        return Cell(pictures.images, distance, distance, 1)
    rngs = [rng(place) for place in range(len(pictures))]
    leak: UpdateObservation = observe_round(
        model, pictures.images, pictures.labels, sharing, NoDefence(), rngs
    ).observation
    epochs = sharing.local.steps * sharing.local.batch // len(pictures)
    distance, once = (distance_from(one, labels, "cosine") for one in (leak, leak.as_one_step()))
    return Cell(pictures.images, distance, once, epochs)


def drawn(pictures: LabelledImages, seed: int) -> LabelledImages:
    """Return pictures of different classes that `seed` draws."""
    order = torch.randperm(len(pictures), generator=rng(seed)).tolist()
    first = {int(pictures.labels[place]): place for place in reversed(order)}
    return pictures.pick(sorted(first.values(), key=order.index)[:PICTURES])


def tuned(cell: Cell, candidates: dict[str, list[Terms]], steps: int) -> dict[str, Terms]:
    """Return each contestant with its best weight, at InvGrad's weight of total variation."""
    best: dict[str, Terms] = {}
    for name, grid in candidates.items():
        given = grid if name == INVGRAD else [replace(one, tv=best[INVGRAD].tv) for one in grid]
        count = steps_of(cell, given[0], steps)
        best[name] = (
            max(given, key=lambda one: cell.quality(one, count, 0)[0]) if given[1:] else given[0]
        )
    return best


def steps_of(cell: Cell, terms: Terms, steps: int) -> int:
    """Return the steps that cost as much CPU time as so many of InvGrad."""
    return max(1, round(steps * cell.cost(Terms()) / cell.cost(terms)))


def trained(data: Data, seed: int) -> TargetModel:
    """Return a network that `seed` starts."""
    return train_target(NETWORK, data("train"), NoDefence(), replace(TRAINING, seed=seed)).eval()


def cells(
    model: TargetModel, pictures: LabelledImages, shared: Sequence[str]
) -> Iterator[tuple[str, Cell]]:
    """Yield what leaks of pictures by the ways of sharing."""
    for name in shared:
        yield name, cell_of(model, pictures, SHARED[name])


def measure(finds: Finds, name: str, asked: argparse.Namespace) -> None:
    """Keep the table of a data set."""
    data = DATA[name]
    shared = list(SHARED) if name == "symbols" else list(SHARED)[:2]
    columns = ("data", "batch", "contestant", "weights", "steps", "PSNR, dB", "over InvGrad, dB")
    row = finds.table(f"{name}.cells", *columns, "")
    held, started = data("test"), time.process_time()
    best, steps = {}, {}
    for which, cell in cells(trained(data, TUNING), drawn(data("train"), TUNING), shared):
        candidates = OF_UPDATES if which == list(SHARED)[2] else OF_GRADIENTS
        best[which] = tuned(cell, candidates, asked.steps)
        steps[which] = {who: steps_of(cell, one, asked.steps) for who, one in best[which].items()}
    found: dict[str, dict[str, list[float]]] = {one: {} for one in shared}
    right, grey = [], []
    for run in range(asked.runs):
        model, pictures = trained(data, run), drawn(held, run)
        right.append(accuracy(model, held))
        grey.append(mean(psnr(torch.full_like(one, 0.5), one) for one in pictures.images))
        for which, cell in cells(model, pictures, shared):
            for who, terms in best[which].items():
                values = cell.quality(terms, steps[which][who], run)
                for end, value in zip(("", ", mean"), values, strict=False):
                    found[which].setdefault(who + end, []).append(value)
    for which, each in found.items():
        for who, values in each.items():
            usual = who.removesuffix(", mean")
            told = words(best[which][usual]), steps[which][usual], f"{mean(values):.2f}"
            row(name, which, who, *told, *verdict(values, each[INVGRAD], who))
    runs = f"{asked.runs} runs of {PICTURES} pictures"
    finds.figure(f"{name}.runs", asked.runs, n=runs)
    finds.figure(f"{name}.right", round(mean(right), 3), n=f"{asked.runs} networks")
    finds.figure(f"{name}.grey", round(mean(grey), 2), "dB", runs)
    finds.figure(f"{name}.seconds", round(time.process_time() - started), "CPU s", runs)


def words(terms: Terms) -> str:
    """Return the weights that differ from InvGrad's published ones."""
    named = {"tv": "TV", "share": "share", "up": "up", "pull": "pull", "copies": "prior"}
    usual = Terms(tv=-1)
    return ", ".join(
        f"{name} {getattr(terms, key):g}"
        for key, name in named.items()
        if getattr(terms, key) != getattr(usual, key)
    )


def verdict(values: Sequence[float], base: Sequence[float], who: str) -> tuple[str, str]:
    """Return the difference to InvGrad with its interval, and what it shows."""
    if who == INVGRAD:
        return "", ""
    apart = np.array(values) - np.array(base)
    half, why = of_means(apart, noun="run")
    if why is not None:
        return f"{apart.mean():+.2f}, {why}", ""
    side = "above" if apart.mean() > half else "below" if apart.mean() < -half else "no difference"
    return f"{apart.mean():+.2f} ± {half:.2f}".replace("-", "−"), side


def summed(finds: Finds, tables: Sequence[Claim]) -> None:
    """Keep a table of the terms: in how many cells of all tables each is above or below.

    Args:
        tables: Of `measure`.
    """
    row = finds.table("summary", "contestant", "cells", "above InvGrad", "below", "kept")
    cells = [cell for table in tables for cell in rows_of(table)]
    for who in dict.fromkeys(one[2] for one in cells if one[2] != INVGRAD):
        sides = [one[7] for one in cells if one[2] == who]
        above, below = sides.count("above"), sides.count("below")
        told = "yes" if above >= LEAST and not below else "no"
        row(who, len(sides), above, below, "control" if who in CONTROLS else told)


def main() -> None:
    """Print and keep the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", choices=[*DATA, "summary"], help="of these pictures alone")
    parser.add_argument("--runs", type=int, default=8, help="networks, each with new pictures")
    parser.add_argument("--steps", type=int, default=200, help="of InvGrad")
    add_option(parser)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    begin()
    for name in DATA if asked.only is None else DATA.keys() & {asked.only}:
        with Finds(asked.results) as finds:
            measure(finds, name, asked)
    if asked.results:
        found = kept(asked.results)
        with Finds(asked.results) as finds:
            summed(finds, [one for key, one in found.items() if key.endswith(".cells")])


if __name__ == "__main__":
    main()
