"""What an epoch of SemSim costs, beside the plain loop that most people would write.

Both see as many triplets of every original, augmented alike, through the same network. Ours passes
each different image of a batch once, and its batches hold triplets that share images; it decodes
each image once a training, and steps the fused SGD. The plain loop draws triplets in random order
and passes and decodes all three images of each. No study here fits into one batch. How well a
SemSim judges, beside its own start and shuffled votes, is for `benchmarks.question` to say.

python -m benchmarks.learning [--quick | --large] [--threads 2] [--rounds 5] [--epochs 2]
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import torch
from torchvision.transforms import v2

from semsim.datasets.symbols import Symbols
from semsim.images import read_image, write_png
from semsim.learning import PRESETS, TrainSettings
from semsim.learning.train import model_settings, train
from semsim.learning.triplets import require_usable, take_stock
from semsim.metrics.network import SemSimModel

SIDE = 32
LEVELS = (0.05, 0.1, 0.2, 0.35, 0.6, 0.7, 0.8, 0.9)  # of noise; a half and more is unrecognisable
Contestant = Callable[[pd.DataFrame, TrainSettings], list[float]]
Outcome = tuple[float, float]  # CPU seconds an epoch, peak memory in MiB

# With the number of originals. A batch of the paper's, 128 of 15 an original, takes a CPU too long.
SETUPS = {
    "LeNet, batch 16": (replace(PRESETS["small"], backbone="lenet"), 24),
    "small preset (ResNet18)": (PRESETS["small"], 24),
    "code preset (ResNet18, 32×32 stem)": (PRESETS["code"], 20),
    "ResNet50, 32×32 stem, batch 16": (
        replace(PRESETS["paper"], triplets_per_original=8, batch_size=16),
        8,
    ),
}
QUICK = 2  # of the setups


def study(folder: Path, originals: int) -> pd.DataFrame:
    """Labels of drawings under noise, which people are taken to recognise below a half of it."""
    rng = torch.Generator().manual_seed(0)
    drawings = Symbols(test_per_class=1)("test").images[:originals]
    rows = []
    for number, drawing in enumerate(drawings):
        original = folder / "originals" / f"{number}.png"
        write_png(drawing, original)
        for level in LEVELS:
            path = folder / f"{level}" / f"{number}.png"
            noise = torch.rand(3, SIDE, SIDE, generator=rng)
            write_png((1 - level) * drawing + level * noise, path)
            rows.append((str(number), str(original), str(path), level < 0.5))
    names = ["image_id", "original", "reconstruction", "recognisable"]
    return pd.DataFrame(rows, columns=names).assign(dataset="symbols")


def ours(labels: pd.DataFrame, settings: TrainSettings) -> list[float]:
    """CPU seconds at the end of every epoch."""
    ends = []

    def report(progress: object) -> None:
        if "d_plus" in getattr(progress, "values", {}):
            ends.append(time.process_time())

    train(labels, settings, report=report)
    return ends


def plain(labels: pd.DataFrame, settings: TrainSettings) -> list[float]:
    """As `ours`, by a loop that reads each image as it comes and makes three forward passes."""
    rng = np.random.default_rng(0)
    originals = require_usable(take_stock(labels))
    model = SemSimModel(model_settings(settings), mean=[0.5] * 3, std=[0.3] * 3).train()
    criterion = torch.nn.TripletMarginLoss(margin=settings.margin)
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=settings.lr,
        momentum=settings.momentum,
        nesterov=settings.nesterov,
        weight_decay=settings.weight_decay,
    )
    augment = v2.Compose([v2.RandomCrop(SIDE, padding=4), v2.RandomHorizontalFlip()])
    ends = []
    for _ in range(settings.epochs):
        triplets = [
            (o.image, rng.choice(o.recognisable), rng.choice(o.unrecognisable))
            for o in originals
            for _ in range(settings.triplets_per_original)
        ]
        order = rng.permutation(len(triplets))
        for start in range(0, len(order), settings.batch_size):
            rows = [triplets[i] for i in order[start : start + settings.batch_size]]
            roles = [torch.stack([augment(read_image(p)) for p in c]) for c in zip(*rows)]  # noqa: B905
            loss = criterion(*(model(images) for images in roles))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
        ends.append(time.process_time())
    return ends


CONTESTANTS: dict[str, Contestant] = {"semsim": ours, "plain loop": plain}


def measure(name: str, labels: pd.DataFrame, settings: TrainSettings, threads: int) -> Outcome:
    """One contestant in this process, which should be one of its own: its memory is counted."""
    torch.set_num_threads(threads)
    ends = CONTESTANTS[name](labels, settings)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (ends[-1] - ends[0]) / (len(ends) - 1), peak


def apart(name: str, labels: pd.DataFrame, settings: TrainSettings, threads: int) -> Outcome:
    """`measure` in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, name, labels, settings, threads).result()


def contest(title: str, rounds: Sequence[dict[str, Outcome]]) -> str:
    """One line of the table: medians, and the median of the ratios within a round."""
    parts = [f"{title:36}"]
    for name in CONTESTANTS:
        seconds = median(one[name][0] for one in rounds)
        peak = median(one[name][1] for one in rounds)
        parts.append(f"{seconds:9.2f} s {peak:7.0f} MiB")
    ratios = [one["plain loop"][0] / one["semsim"][0] for one in rounds]
    parts.append(f"  ×{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})")
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the small networks only")
    parser.add_argument("--large", action="store_true", help="the large networks only")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2, help="measured, after one that is not")
    asked = parser.parse_args()
    setups = dict(list(SETUPS.items())[QUICK * asked.large : QUICK if asked.quick else None])
    print(f"CPU seconds an epoch and peak memory, {asked.threads} threads, {asked.rounds} rounds")
    print(f"{'':36}{'semsim':>23}{'plain loop':>23}   times as fast")
    for title, (settings, originals) in setups.items():
        told = replace(settings, epochs=1 + asked.epochs, validation_fraction=0.0, device="cpu")
        with tempfile.TemporaryDirectory() as folder:
            labels = study(Path(folder), originals)
            rounds = [
                {name: apart(name, labels, told, asked.threads) for name in CONTESTANTS}
                for _ in range(asked.rounds)
            ]
        print(contest(title, rounds), flush=True)


if __name__ == "__main__":
    main()
