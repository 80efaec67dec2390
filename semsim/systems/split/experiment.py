"""The computations of an experiment in split inference, each one call: pure, no files."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from semsim.base.progress import Report, silent
from semsim.metrics.pixel import psnr
from semsim.metrics.structural import ssim
from semsim.systems.split.networks import SplitNetwork
from semsim.systems.split.system import SplitSystem, observe
from semsim.systems.split.train_settings import ShadowAttack
from semsim.types import LabelledImages, worse_than_grey

_BYTES = 4  # of a float32
_MIN_SSIM_SIDE = 11


@dataclass(frozen=True, kw_only=True)
class Leak:
    """Reconstructions of some test images by one attack, and measures of what they show.

    images: (N, 3, H, W) in [0, 1]. ssim, psnr: (N,) against the originals; SSIM is NaN where images
    are too small for its window. residuals, grey_residuals: (N,), the attack's own measure.
    """

    images: Tensor
    ssim: np.ndarray
    psnr: np.ndarray
    residuals: np.ndarray
    grey_residuals: np.ndarray
    shadow_accuracy: float
    decoder_error: float

    @property
    def worse_than_grey(self) -> list[bool]:
        """Of each image, see `semsim.types.worse_than_grey`."""
        pairs = zip(self.residuals.tolist(), self.grey_residuals.tolist(), strict=True)
        return [worse_than_grey(residual, grey) for residual, grey in pairs]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cost of one classification, for one image.

    client, server: multiplications and additions. sent, returned: bytes.
    """

    client: int
    server: int
    sent: int
    returned: int


def attack(
    system: SplitSystem,
    network: SplitNetwork,
    data: tuple[LabelledImages, LabelledImages],
    tool: ShadowAttack,
    count: int,
    seed: int,
    report: Report = silent,
) -> Leak:
    """Attack all test images, which the client sends, and judge `count` of them, see `spread`.

    data: the public images and the client's own. seed: decides the noise that is drawn anew and
    where the attack starts.
    """
    public, private = data
    rng = torch.Generator().manual_seed(seed)
    seen = observe(system, private.images, network, public, rng)
    got = tool(seen, rng=rng, report=report)
    places = spread(private, count)
    found = [got.found[place] for place in places]
    images = (torch.stack([one.image for one in found]) * 255).round() / 255  # as files have it
    originals = private.images[places]
    return Leak(
        images=images,
        ssim=likeness(originals, images),
        psnr=psnr(originals, images).numpy(),
        residuals=np.array([one.residual for one in found]),
        grey_residuals=np.array([one.grey_residual for one in found]),
        shadow_accuracy=got.shadow_accuracy,
        decoder_error=got.decoder_error,
    )


def spread(data: LabelledImages, count: int) -> list[int]:
    """Places of at most `count` images, evenly over the data set and so over its classes."""
    count = min(count, len(data))
    return [place * len(data) // count for place in range(count)]


def likeness(originals: Tensor, images: Tensor) -> np.ndarray:
    """(N,) SSIM, NaN for images smaller than its window."""
    if min(originals.shape[2:]) < _MIN_SSIM_SIDE:
        return np.full(len(originals), np.nan)
    return ssim(originals, images).numpy()


def baselines(data: tuple[LabelledImages, LabelledImages], count: int) -> dict[str, np.ndarray]:
    """SSIM and PSNR of what an attacker has without any feature, (N,) each.

    "grey": a mid-grey image. "mean": the mean of the public images.
    """
    public, private = data
    originals = private.images[spread(private, count)]
    guesses = {
        "grey": torch.full_like(originals, 0.5),
        "mean": public.images.mean(dim=0, keepdim=True).expand_as(originals).contiguous(),
    }
    scores = {}
    for name, guess in guesses.items():
        scores[f"{name}_ssim"] = likeness(originals, guess)
        scores[f"{name}_psnr"] = psnr(originals, guess).numpy()
    return scores


@torch.no_grad()
def cost_of(system: SplitSystem, image: Tensor) -> Cost:
    """Measure the cost of classifying one image, (1, 3, H, W) in [0, 1]."""
    system.eval()
    image = image.to(system.selector.device)
    with FlopCounterMode(display=False) as head:
        features = system.send(image)
    with FlopCounterMode(display=False) as server:
        answers = [body(features) for body in system.bodies]
    with FlopCounterMode(display=False) as tail:
        system.tail(torch.cat(answers, dim=1))
    return Cost(
        client=head.get_total_flops() + tail.get_total_flops(),
        server=server.get_total_flops(),
        sent=_BYTES * features.numel(),
        returned=_BYTES * sum(answer.numel() for answer in answers),
    )
