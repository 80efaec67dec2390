"""Bad pictures on purpose: a classifier that judges reconstructions must have seen such.

All take (N, C, H, W) in [0, 1] and give the same shape and range, of random strength an image.
`degrade` is for any judge, `as_attacks_leave_them` for one that people train; from `moved` to
`covered` they are one kind of bad for each juror. Trainings are told apart by their draws: a change
in number or order of these is another judge.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def degrade(images: Tensor, rng: torch.Generator) -> Tensor:
    """Blur, noise and washed-out contrast of random strength, independently an image.

    Args:
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
    """Change pictures as attacks do: shifts, low resolution, blocks, lost colours, then `degrade`.

    Args:
        images: (N, C, H, W) in [0, 1]; the same shape and range comes back. Each is done to about
            half of the images, and a quarter stay as they are.
    """
    one = images.new_ones(len(images), 1, 1, 1)

    def some() -> Tensor:
        return torch.rand(one.shape, generator=rng) < 0.5

    changed = torch.where(some(), shifted(images, rng), images)
    changed = torch.where(some(), _coarse(changed, rng), changed)
    changed = torch.where(some(), _with_blocks(changed, rng), changed)
    grey = changed.mean(dim=1, keepdim=True)
    colour = torch.where(some(), torch.rand(one.shape, generator=rng), one)
    changed = degrade(grey + colour * (changed - grey), rng)
    return torch.where(some() & some(), images, changed)


def shifted(images: Tensor, rng: torch.Generator) -> Tensor:
    """Move (N, C, H, W) by up to an eighth of the sides; what comes in is the edge again."""
    height, width = images.shape[2:]
    moved = []
    for image in images:
        y, x = (
            torch.arange(side) + int(torch.randint(-(side // 8), side // 8 + 1, (), generator=rng))
            for side in (height, width)
        )
        moved.append(image[:, y.clamp(0, height - 1)][:, :, x.clamp(0, width - 1)])
    return torch.stack(moved)


def mirrored(images: Tensor, rng: torch.Generator) -> Tensor:
    """Left for right in half of the images, (N, C, H, W)."""
    half = torch.rand(len(images), 1, 1, 1, generator=rng) < 0.5
    return torch.where(half, images.flip(3), images)


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


def moved(images: Tensor, rng: torch.Generator) -> Tensor:
    """Shift each image by up to a quarter of its side, mirror one in three; (N, C, H, W).

    Behind it comes black or grey, as augmentation leaves it.
    """
    count, _, height, width = images.shape
    most = height // 4
    mirrored = torch.rand(count, generator=rng) < 1 / 3
    shifts = torch.randint(-most, most + 1, (count, 2), generator=rng)
    shifts[torch.rand(count, generator=rng) < 1 / 3] = 0
    fill = torch.randint(0, 2, (count,), generator=rng) / 2
    rows = torch.arange(height)[None] - shifts[:, :1]
    columns = torch.arange(width)[None] - shifts[:, 1:]
    columns = torch.where(mirrored[:, None], width - 1 - columns, columns)
    seen = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[
        :, None
    ]
    place = (rows.clamp(0, height - 1)[:, :, None] * width) + columns.clamp(0, width - 1)[:, None]
    flat = images.flatten(2).gather(2, place.flatten(1)[:, None].expand(-1, images.shape[1], -1))
    return torch.where(seen[:, None], flat.view(images.shape), fill.view(-1, 1, 1, 1))


def ghosted(images: Tensor, rng: torch.Generator) -> Tensor:
    """Faint other pictures behind each, shifted copies of it, and noise.

    Args:
        images: (N, C, H, W) in [0, 1], and so returned.
    """
    strength = random_strength(len(images), rng)
    others = images[torch.randperm(len(images), generator=rng)]
    copies = images.roll((3, 2), dims=(2, 3))
    share = 0.5 * strength * torch.rand(strength.shape, generator=rng)
    mixed = (1 - share) * images + share * (others + copies) / 2
    return _noisy(mixed, 0.2 * strength, rng)


def coarse(images: Tensor, rng: torch.Generator) -> Tensor:
    """Few large cells instead of pixels, smoothed again, in paler and shifted colours.

    Args:
        images: (N, C, H, W) in [0, 1], and so returned; H and W of 4 or more.
    """
    strength = random_strength(len(images), rng)
    size = images.shape[2:]
    small = F.interpolate(F.avg_pool2d(images, 2), size, mode="bilinear", align_corners=False)
    tiny = F.interpolate(F.avg_pool2d(images, 4), size, mode="bilinear", align_corners=False)
    soft = torch.where(strength > 0.85, tiny, small)
    mixed = images + (strength > 0.3) * (soft - images)
    tint = 0.15 * strength * torch.randn(len(images), images.shape[1], 1, 1, generator=rng)
    centre = mixed.mean(dim=(2, 3), keepdim=True)
    return _noisy(centre + (1 - 0.6 * strength) * (mixed - centre) + tint, 0.1 * strength, rng)


def speckled(images: Tensor, rng: torch.Generator) -> Tensor:
    """Coloured noise of single pixels and of patches, the picture paler the stronger it is.

    Args:
        images: (N, C, H, W) in [0, 1], and so returned; H and W of 4 or more.
    """
    strength = random_strength(len(images), rng)
    count, channels, height, width = images.shape
    patches = torch.randn(count, channels, height // 4, width // 4, generator=rng)
    patches = F.interpolate(patches, (height, width), mode="bilinear", align_corners=False)
    centre = images.mean(dim=(2, 3), keepdim=True)
    pale = centre + (1 - 0.5 * strength) * (images - centre)
    return _noisy(pale + 0.3 * strength * patches, 0.35 * strength, rng)


def covered(images: Tensor, rng: torch.Generator) -> Tensor:
    """Stripes across, a grey patch over a part, the colours of some turned to their opposites.

    Args:
        images: (N, C, H, W) in [0, 1], and so returned.
    """
    strength = random_strength(len(images), rng)
    count, _, height, width = images.shape
    waves = 6.3 * torch.rand(count, 3, 1, 1, generator=rng)
    y, x = torch.arange(height)[:, None] / height, torch.arange(width)[None] / width
    angle = waves[:, 0] * y + waves[:, 1] * x
    stripes = torch.sin(4 * angle + waves[:, 2])[:, None]
    left = torch.randint(0, width, (count, 1, 1, 1), generator=rng)
    patch = ((torch.arange(width) - left).abs() < 4) & (strength > 0.3)
    opposite = torch.rand(count, 1, 1, 1, generator=rng) < 0.25
    turned = torch.where(opposite, 1 - images, images)
    striped = turned + 0.35 * strength * stripes
    return _noisy(torch.where(patch, 0.5, striped), 0.15 * strength, rng)


def _noisy(images: Tensor, level: Tensor, rng: torch.Generator) -> Tensor:
    """With noise of up to `level`, (N, 1, 1, 1), kept in [0, 1]."""
    amount = level * torch.rand(level.shape, generator=rng)
    return (images + amount * torch.randn(images.shape, generator=rng)).clamp(0, 1)
