"""Structural similarity, image by image, with the Gaussian window or a uniform one.

Many images are scored at once, in parts that shifted images can share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from semsim.base.metric_spec import MetricSpec
from semsim.base.registry import Checked
from semsim.metrics.base import OfImages, check_side, with_gradient
from semsim.metrics.pixel import exact_chunks

if TYPE_CHECKING:
    from torch import Tensor

Window = Literal["gaussian", "uniform"]
_LANES = 16  # numbers that a processor takes at once, or a multiple of it
_BAND = 10  # rows of the window's matrix at once: fewer are less zeros, and more calls
_C1, _C2 = 0.01**2, 0.03**2

Crop = tuple[slice, slice]  # rows and columns


@dataclass(frozen=True)
class SsimWindow:
    """A window that is a product of two equal ones, along rows and along columns.

    Attributes:
        weights: Of either, summing to 1.
        unbiased: What a covariance under it is multiplied by.
    """

    weights: tuple[float, ...]
    unbiased: float = 1.0

    @property
    def side(self) -> int:
        """Width and height in pixels."""
        return len(self.weights)

    @property
    def c2(self) -> float:
        """The second constant of SSIM, where covariances are left as they are."""
        return _C2 / self.unbiased


def _normal(side: int, sigma: float) -> tuple[float, ...]:
    heights = np.exp(-0.5 * ((np.arange(side) - side // 2) / sigma) ** 2)
    return tuple((heights / heights.sum()).tolist())


GAUSSIAN = SsimWindow(_normal(11, 1.5))  # as Wang et al. have it
UNIFORM = SsimWindow((1 / 7,) * 7, unbiased=49 / 48)  # as the SemSim authors' code has it


_WINDOWS = {"gaussian": GAUSSIAN, "uniform": UNIFORM}
_NAMES: dict[Window, tuple[str, str]] = {
    "gaussian": ("ssim", "SSIM"),
    "uniform": ("ssim-uniform", "SSIM (uniform window)"),
}


def ssim(originals: Tensor, reconstructions: Tensor, window: Window = "gaussian") -> Tensor:
    """Structural similarity of each pair, the mean over channels; higher means more leakage.

    Wang, Bovik, Sheikh and Simoncelli 2004, "Image quality assessment", equation 13.

    Args:
        originals: As for `mse`, with sides of 11 pixels or more for the Gaussian
            window, 7 for the "uniform" one.
        reconstructions: As `originals`.

    Returns:
        (N,) float64 in [-1, 1] on the device of the originals, differentiable in both.

    Raises:
        DataError: For other images.

    >>> import torch
    >>> images = torch.rand(2, 3, 16, 16)
    >>> ssim(images, images)
    tensor([1., 1.], dtype=torch.float64)
    """
    parts = exact_chunks(originals, reconstructions)
    spec, found = Ssim(window=window).spec, _WINDOWS[window]
    check_side(originals, spec, f"its window is {found.side} wide")
    values = np.concatenate([ssim_in_place(a, b, found) for a, b in parts])
    return with_gradient(values, partial(smooth_ssim, window=found), originals, reconstructions)


@dataclass(frozen=True, kw_only=True)
class Ssim(Checked, OfImages):
    """Structural similarity.

    Attributes:
        window: "gaussian", σ = 1.5 over 11 pixels as Wang et al. have it, or "uniform", 7 pixels.
    """

    window: Window = "gaussian"

    @property
    def spec(self) -> MetricSpec:
        name, title = _NAMES[self.window]
        return MetricSpec(
            name=name,
            title=title,
            higher_means_more_leakage=True,
            per_image=True,
            smallest_side=_WINDOWS[self.window].side,
        )

    def __call__(self, originals: Tensor, reconstructions: Tensor) -> Tensor:
        return ssim(originals, reconstructions, self.window)


def smooth_ssim(a: Tensor, b: Tensor, window: SsimWindow) -> Tensor:
    """The SSIM of each pair, (N, C, H, W) twice to (N,), in torch: equation 13 of Wang et al."""
    import torch.nn.functional as F

    channels = a.shape[1]
    row = a.new_tensor(window.weights)
    kernel = row.outer(row).expand(channels, 1, -1, -1)
    mean_a, mean_b, square_a, square_b, product = (
        F.conv2d(images, kernel, groups=channels) for images in (a, b, a * a, b * b, a * b)
    )
    means = mean_a * mean_b
    spread = square_a - mean_a.square() + square_b - mean_b.square()
    found = (2 * means + _C1) * (2 * (product - means) + window.c2)
    found = found / ((mean_a.square() + mean_b.square() + _C1) * (spread + window.c2))
    return found.mean((1, 2, 3))


@dataclass(frozen=True)
class Moments:
    """Images (H, W, m) and what lies under the window at each of its places.

    Shifting an image shifts these with it, so they are computed once for all shifts.

    Attributes:
        power: The mean squared and the variance, each with half of its constant.
        variance: As `power`.
    """

    images: np.ndarray
    mean: np.ndarray
    power: np.ndarray
    variance: np.ndarray

    def astype(self, kind: type[np.floating]) -> Moments:
        """The same in another precision."""
        parts = (self.images, self.mean, self.power, self.variance)
        return Moments(*(part.astype(kind, copy=False) for part in parts))


def places_first(images: np.ndarray) -> np.ndarray:
    """(n, C, H, W) as (H, W, m), so that what two shifted ones share lies in long runs of memory.

    m is n · C, and black images up to a multiple of `_LANES`, so that a processor computes each
    image in the same way and its score does not depend on its neighbours.
    """
    n, channels, height, width = images.shape
    found = np.zeros((height, width, -(-n * channels // _LANES) * _LANES))
    found[..., : n * channels] = images.transpose(2, 3, 0, 1).reshape(height, width, -1)
    return found


def ssim_in_place(a: np.ndarray, b: np.ndarray, window: SsimWindow) -> np.ndarray:
    """SSIM of images (n, C, H, W) where they are, the mean over channels, (n,).

    Args:
        a: Float64 in [0, 1], with sides of the window's or more.
        b: As `a`.
    """
    height, width = a.shape[2:]
    whole = slice(0, height), slice(0, width)
    first, second = (moments(places_first(images), window) for images in (a, b))
    return of_images(mean_ssim(first, second, whole, whole, window), a)


def of_images(values: np.ndarray, images: np.ndarray) -> np.ndarray:
    """The mean over channels, from (m,) as `places_first` lays images (n, C, H, W), to (n,)."""
    n, channels = images.shape[:2]
    return np.asarray(values[: n * channels].reshape(n, channels).mean(axis=1))


def moments(images: np.ndarray, window: SsimWindow) -> Moments:
    """Of images (H, W, m) in [0, 1], as `places_first` makes them."""
    mean = _blur(images, window)
    square = np.square(mean)
    return Moments(
        images=images,
        mean=mean,
        power=square + _C1 / 2,
        variance=_blur(np.square(images), window) - square + window.c2 / 2,
    )


def mean_ssim(a: Moments, b: Moments, at: Crop, by: Crop, window: SsimWindow) -> np.ndarray:
    """Equation 13 of Wang et al. 2004 at each place of the window within the overlap, averaged.

    Args:
        at: What of `a` and of `b` is laid on each other.
        by: As `at`.

    Returns:
        (m,). In place as far as it goes: what is held at once stays in the processor's cache.
    """
    places_a, places_b = (_places(crop, window) for crop in (at, by))
    means = a.mean[places_a] * b.mean[places_b]
    found = _blur(a.images[at] * b.images[by], window)
    found -= means  # the covariance
    found += window.c2 / 2
    means += _C1 / 2
    found *= means
    below = a.power[places_a] + b.power[places_b]
    below *= a.variance[places_a] + b.variance[places_b]
    found /= below
    return 4 * mean_over_places(found)


def mean_over_places(values: np.ndarray) -> np.ndarray:
    """(h, w, m) to (m,), in two short sums, so that single precision rounds little."""
    return np.asarray(values.mean(axis=0).mean(axis=0))


def _places(crop: Crop, window: SsimWindow) -> Crop:
    """Return the places of the window within `crop`."""
    rows, columns = (slice(part.start, part.stop - window.side + 1) for part in crop)
    return rows, columns


def _blur(images: np.ndarray, window: SsimWindow) -> np.ndarray:
    """The weighted mean under the window of side s, (H, W, m) to (H - s + 1, W - s + 1, m)."""
    down = _down(images, window)
    return _down(down.swapaxes(0, 1), window).swapaxes(0, 1)


def _down(images: np.ndarray, window: SsimWindow) -> np.ndarray:
    """The weighted mean along the first axis, (H, W, m) to (H - s + 1, W, m).

    As many products of small matrices, which no library spreads over threads: callers do that.
    """
    height, width, m = images.shape
    found = np.empty((width, height - window.side + 1, m), images.dtype)
    columns = images.swapaxes(0, 1)
    for start, weights in _bands(height, window, images.dtype):
        rows, under = weights.shape
        np.matmul(weights, columns[:, start : start + under], out=found[:, start : start + rows])
    return found.swapaxes(0, 1)


@lru_cache(maxsize=64)
def _bands(length: int, window: SsimWindow, kind: np.dtype) -> tuple[tuple[int, np.ndarray], ...]:
    """Some rows at a time of the (length - s + 1, length) matrix that holds the window in each row.

    Where they begin, and their part of the matrix that is not zero.
    """
    places = length - window.side + 1
    found = []
    for start in range(0, places, _BAND):
        rows = min(_BAND, places - start)
        band = np.zeros((rows, rows + window.side - 1), kind)
        for row in range(rows):
            band[row, row : row + window.side] = window.weights
        found.append((start, band))
    return tuple(found)
