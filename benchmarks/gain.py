"""The lead of `prior` over Inverting Gradients, each at its best weight of total variation.

python -m benchmarks.gain [--images FOLDER] [--tuned-on 4] [--held-out 8] [--epochs 12] [--lr 0.02]

Both attacks are tuned over the same grid on some pictures and compared on others: their weights,
`prior`'s in its own unit, and InvGrad with and without the curvature that `prior` lends ReLU. Nets
that have learned stand beside nets that have not, and every row beside a grey picture. FOLDER holds
one folder of images a class; without it the built-in symbols are attacked. What is found is kept in
benchmarks/results/gain-DATASET.json.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import mean

import numpy as np
import torch

from benchmarks.attacks import FAST, QUALITY, against, observed, psnr, rng
from benchmarks.claims import Claim, keep
from benchmarks.measuring import begin
from semsim.attacks import Attack, run_many
from semsim.attacks.invgrad import InvGrad
from semsim.attacks.prior import Prior
from semsim.base.intervals import of_means
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
UNIT = 4  # a weight of `prior`, which is of [0, 1], over that of InvGrad which smooths as much
CURVATURES = (0.0, 0.1)
UNTRAINED = ("lenet sigmoid", "cnn4 relu")
LEARNED: tuple[Activation, ...] = ("relu", "silu")


def attacks() -> Mapping[str, Mapping[str, Attack]]:
    """Return each attack's settings to choose from, by their names."""
    ours = {
        f"tv {tv:g}, curvature {curvature:g}": InvGrad(**{**FAST, "tv": tv}, curvature=curvature)
        for tv, curvature in product(GRID, CURVATURES)
    }
    return {"invgrad": ours, "prior": {f"tv {UNIT * tv:g}": Prior(tv=UNIT * tv) for tv in GRID}}


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
    for name, choices in attacks().items():
        tried = {title: mean(found_by(one, model, tuning)) for title, one in choices.items()}
        chosen[name] = max(tried, key=lambda title: tried[title])
        values[name] = found_by(choices[chosen[name]], model, held_out)
    values["grey"] = grey(held_out)
    values["gain"] = [a - b for a, b in zip(values["prior"], values["invgrad"], strict=True)]
    claims = {name: _claim(one) for name, one in values.items()}
    return {**claims, **{f"{name}.settings": Claim(title) for name, title in chosen.items()}}


def _claim(values: Sequence[float]) -> Claim:
    """The mean of values in dB, with Student's interval."""
    n, middle = len(values), mean(values)
    half, _ = of_means(np.array(values), noun="picture")
    return Claim(middle, middle - half, middle + half, f"{n} pictures")


def main() -> None:
    """Print a line a net, and keep all of it."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--images", default="", help="<folder>/<class>/<image>")
    options.add_argument("--tuned-on", type=int, default=4, help="pictures to choose settings on")
    options.add_argument("--held-out", type=int, default=8, help="other pictures, compared on")
    options.add_argument("--epochs", type=int, default=12, help="of the nets that learn")
    options.add_argument("--lr", type=float, default=0.02, help="of the nets that learn")
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
    claims: dict[str, Claim] = {}
    for name, make in nets.items():
        model = make()
        found = compared(model, tuning, held_out)
        if not name.endswith("untrained"):
            found["right"] = Claim(accuracy(model, test), n=f"{len(test)} pictures")
        key = name.replace(", ", ".").replace(" ", "-")
        claims.update({f"{key}.{what}": one for what, one in found.items()})
        shown = ", ".join(f"{what} {one.value}" for what, one in found.items())
        print(f"{name}: {shown}", flush=True)
        dataset = test.dataset.split(":")[0]
        command = f"python -m benchmarks.gain{' --images FOLDER' * bool(given.images)}"
        keep(f"gain-{dataset}", command, claims)


if __name__ == "__main__":
    main()
