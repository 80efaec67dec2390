"""Count batches that SPEAR returns exactly, with its CPU time, beside a grey picture.

python -m benchmarks.spear [--images FOLDER] [--batches 4 8 16 20 32 48] [--runs 40] [--large 10]
    [--trained 10] [--results spear]

Each run draws pictures, labels and weights anew: an MLP of six layers of 400 units that was never
trained, one of 1,000 units, and one of 400 that learned the pictures' classes. A batch counts as
exact where every picture is, see `semsim.metrics.pixel.exact`. Times are CPU seconds of one thread.
FOLDER holds one folder of images a class; without it the built-in symbols are attacked.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch

from benchmarks.attacks import psnr, rng
from benchmarks.keeping import Finds, add_option
from benchmarks.measuring import begin, judge
from semsim.attacks.descent import attack_updates
from semsim.attacks.linear.spear import Spear
from semsim.attacks.observe import BatchGradient, assigned, observe_round
from semsim.base.stats.intervals import wilson
from semsim.datasets.folder import Folder
from semsim.datasets.symbols import Symbols
from semsim.defences.none import NoDefence
from semsim.metrics.pixel import exact
from semsim.targets.imprint import Imprinted
from semsim.targets.lenet import CNN4
from semsim.targets.mlp import MLP
from semsim.targets.model import TargetModel
from semsim.targets.train import train_target
from semsim.targets.train_settings import TrainSettings
from semsim.types import LabelledImages, Reconstruction

LARGE, WIDE = 64, MLP(width=1000)
LEAST, SECONDS = {16: 0.95}, {16: 15.0, 20: 120.0}  # targets
TRAINED, TRAINED_LEAST = [8, 16], {8: 0.8}
EPOCHS = 10
PAPER = MLP()


@dataclass(frozen=True)
class Try:
    """One batch.

    exact: whether every picture came back exactly. grey: dB of the best grey picture.
    """

    exact: bool
    grey: float
    seconds: float


def attempt(model: TargetModel, pictures: LabelledImages, batch: int, seed: int) -> Try:
    """Attack a batch that `seed` draws."""
    drawn = torch.randperm(len(pictures), generator=rng(seed))[:batch]
    images, labels = pictures.images[drawn], pictures.labels[drawn]
    rngs = [rng(seed * 1000 + place) for place in range(batch)]
    leak = observe_round(model, images, labels, BatchGradient(batch=batch), NoDefence(), rngs)
    begun = time.process_time()
    found = attack_updates(Spear(), [leak.observation], rngs=rngs)
    seconds = time.process_time() - begun
    grey = max(psnr(torch.full_like(one, 0.5), one) for one in images)
    if not all(isinstance(one, Reconstruction) for one in found):
        return Try(False, grey, seconds)
    made = torch.stack([one.image for one in found if isinstance(one, Reconstruction)])
    return Try(bool(exact(images, made[assigned(made, images)]).all()), grey, seconds)


def fresh(
    pictures: LabelledImages, seed: int, network: MLP | CNN4 | Imprinted = PAPER
) -> TargetModel:
    """Return a network, of the paper's size, whose weights `seed` draws."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        mean, std = (getattr(pictures.images, of)((0, 2, 3)).tolist() for of in ("mean", "std"))
        size = (pictures.images.shape[2], pictures.images.shape[3])
        return TargetModel(network, pictures.classes, mean=mean, std=std, size=size).eval()


def learned(
    pictures: LabelledImages, seed: int, network: MLP | CNN4 | Imprinted = PAPER
) -> TargetModel:
    """Return such a network after `EPOCHS` on the pictures."""
    how = TrainSettings(epochs=EPOCHS, lr=0.02, seed=seed)
    return train_target(network, pictures, NoDefence(), how).eval()


def series(
    finds: Finds,
    key: str,
    batches: list[int],
    runs: int,
    network: Callable[[int], TargetModel],
    pictures: LabelledImages,
    least: dict[int, float],
) -> None:
    """Keep a table of `runs` batches of each size."""
    row = finds.table(
        f"{key}.batches",
        "batch",
        "runs",
        "exact [95%]",
        "target",
        "CPU s, median",
        "largest",
        "target ",
        "grey",
    )
    for batch in batches:
        tries = [attempt(network(seed), pictures, batch, seed) for seed in range(runs)]
        found = sum(one.exact for one in tries)
        low, high = map(float, wilson(np.array(found / runs), np.array(runs), runs))
        times = [one.seconds for one in tries]
        row(
            batch,
            runs,
            f"{found} [{low:.0%}, {high:.0%}]",
            judge(found / runs, least=least[batch]) if batch in least else "",
            f"{median(times):.1f}",
            f"{max(times):.1f}",
            judge(max(times), most=SECONDS[batch]) if batch in SECONDS else "",
            f"{max(one.grey for one in tries):.1f} dB",
        )
        finds.figure(f"{key}.{batch}.exact", found, n=f"{runs} batches")
        finds.figure(f"{key}.{batch}.seconds", round(median(times), 1), "CPU s", f"{runs} batches")


def pictures_in(folder: str) -> LabelledImages:
    """Return training pictures of a folder, or built-in symbols for ""."""
    return (Folder(root=folder) if folder else Symbols())("train")


def main() -> None:
    """Print and keep both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--images", default="", help="a folder of images a class")
    parser.add_argument("--batches", type=int, nargs="*", default=[4, 8, 16, 20, 32, 48])
    parser.add_argument("--runs", type=int, default=40, help="of each batch; 0 leaves them out")
    parser.add_argument("--large", type=int, default=10, help=f"runs of a batch of {LARGE}, wide")
    parser.add_argument("--trained", type=int, default=10, help="runs of a trained network")
    add_option(parser)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    begin()
    data = pictures_in(asked.images)
    with Finds(asked.results) as finds:
        if asked.runs:
            made = asked.batches, asked.runs, lambda seed: fresh(data, seed)
            series(finds, "untrained", *made, data, LEAST)
        if asked.large:
            series(finds, "large", [LARGE], asked.large, lambda s: fresh(data, s, WIDE), data, {})
        if asked.trained:
            made = TRAINED, asked.trained, lambda seed: learned(data, seed)
            series(finds, "trained", *made, data, TRAINED_LEAST)


if __name__ == "__main__":
    main()
