"""Sampling of the triplets of an epoch: by chance, or where they are hard enough."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from semsim.learning.settings import TrainSettings
from semsim.learning.triplets import ImageIndex, JudgedOriginal

T = TypeVar("T")

# Triplets of one original share its image and reconstructions, and a batch passes each image once:
# the fewer originals in a batch, the faster. Batch normalisation and the pooled loss need several.
# With four a batch of the preset "pooled" is whole originals, as those of "code" and "paper" are.
ORIGINALS_A_BATCH = 4


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Triplets of one epoch, in the order in which batches are cut from them.

    triplets: (T, 3) int, original, nearer and farther reconstruction, as numbers of images.
    weights: (T,) float32 in (0, 1], how much each counts.
    """

    triplets: np.ndarray
    weights: np.ndarray


def draw(
    index: ImageIndex,
    originals: Sequence[JudgedOriginal],
    settings: TrainSettings,
    rng: np.random.Generator,
    features: Tensor | None = None,
) -> Draw:
    """As many triplets of every original as the settings say, never of two originals.

    Those of one original come together, as far as a batch of `settings.batch_size` then still
    holds triplets of `ORIGINALS_A_BATCH` originals, where it is no smaller and there are so many.
    features: (N, d), by number of image; semi-hard mining needs them.
    """
    count = settings.triplets_per_original
    piles = []
    for original in originals:
        if settings.mining == "semi-hard" and features is not None:
            chosen = _mined(index, original, settings, rng, features)
        elif settings.ordering == "majority":
            chosen = _balanced(original, count, rng)
        else:
            chosen = _evenly(original.ordered(settings.ordering), count, rng)
        anchor = index.number(original.image)
        rows = [(anchor, index.number(p), index.number(n), weight) for p, n, weight in chosen]
        piles.append(rng.permutation(np.array(rows, dtype=np.float64)))
    table = _dealt(piles, settings.batch_size, rng)
    return Draw(triplets=table[:, :3].astype(np.int64), weights=table[:, 3].astype(np.float32))


def semi_hard(plus: float, minus: np.ndarray, margin: float, rng: np.random.Generator) -> int:
    """Choose a candidate, by distances `minus`, (K,), to set against a positive at `plus`.

    By chance one that is farther than the positive but inside the margin (Schroff et al. 2015,
    §3.2); where there is none, the mildest of those that are nearer, else the nearest.
    """
    inside = np.flatnonzero((minus > plus) & (minus < plus + margin))
    if len(inside) > 0:
        return int(rng.choice(inside))
    nearer = np.flatnonzero(minus <= plus)
    return int(nearer[minus[nearer].argmax()]) if len(nearer) > 0 else int(minus.argmin())


def _dealt(piles: Sequence[np.ndarray], batch_size: int, rng: np.random.Generator) -> np.ndarray:
    """The rows of all piles, each (triplets of one original, 4), in an order fit for batches.

    Piles go round in tables of `ORIGINALS_A_BATCH` or a few more, each putting down in its turn as
    many rows as leave room for that many piles in a batch.
    """
    handful = max(1, batch_size // ORIGINALS_A_BATCH)
    tables = max(1, len(piles) // ORIGINALS_A_BATCH)
    dealt = [
        piles[pile][start : start + handful]
        for table in np.array_split(rng.permutation(len(piles)), tables)
        for start in range(0, len(piles[0]), handful)
        for pile in table
    ]
    return np.concatenate(dealt)


def _balanced(
    original: JudgedOriginal, count: int, rng: np.random.Generator
) -> list[tuple[Path, Path, float]]:
    """Each reconstruction as often as any other of its kind, give or take once, however many."""
    positives = _evenly(original.recognisable, count, rng)
    negatives = _evenly(original.unrecognisable, count, rng)
    return [(p, n, 1.0) for p, n in zip(positives, negatives, strict=True)]


def _mined(
    index: ImageIndex,
    original: JudgedOriginal,
    settings: TrainSettings,
    rng: np.random.Generator,
    features: Tensor,
) -> list[tuple[Path, Path, float]]:
    away = _distances(index, original, features)
    rivals: dict[Path, list[tuple[Path, float]]] = {}
    for nearer, farther, weight in original.ordered(settings.ordering):
        rivals.setdefault(nearer, []).append((farther, weight))
    chosen = []
    for nearer in _evenly(tuple(rivals), settings.triplets_per_original, rng):
        minus = np.array([away[path] for path, _ in rivals[nearer]])
        farther, weight = rivals[nearer][semi_hard(away[nearer], minus, settings.margin, rng)]
        chosen.append((nearer, farther, weight))
    return chosen


def _distances(index: ImageIndex, original: JudgedOriginal, features: Tensor) -> dict[Path, float]:
    paths = original.images[1:]
    rows = features[[index.number(path) for path in paths]]
    from_original = torch.linalg.vector_norm(rows - features[index.number(original.image)], dim=1)
    return dict(zip(paths, from_original.tolist(), strict=True))


def _evenly(items: Sequence[T], count: int, rng: np.random.Generator) -> list[T]:
    rounds = -(-count // len(items))
    order = np.concatenate([rng.permutation(len(items)) for _ in range(rounds)])
    return [items[i] for i in order[:count]]
