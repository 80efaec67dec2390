"""Bad pictures on purpose: a classifier that judges reconstructions must have seen such."""

import torch
import torch.nn.functional as F
from torch import Tensor


def degrade(images: Tensor, rng: torch.Generator) -> Tensor:
    """Blur, noise and washed-out contrast of random strength, independently an image.

    images: (N, C, H, W) in [0, 1]; the same shape and range comes back. About a third of the
    images stay clean.
    """
    strength = random_strength(len(images), rng)
    blurred = F.avg_pool2d(F.pad(images, (1, 1, 1, 1), mode="replicate"), 3, 1)
    soft = torch.rand(strength.shape, generator=rng) * strength
    mixed = images + soft * (blurred - images)
    contrast = 1 - 0.7 * strength * torch.rand(strength.shape, generator=rng)
    centre = mixed.mean(dim=(2, 3), keepdim=True)
    noise = torch.randn(images.shape, generator=rng)
    level = 0.3 * strength * torch.rand(strength.shape, generator=rng)
    return (centre + contrast * (mixed - centre) + level * noise).clamp(0, 1)


def random_strength(count: int, rng: torch.Generator) -> Tensor:
    """(N, 1, 1, 1) in [0, 1]: 0 for about a third of the images."""
    return (torch.rand(count, generator=rng) * 1.5 - 0.5).clamp_min(0).view(-1, 1, 1, 1)


def as_attacks_leave_them(images: Tensor, rng: torch.Generator) -> Tensor:
    """What attacks do to pictures: shifts, low resolution, blocks, lost colours, then `degrade`.

    images: (N, C, H, W) in [0, 1]; the same shape and range comes back. Each is done to about half
    of the images, and a quarter stay as they are.
    """
    one = images.new_ones(len(images), 1, 1, 1)

    def some() -> Tensor:
        return torch.rand(one.shape, generator=rng) < 0.5

    changed = torch.where(some(), _shifted(images, rng), images)
    changed = torch.where(some(), _coarse(changed, rng), changed)
    changed = torch.where(some(), _with_blocks(changed, rng), changed)
    grey = changed.mean(dim=1, keepdim=True)
    colour = torch.where(some(), torch.rand(one.shape, generator=rng), one)
    changed = degrade(grey + colour * (changed - grey), rng)
    return torch.where(some() & some(), images, changed)


def _shifted(images: Tensor, rng: torch.Generator) -> Tensor:
    """Moved by up to an eighth of the sides; what comes in is the edge again."""
    height, width = images.shape[2:]
    moved = []
    for image in images:
        y, x = (
            torch.arange(side) + int(torch.randint(-(side // 8), side // 8 + 1, (), generator=rng))
            for side in (height, width)
        )
        moved.append(image[:, y.clamp(0, height - 1)][:, :, x.clamp(0, width - 1)])
    return torch.stack(moved)


def _coarse(images: Tensor, rng: torch.Generator) -> Tensor:
    """At a half or a third of the resolution, blown up again."""
    size = images.shape[2:]
    factor = int(torch.randint(2, 4, (), generator=rng))
    small = F.interpolate(images, size=[max(1, side // factor) for side in size], mode="area")
    return F.interpolate(small, size=size, mode="bilinear", align_corners=False).clamp(0, 1)


def _with_blocks(images: Tensor, rng: torch.Generator) -> Tensor:
    """With up to a third of the blocks of a grid of 8 × 8 in a colour of their own."""
    count, channels, *size = images.shape
    share = torch.rand(count, 1, 1, 1, generator=rng) / 3
    gone = (torch.rand(count, 1, 8, 8, generator=rng) < share).float()
    colours = torch.rand(count, channels, 8, 8, generator=rng)
    gone, colours = (F.interpolate(part, size=size, mode="nearest") for part in (gone, colours))
    return images + gone * (colours - images)
