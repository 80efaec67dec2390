"""Mean squared error and peak signal-to-noise ratio, image by image, as in scikit-image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from semsim.base.metric_spec import MetricSpec
from semsim.metrics.base import OfImages, checked_pairs, with_gradient

if TYPE_CHECKING:
    from torch import Tensor

_CHUNK = 1 << 16  # numbers compared at once; more would leave the processor's cache
_HALF = 0.5 / 255  # of a level of 8 bits
_LEVELS = np.arange(256) / 255


def mse(originals: Tensor, reconstructions: Tensor) -> Tensor:
    """Mean squared error of each pair, over channels and pixels; 0 where they are equal.

    Args:
        originals: (N, 1 or 3, H, W), uint8, or floats in [0, 1].
        reconstructions: As `originals`.

    Returns:
        (N,) float64 in [0, 1] on the device of the originals, differentiable in both.

    Raises:
        DataError: For other images.

    >>> import torch
    >>> black, grey = torch.zeros(2, 3, 8, 8), torch.full((2, 3, 8, 8), 0.5)
    >>> mse(black, grey)
    tensor([0.2500, 0.2500], dtype=torch.float64)
    """
    parts = _chunks(originals, reconstructions)
    values = np.concatenate([_mean_square(a, b) for a, b in parts])
    return with_gradient(values, mean_square, originals, reconstructions)


def psnr(originals: Tensor, reconstructions: Tensor) -> Tensor:
    """Peak signal-to-noise ratio of each pair, 10 · log₁₀(1 / MSE); higher means more leakage.

    Args:
        originals: As for `mse`.
        reconstructions: As `originals`.

    Returns:
        (N,) float64 in dB on the device of the originals, +inf for equal images, differentiable
        where they are not.

    Raises:
        DataError: For other images.

    >>> import torch
    >>> black, grey = torch.zeros(1, 3, 8, 8), torch.full((1, 3, 8, 8), 0.1, dtype=torch.float64)
    >>> round(psnr(black.double(), grey).item(), 6)
    20.0
    """
    parts = _chunks(originals, reconstructions)
    values = decibels(np.concatenate([_mean_square(a, b) for a, b in parts]))
    return with_gradient(values, smooth_psnr, originals, reconstructions)


def exact(originals: Tensor, reconstructions: Tensor) -> Tensor:
    """Return which pictures come back exactly: every value within half a level of 8 bits.

    Between files of 8 bits these are the pictures whose PSNR is infinite.

    Args:
        originals: (N, C, H, W) in [0, 1].
        reconstructions: As `originals`.

    Returns:
        (N,) bool.
    """
    return ((originals - reconstructions).abs().flatten(1) < _HALF).all(dim=1)


@dataclass(frozen=True, kw_only=True)
class Mse(OfImages):
    """Mean squared error of pixels in [0, 1]."""

    @property
    def spec(self) -> MetricSpec:
        return MetricSpec(name="mse", title="MSE", higher_means_more_leakage=False, per_image=True)

    def __call__(self, originals: Tensor, reconstructions: Tensor) -> Tensor:
        return mse(originals, reconstructions)


@dataclass(frozen=True, kw_only=True)
class Psnr(OfImages):
    """Peak signal-to-noise ratio; infinite where the images are identical."""

    @property
    def spec(self) -> MetricSpec:
        return MetricSpec(
            name="psnr",
            title="PSNR",
            unit="dB",
            higher_means_more_leakage=True,
            per_image=True,
        )

    def __call__(self, originals: Tensor, reconstructions: Tensor) -> Tensor:
        return psnr(originals, reconstructions)

    def notes(self, values: np.ndarray) -> tuple[str, ...]:
        return infinite_note(values, "equal their original")


def mean_square(a: Tensor, b: Tensor) -> Tensor:
    """The mean squared difference of each pair, (N, C, H, W) twice to (N,), in torch."""
    return (a - b).square().flatten(1).mean(1)


def smooth_psnr(a: Tensor, b: Tensor) -> Tensor:
    """The PSNR of each pair, (N, C, H, W) twice to (N,), in torch."""
    return -10 * mean_square(a, b).log10()


def decibels(errors: np.ndarray) -> np.ndarray:
    """Return the PSNR of mean squared errors, (N,) in [0, 1], in dB; +inf where one is 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(0 - 10 * np.log10(errors))  # from 0, as the negative of 0 is −0


def infinite_note(values: np.ndarray, equal: str) -> tuple[str, ...]:
    """A note where some of `values`, (N,) in dB, are infinite, as reconstructions are `equal`."""
    note = f"PSNR is infinite where reconstructions {equal}"
    return (note,) if np.isinf(values).any() else ()


def exact_chunks(
    originals: Tensor, reconstructions: Tensor, size: int = _CHUNK
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Both sides as (n, C, H, W) float64 in [0, 1], some images at a time, in order.

    Args:
        originals: As for `mse`, checked at the call.
        reconstructions: As `originals`.
        size: Numbers of a chunk.
    """
    parts = _chunks(originals, reconstructions, size)
    return ((_exact(a), _exact(b)) for a, b in parts)


def _chunks(
    originals: Tensor, reconstructions: Tensor, size: int = _CHUNK
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    taken = checked_pairs(
        originals,
        reconstructions,
        channels=(1, 3),
        dtypes=("uint8", "float32", "float64"),
    )
    n = max(1, size // taken[0][0].numel())
    both = (images.detach().cpu().split(n) for images in taken)
    return ((a.numpy(), b.numpy()) for a, b in zip(*both, strict=True))


def _mean_square(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of a - b, an image each; of two 8-bit images exactly, as it is one of whole numbers."""
    x, y = _levels(a), _levels(b)
    if x is None or y is None:
        difference, peak = _exact(a) - _exact(b), 1
    else:
        difference, peak = (x - y).astype(np.float64), 255
    flat = difference.reshape(len(a), -1)
    return np.asarray(np.einsum("ij,ij->i", flat, flat) / (flat.shape[1] * peak**2))


def _levels(values: np.ndarray) -> np.ndarray | None:
    """Images as grey levels 0…255, float32, or None where they have others than 8-bit ones."""
    if values.dtype == np.uint8:
        return values.astype(np.float32)
    if values.dtype == np.float64:
        return None
    levels = np.rint(values * np.float32(255))
    return levels if np.array_equal(levels / np.float32(255), values) else None


def _exact(values: np.ndarray) -> np.ndarray:
    """(N, C, H, W) as float64 in [0, 1], where an 8-bit image has exactly the values k/255.

    float32 holds k/255 with an error of up to 3e-8. That is nothing, except between images that
    differ by one grey level: it moves their PSNR by 1e-4 dB.
    """
    if values.dtype == np.uint8:
        return _LEVELS[values]
    if values.dtype == np.float64:
        return values
    levels = np.rint(values * np.float32(255))
    odd = (levels / np.float32(255) != values).any(axis=(1, 2, 3))
    exact = levels.astype(np.float64) / 255
    exact[odd] = values[odd]
    return exact
