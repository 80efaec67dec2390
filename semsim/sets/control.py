"""Whether a picture that came back shows more than a guess, which takes no attack.

The rule of every verdict. A picture counts in either of two ways: it is nearer to the original than
what can be guessed of it, or its shapes tell the original apart from the others, as negatives,
wrong colours and pictures under noise do, which squared error, PSNR and SSIM take for nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from semsim.images import read_pixels
from semsim.sets.reader import ReconstructionSet

CLEARLY = 0.9  # of the control's error: by luck noise gets a few per cent nearer
GUESS = "a guess (a plain picture, or the mean of the others)"
_RIVALS = 50  # originals that a picture is held against: enough to make luck rare
_FLAT = 1e-10  # of the variance of the strongest mix of channels: weaker ones are rounding


class Shown(NamedTuple):
    """What one picture shows.

    nearer: whether it is clearly nearer to the original than every guess. told_apart: whether its
    shapes fit the original clearly better than they fit any other.
    """

    nearer: bool
    told_apart: bool

    @property
    def clearer(self) -> bool:
        """Whether it shows more than a guess, in either way."""
        return self.nearer or self.told_apart

    @property
    def by_shapes(self) -> bool:
        """Whether only its shapes do: it is a negative, in wrong colours or under noise."""
        return self.told_apart and not self.nearer


NOTHING = Shown(nearer=False, told_apart=False)  # of an attack that failed


class Count(NamedTuple):
    """Of `over` pictures `clearer` show more than a guess, `by_shapes` of these by shapes alone."""

    clearer: int
    by_shapes: int
    over: int

    @classmethod
    def of(cls, shown: Iterable[Shown]) -> "Count":
        """The count of these pictures."""
        all_of = list(shown)
        return cls(sum(s.clearer for s in all_of), sum(s.by_shapes for s in all_of), len(all_of))

    @property
    def comes_back(self) -> bool:
        """Whether an attack counts as one that gets pictures back: most of them show more."""
        return 2 * self.clearer > self.over

    @property
    def short(self) -> str:
        """The count for a table."""
        shapes = f" ({self.by_shapes} by shapes)" if self.by_shapes else ""
        return f"{self.clearer} of {self.over}{shapes}"

    @property
    def words(self) -> str:
        """The count and what it is held against, to end a sentence."""
        whole = f"clearer than {GUESS} on {self.clearer} of {self.over} pictures"
        if not self.by_shapes:
            return whole
        return f"{whole}, {self.by_shapes} of them by their shapes alone, in wrong colours or noise"


@dataclass(frozen=True)
class Control:
    """What can be guessed of originals, (H, W, C) in 0 to 255 each."""

    originals: Sequence[np.ndarray]

    def judge(self, place: int, picture: np.ndarray, attacked: np.ndarray) -> Shown:
        """What `picture` shows of what was attacked of the original at `place`.

        picture, attacked: (H, W, C) in 0 to 255; `attacked` may be shifted against the original.

        Nearer is by mean squared error, all shifted to the mean colour of `attacked`, so that a
        lucky colour does not count; a guess is a plain picture, or the mean of the other originals.

        Told apart is by how much of an original's variance the picture explains with each of its
        channels mixed at will (linear regression, so that the sign does not count): what it leaves
        of `attacked` is clearly less than what it leaves of each of the first 50 others, and less
        than all. Chance is one in as many originals as there are.
        """
        truth = _shapes(attacked)
        near = np.square(_shapes(picture) - truth).mean()
        far = min(np.square(guess - truth).mean() for guess in self._guesses(place))
        return Shown(
            nearer=bool(near < CLEARLY * far), told_apart=self._told_apart(place, picture, attacked)
        )

    @cached_property
    def _total(self) -> np.ndarray | None:
        """The sum of all, None where they differ in size."""
        alike = len({one.shape for one in self.originals}) == 1
        return np.sum(self.originals, axis=0, dtype=float) if alike else None

    def _guesses(self, place: int) -> list[np.ndarray]:
        plain, others = np.zeros(1), len(self.originals) - 1
        if self._total is None or others < 1:
            return [plain]
        return [plain, _shapes((self._total - self.originals[place]) / others)]

    def _told_apart(self, place: int, picture: np.ndarray, attacked: np.ndarray) -> bool:
        prints, units = self._rivals.get(attacked.shape, ([], np.zeros((0, 0, 0))))
        own = _print(self.originals[place])  # the same picture once more is no rival
        rivals = [n for n, one in enumerate(prints) if one != own][:_RIVALS]
        if not rivals:
            return False
        mixes = _mixes(picture)
        left = 1 - _explained(mixes, _unit(attacked)[:, None])
        others = 1 - _explained(mixes, units)[rivals]
        return bool(left[0] < CLEARLY * others.min())

    @cached_property
    def _rivals(self) -> dict[tuple[int, ...], tuple[list[int], np.ndarray]]:
        """By shape the first originals, one more than a picture is held against.

        Of each what it is known by, and all of them as `_unit` has them, (H · W, n, C).
        """
        found: dict[tuple[int, ...], list[np.ndarray]] = {}
        for one in self.originals[: _RIVALS + 1]:
            found.setdefault(one.shape, []).append(one)
        return {
            shape: ([*map(_print, alike)], np.stack([*map(_unit, alike)], axis=1))
            for shape, alike in found.items()
        }


def judged(
    pictures: Sequence[np.ndarray | None], originals: Sequence[np.ndarray]
) -> tuple[Shown, ...]:
    """What each picture shows; one that failed, None, shows nothing.

    pictures, originals: (H, W, C) in 0 to 255 each, in one order.
    """
    control = Control(originals)
    return tuple(
        NOTHING if picture is None else control.judge(place, picture, originals[place])
        for place, picture in enumerate(pictures)
    )


def judged_set(found: ReconstructionSet) -> tuple[Shown, ...]:
    """What each row of a set shows; those that failed come last."""
    rows = found.manifest[found.manifest["original"].notna()]
    control = Control([read_pixels(found.folder / path) for path in rows["original"]])
    places = np.flatnonzero(rows["status"] == "ok").tolist()
    shown = [
        control.judge(
            place,
            read_pixels(Path(row["reconstruction"])),
            read_pixels(Path(row["attacked"] or row["original"])),
        )
        for place, row in zip(places, found.pairs.to_dict("records"), strict=True)
    ]
    return (*shown, *[NOTHING] * (len(found.manifest) - len(shown)))


def _shapes(picture: np.ndarray) -> np.ndarray:
    """A picture less its mean colour, (H, W, C)."""
    exact = picture.astype(float)
    return exact - exact.mean(axis=(0, 1))


def _unit(picture: np.ndarray) -> np.ndarray:
    """The shapes of a picture, (H · W, C), with a sum of squares of 1; all 0 where it is plain."""
    shapes = _shapes(picture).reshape(-1, picture.shape[-1])
    return np.asarray(shapes / max(float(np.linalg.norm(shapes)), 1e-9))


def _mixes(picture: np.ndarray) -> np.ndarray:
    """Mixes of the channels of a picture, (H · W, k), orthonormal; k ≤ C, 0 where it is plain."""
    unit = _unit(picture)
    variance, weights = np.linalg.eigh(unit.T @ unit)
    used = variance > _FLAT * max(variance[-1], _FLAT)
    return np.asarray(unit @ (weights[:, used] / np.sqrt(variance[used])))


def _explained(mixes: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Of each picture of (H · W, n, C), the share of its variance that `mixes` explain, (n,)."""
    return np.asarray(np.square(np.tensordot(mixes, units, axes=(0, 0))).sum(axis=(0, 2)))


def _print(picture: np.ndarray) -> int:
    """What a picture is known by."""
    return hash((picture.shape, picture.dtype.str, picture.tobytes()))
