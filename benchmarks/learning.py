"""What an epoch of SemSim costs, beside a plain loop, and what a short training of it teaches.

Both see as many triplets of every original, augmented alike, through the same network. Ours passes
each different image of a batch once, and its batches hold triplets that share images; it decodes
each image once a training, and steps the fused SGD. The plain loop draws triplets in random order
and passes and decodes all three images of each. No study here fits into one batch.

Then each setup is trained on some of the originals and judged by the others, as on a model card:
beside MSE, PSNR and SSIM, the initial weights, and the same training on shuffled votes. What is
taken to be recognised is a table here (`DAMAGES`). How well a SemSim judges what people see is for
`benchmarks.question` to say.

With --scoring, instead, such a network scores PAIRS of pictures, in memory and from PNGs on disk,
beside its bare forward pass of the same pictures. They take turns in one process; each one's peak
memory is that of a process of its own. With --layouts, a step of its training is measured as it is,
with weights and pictures that lie channels last, compiled by torch, and in bfloat16.

python -m benchmarks.learning [--quick | --large] [--threads 2] [--rounds 5] [--epochs 2]
    [--judged 5] [--device cpu]
python -m benchmarks.learning --scoring 512 [--quick | --large] [--threads 1] [--device cpu]
python -m benchmarks.learning --layouts [--quick | --large] [--threads 1] [--device cpu]
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import torch
from torchvision.transforms import v2

from benchmarks.measuring import apart, begin, judge
from benchmarks.turns import ALIKE, interleaved, memory, now, of_what, off
from semsim.base.cli.terminal import text_table
from semsim.datasets.symbols import Symbols
from semsim.images import read_image, write_png
from semsim.learning import PRESETS, TrainSettings
from semsim.learning.ablations_run import Sides, Workplace, run_sides
from semsim.learning.baselines import ALL, CLASSIC, verdict_of
from semsim.learning.card import heads, table_rows
from semsim.learning.splits import HoldOut, divide
from semsim.learning.train import model_settings, train
from semsim.learning.triplets import require_usable, take_stock
from semsim.metrics import Pairs, Resources
from semsim.metrics.base import PART
from semsim.metrics.base import judged as judged_parts
from semsim.metrics.network import SemSimModel, load_semsim, save_semsim
from semsim.metrics.provenance import Provenance
from semsim.metrics.scoring import pair_sets_of_labels, score_sets
from semsim.metrics.semsim import SemSimDistance

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
Outcome = tuple[float, float]  # seconds of `turns.now`, of an epoch, and MiB of `turns.memory`

# With the number of originals. A batch of the paper's, 128 of 15 an original, takes a CPU too long.
SETUPS = {
    "LeNet, batch 16": (replace(PRESETS["triplet"], backbone="lenet"), 24),
    "small preset (ResNet18)": (PRESETS["triplet"], 24),
    "code preset (ResNet18, 32×32 stem)": (PRESETS["code"], 20),
    "ResNet50, 32×32 stem, batch 16": (
        replace(PRESETS["paper"], triplets_per_original=8, batch_size=16),
        8,
    ),
}
QUICK = 2  # of the setups
TIMES_AS_FAST = 1.3  # as the plain loop: the target
OF_BARE = 1.1  # times the bare forward pass that scoring may take: the target
MADE = "made"  # the checkpoint of a network that was not trained
BATCH = 256  # pictures, of a score and of the bare pass
TRIPLETS = 16  # of a step whose layouts are compared
# Ways of a step, and how far its slope may lie from the plain one's, of its length; of bfloat16 as
# far as a cosine of 0.98 lets it, at which a training is refused.
LAYOUTS = {"as it is": ALIKE, "channels last": ALIKE, "compiled": ALIKE, "bfloat16": 0.2}


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
    """`now` at the end of every epoch."""
    ends = []

    def report(progress: object) -> None:
        if "d_plus" in getattr(progress, "values", {}):
            ends.append(now(settings.device))

    train(labels, settings, report=report)
    return ends


def plain(labels: pd.DataFrame, settings: TrainSettings) -> list[float]:
    """As `ours`, by a loop that reads each image as it comes and makes three forward passes."""
    rng = np.random.default_rng(0)
    originals = require_usable(take_stock(labels))
    model = SemSimModel(model_settings(settings), mean=[0.5] * 3, std=[0.3] * 3).train()
    model.to(settings.device)
    criterion = torch.nn.TripletMarginLoss(margin=settings.margin)
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=settings.lr,
        momentum=settings.momentum,
        nesterov=settings.nesterov,
        weight_decay=settings.weight_decay,
    )

    def one_of(paths: tuple[Path, ...]) -> Path:
        return paths[rng.integers(len(paths))]

    augment = v2.Compose([v2.RandomCrop(SIDE, padding=4), v2.RandomHorizontalFlip()])
    ends = []
    for _ in range(settings.epochs):
        triplets = [
            (o.image, one_of(o.recognisable), one_of(o.unrecognisable))
            for o in originals
            for _ in range(settings.triplets_per_original)
        ]
        order = rng.permutation(len(triplets))
        for start in range(0, len(order), settings.batch_size):
            rows = [triplets[i] for i in order[start : start + settings.batch_size]]
            roles = [torch.stack([augment(read_image(p)) for p in c]) for c in zip(*rows)]  # noqa: B905
            loss = criterion(*(model(images.to(settings.device)) for images in roles))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
        ends.append(now(settings.device))
    return ends


CONTESTANTS: dict[str, Contestant] = {"semsim": ours, "plain loop": plain}


def measure(name: str, labels: pd.DataFrame, settings: TrainSettings, threads: int) -> Outcome:
    """One contestant in this process, which should be one of its own: its memory is counted."""
    torch.set_num_threads(threads)
    ends = CONTESTANTS[name](labels, settings)
    return (ends[-1] - ends[0]) / (len(ends) - 1), memory(settings.device)


def contest(title: str, rounds: Sequence[dict[str, Outcome]]) -> str:
    """One line of the table: medians, and the median of the ratios within a round."""
    parts = [f"{title:36}"]
    for name in CONTESTANTS:
        seconds = median(one[name][0] for one in rounds)
        held = median(one[name][1] for one in rounds)
        parts.append(f"{seconds:9.2f} s {held:7.0f} MiB")
    ratios = [one["plain loop"][0] / one["semsim"][0] for one in rounds]
    parts.append(f"  ×{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})")
    parts.append(f", {judge(median(ratios), least=TIMES_AS_FAST)}")
    return "".join(parts)


def judged(title: str, labels: pd.DataFrame, settings: TrainSettings, folder: Path) -> str:
    """What a training reaches on originals it has not seen, beside its controls: table, verdict."""
    split = divide(labels, HoldOut(kind="original"))
    sides = Sides(train=split.train, test=split.test, controls=ALL)
    device = settings.device
    place = Workplace(checkpoints=folder, scores=folder / "scores", device=device, metrics=CLASSIC)
    found = run_sides(settings, sides, place, folder, {})["held_out"]
    verdict = verdict_of(found).sentences
    counts = f"{found['n_originals']} originals held out, {settings.epochs} epochs"
    return "\n".join([f"{title}: {counts}", text_table(heads(found), table_rows(found)), *verdict])


Scorer = Callable[[Path, int, int, str], Callable[[], np.ndarray]]


def pictures(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`n` originals and reconstructions, all different, as an 8-bit picture has them."""
    rng = torch.Generator().manual_seed(0)
    first, second = torch.randint(0, 256, (2, n, 3, SIDE, SIDE), generator=rng).float() / 255
    return first, second


def bare(folder: Path, n: int, turn: int, device: str) -> Callable[[], np.ndarray]:
    """The network and nothing else; the distances, (n,), are worked out of what it returns."""
    del turn
    model, sides = load_semsim(folder / f"{MADE}.safetensors").to(device), pictures(n)

    def features(side: torch.Tensor) -> torch.Tensor:
        return torch.cat([model(part.to(device)) for part in side.split(BATCH)])

    def work() -> np.ndarray:
        with torch.inference_mode():
            first, second = map(features, sides)
            return torch.linalg.vector_norm(first - second, dim=1).double().cpu().numpy()

    return work


def in_memory(folder: Path, n: int, turn: int, device: str) -> Callable[[], np.ndarray]:
    """The judge that every score comes from; made anew, as it remembers originals."""
    del turn
    metric, (first, second) = SemSimDistance(checkpoint=MADE), pictures(n)
    scorer = metric.prepare(Resources(checkpoints=folder, device=device))
    pairs = Pairs(originals=first, reconstructions=second)
    return lambda: judged_parts(scorer, pairs.parts(PART), metric.spec).values


def from_disk(folder: Path, n: int, turn: int, device: str) -> Callable[[], np.ndarray]:
    """As a study is scored, loading the network included; scores of a turn are kept apart."""
    sets = pair_sets_of_labels(pd.read_csv(folder / "labels.csv", dtype=str).iloc[:n])
    scores = folder / f"scores-{turn}"
    given = sets, [f"semsim:{MADE}"], Resources(checkpoints=folder, device=device), scores

    def work() -> np.ndarray:
        found = score_sets(*given).scores
        return found.assign(at=found["image_id"].astype(int)).sort_values("at")["value"].to_numpy()

    return work


SCORERS: dict[str, Scorer] = {"bare": bare, "in memory": in_memory, "from disk": from_disk}


def scored(
    who: str, folder: Path, n: int, turn: int, threads: int, device: str
) -> tuple[np.ndarray, Outcome]:
    """One scorer in this process: distances, and what they took."""
    torch.set_num_threads(threads)
    work = SCORERS[who](folder, n, turn, device)
    began = now(device)
    values = work()
    return values, (now(device) - began, memory(device))


def write_pairs(folder: Path, n: int) -> None:
    """The pictures as PNGs and a table of them."""
    rows = []
    for number, pair in enumerate(zip(*pictures(n), strict=True)):
        paths = [folder / side / f"{number}.png" for side in ("originals", "reconstructions")]
        for image, path in zip(pair, paths, strict=True):
            write_png(image, path)
        rows.append(("d", "a", "m", str(number), "c", *map(str, paths)))
    names = ["dataset", "attack", "model", "image_id", "class_name", "original", "reconstruction"]
    pd.DataFrame(rows, columns=names).to_csv(folder / "labels.csv", index=False)


def scoring(
    title: str, settings: TrainSettings, n: int, rounds: int, threads: int, device: str
) -> str:
    """One line a scorer: how many times the bare pass it takes, the median within a round.

    Ends with an error where a scorer finds other distances than the bare network's.
    """
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torch.manual_seed(0)
        model = SemSimModel(model_settings(settings), mean=[0.5] * 3, std=[0.3] * 3)
        none: dict[str, Any] = {"n_originals": 0, "n_triplets": 0, "created": "", "originals": ()}
        training = Provenance(**none, versions={}, settings={}, simulated=True)
        save_semsim(model, folder / f"{MADE}.safetensors", training)
        write_pairs(folder, n)
        alone = {who: apart(scored, who, folder, n, -1, threads, device) for who in SCORERS}
        for who, (values, _) in alone.items():
            if not np.allclose(values, alone["bare"][0], rtol=1e-4):
                raise SystemExit(f"{title}, {who}: not the distances of the bare network.")
        times = [
            {who: scored(who, folder, n, turn, threads, device)[1][0] for who in SCORERS}
            for turn in range(rounds)
        ]
    for who, (_, (_, held)) in alone.items():
        share = median(one[who] / one["bare"] for one in times)
        told = "" if who == "bare" else f"  ×{share:.3f}, {judge(share, most=OF_BARE)}"
        seconds = median(one[who] for one in times)
        lines.append(f"{title:36}{who:12}{seconds:9.3f} s {held:7.0f} MiB{told}")
    return "\n".join(lines)


def stepper(settings: TrainSettings, layout: str) -> tuple[Callable[[], float], SemSimModel]:
    """A training step on made-up triplets, of the same network and pictures whatever the layout."""
    torch.manual_seed(0)
    model = SemSimModel(model_settings(settings), mean=[0.5] * 3, std=[0.3] * 3).train()
    model.to(settings.device)
    images = torch.cat(pictures(3 * TRIPLETS))[: 3 * TRIPLETS].to(settings.device)
    network: Callable[[torch.Tensor], torch.Tensor] = model
    mixed = torch.autocast(images.device.type, torch.bfloat16, enabled=layout == "bfloat16")
    if layout == "channels last":
        model.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    elif layout == "compiled":
        network = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), settings.lr, settings.momentum, fused=True)

    def step() -> float:
        with mixed:
            original, near, far = network(images).float().chunk(3)
        loss = torch.nn.functional.triplet_margin_loss(original, near, far)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, model


def layouts(title: str, settings: TrainSettings, rounds: int, threads: int) -> str:
    """One line: milliseconds of a step, and times as fast as it is.

    What computes something else in the first step is told and not timed.
    """
    torch.set_num_threads(threads)
    steps = dict[str, Callable[[], float]]()
    plain = torch.empty(0), torch.empty(0)
    parts = [f"{title:36}"]
    for layout, alike in LAYOUTS.items():
        step, model = stepper(settings, layout)
        loss = torch.tensor([step()])
        slopes = [p.grad.cpu().flatten() for p in model.parameters() if p.grad is not None]
        found = loss, torch.cat(slopes)
        plain = plain if steps else found
        if (differ := off(found, plain)) <= alike:
            steps[layout] = step
        else:
            parts.append(f"  {layout} is {differ:.1e} off")
    times = interleaved(steps, rounds, settings.device)
    for layout in steps:
        faster = median(one["as it is"] / one[layout] for one in times)
        spent = 1000 * median(one[layout] for one in times)
        parts.append(f"  {layout} {spent:.1f} ms ×{faster:.2f}")
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the small networks only")
    parser.add_argument("--large", action="store_true", help="the large networks only")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2, help="measured, after one that is not")
    parser.add_argument("--judged", type=int, default=5, help="epochs of what is judged; 0: none")
    parser.add_argument("--scoring", type=int, metavar="PAIRS", help="score them; nothing else")
    parser.add_argument("--layouts", action="store_true", help="of a step; nothing else")
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    begin()
    seconds = of_what(asked.device)
    setups = {
        title: (replace(settings, device=asked.device), originals)
        for title, (settings, originals) in SETUPS.items()
    }
    setups = dict(list(setups.items())[QUICK * asked.large : QUICK if asked.quick else None])
    if asked.layouts:
        print(f"A training step of {TRIPLETS} triplets, {seconds}, {asked.rounds} rounds")
        for title, (settings, _) in setups.items():
            print(layouts(title, settings, asked.rounds, asked.threads), flush=True)
        return
    if asked.scoring is not None:
        print(f"{asked.scoring} pairs: {seconds}, peak memory, {asked.rounds} rounds")
        for title, (settings, _) in setups.items():
            how = asked.rounds, asked.threads, asked.device
            print(scoring(title, settings, asked.scoring, *how), flush=True)
        return
    print(f"An epoch: {seconds}, peak memory, {asked.threads} threads, {asked.rounds} rounds")
    print(f"{'':36}{'semsim':>23}{'plain loop':>23}   times as fast")
    for title, (settings, originals) in setups.items():
        told = replace(settings, epochs=1 + asked.epochs, validation_fraction=0.0)
        with tempfile.TemporaryDirectory() as folder:
            labels = study(Path(folder), originals)
            rounds = [
                {name: apart(measure, name, labels, told, asked.threads) for name in CONTESTANTS}
                for _ in range(asked.rounds)
            ]
        print(contest(title, rounds), flush=True)
    for title, (settings, originals) in setups.items() if asked.judged else ():
        told = replace(settings, epochs=asked.judged, validation_fraction=0.0)
        with tempfile.TemporaryDirectory() as folder:
            labels = study(Path(folder), originals)
            print(f"\n{judged(title, labels, told, Path(folder) / 'learned')}", flush=True)


if __name__ == "__main__":
    main()
