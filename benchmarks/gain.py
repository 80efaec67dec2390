"""The lead of `prior` over Inverting Gradients, each at its best weight of total variation.

python -m benchmarks.gain [--images FOLDER] [--tuned-on 4] [--held-out 8] [--epochs 12] [--lr 0.02]
    [--net NAME]

Both attacks are tuned over the same grid on some pictures and compared on others: their weights,
`prior`'s in its own unit, and InvGrad with and without the curvature that `prior` lends ReLU. Where
the best weight is an end of the grid, the grid grows until it is not. Nets
that have learned stand beside nets that have not, and every row beside a grey picture. FOLDER holds
one folder of images a class; without it the built-in symbols are attacked. What is found is kept in
benchmarks/results/gain-DATASET.json.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean

import numpy as np
import torch

from benchmarks.attacks import FAST, QUALITY, against, observed, psnr, rng
from benchmarks.claims import Claim, keep
from benchmarks.measuring import begin
from semsim.attacks import Attack, run_many
from semsim.attacks.invgrad import InvGrad
from semsim.attacks.prior import Prior
from semsim.base.stats.intervals import of_means
from semsim.datasets.folder import Folder
from semsim.datasets.symbols import Symbols
from semsim.defences.none import NoDefence
from semsim.targets import Activation
from semsim.targets.lenet import CNN4
from semsim.targets.model import TargetModel
from semsim.targets.train import accuracy, train_target
from semsim.targets.train_settings import TrainSettings
from semsim.types import LabelledImages

GRID = (0.001, 0.005, 0.02, 0.05)  # weights of total variation, of normalised input
BEYOND = 2.5  # times as large or small is the next weight beyond an end of the grid
WIDEST = 6  # times that a grid grows; a best weight that is an end then is an error
UNIT = 4  # a weight of `prior`, which is of [0, 1], over that of InvGrad which smooths as much
CURVATURES = (0.0, 0.1)
LENT = (Prior().curvature,)
UNTRAINED = ("lenet sigmoid", "cnn4 relu")
LEARNED: tuple[Activation, ...] = ("relu", "silu")


@dataclass(frozen=True)
class Contestant:
    """An attack and what it is tuned over.

    made: the attack of a weight of total variation in its unit and a curvature. unit: that weight
    over InvGrad's which smooths as much.
    """

    made: Callable[[float, float], Attack]
    unit: float
    curvatures: tuple[float, ...]


CONTESTANTS = {
    "invgrad": Contestant(
        lambda tv, curvature: InvGrad(**{**FAST, "tv": tv}, curvature=curvature), 1, CURVATURES
    ),
    "prior": Contestant(lambda tv, curvature: Prior(tv=tv, curvature=curvature), UNIT, LENT),
}


def best_weight(quality: Callable[[float], float], grid: Sequence[float]) -> tuple[float, float]:
    """Return the best quality and its weight; the grid grows until that is no end of it.

    NaN stands for the weight where none acts: L-BFGS of `prior`, on smooth nets, has no total
    variation. Raises `ValueError` where the best is still an end after `WIDEST` steps.
    """
    found = {weight: quality(weight) for weight in grid}
    if len(set(found.values())) == 1:
        return found[grid[0]], math.nan
    for _ in range(WIDEST + 1):
        best = max(found, key=lambda weight: found[weight])
        beyond = {min(found): best / BEYOND, max(found): best * BEYOND}.get(best)
        if beyond is None:
            return found[best], best
        found[beyond] = quality(beyond)
    raise ValueError(f"The best of {sorted(found)} is an end of them.")


def found_by(attack: Attack, model: TargetModel, images: LabelledImages) -> list[float]:
    """Return the PSNR of each image in dB; of one on which the attack failed, that of grey."""
    found = run_many(attack, observed(model, images), rngs=[rng(i) for i in range(len(images))])
    pairs = zip(against(found, images), grey(images), strict=True)
    return [blind if value is None else value for value, blind in pairs]


def grey(images: LabelledImages) -> list[float]:
    """Return the PSNR of a grey picture in dB, image by image."""
    return [psnr(torch.full_like(image, 0.5), image) for image in images.images]


def compared(
    model: TargetModel, tuning: LabelledImages, held_out: LabelledImages
) -> dict[str, Claim]:
    """Choose each attack's settings on `tuning`, and compare both on `held_out`."""
    values, chosen = {}, {}
    for name, one in CONTESTANTS.items():

        def quality(weight: float, curvature: float, one: Contestant = one) -> float:
            return mean(found_by(one.made(one.unit * weight, curvature), model, tuning))

        tried = {
            curvature: best_weight(partial(quality, curvature=curvature), GRID)
            for curvature in one.curvatures
        }
        curvature = max(tried, key=lambda lent: tried[lent])
        tv = one.unit * tried[curvature][1]
        chosen[f"{name}.curvature"] = Claim(curvature)
        if not math.isnan(tv):
            chosen[f"{name}.tv"] = Claim(tv)
        settings = (one.unit * GRID[0] if math.isnan(tv) else tv, curvature)
        values[name] = found_by(one.made(*settings), model, held_out)
    values["grey"] = grey(held_out)
    values["gain"] = [a - b for a, b in zip(values["prior"], values["invgrad"], strict=True)]
    return {**{name: _claim(one) for name, one in values.items()}, **chosen}


def _claim(values: Sequence[float]) -> Claim:
    """The mean of values in dB, with Student's interval."""
    n, middle = len(values), mean(values)
    half, _ = of_means(np.array(values), noun="picture")
    return Claim(middle, middle - half, middle + half, f"{n} pictures", "dB")


def main() -> None:
    """Print a line a net, and keep all of it."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--images", default="", help="<folder>/<class>/<image>")
    options.add_argument("--tuned-on", type=int, default=4, help="pictures to choose settings on")
    options.add_argument("--held-out", type=int, default=8, help="other pictures, compared on")
    options.add_argument("--epochs", type=int, default=12, help="of the nets that learn")
    options.add_argument("--lr", type=float, default=0.02, help="of the nets that learn")
    options.add_argument("--net", default="", help='one alone, such as "cnn4 relu, trained"')
    given = options.parse_args()
    begin()
    torch.set_num_threads(1)
    data = Folder(root=given.images) if given.images else Symbols()
    test = data("test")
    order = torch.randperm(len(test), generator=rng(2026)).tolist()
    tuning = test.pick(order[: given.tuned_on])
    held_out = test.pick(order[given.tuned_on : given.tuned_on + given.held_out])
    nets: dict[str, Callable[[], TargetModel]] = {
        f"{name}, untrained": partial(QUALITY[name].model, 0, "cpu") for name in UNTRAINED
    }
    settings = TrainSettings(epochs=given.epochs, lr=given.lr)
    for one in LEARNED:
        net = CNN4(activation=one)
        nets[f"cnn4 {one}, trained"] = partial(
            train_target, net, data("train"), NoDefence(), settings
        )
    file = f"gain-{test.dataset.split(':')[0]}"
    command = f"python -m benchmarks.gain{' --images FOLDER' * bool(given.images)}"
    claims: dict[str, Claim] = {}
    if given.net:
        nets = {given.net: nets[given.net]}
    for name, make in nets.items():
        model = make()
        found = compared(model, tuning, held_out)
        if not name.endswith("untrained"):
            found["right"] = Claim(accuracy(model, test), n=f"{len(test)} pictures")
        key = name.replace(", ", ".").replace(" ", "-")
        claims.update({f"{key}.{what}": one for what, one in found.items()})
        shown = ", ".join(f"{what} {one.value}" for what, one in found.items())
        print(f"{name}: {shown}", flush=True)
        keep(file, command, claims, part=True)
    if not given.net:
        keep(file, command, claims)


if __name__ == "__main__":
    main()
