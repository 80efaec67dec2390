"""SemSim on people it has not met: it learns from some degradations and is judged on others.

`recurrent` has shares of people who recognised 16 degradations of the same objects. The rule, which
stands here before the second half of the objects is opened:

1. The objects are halved once, by `HALVING_SEED`. What follows up to 3 sees the first half only.
2. A training leaves out one family of `FAMILIES` and sees all other degradations of its objects. An
   object is the anchor; a degradation that more people recognise is nearer than one that fewer do.
3. Candidates are those of `RECIPES` that people's shares order. Each learns from half of the first
   half, once a family left out, and is judged by the other half of it, as in 5. The one of the
   highest accuracy is chosen.
4. The second half is opened. With each of ten seeds (of the network and the draws) and each family
   left out, the chosen recipe learns from the first half and scores the second; so does the same
   network with its initial weights, and one trained on shares dealt out anew among degradations.
5. Judged are pairs of degradations of which the training has seen at most one: it left out one or
   both. Both scores of a pair come from one training, so that no scale of two networks is compared.
   A pair of two families has two trainings and counts twice. Accuracy is soft pairwise accuracy
   over these pairs: people's sureness from the standard errors of their shares, a metric's from its
   objects. A metric that learns nothing is judged by the same pairs.
6. Two metrics are told apart by swapping their scores object by object at random. The target: ahead
   of the best of PSNR, MSE and SSIM and of its initial weights, each at p < .05, in 8 of 10 seeds.

Objects of both halves share 16 degradations and 16 shares of people. The halves guard against a
choice that fits objects, not against one that fits degradations. ρ is of each degradation's mean
score under the training that left it out, in units of that training's spread over all 16.

Two rows use no votes. `edges` is the share of the original's edges that a picture keeps: each
gradient of the original counts by its length, and is kept as far as the picture's gradient there
has its direction and at most its length. Additional edges cost nothing. `damages` is the recipe of
that name: a SemSim whose triplets are the first half's objects damaged at random in `DAMAGES`,
ordered by `edges`. Rectangles and textures are like blobs, deletion and clutter, so that what is
left out there are people's shares, not the kind of damage. Recipes may have both kinds of triplets.

python -m benchmarks.unseen --from FOLDER --out FOLDER [--seeds 10] [--choose-only]
    [--part 0/1] [--results unseen]

FOLDER holds a copy of `recurrent`. A training that is kept in the folder of --out is not done
again. `--part 0/2` and `--part 1/2` do every second training, in two processes; a last call without
--part judges.
"""

import argparse
import io
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from scipy.special import ndtr
from torch import Tensor

from benchmarks.claims import Claim
from benchmarks.keeping import Finds, add_option
from benchmarks.measuring import begin, judge
from benchmarks.question import CLASSIC, HALVING_SEED, TARGET
from semsim.base.errors import DataError
from semsim.base.stats.correlation import bonett_wright, spearman_rows
from semsim.base.stats.intervals import error, left_out, student
from semsim.base.stats.pairwise_accuracy import LEVEL, differences, standardised, swap_test
from semsim.base.storage.atomic import write_bytes
from semsim.base.storage.pieces import Pieces, key_of
from semsim.images import read_images, write_png
from semsim.learning import TrainSettings
from semsim.learning.train import train
from semsim.metrics import METRICS, Pairs, Resources
from semsim.metrics.network import SemSimModel, semsim_distance
from semsim.people.recurrent import RECURRENT
from semsim.people.source import ERRORS, SHARES
from semsim.people.source import Judged as Held
from semsim.targets.degrade import degrade

FAMILIES = ("blobs", "deletion", "partial_viewing", "clutter", "scrambling")
EDGES, DAMAGED, START, OWN, SHUFFLED = "edges", "damages", "start", "semsim", "shuffled"
TITLES = {
    OWN: "SemSim, from people's shares",
    START: "the same, initial weights",
    SHUFFLED: "the same training on shuffled shares",
    EDGES: "edges kept, no votes",
    DAMAGED: "SemSim of damages, no votes",
    **{"psnr": "PSNR", "mse": "MSE", "ssim": "SSIM"},
}
SEEDLESS = (EDGES, *CLASSIC)
_SWAPS = 500
_FAINT = 1e-6  # squared gradient up to which there is no edge
_COPIES = 24  # of an object, each damaged in its own way
_BASE = TrainSettings(
    backbone="resnet8",
    lr=0.005,
    lr_drops=(),
    batch_size=16,
    epochs=2,
    triplets_per_original=8,
    augmentation="joint",
    validation_fraction=0.0,
    device="cpu",
)
_WEIGHTED = replace(_BASE, ordering="votes")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A way to train; people, damages: whether it has triplets that these order."""

    settings: TrainSettings
    people: bool = True
    damages: bool = False


_DAMAGES = replace(
    _WEIGHTED,
    lr=0.01,
    lr_drops=(0.5, 0.8),
    epochs=8,
    batch_size=32,
    triplets_per_original=16,
)
RECIPES: dict[str, Recipe] = {
    "majority": Recipe(settings=_BASE),
    "weighted": Recipe(settings=_WEIGHTED),
    "longer": Recipe(settings=replace(_BASE, epochs=8)),
    "both": Recipe(settings=_DAMAGES, damages=True),
    DAMAGED: Recipe(settings=_DAMAGES, people=False, damages=True),
}
Stack = np.ndarray  # (families × degradations, objects), more meaning more recognisable


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Pictures of the objects that have every degradation, and what people said.

    Attributes:
        originals: Files by object.
        pictures: Files by degradation and object.
        shares, errors: (M,), of the degradations in order of `names`.
        family: Of each of them.
    """

    originals: Mapping[str, Path]
    pictures: Mapping[tuple[str, str], Path]
    names: tuple[str, ...]
    shares: np.ndarray
    errors: np.ndarray
    family: tuple[str, ...]

    def halves(self) -> tuple[list[str], list[str]]:
        """Return the objects to choose on and those that are opened."""
        return halved(sorted(self.originals), HALVING_SEED)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One training: who is left out, what it learns from, and whom it scores."""

    family: str
    shares: tuple[float, ...]
    learns: tuple[str, ...]
    scores: tuple[str, ...]
    recipe: Recipe

    @property
    def key(self) -> str:
        settings = self.recipe.settings.result_settings()
        return key_of({**asdict(self), "recipe": {**asdict(self.recipe), "settings": settings}}, 24)


def read_judged(folder: Path) -> Judged:
    """Read the copy of `recurrent` below `folder`; `DataError` where there is none."""
    place = RECURRENT.found_in(folder)
    if place is None:
        raise DataError(f"{folder} holds no copy of recurrent: semsim-studio people get recurrent.")
    RECURRENT.checked(place)
    held = RECURRENT.read(place)
    assert isinstance(held, Held)
    assert held.shares is not None
    shares = held.shares.drop_duplicates("model").set_index("model")
    names = tuple(map(str, shares.index))
    pictures, originals = {}, {}
    for one in held.pairs:
        if one.original is not None and one.reconstruction is not None:
            pictures[one.model, one.image_id] = one.reconstruction
            originals[one.image_id] = one.original
    whole = {o: path for o, path in originals.items() if all((m, o) in pictures for m in names)}
    return Judged(
        originals=whole,
        pictures=pictures,
        names=names,
        shares=shares[SHARES].to_numpy(float),
        errors=shares[ERRORS].to_numpy(float),
        family=tuple(family_of(name) for name in names),
    )


def family_of(degradation: str) -> str:
    """Return its family; `DataError` for one that is of none."""
    for family in FAMILIES:
        if family in degradation:
            return family
    raise DataError(f"{degradation!r} is of none of the families {', '.join(FAMILIES)}.")


def halved(objects: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """Deal objects at random into two halves, each in order of name."""
    order = np.random.default_rng(seed).permutation(len(objects))
    middle = len(objects) // 2
    parts = order[:middle], order[middle:]
    first, second = (sorted(objects[place] for place in part) for part in parts)
    return first, second


def choosing(judged: Judged) -> dict[tuple[str, str], Cell]:
    """Return a training a recipe and family, all on the first half."""
    sides = halved(judged.halves()[0], HALVING_SEED)
    return {
        (name, family): _cell(judged.shares, sides, recipe, family)
        for name, recipe in RECIPES.items()
        for family in (FAMILIES if recipe.people else FAMILIES[:1])
    }


def opening(judged: Judged, chosen: str, seeds: int) -> dict[tuple[str, int, str], Cell]:
    """Return a training a row, seed and family: from the first half, judged by the second."""
    found = {}
    for seed in range(seeds):
        own, damaged = (_seeded(RECIPES[name], seed) for name in (chosen, DAMAGED))
        dealt = np.random.default_rng(seed).permutation(judged.shares)
        found[DAMAGED, seed, ""] = _cell(judged.shares, judged.halves(), damaged, "")
        for family in FAMILIES:
            for row, shares in ((OWN, judged.shares), (SHUFFLED, dealt)):
                found[row, seed, family] = _cell(shares, judged.halves(), own, family)
    return found


def _seeded(recipe: Recipe, seed: int) -> Recipe:
    return replace(recipe, settings=replace(recipe.settings, seed=seed))


def _cell(
    shares: np.ndarray, sides: tuple[list[str], list[str]], recipe: Recipe, family: str
) -> Cell:
    learns, scores = map(tuple, sides)
    if not recipe.people:  # so that it is one training, whoever is left out
        family, shares = "", shares[:0]
    told = tuple(map(float, shares))
    return Cell(family=family, shares=told, learns=learns, scores=scores, recipe=recipe)


def labels_of(judged: Judged, cell: Cell, folder: Path) -> pd.DataFrame:
    """Return what a training learns from.

    Args:
        judged: Pictures and people's shares.
        cell: The training.
        folder: Of damaged pictures, which are made where they are not there.
    """
    parts = []
    if cell.recipe.people:
        parts.append(_people_labels(judged, cell))
    if cell.recipe.damages:
        parts.append(_damaged_labels(judged, cell.learns, folder))
    return pd.concat(parts, ignore_index=True)


def _people_labels(judged: Judged, cell: Cell) -> pd.DataFrame:
    """Return the degradations that are not left out.

    Recognisable is what more people recognise than the median of these degradations, as most
    people recognise all of them.
    """
    seen = [k for k, family in enumerate(judged.family) if family != cell.family]
    middle = float(np.median([cell.shares[k] for k in seen]))
    rows = [
        (one, judged.originals[one], judged.pictures[judged.names[k], one], cell.shares[k])
        for one in cell.learns
        for k in seen
    ]
    return _labels(rows, middle)


def _damaged_labels(judged: Judged, objects: Sequence[str], folder: Path) -> pd.DataFrame:
    """Return objects damaged at random, with the share of edges that each picture keeps."""
    rows = []
    for one in objects:
        original = read_images([judged.originals[one]])
        rng = torch.Generator().manual_seed(zlib.crc32(one.encode()))
        for copy in range(_COPIES):
            path = folder / f"{one}-{copy}.png"
            picture = damaged(original, rng)
            if not path.is_file():
                write_png(picture[0], path)
            kept = float(edges_kept(original, picture)[0])
            # An original of its own: no triplet has one picture of people and one of damages.
            rows.append((f"{one} damaged", judged.originals[one], path, kept))
    return _labels(rows, float(np.median([row[-1] for row in rows])))


def _labels(rows: Sequence[tuple[str, Path, Path, float]], middle: float) -> pd.DataFrame:
    names = ["image_id", "original", "reconstruction", "n_recognised"]
    table = pd.DataFrame(rows, columns=names).astype({"original": str, "reconstruction": str})
    recognisable = table["n_recognised"] > middle
    # One vote, as a share is all that is known.
    return table.assign(dataset=RECURRENT.name, recognisable=recognisable, n_votes=1)


def damaged(images: Tensor, rng: torch.Generator) -> Tensor:
    """Damage images (N, 3, H, W) of greys in one or two of the ways in `DAMAGES`."""
    for _ in range(1 + _below(2, rng)):
        images = DAMAGES[_below(len(DAMAGES), rng)](images, rng)
    return images.mean(dim=1, keepdim=True).expand(-1, 3, -1, -1)


def covered(images: Tensor, rng: torch.Generator) -> Tensor:
    """Cover up to twelve rectangles around edges with the background, one grey, or noise."""
    changed, side = images.clone(), images.shape[-1]
    count, kind, grey = 1 + _below(12, rng), _below(3, rng), torch.rand((), generator=rng)
    most = max(side // 16 + 1, int(side / (1 + count**0.5)))
    slopes = torch.cat(_slopes(images.mean(dim=(0, 1))[None]))
    edges = slopes.abs().sum(dim=0) + _FAINT
    for place in torch.multinomial(edges.flatten(), count, replacement=True, generator=rng):
        height, width = (torch.randint(max(1, side // 16), most, (2,), generator=rng)).tolist()
        top = min(max(int(place) // (side - 1) - height // 2, 0), side - height)
        left = min(max(int(place) % (side - 1) - width // 2, 0), side - width)
        fills = images[..., :1, :1], grey, torch.rand(1, 1, height, width, generator=rng)
        changed[..., top : top + height, left : left + width] = fills[kind]
    return changed


def textured(images: Tensor, rng: torch.Generator) -> Tensor:
    """Add noise of several sizes, of a standard deviation up to a quarter."""
    side = images.shape[-1]
    parts = [
        torch.rand((), generator=rng)
        * F.interpolate(
            torch.randn(1, 1, cells, cells, generator=rng), (side, side), mode="bilinear"
        )
        for cells in (4, 8, 16, 32, 64)
    ]
    noise = torch.stack(parts).sum(dim=0)
    return (images + noise / noise.std() * torch.rand((), generator=rng) / 4).clamp(0, 1)


# Rectangles come in three of five.
DAMAGES = (degrade, covered, covered, covered, textured)


def _below(n: int, rng: torch.Generator) -> int:
    return int(torch.randint(n, (), generator=rng))


def carry_out(judged: Judged, cell: Cell, folder: Path) -> np.ndarray:
    """Train, and return scores (2, M, O) of the trained network and of its initial weights.

    Args:
        judged: Pictures and people's shares.
        cell: The training.
        folder: As of `labels_of`.
    """
    found: list[np.ndarray] = []

    def begun(model: SemSimModel) -> None:
        found.append(_scores(judged, model, cell.scores))

    labels = labels_of(judged, cell, folder)
    trained = train(labels, cell.recipe.settings, begun=begun).model
    return np.stack([_scores(judged, trained, cell.scores), *found])


def _scores(judged: Judged, model: SemSimModel, objects: Sequence[str]) -> np.ndarray:
    originals = read_images([judged.originals[one] for one in objects])
    return np.stack(
        [
            -semsim_distance(model, originals, _pictures(judged, name, objects)).numpy()
            for name in judged.names
        ]
    ).astype(float)


def _pictures(judged: Judged, name: str, objects: Sequence[str]) -> Tensor:
    return read_images([judged.pictures[name, one] for one in objects])


def untrained(judged: Judged, objects: Sequence[str]) -> dict[str, Stack]:
    """Return stacks of the metrics that learn nothing, by name."""
    originals = read_images([judged.originals[one] for one in objects])
    found: dict[str, list[np.ndarray]] = {name: [] for name in SEEDLESS}
    for name in judged.names:
        pictures = _pictures(judged, name, objects)
        for metric in CLASSIC:
            pairs = Pairs(originals=originals, reconstructions=pictures)
            values = METRICS[metric].prepare(Resources(device="cpu"))(pairs).values
            up = METRICS[metric].spec.higher_means_more_leakage
            found[metric].append(values if up else -values)
        found[EDGES].append(edges_kept(originals, pictures).numpy())
    return {name: stacked([np.stack(rows)] * len(FAMILIES)) for name, rows in found.items()}


def edges_kept(originals: Tensor, pictures: Tensor) -> Tensor:
    """Share of the originals' edges that pictures keep, (N,) in [0, 1].

    Args:
        originals: (N, 3, H, W) in [0, 1].
        pictures: As `originals`.
    """
    (oy, ox), (py, px) = (_slopes(images.mean(dim=1)) for images in (originals, pictures))
    length = oy**2 + ox**2
    kept = ((oy * py + ox * px) / (length + _FAINT)).clamp(0, 1)
    return (kept * length.sqrt()).sum((1, 2)) / length.sqrt().sum((1, 2)).clamp_min(_FAINT)


def _slopes(images: Tensor) -> tuple[Tensor, Tensor]:
    corner = images[:, :-1, :-1]
    return images[:, 1:, :-1] - corner, images[:, :-1, 1:] - corner


def stacked(blocks: Sequence[np.ndarray]) -> Stack:
    """Lay the scores of the trainings one below the other, each in units of its own spread.

    Args:
        blocks: (M, O) of each family left out, in order of `FAMILIES`.
    """
    return np.concatenate([standardised(one) for one in blocks])


def people_p(judged: Judged, without: str = "") -> np.ndarray:
    """Return how sure people put one row of a stack ahead of another: p, NaN for pairs not judged.

    Args:
        without: A family of which no pair is judged.

    Returns:
        (P,), the pairs in the order of `numpy.triu_indices`.
    """
    n = len(judged.names)
    first, second = np.triu_indices(n * len(FAMILIES), 1)
    block, i, j = first // n, first % n, second % n
    family = np.array([FAMILIES.index(one) for one in judged.family])
    told = (block == second // n) & ((family[i] == block) | (family[j] == block))
    if without:
        told &= (family[i] != FAMILIES.index(without)) & (family[j] != FAMILIES.index(without))
    width = np.hypot(judged.errors[i], judged.errors[j])
    return np.where(told, ndtr(-(judged.shares[i] - judged.shares[j]) / width), np.nan)


def accuracy(people: np.ndarray, stack: Stack) -> np.ndarray:
    """Return soft pairwise accuracy, and with each object left out: (1 + O,).

    p of a metric's lead is the normal approximation that `swap_test` uses, too.
    """
    known = ~np.isnan(people)
    gaps = differences(stack)[known]
    weights = left_out(gaps.shape[1])
    spread = np.sqrt(weights @ (gaps**2).T)
    ahead = np.divide(weights @ gaps.T, spread, out=np.zeros_like(spread), where=spread > 0)
    return np.asarray(1 - np.abs(people[known] - ndtr(-ahead)).mean(axis=1))


def rho(judged: Judged, stack: Stack) -> float:
    """Return Spearman's ρ of degradations, each scored by the training that left it out."""
    n = len(judged.names)
    means = stack.mean(axis=1).reshape(len(FAMILIES), n)
    means = (means - means.mean(axis=1, keepdims=True)) / means.std(axis=1, keepdims=True)
    own = [means[FAMILIES.index(family), k] for k, family in enumerate(judged.family)]
    return float(spearman_rows(judged.shares[None], np.array(own)[None])[0])


def ahead(people: np.ndarray, stack: Stack, other: Stack, seed: int) -> bool:
    """Return whether `stack` has the higher accuracy, and the test tells them apart."""
    test = swap_test(people, (stack, other), np.random.default_rng(seed), draws=_SWAPS)
    return test.difference > 0 and test.p < LEVEL


def choose(judged: Judged, kept: Pieces[np.ndarray], finds: Finds) -> str:
    """Print the accuracy of every recipe on the first half; return the best one's name."""
    cells, people = choosing(judged), people_p(judged)
    row = finds.table("choice", "recipe", "accuracy", "initial weights", "objects")
    found = {}
    for name, recipe in RECIPES.items():
        of = FAMILIES if recipe.people else FAMILIES[:1] * len(FAMILIES)
        blocks = [kept.read(cells[name, family].key) for family in of]
        own, start = (stacked([one[side] for one in blocks]) for side in (0, 1))
        found[name] = float(accuracy(people, own)[0])
        before = float(accuracy(people, start)[0])
        row(name, f"{found[name]:.3f}", f"{before:.3f}", own.shape[1])
    return max((name for name in RECIPES if RECIPES[name].people), key=found.__getitem__)


def opened(
    judged: Judged, chosen: str, seeds: int, kept: Pieces[np.ndarray]
) -> dict[str, list[Stack]]:
    """Return the stacks of the second half by row, one a seed; of what learns nothing one."""
    cells = opening(judged, chosen, seeds)
    found = {name: [one] for name, one in untrained(judged, judged.halves()[1]).items()}
    for row, source, side in ((OWN, OWN, 0), (START, OWN, 1), (SHUFFLED, SHUFFLED, 0)):
        found[row] = [
            stacked([kept.read(cells[source, seed, family].key)[side] for family in FAMILIES])
            for seed in range(seeds)
        ]
    found[DAMAGED] = [
        stacked([kept.read(cells[DAMAGED, seed, ""].key)[0]] * len(FAMILIES))
        for seed in range(seeds)
    ]
    return found


def report(judged: Judged, rows: Mapping[str, Sequence[Stack]], finds: Finds) -> None:
    """Print and keep the tables of the opened half, and whether the target is met."""
    people, n = people_p(judged), rows[OWN][0].shape[1]
    each = {row: np.stack([accuracy(people, s) for s in stacks]) for row, stacks in rows.items()}
    mean = {row: values.mean(axis=0) for row, values in each.items()}
    best = max(CLASSIC, key=lambda name: mean[name][0])
    won = {
        row: [
            tuple(ahead(people, stack, rival, seed) for rival in (rows[best][0], start))
            for seed, (stack, start) in enumerate(zip(rows[row], rows[START], strict=True))
        ]
        for row in (OWN, DAMAGED)
    }
    of = f"{n} objects"
    row = finds.table(
        "table",
        *("metric", "accuracy", f"ahead of {TITLES[best]}", "ahead of initial weights"),
        *("ρ", "least to most of seeds", "without scrambling"),
    )
    bare = people_p(judged, without="scrambling")
    for name in sorted(rows, key=lambda one: -mean[one][0]):
        low, high = student(mean[name][0], error(mean[name], n), n)
        rhos = [rho(judged, one) for one in rows[name]]
        ends = bonett_wright(float(np.mean(rhos)), len(judged.names))
        plain = float(np.mean([accuracy(bare, one)[0] for one in rows[name]]))
        counts = (
            [f"{sum(one[k] for one in won[name])} seeds" for k in (0, 1)] if name in won else []
        )
        if name not in won:
            lead = name == EDGES and ahead(people, rows[name][0], rows[best][0], 0)
            counts = [f"p < {LEVEL:g}" if lead else "–", "–"]
        spread = f"{min(rhos):.2f} to {max(rhos):.2f}" if len(rhos) > 1 else "–"
        row(
            TITLES[name],
            f"{mean[name][0]:.3f} [{low:.3f}, {high:.3f}]",
            *counts,
            f"{np.mean(rhos):.2f}" + (f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else ""),
            *(spread.replace("-", "−"), f"{plain:.3f}"),
        )
        finds.claims[f"accuracy.{name}"] = Claim(
            float(mean[name][0]), float(low), float(high), of, run=finds.run
        )
    rivals = ((OWN, best), (OWN, START), (OWN, SHUFFLED), (OWN, EDGES))
    for name, rival in (*rivals, (DAMAGED, best), (DAMAGED, START), (EDGES, best)):
        gap = mean[name] - mean[rival]
        low, high = student(gap[0], error(gap, n), n)
        key = f"lead.{name}.{'pixels' if rival == best else rival}"
        finds.claims[key] = Claim(float(gap[0]), float(low), float(high), of, run=finds.run)
    _by_family(judged, rows, finds)
    both = sum(all(one) for one in won[OWN])
    finds.figure("both", both, n=f"{len(won[OWN])} seeds")
    print(judge(both, least=TARGET * len(won[OWN]), unit="seeds"))


def _by_family(judged: Judged, rows: Mapping[str, Sequence[Stack]], finds: Finds) -> None:
    """Print accuracy by the family that was left out: over pairs with one of its degradations."""
    people, size = people_p(judged), len(judged.names)
    block = np.triu_indices(size * len(FAMILIES), 1)[0] // size
    row = finds.table("families", "left out", *(TITLES[name] for name in rows))
    for place, family in enumerate(FAMILIES):
        own = np.where(block == place, people, np.nan)
        cells = [np.mean([accuracy(own, one)[0] for one in stacks]) for stacks in rows.values()]
        row(family.replace("_", " "), *(f"{one:.3f}" for one in cells))


def kept_in(folder: Path) -> Pieces[np.ndarray]:
    """Return the trainings that are kept in `folder`."""

    def write(path: Path, scores: np.ndarray) -> None:
        held = io.BytesIO()
        np.save(held, scores)
        write_bytes(path, held.getvalue())

    return Pieces(folder, ".npy", read=lambda path: np.asarray(np.load(path)), write=write)


def _do(judged: Judged, cells: Sequence[Cell], kept: Pieces[np.ndarray]) -> None:
    """Carry out the trainings that are not kept yet."""
    for number, cell in enumerate(cells, start=1):
        if cell.key not in kept:
            kept.write(cell.key, carry_out(judged, cell, kept.folder.with_name("damages")))
            print(f"training {number} of {len(cells)}: done", flush=True)


def main() -> None:
    """Train what is missing, print and keep the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", dest="copies", type=Path, required=True, help="public copies")
    parser.add_argument("--out", type=Path, required=True, help="what is there is not done again")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--choose-only", action="store_true", help="leave the second half closed")
    parser.add_argument("--part", default="", metavar="K/N", help="do every N-th training, no more")
    add_option(parser)
    asked = parser.parse_args()
    begin()
    torch.set_num_threads(1)
    judged, kept = read_judged(asked.copies), kept_in(asked.out / "cells")
    place, parts = map(int, (asked.part or "0/1").split("/"))
    cells = list(choosing(judged).values())
    _do(judged, cells[place::parts], kept)
    if any(cell.key not in kept for cell in cells):
        return print("The other parts are not done yet; run it again when they are.")
    with Finds("" if asked.part else asked.results) as finds:
        name = choose(judged, kept, finds)
        print(f"\nchosen on the first half: {name}", flush=True)
        if asked.choose_only:
            return None
        _do(judged, list(opening(judged, name, asked.seeds).values())[place::parts], kept)
        if not asked.part:
            report(judged, opened(judged, name, asked.seeds, kept), finds)
    return None


if __name__ == "__main__":
    main()
