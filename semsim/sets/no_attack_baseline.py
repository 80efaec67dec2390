"""Test of a returned picture: whether it shows more than a guess, which takes no attack.

The rule of every verdict. A picture counts in either of two ways: it is nearer to the original than
what can be guessed of it, or its shapes tell the original apart from the others, as negatives,
wrong colours, outlines and pictures under noise do, which squared error, PSNR and SSIM take for
nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_gradient_magnitude

from semsim.base.picture_files import read_pixels
from semsim.base.sets.reader import ReconstructionSet
from semsim.base.stats.intervals import share_words

CLEARLY = 0.9  # of the control's error: by luck noise gets a few per cent nearer
BASELINE = "the no-attack baseline (a plain picture or the mean of the others)"
_RIVALS = 50  # originals that a picture is held against: enough to make luck rare
_ENOUGH = 19  # rivals among which the first place alone is luck once in twenty
_AHEAD = 0.95  # of what is left of the nearest rival, where there are fewer
_BLUR = 1.0  # pixels, standard deviation, before outlines are taken
_FLAT = 1e-10  # of the variance of the strongest mix of channels: weaker ones are rounding


class Shown(NamedTuple):
    """Verdict on one picture.

    Attributes:
        nearer: Whether it is clearly nearer to the original than every guess.
        told_apart: Whether its shapes fit the original better than they fit any other.
    """

    nearer: bool
    told_apart: bool

    @property
    def clearer(self) -> bool:
        """True if it shows more than a guess, in either way."""
        return self.nearer or self.told_apart

    @property
    def by_shapes(self) -> bool:
        """True if only its shapes do: a negative, outlines, wrong colours, or under noise."""
        return self.told_apart and not self.nearer


NOTHING = Shown(nearer=False, told_apart=False)  # of an attack that failed


class Count(NamedTuple):
    """Of `over` pictures `clearer` show more than a guess, `by_shapes` of these by shapes alone.

    They are of `units` originals, or where that is 0 of one each.
    """

    clearer: int
    by_shapes: int
    over: int
    units: int = 0

    @classmethod
    def of(cls, shown: Iterable[Shown]) -> "Count":
        """The count of these pictures."""
        all_of = list(shown)
        return cls(sum(s.clearer for s in all_of), sum(s.by_shapes for s in all_of), len(all_of))

    @property
    def comes_back(self) -> bool:
        """True if an attack counts as one that gets pictures back: most of them show more."""
        return 2 * self.clearer > self.over

    @property
    def short(self) -> str:
        """The count for a table."""
        shapes = f" ({self.by_shapes} by shapes)" if self.by_shapes else ""
        return f"{self.clearer} of {self.over}{shapes}"

    @property
    def words(self) -> str:
        """The count, what it is held against and its share over originals, to end a sentence."""
        share = share_words(self.clearer / max(1, self.over), self.units or self.over)
        whole = f"above {BASELINE} on {self.clearer} of {self.over} pictures, {share}"
        if not self.by_shapes:
            return whole
        shapes = "by their shapes alone, as negatives, in wrong colours or as outlines"
        return f"{whole}, {self.by_shapes} of them {shapes}"


@dataclass(frozen=True)
class Control:
    """Guesses of originals, (H, W, C) in 0 to 255 each, as the control of an attack."""

    originals: Sequence[np.ndarray]

    def judge(self, place: int, picture: np.ndarray, attacked: np.ndarray) -> Shown:
        """Judge `picture` against what was attacked of the original at `place`.

        Nearer is by mean squared error, all shifted to the mean colour of `attacked`, so that a
        lucky colour does not count; a guess is a plain picture, or the mean of the other originals.

        Told apart is by how well the picture fits `attacked` and each of the first 50 other
        originals, see `_fits`: it fits `attacked` best. Of fewer than 20 originals luck would often
        do for that, so there it leaves a twentieth less unexplained than of any other. By luck this
        happens to one picture in as many as there are originals.

        Args:
            picture, attacked: (H, W, C) in 0 to 255; `attacked` may be shifted against the
                original.
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
        known = self._rivals.get(attacked.shape)
        if known is None:
            return False
        own = _print(self.originals[place])  # the same picture once more is no rival
        rivals = [n for n, one in enumerate(known.prints) if one != own][:_RIVALS]
        if not rivals:
            return False
        drawn = _mixes(picture), _outlines(picture)
        fit = float(_fits(*drawn, _PictureShapes.of([attacked]))[0])
        best = float(_fits(*drawn, known)[rivals].max())
        if len(rivals) >= _ENOUGH:
            return fit > best
        return 1 - fit < _AHEAD * (1 - best)

    @cached_property
    def _rivals(self) -> "dict[tuple[int, ...], _PictureShapes]":
        """By shape the first originals, one more than a picture is held against."""
        found: dict[tuple[int, ...], list[np.ndarray]] = {}
        for one in self.originals[: _RIVALS + 1]:
            found.setdefault(one.shape, []).append(one)
        return {shape: _PictureShapes.of(alike) for shape, alike in found.items()}


class _PictureShapes(NamedTuple):
    """Shapes and outlines of n pictures of one size, against which others are held.

    Attributes:
        prints: What each is known by.
        shapes: (H · W, n, C), as `_unit` has them.
        outlines: (H · W, n).
    """

    prints: list[int]
    shapes: np.ndarray
    outlines: np.ndarray

    @classmethod
    def of(cls, pictures: Sequence[np.ndarray]) -> "_PictureShapes":
        return cls(
            [*map(_print, pictures)],
            np.stack([*map(_unit, pictures)], axis=1),
            np.stack([*map(_outlines, pictures)], axis=1),
        )


def judged(
    pictures: Sequence[np.ndarray | None], originals: Sequence[np.ndarray]
) -> tuple[Shown, ...]:
    """Return the verdict on each picture; one that failed, None, shows nothing.

    Args:
        pictures, originals: (H, W, C) in 0 to 255 each, in one order.
    """
    control = Control(originals)
    return tuple(
        NOTHING if picture is None else control.judge(place, picture, originals[place])
        for place, picture in enumerate(pictures)
    )


def judged_set(found: ReconstructionSet) -> tuple[Shown, ...]:
    """Return the verdict on each row of a set; those that failed come last."""
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


def _outlines(picture: np.ndarray) -> np.ndarray:
    """The length of the gradient of a slightly blurred picture, (H · W,), as `_unit` has it."""
    exact = picture.astype(float)
    steps = [gaussian_gradient_magnitude(channel, _BLUR) for channel in np.moveaxis(exact, -1, 0)]
    return _unit(np.sqrt(np.square(steps).sum(axis=0))[..., None])[:, 0]


def _fits(mixes: np.ndarray, outlines: np.ndarray, drawn: _PictureShapes) -> np.ndarray:
    """Return the fit of a picture's shapes to each of n, 0 to 1, (n,).

    The mean of two shares of variance: of the pixels, each channel explained by the picture's
    channels mixed at will (linear regression, so that colours and sign do not count); and of the
    outlines, explained by the picture's, where both are in the same places.

    Args:
        mixes, outlines: Of the picture, as `_mixes` and `_outlines` have them.
    """
    pixels = np.tensordot(mixes, drawn.shapes, axes=(0, 0))
    alike = np.maximum(outlines @ drawn.outlines, 0)
    return np.asarray((np.square(pixels).sum(axis=(0, 2)) + np.square(alike)) / 2)


def _print(picture: np.ndarray) -> int:
    """Return a hash that a picture is known by."""
    return hash((picture.shape, picture.dtype.str, picture.tobytes()))
