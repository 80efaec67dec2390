"""What an epoch of SemSim costs, beside a plain loop, and what a short training of it teaches.

Both see as many triplets of every original, augmented alike, through the same network. Ours passes
each different image of a batch once, and its batches hold triplets that share images; it decodes
each image once a training, and steps the fused SGD. The plain loop draws triplets in random order
and passes and decodes all three images of each. No study here fits into one batch.

Then each setup is trained on some of the originals and judged by the others, as on a model card:
beside MSE, PSNR and SSIM, the same network before it saw a vote, and the same training on shuffled
votes. What is taken to be recognised is a table here (`DAMAGES`). How well a SemSim judges what
people see is for `benchmarks.question` to say.

python -m benchmarks.learning [--quick | --large] [--threads 2] [--rounds 5] [--epochs 2]
    [--judged 5]
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import torch
from torchvision.transforms import v2

from benchmarks.measuring import apart, begin, judge, peak
from semsim.datasets.symbols import Symbols
from semsim.images import read_image, write_png
from semsim.learning import PRESETS, TrainSettings
from semsim.learning.ablations_run import Sides, Workplace, run_sides
from semsim.learning.card import HEADS, table_rows
from semsim.learning.controls import ALL, CLASSIC, verdict_of
from semsim.learning.splits import HoldOut, divide
from semsim.learning.train import model_settings, train
from semsim.learning.triplets import require_usable, take_stock
from semsim.metrics.network import SemSimModel
from semsim.terminal import text_table

SIDE = 32
Damage = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
# What is done to a drawing, given noise and the next drawing, and whether people are taken to
# recognise it: in the first four, though pixels change much, not in the others, though some hardly.
DAMAGES: dict[str, tuple[Damage, bool]] = {
    "noise": (lambda drawing, noise, other: 0.8 * drawing + 0.2 * noise, True),
    "moved": (lambda drawing, noise, other: drawing.roll((6, 6), (1, 2)), True),
    "negative": (lambda drawing, noise, other: 1 - drawing, True),
    "faint": (lambda drawing, noise, other: 0.5 + 0.2 * (drawing - 0.5), True),
    "drowned": (lambda drawing, noise, other: 0.2 * drawing + 0.8 * noise, False),
    "grey": (lambda drawing, noise, other: drawing.mean((1, 2), keepdim=True) + 0 * drawing, False),
    "another": (lambda drawing, noise, other: other, False),
    "mixed": (lambda drawing, noise, other: 0.3 * drawing + 0.7 * other, False),
}
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
TIMES_AS_FAST = 1.3  # as the plain loop: the target


def study(folder: Path, originals: int) -> pd.DataFrame:
    """Labels of drawings damaged in all of `DAMAGES`; nobody was asked, the table says it all."""
    rng = torch.Generator().manual_seed(0)
    drawings = Symbols(test_per_class=1)("test").images[:originals]
    rows = []
    for number, (drawing, other) in enumerate(zip(drawings, drawings.roll(1, 0), strict=True)):
        original = folder / "originals" / f"{number}.png"
        write_png(drawing, original)
        for name, (damage, recognisable) in DAMAGES.items():
            path = folder / name / f"{number}.png"
            noise = torch.rand(3, SIDE, SIDE, generator=rng)
            write_png(damage(drawing, noise, other), path)
            rows.append((str(number), name, str(original), str(path), recognisable))
    names = ["image_id", "model", "original", "reconstruction", "recognisable"]
    made = {"dataset": "symbols", "attack": "damage", "class_name": None, "simulated": True}
    return pd.DataFrame(rows, columns=names).assign(**made)


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
    return (ends[-1] - ends[0]) / (len(ends) - 1), peak()


def contest(title: str, rounds: Sequence[dict[str, Outcome]]) -> str:
    """One line of the table: medians, and the median of the ratios within a round."""
    parts = [f"{title:36}"]
    for name in CONTESTANTS:
        seconds = median(one[name][0] for one in rounds)
        memory = median(one[name][1] for one in rounds)
        parts.append(f"{seconds:9.2f} s {memory:7.0f} MiB")
    ratios = [one["plain loop"][0] / one["semsim"][0] for one in rounds]
    parts.append(f"  ×{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})")
    parts.append(f", {judge(median(ratios), least=TIMES_AS_FAST)}")
    return "".join(parts)


def judged(title: str, labels: pd.DataFrame, settings: TrainSettings, folder: Path) -> str:
    """What a training reaches on originals it has not seen, beside its controls: table, verdict."""
    split = divide(labels, HoldOut(kind="original"))
    sides = Sides(train=split.train, test=split.test)
    place = Workplace(checkpoints=folder, scores=folder / "scores", device="cpu", metrics=CLASSIC)
    found = run_sides(settings, sides, place, folder, facts={}, controls=ALL)["held_out"]
    verdict = verdict_of(found).sentences
    counts = f"{found['n_originals']} originals held out, {settings.epochs} epochs"
    return "\n".join([f"{title}: {counts}", text_table(HEADS, table_rows(found)), *verdict])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the small networks only")
    parser.add_argument("--large", action="store_true", help="the large networks only")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2, help="measured, after one that is not")
    parser.add_argument("--judged", type=int, default=5, help="epochs of what is judged; 0: none")
    asked = parser.parse_args()
    begin()
    setups = dict(list(SETUPS.items())[QUICK * asked.large : QUICK if asked.quick else None])
    print(f"CPU seconds an epoch and peak memory, {asked.threads} threads, {asked.rounds} rounds")
    print(f"{'':36}{'semsim':>23}{'plain loop':>23}   times as fast")
    for title, (settings, originals) in setups.items():
        told = replace(settings, epochs=1 + asked.epochs, validation_fraction=0.0, device="cpu")
        with tempfile.TemporaryDirectory() as folder:
            labels = study(Path(folder), originals)
            rounds = [
                {name: apart(measure, name, labels, told, asked.threads) for name in CONTESTANTS}
                for _ in range(asked.rounds)
            ]
        print(contest(title, rounds), flush=True)
    for title, (settings, originals) in setups.items() if asked.judged else ():
        told = replace(settings, epochs=asked.judged, validation_fraction=0.0, device="cpu")
        with tempfile.TemporaryDirectory() as folder:
            labels = study(Path(folder), originals)
            print(f"\n{judged(title, labels, told, Path(folder) / 'learned')}", flush=True)


if __name__ == "__main__":
    main()
