"""The image operations of ATS and SemSim: what each does, how strong, and in which direction.

They follow PIL's `ImageOps`, `ImageEnhance` and affine transform, on which the authors' code is
built, for float images in [0, 1] of any number at once. Against PIL on 8-bit images:

    translateX, translateY, invert, solarize, posterize, equalize   the same pixels
    brightness, color, contrast, sharpness, autocontrast            not rounded to 8 bits
    rotate        the same pixels, but for one of 24 pictures that was 15 levels of 255 apart
    shearY        bicubic with a = -0.75 (PIL's has -1): 1 level apart on average, 8.4 at most
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.base.errors import DataError
from semsim.base.registry import Registry
from semsim.base.storage.places import toml_of

_GREY = 128 / 255


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation on (N, 3, H, W) images in [0, 1].

    apply: images and a magnitude, which has a sign where `signed`, to images.
    neutral: the magnitude that leaves every image as it is; None where there is none.
    largest: the magnitude of step 9 in the ATS list; step 0 is `neutral`. None where the
        operation has no magnitude.
    signed: the direction is drawn anew for each image.
    shift: whole pixels to the right and down that a magnitude moves (H, W) images by.
    """

    apply: Callable[[Tensor, float], Tensor]
    neutral: float | None = None
    largest: float | None = None
    signed: bool = False
    shift: Callable[[float, tuple[int, int]], tuple[int, int]] | None = None

    def magnitude(self, step: int) -> float | None:
        """The magnitude of `step` 0 to 9 in the ATS list, evenly spaced; None without one."""
        if self.neutral is None or self.largest is None:
            return None
        return self.neutral + (self.largest - self.neutral) * step / 9


def moved(images: Tensor, right: int, down: int) -> Tensor:
    """(N, C, H, W) moved by whole pixels; what comes in is black."""
    height, width = images.shape[-2:]
    right, down = max(-width, min(width, right)), max(-height, min(height, down))
    out = torch.zeros_like(images)
    from_y, from_x = slice(max(0, -down), height - max(0, down)), _from(right, width)
    to_y, to_x = slice(max(0, down), height - max(0, -down)), _from(-right, width)
    out[..., to_y, to_x] = images[..., from_y, from_x]
    return out


def _from(shift: int, length: int) -> slice:
    return slice(max(0, -shift), length - max(0, shift))


def _size(images: Tensor) -> tuple[int, int]:
    return images.shape[-2], images.shape[-1]


def _shear_y(images: Tensor, slope: float) -> Tensor:
    """Each column moves by `slope` × its distance from the left edge; what comes in is black."""
    height, width = _size(images)
    # In float64, like PIL: in float32 pixels that lie just on the border fall on the other side.
    x = torch.arange(width, dtype=torch.float64) + 0.5
    y = torch.arange(height, dtype=torch.float64) + 0.5
    source_y = slope * x[None, :] + y[:, None]
    grid = torch.stack(((x / width * 2 - 1).expand(height, -1), source_y / height * 2 - 1), dim=-1)
    taken = F.grid_sample(
        images,
        grid.to(images).expand(len(images), -1, -1, -1),
        mode="bicubic",
        padding_mode="border",
        align_corners=False,
    )
    inside = (source_y >= 0) & (source_y < height)
    return taken.clamp(0, 1) * inside.to(images.device)


def _rotate(images: Tensor, degrees: float) -> Tensor:
    return _torchvision("rotate", images, degrees, fill=_GREY)  # the nearest pixel


def _posterize(images: Tensor, bits: float) -> Tensor:
    step = 2 ** (8 - round(bits))
    return (images * 255).round().div(step, rounding_mode="floor") * step / 255


def _solarize(images: Tensor, threshold: float) -> Tensor:
    return torch.where(images * 255 < threshold, images, 1 - images)


def _torchvision(change: str, images: Tensor, *given: float, **named: Any) -> Tensor:
    """An operation of torchvision by its name; torchvision takes seconds to import."""
    operations = import_module("torchvision.transforms.v2.functional")
    try:
        changed: Tensor = getattr(operations, change)(images, *given, **named)
    except TypeError as error:
        raise DataError(
            f"The image operation {change} takes 1 or 3 channels; got {images.shape[1]}."
        ) from error
    return changed


def _plain(change: str) -> Operation:
    return Operation(apply=lambda images, _: _torchvision(change, images))


def _enhance(change: str) -> Operation:
    """PIL's enhancers take a factor, where 1 changes nothing; ATS gives the distance from 1."""
    return Operation(
        apply=lambda images, magnitude: _torchvision(change, images, 1 + magnitude),
        neutral=0.0,
        largest=0.5,
        signed=True,
    )


def _translate(side: int) -> Operation:
    """Along `side`, 0 down and 1 right, by a share of it, as PIL samples it: nearest pixel."""

    def shift(share: float, size: tuple[int, int]) -> tuple[int, int]:
        pixels = -math.floor(share * size[side] + 0.5)
        return (pixels, 0) if side else (0, pixels)

    def apply(images: Tensor, share: float) -> Tensor:
        return moved(images, *shift(share, _size(images)))

    return Operation(apply=apply, neutral=0.0, largest=150 / 331, signed=True, shift=shift)


OPERATIONS: Registry[Operation] = Registry(
    "image operation",
    {
        "translateX": _translate(1),
        "translateY": _translate(0),
        "shearY": Operation(apply=_shear_y, neutral=0.0, largest=0.3, signed=True),
        "rotate": Operation(apply=_rotate, neutral=0.0, largest=30.0),
        "color": _enhance("adjust_saturation"),
        "contrast": _enhance("adjust_contrast"),
        "brightness": _enhance("adjust_brightness"),
        "sharpness": _enhance("adjust_sharpness"),
        "posterize": Operation(apply=_posterize, neutral=8.0, largest=4.0),
        "solarize": Operation(apply=_solarize, neutral=256.0, largest=0.0),
        "autocontrast": _plain("autocontrast"),
        "equalize": _plain("equalize"),
        "invert": _plain("invert"),
    },
)

# The policies of ATS by their index: operation and step 0 to 9 of its magnitude.
POLICIES: tuple[tuple[str, int], ...] = tuple(
    (name, step) for name, step in toml_of("semsim.defences", "policies.toml")["policies"]
)


def _first_magnitudes() -> Mapping[str, float]:
    found: dict[str, float] = {}
    for name, step in POLICIES:
        magnitude = OPERATIONS[name].magnitude(step)
        if magnitude is not None and magnitude != OPERATIONS[name].neutral:
            found.setdefault(name, magnitude)
    return MappingProxyType(found)


# SemSim's Table 3 names operations without magnitudes. Such a name means the magnitude of the
# first policy above that uses the operation and changes something.
USUAL_MAGNITUDES = _first_magnitudes()
