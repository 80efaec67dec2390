"""PSNR and SSIM at the place where a reconstruction fits best: shifted, mirrored, or neither.

An attack gets back the image that was trained on, which augmentation may have moved. Compared
with the clean original pixel by pixel, a perfect reconstruction of it then looks bad.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from semsim.base.errors import SettingsError
from semsim.base.metric_spec import MetricSpec
from semsim.metrics.base import OfImages, check_side, with_gradient
from semsim.metrics.pixel import decibels, exact_chunks, infinite_note, smooth_psnr
from semsim.metrics.structural import (
    GAUSSIAN,
    Crop,
    mean_over_places,
    mean_ssim,
    moments,
    of_images,
    places_first,
    smooth_ssim,
    ssim_in_place,
)

if TYPE_CHECKING:
    from torch import Tensor

_TOGETHER = 1 << 21  # numbers of the images whose best places are looked at together
_CHUNK = 1 << 18  # numbers compared at once: with fewer, threads wait for each other's calls
_MARGIN = 1e-4  # of SSIM, several times what single precision is off by on the flattest images
_FEW = 24  # registrations up to which overlaps are cut out, each with moments of its own

Registration = tuple[int, Crop, Crop]  # whether mirrored, what meets of the one and of the other


def psnr_registered(
    originals: Tensor, reconstructions: Tensor, shift: int = 4, flip: bool = True
) -> Tensor:
    """The highest PSNR of each pair over shifts and, with `flip`, mirroring; the search is our own.

    Args:
        originals: As for `mse`, with sides of 2 · `shift` pixels or more.
        reconstructions: As `originals`.
        shift: Of the reconstruction, up to so many whole pixels each way.

    Returns:
        (N,) float64 in dB on the device of the originals, differentiable at the registration that
        is best.

    Raises:
        DataError: For other images.
        SettingsError: For a negative shift.

    >>> import torch
    >>> images = torch.rand(1, 3, 16, 16)
    >>> psnr_registered(images, images.flip(3))
    tensor([inf], dtype=torch.float64)
    """
    parts = exact_chunks(originals, reconstructions, _CHUNK)
    metric = PsnrRegistered(shift=shift, flip=flip)
    check_side(originals, metric.spec, "half of a shifted image must still overlap")
    values = decibels(np.concatenate([_least_mse(a, b, shift, flip) for a, b in parts]))
    return with_gradient(
        values, partial(_smooth_best, smooth_psnr, shift, flip), originals, reconstructions
    )


def ssim_registered(
    originals: Tensor, reconstructions: Tensor, shift: int = 4, flip: bool = True
) -> Tensor:
    """The highest SSIM of each pair over shifts and, with `flip`, mirroring; the search is our own.

    Args:
        originals: As for `mse`, with sides of 11 + `shift` pixels or more.
        reconstructions: As `originals`.
        shift: As for `psnr_registered`.

    Returns:
        (N,) float64 in [-1, 1] on the device of the originals, differentiable as that is.

    Raises:
        DataError: For other images.
        SettingsError: For a negative shift.

    >>> import torch
    >>> images = torch.rand(1, 3, 16, 16)
    >>> ssim_registered(images, images.flip(3))
    tensor([1.], dtype=torch.float64)
    """
    parts = exact_chunks(originals, reconstructions, _TOGETHER)
    metric = SsimRegistered(shift=shift, flip=flip)
    check_side(originals, metric.spec, f"its window is {GAUSSIAN.side} wide and it shifts")
    values = np.concatenate([_best_ssim(a, b, shift, flip) for a, b in parts])
    plain = partial(smooth_ssim, window=GAUSSIAN)
    return with_gradient(
        values, partial(_smooth_best, plain, shift, flip), originals, reconstructions
    )


@dataclass(frozen=True, kw_only=True)
class _Registered(OfImages):
    shift: int = 4
    flip: bool = True

    def __post_init__(self) -> None:
        _check_shift(self.shift)


class PsnrRegistered(_Registered):
    """The best PSNR of a pair over shifts and mirroring.

    Attributes:
        shift: Of the reconstruction, up to so many whole pixels each way.
        flip: Whether it may be mirrored left to right.
    """

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

    def __call__(self, originals: Tensor, reconstructions: Tensor) -> Tensor:
        return psnr_registered(originals, reconstructions, self.shift, self.flip)

    def notes(self, values: np.ndarray) -> tuple[str, ...]:
        return infinite_note(
            values, "equal their original where they overlap, once shifted or mirrored"
        )


class SsimRegistered(_Registered):
    """The best SSIM of a pair, with the Gaussian window, over shifts and mirroring.

    Attributes:
        shift: As for `PsnrRegistered`.
        flip: As `shift`.
    """

    @property
    def spec(self) -> MetricSpec:
        return MetricSpec(
            name="ssim-registered",
            title=f"SSIM ({_words(self.shift, self.flip)})",
            higher_means_more_leakage=True,
            per_image=True,
            smallest_side=max(GAUSSIAN.side + self.shift, 2 * self.shift),
        )

    def __call__(self, originals: Tensor, reconstructions: Tensor) -> Tensor:
        return ssim_registered(originals, reconstructions, self.shift, self.flip)


def _smooth_best(
    plain: Callable[[Tensor, Tensor], Tensor], shift: int, flip: bool, a: Tensor, b: Tensor
) -> Tensor:
    """The highest of a metric in torch, `plain`, over all registrations, (n, C, H, W) to (n,)."""
    import torch

    sides = b, b.flip(-1)
    found = [
        plain(a[..., at[0], at[1]], sides[mirrored][..., by[0], by[1]])
        for mirrored, at, by in _registrations(a, shift, flip)
    ]
    return torch.stack(found).amax(0)


def _least_mse(a: np.ndarray, b: np.ndarray, shift: int, flip: bool) -> np.ndarray:
    """The least mean squared error over all registrations, (n, C, H, W) twice to (n,)."""
    first, sides = places_first(a), _sides(b, flip)
    found = []
    for mirrored, at, by in _registrations(a, shift, flip):
        difference = first[at] - sides[mirrored][by]
        difference *= difference
        found.append(of_images(mean_over_places(difference), a))
    return np.asarray(np.min(found, axis=0))


def _best_ssim(a: np.ndarray, b: np.ndarray, shift: int, flip: bool) -> np.ndarray:
    """The highest SSIM over all registrations, (n, C, H, W) twice to (n,).

    All registrations are compared in single precision, in half the time; those that may be the
    best are looked at again in double: all of an image where these are many, as of a grey one.
    """
    rough = _ssim_of_each(a, b, shift, flip, np.float32)
    near = rough >= rough.max(axis=0) - _MARGIN
    many = near.sum(axis=0) > _FEW
    best = np.full(len(a), -np.inf)
    if many.any():
        best[many] = _ssim_of_each(a[many], b[many], shift, flip, np.float64).max(axis=0)
    # Of overlaps of one size.
    alike: dict[tuple[int, int], list[tuple[int, Registration]]] = defaultdict(list)
    for registration, images in zip(_registrations(a, shift, flip), near & ~many, strict=True):
        rows, columns = registration[1]
        size = rows.stop - rows.start, columns.stop - columns.start
        alike[size] += [(image, registration) for image in np.flatnonzero(images).tolist()]
    for wanted in alike.values():
        for part in _parts(len(wanted), a):
            some = wanted[part]
            pairs = [_cut(a[image], b[image], registration) for image, registration in some]
            first, second = (np.stack(side) for side in zip(*pairs, strict=True))
            found = ssim_in_place(first, second, GAUSSIAN)
            np.maximum.at(best, [image for image, _ in some], found)
    return best


def _ssim_of_each(
    a: np.ndarray, b: np.ndarray, shift: int, flip: bool, kind: type[np.floating]
) -> np.ndarray:
    """SSIM of each registration and pair, (R, n), from (n, C, H, W) twice, computed in `kind`."""
    found = []
    for part in _parts(len(a), a):
        sides = [places_first(a[part]), *_sides(b[part], flip)]
        first, *others = (moments(side, GAUSSIAN).astype(kind) for side in sides)
        scores = [
            of_images(mean_ssim(first, others[mirrored], at, by, GAUSSIAN), a[part])
            for mirrored, at, by in _registrations(a, shift, flip)
        ]
        found.append(np.array(scores))
    return np.concatenate(found, axis=1)


def _parts(n: int, images: np.ndarray) -> list[slice]:
    """`n` of such images, (…, C, H, W), in parts of about `_CHUNK` numbers."""
    size = max(1, _CHUNK // images[0].size)
    return [slice(start, start + size) for start in range(0, n, size)]


def _sides(images: np.ndarray, flip: bool) -> list[np.ndarray]:
    """Images (n, C, H, W) as `places_first` makes them and, with `flip`, mirrored ones too."""
    found = places_first(images)
    return [found, np.ascontiguousarray(found[:, ::-1])] if flip else [found]


def _cut(a: np.ndarray, b: np.ndarray, registration: Registration) -> tuple[np.ndarray, np.ndarray]:
    """Return the overlap of two images (C, H, W), as `registration` lays them on each other."""
    mirrored, at, by = registration
    return a[:, *at], (b[..., ::-1] if mirrored else b)[:, *by]


def _registrations(images: np.ndarray | Tensor, shift: int, flip: bool) -> Iterator[Registration]:
    """Every shift of the second of two images (…, H, W), and of the same mirrored."""
    height, width = images.shape[-2:]
    for mirrored in range(1 + flip):
        for dy, dx in product(range(-shift, shift + 1), repeat=2):
            at = _met(height, -dy), _met(width, -dx)
            yield mirrored, at, (_met(height, dy), _met(width, dx))


def _met(length: int, offset: int) -> slice:
    return slice(max(0, offset), length + min(0, offset))


def _check_shift(shift: int) -> None:
    if shift < 0:
        raise SettingsError(f"A shift must be 0 pixels or more; got {shift}.")


def _words(shift: int, flip: bool) -> str:
    return f"best within ±{shift} px{' and flip' if flip else ''}"
