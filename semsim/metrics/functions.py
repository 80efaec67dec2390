"""Metrics as functions: tensors in, tensor out, the numbers of `semsim-studio score`.

Images in half precision count as float32; values that rounding moved out of [0, 1] are clamped.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from semsim.metrics import multi_scale, pixel, registered, structural
from semsim.metrics.base import Metric, Pairs, Resources
from semsim.metrics.inception import Fid, Kid
from semsim.metrics.perceptual import Lpips, Net
from semsim.metrics.structural import Window
from semsim.weights import CHECKPOINTS

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


def mse(originals: Tensor, reconstructions: Tensor) -> Tensor:
    """Mean squared error of each pair, over channels and pixels; 0 where they are equal.

    originals, reconstructions: (N, 1 or 3, H, W), uint8, or floats in [0, 1].
    Returns (N,) float64 in [0, 1] on the device of the originals, without a gradient. Raises
    `DataError` for other images.

    >>> import torch
    >>> black, grey = torch.zeros(2, 3, 8, 8), torch.full((2, 3, 8, 8), 0.5)
    >>> mse(black, grey)
    tensor([0.2500, 0.2500], dtype=torch.float64)
    """
    return _tensor(pixel.mse(originals, reconstructions), originals)


def psnr(originals: Tensor, reconstructions: Tensor) -> Tensor:
    """Peak signal-to-noise ratio of each pair, 10 · log₁₀(1 / MSE); higher means more leakage.

    originals, reconstructions: as for `mse`. Returns (N,) float64 in dB on the device of the
    originals, +inf for equal images, without a gradient. Raises `DataError` for other images.

    >>> import torch
    >>> black, grey = torch.zeros(1, 3, 8, 8), torch.full((1, 3, 8, 8), 0.1, dtype=torch.float64)
    >>> round(psnr(black.double(), grey).item(), 6)
    20.0
    """
    return _tensor(pixel.psnr(originals, reconstructions), originals)


def ssim(originals: Tensor, reconstructions: Tensor, window: Window = "gaussian") -> Tensor:
    """Structural similarity of each pair, the mean over channels; higher means more leakage.

    originals, reconstructions: as for `mse`, with sides of 11 pixels or more for the Gaussian
    window, 7 for the "uniform" one. Returns (N,) float64 in [-1, 1] on the device of the
    originals, without a gradient. Raises `DataError` for other images.
    Wang, Bovik, Sheikh and Simoncelli 2004, "Image quality assessment", equation 13.

    >>> import torch
    >>> images = torch.rand(2, 3, 16, 16)
    >>> ssim(images, images)
    tensor([1., 1.], dtype=torch.float64)
    """
    return _tensor(structural.ssim(originals, reconstructions, window), originals)


def psnr_registered(
    originals: Tensor, reconstructions: Tensor, shift: int = 4, flip: bool = True
) -> Tensor:
    """The highest PSNR of each pair over shifts and, with `flip`, mirroring; the search is our own.

    originals, reconstructions: as for `mse`, with sides of 2 · `shift` pixels or more. shift: of
    the reconstruction, up to so many whole pixels each way. Returns (N,) float64 in dB on the
    device of the originals, without a gradient. Raises `DataError` for other images,
    `SettingsError` for a negative shift.

    >>> import torch
    >>> images = torch.rand(1, 3, 16, 16)
    >>> psnr_registered(images, images.flip(3))
    tensor([inf], dtype=torch.float64)
    """
    found = registered.psnr_registered(originals, reconstructions, shift, flip)
    return _tensor(found, originals)


def ssim_registered(
    originals: Tensor, reconstructions: Tensor, shift: int = 4, flip: bool = True
) -> Tensor:
    """The highest SSIM of each pair over shifts and, with `flip`, mirroring; the search is our own.

    originals, reconstructions: as for `mse`, with sides of 11 + `shift` pixels or more. shift: as
    for `psnr_registered`. Returns (N,) float64 in [-1, 1] on the device of the originals, without
    a gradient. Raises `DataError` for other images, `SettingsError` for a negative shift.

    >>> import torch
    >>> images = torch.rand(1, 3, 16, 16)
    >>> ssim_registered(images, images.flip(3))
    tensor([1.], dtype=torch.float64)
    """
    found = registered.ssim_registered(originals, reconstructions, shift, flip)
    return _tensor(found, originals)


def ms_ssim(originals: Tensor, reconstructions: Tensor) -> Tensor:
    """Structural similarity at five scales of each pair; higher means more leakage.

    originals, reconstructions: (N, 3, H, W) float32 in [0, 1], sides of 161 pixels or more.
    Returns (N,) float64 in [0, 1] on the device of the originals, without a gradient. Raises
    `DataError` for other images, `WeightsError` where pytorch-msssim is not installed.
    Wang, Simoncelli and Bovik 2003, "Multi-scale structural similarity", equation 7.

    >>> import torch
    >>> images = torch.rand(1, 3, 161, 161)
    >>> round(ms_ssim(images, images).item(), 6)
    1.0
    """
    return _judged(multi_scale.MsSsim(), originals, reconstructions, CHECKPOINTS)


def lpips(
    originals: Tensor,
    reconstructions: Tensor,
    net: Net = "alex",
    *,
    checkpoints: Path | str = CHECKPOINTS,
) -> Tensor:
    """LPIPS 0.1 of each pair; lower means more leakage.

    originals, reconstructions: (N, 3, H, W) float32 in [0, 1], sides of 31 pixels or more for
    "alex", 17 for "squeeze", 16 for "vgg". checkpoints: folder searched for the backbone's weights,
    before torch's own cache. Returns (N,) float64, 0 or more, on the device of the originals,
    without a gradient. Raises `DataError` for other images, `WeightsError` without the weights.
    Zhang, Isola, Efros, Shechtman and Wang 2018, "The unreasonable effectiveness of deep features
    as a perceptual metric", equation 1.

    The example needs the weights, `semsim-studio weights --download`, so it is not run:

    >>> import torch
    >>> images = torch.rand(2, 3, 32, 32)
    >>> lpips(images, images)  # doctest: +SKIP
    tensor([0., 0.], dtype=torch.float64)
    """
    return _judged(Lpips(net=net), originals, reconstructions, checkpoints)


def fid(
    originals: Tensor, reconstructions: Tensor, *, checkpoints: Path | str = CHECKPOINTS
) -> Tensor:
    """Fréchet Inception distance of two sets of images; lower means more leakage.

    originals, reconstructions: (N, 3, H, W) float32 in [0, 1]. checkpoints: as for `lpips`.
    Returns (1,) float64, 0 or more, on the device of the originals, without a gradient; it is
    biased where N is small. Raises `DataError` for other images, `WeightsError` without weights.
    Heusel, Ramsauer, Unterthiner, Nessler and Hochreiter 2017, "GANs trained by a two time-scale
    update rule", equation 6.

    The example needs weights, as `lpips` does, so it is not run:

    >>> import torch
    >>> images = torch.rand(8, 3, 32, 32)
    >>> fid(images, images).shape  # doctest: +SKIP
    torch.Size([1])
    """
    return _judged(Fid(), originals, reconstructions, checkpoints)


def kid(
    originals: Tensor, reconstructions: Tensor, *, checkpoints: Path | str = CHECKPOINTS
) -> Tensor:
    """Kernel Inception distance of two sets of images; lower means more leakage.

    originals, reconstructions: (N, 3, H, W) float32 in [0, 1]. checkpoints: as for `lpips`.
    Returns (1,) float64 on the device of the originals, without a gradient; it can be negative,
    being unbiased. Raises `DataError` for other images, `WeightsError` without weights.
    Bińkowski, Sutherland, Arbel and Gretton 2018, "Demystifying MMD GANs", section 4.

    The example needs weights, as `lpips` does, so it is not run:

    >>> import torch
    >>> images = torch.rand(8, 3, 32, 32)
    >>> kid(images, images).shape  # doctest: +SKIP
    torch.Size([1])
    """
    return _judged(Kid(), originals, reconstructions, checkpoints)


def _judged(
    metric: Metric, originals: Tensor, reconstructions: Tensor, checkpoints: Path | str
) -> Tensor:
    pairs = Pairs(originals=originals, reconstructions=reconstructions)
    resources = Resources(checkpoints=Path(checkpoints), device=originals.device)
    return _tensor(metric.prepare(resources)(pairs).values, originals)


def _tensor(values: np.ndarray, like: Tensor) -> Tensor:
    import torch  # what a metric says of itself needs none

    found = torch.from_numpy(values)
    # Apple's GPUs have no float64.
    return found.float().to(like.device) if like.device.type == "mps" else found.to(like.device)
