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
    parts = exact_chunks(originals, reconstructions)
    metric = PsnrRegistered(shift=shift, flip=flip)
    check_side(originals, metric.spec, "half of a shifted image must still overlap")

    def likeness(a: np.ndarray, b: np.ndarray, at: Crop, by: Crop) -> np.ndarray:
        return -np.square(_cut(a, at) - _cut(b, by)).mean(axis=(1, 2, 3))

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
    parts = exact_chunks(originals, reconstructions)
    metric = SsimRegistered(shift=shift, flip=flip)
    check_side(originals, metric.spec, f"its window is {_WINDOW} wide and it shifts")
    return _best(_moments, _mean_ssim, parts, shift, flip)


def gaussian_ssim(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """SSIM of images (n, C, H, W) in [0, 1] where they are, (n,), with the Gaussian window."""
    whole = slice(0, a.shape[2]), slice(0, a.shape[3])
    return _mean_ssim(_moments(a), _moments(b), whole, whole)


@dataclass(frozen=True)
class _Moments:
    """Images (n, C, H, W) and what lies under the window at each of its (H - 10, W - 10) places.

    Shifting an image shifts these with it, so they are computed once for all shifts.
    """

    images: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


def _moments(images: np.ndarray) -> _Moments:
    mean = _blur(images)
    variance = _blur(np.square(images)) - np.square(mean)
    return _Moments(images=images, mean=mean, variance=variance)


def _mean_ssim(a: _Moments, b: _Moments, at: Crop, by: Crop) -> np.ndarray:
    """Equation 13 of Wang et al. 2004 at each place of the window within the overlap, averaged."""
    places_a, places_b = _places(at), _places(by)
    mean_a, mean_b = _cut(a.mean, places_a), _cut(b.mean, places_b)
    product_of_means = mean_a * mean_b
    covariance = _blur(_cut(a.images, at) * _cut(b.images, by)) - product_of_means
    above = (2 * product_of_means + _C1) * (2 * covariance + _C2)
    below = np.square(mean_a) + np.square(mean_b) + _C1
    below *= _cut(a.variance, places_a) + _cut(b.variance, places_b) + _C2
    return np.asarray((above / below).mean(axis=(1, 2, 3)))


def _best(
    measure: Callable[[np.ndarray], T],
    likeness: Callable[[T, T, Crop, Crop], np.ndarray],
    chunks: Iterator[tuple[np.ndarray, np.ndarray]],
    shift: int,
    flip: bool,
) -> np.ndarray:
    """The highest likeness of each pair over all shifts and, with `flip`, mirrored ones too."""
    parts = []
    for a, b in chunks:
        original = measure(a)
        found = [
            likeness(original, candidate, at, by)
            for candidate in map(measure, (b, b[..., ::-1]) if flip else (b,))
            for at, by in _overlaps(a.shape[2], a.shape[3], shift)
        ]
        parts.append(np.max(found, axis=0))
    return np.concatenate(parts)


def _overlaps(height: int, width: int, shift: int) -> Iterator[tuple[Crop, Crop]]:
    """The rows and columns of two images that meet, for every shift of the second."""
    for dy, dx in product(range(-shift, shift + 1), repeat=2):
        yield (
            (_met(height, -dy), _met(width, -dx)),
            (_met(height, dy), _met(width, dx)),
        )


def _met(length: int, offset: int) -> slice:
    return slice(max(0, offset), length + min(0, offset))


def _cut(images: np.ndarray, crop: Crop) -> np.ndarray:
    rows, columns = crop
    return images[:, :, rows, columns]


def _places(crop: Crop) -> Crop:
    """Where the window can lie within `crop`."""
    rows, columns = (slice(part.start, part.stop - _WINDOW + 1) for part in crop)
    return rows, columns


def _blur(images: np.ndarray) -> np.ndarray:
    """The weighted mean under the Gaussian window, (n, C, H, W) to (n, C, H - 10, W - 10)."""
    return _along_rows(_along_rows(images).swapaxes(2, 3)).swapaxes(2, 3)


def _along_rows(images: np.ndarray) -> np.ndarray:
    """The weighted mean along the last axis as one product, not one an image and channel."""
    rows = images.reshape(-1, images.shape[3]) @ _band(images.shape[3]).T
    return np.asarray(rows.reshape(*images.shape[:3], -1))


@cache
def _band(length: int) -> np.ndarray:
    """(length - 10, length): row i holds the window's weights from column i on."""
    weights = np.exp(-0.5 * ((np.arange(_WINDOW) - _WINDOW // 2) / _SIGMA) ** 2)
    places = length - _WINDOW + 1
    band = np.zeros((places, length))
    for place in range(places):
        band[place, place : place + _WINDOW] = weights / weights.sum()
    return band


def _check_shift(shift: int) -> None:
    if shift < 0:
        raise SettingsError(f"A shift must be 0 pixels or more; got {shift}.")


def _words(shift: int, flip: bool) -> str:
    return f"best within ±{shift} px{' and flip' if flip else ''}"
