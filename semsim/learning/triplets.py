"""From what people said to triplets: original, a recognisable and an unrecognisable attempt at it.

A triplet never mixes two originals; the labels of a classification task could not say that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from semsim.errors import DataError

COLUMNS = ("dataset", "image_id", "original", "reconstruction", "recognisable")


@dataclass(frozen=True, kw_only=True)
class JudgedOriginal:
    """One original and those of its reconstructions on which people agree."""

    dataset: str
    image_id: str
    image: Path
    recognisable: tuple[Path, ...]
    unrecognisable: tuple[Path, ...]
    undecided: int

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from every other original."""
        return self.dataset, self.image_id

    @property
    def n_triplets(self) -> int:
        """How many different triplets it makes."""
        return len(self.recognisable) * len(self.unrecognisable)


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """The originals of a study by what they are good for in training.

    usable: have both kinds. only_recognisable, only_unrecognisable: have one kind.
    undecided: have no reconstruction on which a majority agrees yet.
    """

    usable: tuple[JudgedOriginal, ...]
    only_recognisable: tuple[JudgedOriginal, ...]
    only_unrecognisable: tuple[JudgedOriginal, ...]
    undecided: tuple[JudgedOriginal, ...]

    @property
    def n_originals(self) -> int:
        """All originals of the study."""
        parts = (self.usable, self.only_recognisable, self.only_unrecognisable, self.undecided)
        return sum(len(part) for part in parts)

    @property
    def n_triplets(self) -> int:
        """How many different triplets the usable originals make."""
        return count_triplets(self.usable)


def take_stock(labels: pd.DataFrame) -> Inventory:
    """Sort the originals in `labels` by the kinds of reconstruction each has.

    labels: one row a reconstruction, with at least the columns `COLUMNS`; `recognisable` is
        True, False, or missing where people have not decided.
    Raises `DataError` where a column is missing.
    """
    missing = [name for name in COLUMNS if name not in labels.columns]
    if missing:
        raise DataError(
            f"The labels lack the columns {', '.join(missing)}. Export them from a study."
        )
    originals = [
        _judged(str(dataset), str(image_id), rows)
        for (dataset, image_id), rows in labels.groupby(["dataset", "image_id"], sort=True)
    ]
    return Inventory(
        usable=tuple(o for o in originals if o.recognisable and o.unrecognisable),
        only_recognisable=tuple(o for o in originals if o.recognisable and not o.unrecognisable),
        only_unrecognisable=tuple(o for o in originals if o.unrecognisable and not o.recognisable),
        undecided=tuple(o for o in originals if not o.recognisable and not o.unrecognisable),
    )


def require_usable(inventory: Inventory) -> tuple[JudgedOriginal, ...]:
    """The usable originals; `DataError` says what is needed when there is none."""
    if inventory.usable:
        return inventory.usable
    raise DataError(
        "SemSim learns from originals that have both a reconstruction people recognise and one "
        f"they do not. Of {inventory.n_originals} originals none has both: "
        f"{len(inventory.only_recognisable)} have only recognisable ones, "
        f"{len(inventory.only_unrecognisable)} only unrecognisable ones, "
        f"{len(inventory.undecided)} no majority yet. "
        "Collect more votes, or add reconstructions from stronger and weaker attacks."
    )


def split(
    originals: Sequence[JudgedOriginal], fraction: float, rng: np.random.Generator
) -> tuple[tuple[JudgedOriginal, ...], tuple[JudgedOriginal, ...]]:
    """Originals to train on and originals to hold out, none in both.

    fraction: share held out, rounded, but at least one original stays on each side where
        `fraction` is above 0 and there are two.
    """
    n = len(originals)
    held_out = 0 if fraction == 0 or n < 2 else min(n - 1, max(1, round(fraction * n)))
    chosen = set(rng.permutation(n)[:held_out].tolist())
    return (
        tuple(original for i, original in enumerate(originals) if i not in chosen),
        tuple(original for i, original in enumerate(originals) if i in chosen),
    )


def is_simulated(labels: pd.DataFrame) -> bool:
    """Whether any of the votes behind `labels` were simulated; `DataError` if it is not told."""
    if "simulated" not in labels.columns:
        raise DataError(
            "The labels do not tell whether they are simulated: the column 'simulated' is missing."
        )
    return bool(labels["simulated"].astype(bool).any())


class ImageIndex:
    """Numbers the images of originals so that a triplet is three integers.

    paths: every image once, in order of its number.
    """

    def __init__(self, originals: Sequence[JudgedOriginal]) -> None:
        every = (p for o in originals for p in (o.image, *o.recognisable, *o.unrecognisable))
        self.paths: tuple[Path, ...] = tuple(dict.fromkeys(every))
        self._number = {path: number for number, path in enumerate(self.paths)}

    def sample(
        self, originals: Sequence[JudgedOriginal], per_original: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Random triplets (len(originals) × per_original, 3) in random order, as numbers.

        Every original gives equally many, and within one every reconstruction is used as often
        as any other of its kind, give or take once, however many there are of each.
        """
        rows = [
            [self._number[original.image], self._number[p], self._number[n]]
            for original in originals
            for p, n in zip(
                _evenly(original.recognisable, per_original, rng),
                _evenly(original.unrecognisable, per_original, rng),
                strict=True,
            )
        ]
        return rng.permutation(np.array(rows, dtype=np.int64).reshape(-1, 3))

    def every(self, originals: Sequence[JudgedOriginal]) -> np.ndarray:
        """All triplets (T, 3) of `originals`, as numbers."""
        rows = [
            [self._number[original.image], self._number[p], self._number[n]]
            for original in originals
            for p in original.recognisable
            for n in original.unrecognisable
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)


def count_triplets(originals: Sequence[JudgedOriginal]) -> int:
    """How many different triplets `originals` make."""
    return sum(original.n_triplets for original in originals)


def _judged(dataset: str, image_id: str, rows: pd.DataFrame) -> JudgedOriginal:
    verdict = rows["recognisable"].astype("boolean")
    return JudgedOriginal(
        dataset=dataset,
        image_id=image_id,
        image=Path(str(rows["original"].iloc[0])),
        recognisable=_paths(rows[verdict.fillna(False)]),
        unrecognisable=_paths(rows[~verdict.fillna(True)]),
        undecided=int(verdict.isna().sum()),
    )


def _paths(rows: pd.DataFrame) -> tuple[Path, ...]:
    # Sorted, so that the same labels in another order train the same SemSim.
    return tuple(Path(path) for path in sorted(rows["reconstruction"].astype(str)))


def _evenly(paths: Sequence[Path], count: int, rng: np.random.Generator) -> list[Path]:
    rounds = -(-count // len(paths))
    order = np.concatenate([rng.permutation(len(paths)) for _ in range(rounds)])
    return [paths[i] for i in order[:count]]
