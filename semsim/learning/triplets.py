"""From what people said to triplets: original, a recognisable and an unrecognisable attempt at it.

A triplet never mixes two originals; the labels of a classification task could not say that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from semsim.base.errors import DataError
from semsim.base.picture_files import read_pixels
from semsim.base.stats.votes import votes_needed
from semsim.base.words import counted
from semsim.weights import content_key, sha256_of

COLUMNS = ("dataset", "image_id", "original", "reconstruction", "recognisable")
_SAME = 0.01  # mean squared error, which is 20 dB, up to which two files hold one picture
VOTE_COLUMNS = ("n_votes", "n_recognised")  # needed where votes order the triplets

# Nearer, farther, and how much it matters, in (0, 1].
Pair = tuple[Path, Path, float]


@dataclass(frozen=True, kw_only=True)
class JudgedOriginal:
    """One original and those of its reconstructions on which people agree.

    Attributes:
        shares: Reconstructions with the share of their votes that recognised them, in [0, 1], of
            those with votes enough for a majority; empty where the labels count no votes.
    """

    dataset: str
    image_id: str
    image: Path
    recognisable: tuple[Path, ...]
    unrecognisable: tuple[Path, ...]
    undecided: int
    shares: tuple[tuple[Path, float], ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Data set and image id, which identify the original."""
        return self.dataset, self.image_id

    @property
    def n_triplets(self) -> int:
        """Number of different triplets that it makes."""
        return len(self.recognisable) * len(self.unrecognisable)

    @property
    def images(self) -> tuple[Path, ...]:
        """The original and every reconstruction of it that can be learned from or judged."""
        every = (self.image, *self.recognisable, *self.unrecognisable, *(p for p, _ in self.shares))
        return tuple(dict.fromkeys(every))

    def ordered(self, ordering: str) -> tuple[Pair, ...]:
        """All pairs of a reconstruction that should be nearer and one that should be farther.

        Args:
            ordering: "majority" for the recognisable against the unrecognisable ones, all of weight
                1; "votes" for every two with different shares of votes, weighted by the difference.
        """
        if ordering == "majority":
            return tuple((p, n, 1.0) for p in self.recognisable for n in self.unrecognisable)
        return tuple((p, n, a - b) for p, a in self.shares for n, b in self.shares if a > b)


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """The originals of a study by what they are good for in training.

    Attributes:
        usable: Have both kinds.
        only_recognisable, only_unrecognisable: Have one kind.
        undecided: Have no reconstruction on which a majority agrees yet.
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
        """Number of different triplets that the usable originals make."""
        return sum(original.n_triplets for original in self.usable)


def take_stock(labels: pd.DataFrame) -> Inventory:
    """Sort the originals in `labels` by the kinds of reconstruction each has.

    Args:
        labels: One row a reconstruction, with at least the columns `COLUMNS`; `recognisable` is
            True, False, or missing where people have not decided. Where there are `VOTE_COLUMNS`,
            the votes of those with a majority of `votes_per_item`, or any, are kept too.

    Raises:
        DataError: Where a column is missing, or holds what it cannot.
    """
    missing = [name for name in COLUMNS if name not in labels.columns]
    if missing:
        raise DataError(
            f"The labels lack the columns {', '.join(missing)}. Export them from a study."
        )
    labels = typed(labels)
    labels = labels.assign(_share=_shares(labels))
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
        f"they do not. Of {counted(inventory.n_originals, 'original')} none has both: "
        f"{counted(len(inventory.only_recognisable), 'has', 'have')} only recognisable ones, "
        f"{len(inventory.only_unrecognisable)} only unrecognisable ones, "
        f"{len(inventory.undecided)} no majority yet. "
        "Collect more votes, or add reconstructions from stronger and weaker attacks."
    )


def learnable(inventory: Inventory, ordering: str) -> tuple[JudgedOriginal, ...]:
    """The originals that make a triplet under `ordering`, in order of name.

    Raises `DataError` where there is none.
    """
    if ordering == "majority":
        # Images on which no majority agrees would only be read for nothing.
        return tuple(replace(original, shares=()) for original in require_usable(inventory))
    parts = (
        *(inventory.usable, inventory.only_recognisable),
        *(inventory.only_unrecognisable, inventory.undecided),
    )
    every = sorted((o for part in parts for o in part), key=lambda original: original.key)
    found = tuple(original for original in every if original.ordered(ordering))
    if not found:
        raise DataError(
            "Votes can order triplets where two reconstructions of one original have different "
            f"shares of votes. None of {counted(inventory.n_originals, 'original')} has such two. "
            f"The labels need the columns {', '.join(VOTE_COLUMNS)}, and more votes or other "
            "attacks."
        )
    return found


def shuffle_votes(
    originals: Sequence[JudgedOriginal], rng: np.random.Generator
) -> tuple[JudgedOriginal, ...]:
    """The same originals with what people said of each dealt out anew among its reconstructions.

    Within an original, and among those that make triplets alone: it keeps as many recognisable and
    unrecognisable ones, as many triplets, and the same shares of votes; which reconstruction has
    which is chance. What is learned from that is not what people recognise.
    """
    found = []
    for original in originals:
        decided = [*original.recognisable, *original.unrecognisable]
        dealt = [decided[i] for i in rng.permutation(len(decided))]
        n = len(original.recognisable)
        order = rng.permutation(len(original.shares))
        shares = [
            (p, original.shares[i][1]) for (p, _), i in zip(original.shares, order, strict=True)
        ]
        found.append(
            replace(
                original,
                recognisable=tuple(sorted(dealt[:n])),
                unrecognisable=tuple(sorted(dealt[n:])),
                shares=tuple(shares),
            )
        )
    return tuple(found)


def split(
    originals: Sequence[JudgedOriginal], fraction: float, rng: np.random.Generator
) -> tuple[tuple[JudgedOriginal, ...], tuple[JudgedOriginal, ...]]:
    """Originals to train on and originals to hold out, no picture in both, under whatever name.

    Args:
        fraction: Share held out, rounded, but at least one picture stays on each side where
            `fraction` is above 0 and there are two.
    """
    key = {original.image: content_key(original.image) for original in originals}
    pictures = list(dict.fromkeys(key.values()))
    n = len(pictures)
    held_out = 0 if fraction == 0 or n < 2 else min(n - 1, max(1, round(fraction * n)))
    chosen = {pictures[i] for i in rng.permutation(n)[:held_out]}
    return (
        tuple(original for original in originals if key[original.image] not in chosen),
        tuple(original for original in originals if key[original.image] in chosen),
    )


def is_simulated(labels: pd.DataFrame) -> bool:
    """Return whether any vote behind `labels` was simulated; `DataError` where it is not stated."""
    if "simulated" not in labels.columns:
        raise DataError("The column 'simulated' of the labels is missing.")
    return bool(labels["simulated"].astype(bool).any())


class ImageIndex:
    """Numbers the images of originals so that a triplet is three integers.

    Attributes:
        paths: Every image once, in order of its number.
    """

    def __init__(self, originals: Sequence[JudgedOriginal]) -> None:
        every = (path for original in originals for path in original.images)
        self.paths: tuple[Path, ...] = tuple(dict.fromkeys(every))
        self._number = {path: number for number, path in enumerate(self.paths)}

    def number(self, path: Path) -> int:
        """The number of an image."""
        return self._number[path]

    def judged(self, originals: Sequence[JudgedOriginal]) -> tuple[np.ndarray, np.ndarray]:
        """Pairs (M, 2) of original and reconstruction, and whether a majority recognised it."""
        rows = [
            (self._number[original.image], self._number[path], verdict)
            for original in originals
            for paths, verdict in ((original.recognisable, True), (original.unrecognisable, False))
            for path in paths
        ]
        table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        return table[:, :2], table[:, 2].astype(bool)

    def every(self, originals: Sequence[JudgedOriginal], ordering: str = "majority") -> np.ndarray:
        """All triplets (T, 3) of `originals`, as numbers.

        Args:
            ordering: As of `ordered`.
        """
        rows = [
            [self._number[original.image], self._number[p], self._number[n]]
            for original in originals
            for p, n, _ in original.ordered(ordering)
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _judged(dataset: str, image_id: str, rows: pd.DataFrame) -> JudgedOriginal:
    verdict = rows["recognisable"].astype("boolean")
    return JudgedOriginal(
        dataset=dataset,
        image_id=image_id,
        image=_original(dataset, image_id, rows),
        recognisable=_paths(rows[verdict.fillna(False)]),
        unrecognisable=_paths(rows[~verdict.fillna(True)]),
        undecided=int(verdict.isna().sum()),
        shares=_ordered_shares(rows),
    )


def _original(dataset: str, image_id: str, rows: pd.DataFrame) -> Path:
    """The picture that all `rows` are reconstructions of; `DataError` where they are of several."""
    paths = [Path(path) for path in dict.fromkeys(rows["original"].astype(str))]
    if len(paths) > 1:  # often copies of one, each beside its own reconstruction
        known = list({sha256_of(path): path for path in paths if path.is_file()}.values())
        for first, other in pairwise(known):
            if not _show_the_same(first, other):
                raise DataError(
                    f"Two pictures are both {image_id!r} of the data set {dataset!r}: {first} and "
                    f"{other}. Votes on one would count for the other; import the "
                    "sets again, each with a data set's name of its own."
                )
    return paths[0]


def _show_the_same(first: Path, other: Path) -> bool:
    """Return whether two files hold one picture, perhaps compressed again."""
    a, b = (read_pixels(path) / 255 for path in (first, other))
    return a.shape == b.shape and bool(np.square(a - b).mean() < _SAME)


def typed(labels: pd.DataFrame) -> pd.DataFrame:
    """`labels` with truth values and numbers where there must be such; `DataError` for others."""
    for name in ("recognisable", *VOTE_COLUMNS, "votes_per_item"):
        if name not in labels.columns:
            continue
        is_verdict = name == "recognisable"
        try:
            values = labels[name].astype("boolean") if is_verdict else pd.to_numeric(labels[name])
        except (TypeError, ValueError) as error:
            what = "True, False or nothing" if is_verdict else "numbers"
            raise DataError(
                f"The labels' column {name} must hold {what} ({error}). Export them again."
            ) from error
        labels = labels.assign(**{name: values})
    return labels


def _shares(labels: pd.DataFrame) -> pd.Series:
    """The share of votes for each row; missing where too few have come for a majority."""
    if not set(VOTE_COLUMNS) <= set(labels.columns):
        return pd.Series(np.nan, index=labels.index)
    votes = labels["n_votes"].astype("float64")
    asked = labels["votes_per_item"].to_numpy() if "votes_per_item" in labels.columns else 1
    enough = votes >= votes_needed(votes.to_numpy(), asked)
    if "mean_response" in labels.columns:  # of an original without a name no share is known
        enough &= pd.to_numeric(labels["mean_response"]).notna()
    return (labels["n_recognised"].astype("float64") / votes).where(enough)


def _ordered_shares(rows: pd.DataFrame) -> tuple[tuple[Path, float], ...]:
    known = rows[rows["_share"].notna()]
    pairs = zip(known["reconstruction"].astype(str), known["_share"].astype(float), strict=True)
    return tuple((Path(path), share) for path, share in sorted(pairs))


def _paths(rows: pd.DataFrame) -> tuple[Path, ...]:
    # Sorted, so that the same labels in another order train the same SemSim.
    return tuple(Path(path) for path in sorted(rows["reconstruction"].astype(str)))
