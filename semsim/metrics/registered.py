"""PSNR and SSIM at the place where a reconstruction fits best: shifted, mirrored, or neither.

An attack gets back the image that was trained on, which augmentation may have moved. Compared
with the clean original pixel by pixel, a perfect reconstruction of it then looks bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from semsim.errors import SettingsError
from semsim.metrics.base import Judge, MetricSpec, Pairs, Resources, Scores, check_side
from semsim.metrics.pixel import exact_chunks, psnr_scores

if TYPE_CHECKING:
    from torch import Tensor

_WINDOW, _SIGMA = 11, 1.5  # of SSIM, as Wang et al. have it
_CHUNK = 1 << 18  # numbers compared at once: with fewer, threads wait for each other's calls
_LANES = 16  # numbers that a processor takes at once, or a multiple of it
_BAND = 10  # rows of the window's matrix at once: fewer are less zeros, and more calls
_C1, _C2 = 0.01**2, 0.03**2

T = TypeVar("T")
Crop = tuple[slice, slice]  # rows and columns


@dataclass(frozen=True, kw_only=True)
class PsnrRegistered:
    """The best PSNR of a pair over shifts and mirroring.

    shift: of the reconstruction, up to so many whole pixels each way. flip: whether it may be
    mirrored left to right.
    """

    shift: int = 4
    flip: bool = True

    def __post_init__(self) -> None:
        _check_shift(self.shift)

    @property
    def spec(self) -> MetricSpec:
        return MetricSpec(
            name="psnr-registered",
            title=f"PSNR ({_words(self.shift, self.flip)})",
            unit="dB",
            higher_means_more_leakage=True,
            per_image=True,
            smallest_side=max(1, 2 * self.shift),
        )

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return ()

    def prepare(self, resources: Resources) -> Judge:
        return self._judge

    def _judge(self, pairs: Pairs) -> Scores:
        return psnr_scores(
            psnr_registered(pairs.originals, pairs.reconstructions, self.shift, self.flip)
        )


@dataclass(frozen=True, kw_only=True)
class SsimRegistered:
    """The best SSIM of a pair, with the Gaussian window, over shifts and mirroring.

    shift, flip: as for `PsnrRegistered`.
    """

    shift: int = 4
    flip: bool = True

    def __post_init__(self) -> None:
        _check_shift(self.shift)

    @property
    def spec(self) -> MetricSpec:
        return MetricSpec(
            name="ssim-registered",
            title=f"SSIM ({_words(self.shift, self.flip)})",
            higher_means_more_leakage=True,
            per_image=True,
            smallest_side=max(_WINDOW + self.shift, 2 * self.shift),
        )

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return ()

    def prepare(self, resources: Resources) -> Judge:
        return self._judge

    def _judge(self, pairs: Pairs) -> Scores:
        return Scores(
            values=ssim_registered(pairs.originals, pairs.reconstructions, self.shift, self.flip)
        )


def psnr_registered(
    originals: Tensor, reconstructions: Tensor, shift: int, flip: bool
) -> np.ndarray:
    """The highest PSNR of each pair over all registrations, of the pixels that overlap.

    originals, reconstructions: as for `semsim.metrics.pixel.mse`, with sides of 2 · `shift` pixels
    or more. Returns (N,) float64 in dB, +inf where some overlap is identical. Raises `DataError`
    for other images, `SettingsError` for a negative shift.
    """
    parts = exact_chunks(originals, reconstructions, _CHUNK)
    metric = PsnrRegistered(shift=shift, flip=flip)
    check_side(originals, metric.spec, "half of a shifted image must still overlap")

    def likeness(a: np.ndarray, b: np.ndarray, at: Crop, by: Crop) -> np.ndarray:
        difference = a[at] - b[by]
        difference *= difference
        return -_mean(difference)

    best = _best(lambda images: images, likeness, parts, shift, flip)
    with np.errstate(divide="ignore"):  # of identical images
        return -10 * np.log10(-best)


def ssim_registered(
    originals: Tensor, reconstructions: Tensor, shift: int, flip: bool
) -> np.ndarray:
    """The highest SSIM of each pair over all registrations, of the pixels that overlap.

    originals, reconstructions: as for `semsim.metrics.structural.ssim`, with sides of 11 + `shift`
    pixels or more. Returns (N,) float64 in [-1, 1]. Raises as `psnr_registered`.
    """
    parts = exact_chunks(originals, reconstructions, _CHUNK)
    metric = SsimRegistered(shift=shift, flip=flip)
    check_side(originals, metric.spec, f"its window is {_WINDOW} wide and it shifts")
    return _best(_moments, _mean_ssim, parts, shift, flip)


def gaussian_ssim(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """SSIM of images (n, C, H, W) in [0, 1] where they are, (n,), with the Gaussian window."""
    return _best(_moments, _mean_ssim, iter([(a, b)]), shift=0, flip=False)


@dataclass(frozen=True)
class _Moments:
    """Images (H, W, m) and what lies under the window at each of its (H - 10, W - 10) places.

    Shifting an image shifts these with it, so they are computed once for all shifts. power and
    variance: the mean squared and the variance, each with half of its constant.
    """

    images: np.ndarray
    mean: np.ndarray
    power: np.ndarray
    variance: np.ndarray


def _moments(images: np.ndarray) -> _Moments:
    mean = _blur(images)
    square = np.square(mean)
    return _Moments(
        images=images,
        mean=mean,
        power=square + _C1 / 2,
        variance=_blur(np.square(images)) - square + _C2 / 2,
    )


def _mean_ssim(a: _Moments, b: _Moments, at: Crop, by: Crop) -> np.ndarray:
    """Equation 13 of Wang et al. 2004 at each place of the window within the overlap, averaged.

    In place as far as it goes: what is held at once stays in the processor's cache.
    """
    places_a, places_b = _places(at), _places(by)
    means = a.mean[places_a] * b.mean[places_b]
    found = _blur(a.images[at] * b.images[by])
    found -= means  # the covariance
    found += _C2 / 2
    means += _C1 / 2
    found *= means
    below = a.power[places_a] + b.power[places_b]
    below *= a.variance[places_a] + b.variance[places_b]
    found /= below
    return 4 * _mean(found)


def _mean(values: np.ndarray) -> np.ndarray:
    """Over the places, (h, w, m) to (m,)."""
    return np.asarray(values.reshape(-1, values.shape[2]).mean(axis=0))


def _best(
    measure: Callable[[np.ndarray], T],
    likeness: Callable[[T, T, Crop, Crop], np.ndarray],
    chunks: Iterator[tuple[np.ndarray, np.ndarray]],
    shift: int,
    flip: bool,
) -> np.ndarray:
    """The highest likeness of each pair over all shifts and, with `flip`, mirrored ones too.

    measure: of images as `_places_first` has them. likeness: of what was measured of two, an image
    and channel each.
    """
    parts = []
    for first, second in chunks:
        n, channels, height, width = first.shape
        original, b = measure(_places_first(first)), _places_first(second)
        mirrored = np.ascontiguousarray(b[:, ::-1])
        found = [
            likeness(original, candidate, at, by)[: n * channels].reshape(n, channels).mean(axis=1)
            for candidate in map(measure, (b, mirrored) if flip else (b,))
            for at, by in _overlaps(height, width, shift)
        ]
        parts.append(np.max(found, axis=0))
    return np.concatenate(parts)


def _places_first(images: np.ndarray) -> np.ndarray:
    """(n, C, H, W) as (H, W, m), so that what two shifted ones share lies in long runs of memory.

    m is n · C, and black images up to a multiple of `_LANES`, so that a processor computes each
    image in the same way and its score does not depend on its neighbours.
    """
    n, channels, height, width = images.shape
    found = np.zeros((height, width, -(-n * channels // _LANES) * _LANES))
    found[..., : n * channels] = images.transpose(2, 3, 0, 1).reshape(height, width, -1)
    return found


def _overlaps(height: int, width: int, shift: int) -> Iterator[tuple[Crop, Crop]]:
    """The rows and columns of two images that meet, for every shift of the second."""
    for dy, dx in product(range(-shift, shift + 1), repeat=2):
        yield (
            (_met(height, -dy), _met(width, -dx)),
            (_met(height, dy), _met(width, dx)),
        )


def _met(length: int, offset: int) -> slice:
    return slice(max(0, offset), length + min(0, offset))


def _places(crop: Crop) -> Crop:
    """Where the window can lie within `crop`."""
    rows, columns = (slice(part.start, part.stop - _WINDOW + 1) for part in crop)
    return rows, columns


def _blur(images: np.ndarray) -> np.ndarray:
    """The weighted mean under the Gaussian window, (H, W, m) to (H - 10, W - 10, m)."""
    return _down(_down(images).swapaxes(0, 1)).swapaxes(0, 1)


def _down(images: np.ndarray) -> np.ndarray:
    """The weighted mean along the first axis, (H, W, m) to (H - 10, W, m).

    As many products of small matrices, which no library spreads over threads: callers do that.
    """
    height, width, m = images.shape
    found = np.empty((width, height - _WINDOW + 1, m))
    columns = images.swapaxes(0, 1)
    for start, weights in _bands(height):
        rows, under = weights.shape
        np.matmul(weights, columns[:, start : start + under], out=found[:, start : start + rows])
    return found.swapaxes(0, 1)


@cache
def _bands(length: int) -> tuple[tuple[int, np.ndarray], ...]:
    """Some rows at a time of the (length - 10, length) matrix that holds the window in each row.

    Where they begin, and their part of the matrix that is not zero.
    """
    weights = np.exp(-0.5 * ((np.arange(_WINDOW) - _WINDOW // 2) / _SIGMA) ** 2)
    weights /= weights.sum()
    places = length - _WINDOW + 1
    found = []
    for start in range(0, places, _BAND):
        rows = min(_BAND, places - start)
        band = np.zeros((rows, rows + _WINDOW - 1))
        for row in range(rows):
            band[row, row : row + _WINDOW] = weights
        found.append((start, band))
    return tuple(found)


def _check_shift(shift: int) -> None:
    if shift < 0:
        raise SettingsError(f"A shift must be 0 pixels or more; got {shift}.")


def _words(shift: int, flip: bool) -> str:
    return f"best within ±{shift} px{' and flip' if flip else ''}"
