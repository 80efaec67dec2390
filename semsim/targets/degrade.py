"""Bad pictures on purpose: a classifier that judges reconstructions must have seen such."""

import torch
import torch.nn.functional as F
from torch import Tensor


def degrade(images: Tensor, rng: torch.Generator) -> Tensor:
    """Blur, noise and washed-out contrast of random strength, independently an image.

    images: (N, C, H, W) in [0, 1]; the same shape and range comes back. About a third of the
    images stay clean.
    """
    count = len(images)
    strength = (torch.rand(count, generator=rng) * 1.5 - 0.5).clamp_min(0).view(-1, 1, 1, 1)
    blurred = F.avg_pool2d(F.pad(images, (1, 1, 1, 1), mode="replicate"), 3, 1)
    soft = torch.rand(strength.shape, generator=rng) * strength
    mixed = images + soft * (blurred - images)
    contrast = 1 - 0.7 * strength * torch.rand(strength.shape, generator=rng)
    centre = mixed.mean(dim=(2, 3), keepdim=True)
    noise = torch.randn(images.shape, generator=rng)
    level = 0.3 * strength * torch.rand(strength.shape, generator=rng)
    return (centre + contrast * (mixed - centre) + level * noise).clamp(0, 1)
