"""ATS: every image goes through a fixed policy of image operations before it is trained on.

Operations follow PIL's `ImageOps`, `ImageEnhance` and affine transform, on which the authors' code
is built, for float images in [0, 1] of any number at once. Against PIL on 8-bit images:

    translateX, translateY, invert, solarize, posterize, equalize   the same pixels
    brightness, color, contrast, sharpness, autocontrast            not rounded to 8 bits
    rotate        the same pixels, but for one of 24 pictures that was 15 levels of 255 apart
    shearY        bicubic with a = -0.75 (PIL's has -1): 1 level apart on average, 8.4 at most
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from semsim.base.errors import DataError, SettingsError
from semsim.base.registry import Registry
from semsim.base.storage.places import toml_of
from semsim.defences.base import Augmented, Defence

_GREY = 128 / 255


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation on (N, 3, H, W) images in [0, 1].

    Attributes:
        apply: Images and a magnitude, which has a sign where `signed`, to images.
        neutral: The magnitude that leaves every image as it is; None where there is none.
        largest: The magnitude of step 9 in the ATS list; step 0 is `neutral`. None where the
            operation has no magnitude.
        signed: The direction is drawn anew for each image.
        shift: Whole pixels to the right and down that a magnitude moves (H, W) images by.
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


@dataclass(frozen=True, kw_only=True)
class PolicyStep:
    """One operation of a policy; magnitude without its sign, None where it has none."""

    operation: str
    magnitude: float | None

    @classmethod
    def of_policy(cls, index: int) -> Self:
        """The step that the ATS list has at `index`, 0 to 49."""
        name, place = POLICIES[index]
        return cls(operation=name, magnitude=OPERATIONS[name].magnitude(place))


class _Policies(Defence):
    """A defence that puts every image through one of several groups of operations."""

    def __post_init__(self) -> None:
        self.groups()

    def groups(self) -> tuple[tuple[PolicyStep, ...], ...]:
        """The groups of operations; `SettingsError` or `UnknownNameError` for a wrong one."""
        raise NotImplementedError

    def images(self, images: Tensor, rng: torch.Generator) -> Augmented:
        return transform(images, self.groups(), rng)


@dataclass(frozen=True, kw_only=True)
class Ats(_Policies):
    """Automatic transformation search (Gao et al. 2021, arXiv:2011.12505), policies by index.

    In the authors' training a random crop and flip comes first: `crop-flip & ats:3-1-7`.

    Attributes:
        policies: Indices 0 to 49 of the authors' list: "3-1-7" applies three in that order;
            "3-1-7+43-18-18" draws one of the groups for each image (their hybrid).
    """

    policies: str = "3-1-7"

    def groups(self) -> tuple[tuple[PolicyStep, ...], ...]:
        return tuple(
            tuple(PolicyStep.of_policy(_index(part, self.policies)) for part in group.split("-"))
            for group in self.policies.split("+")
        )


@dataclass(frozen=True, kw_only=True)
class Operations(_Policies):
    """A policy by the names of its operations, as SemSim's Table 3 gives it.

    Names and indices differ: the paper calls 3-1-7 "TranslateX & Invert & TranslateY", but the
    authors' list has contrast at 1; and 43-18-18 "TranslateY & Autocontrast & Autocontrast",
    but it has contrast at 18.

    Attributes:
        steps: "translateX,invert,translateY", or with magnitudes, "translateX=0.45,invert"; "+"
            separates groups of which one is drawn for each image. A translation's magnitude is a
            share of the image's side, an enhancer's the distance of its factor from 1. A name
            without magnitude takes that of the first ATS policy that uses it.
    """

    steps: str = "translateX,invert,translateY"

    def groups(self) -> tuple[tuple[PolicyStep, ...], ...]:
        return tuple(
            tuple(_named_step(part) for part in group.split(",")) for group in self.steps.split("+")
        )


def transform(
    images: Tensor, groups: Sequence[Sequence[PolicyStep]], rng: torch.Generator
) -> Augmented:
    """Draw a group for each image and apply its steps, directions drawn anew for each.

    Args:
        images: (N, 3, H, W) in [0, 1]. The shift in the result is the sum of the translations.
    """
    count = len(images)
    longest = max(len(group) for group in groups)
    drawn = torch.randint(len(groups), (count,), generator=rng)
    backwards = torch.randint(2, (longest, count), generator=rng).bool()
    out = images.clone()
    shift = torch.zeros(2, count, dtype=torch.long)
    for number, group in enumerate(groups):
        for place, step in enumerate(group):
            for sign in (1, -1):
                chosen = (drawn == number) & (backwards[place] == (sign < 0))
                if chosen.any():
                    where = chosen.to(images.device)
                    out[where] = _applied(out[where], step, sign)
                    shift[:, chosen] += _shift_of(step, sign, images)
    return Augmented(
        images=out,
        shift_x=shift[0],
        shift_y=shift[1],
        flipped=torch.zeros(count, dtype=torch.bool),
    )


def _applied(images: Tensor, step: PolicyStep, sign: int) -> Tensor:
    operation = OPERATIONS[step.operation]
    if step.magnitude is None:
        return operation.apply(images, 0.0)
    if step.magnitude == operation.neutral:
        return images  # exactly: some operations round even where they change nothing
    return operation.apply(images, _signed(step, sign))


def _shift_of(step: PolicyStep, sign: int, images: Tensor) -> Tensor:
    shift = OPERATIONS[step.operation].shift
    size = (images.shape[-2], images.shape[-1])
    pixels = (0, 0) if shift is None else shift(_signed(step, sign), size)
    return torch.tensor(pixels)[:, None]


def _signed(step: PolicyStep, sign: int) -> float:
    magnitude = step.magnitude or 0.0
    return magnitude * sign if OPERATIONS[step.operation].signed else magnitude


def _index(text: str, policies: str) -> int:
    part = text.strip()
    if not part.isdigit() or int(part) >= len(POLICIES):
        raise SettingsError(
            f"ATS policies are indices 0 to {len(POLICIES) - 1} joined by '-', groups by '+', "
            f"as in '3-1-7+43-18-18'; got {policies!r}."
        )
    return int(part)


def _named_step(text: str) -> PolicyStep:
    name, _, given = (part.strip() for part in text.partition("="))
    operation = OPERATIONS[name]
    if operation.neutral is None:
        if given:
            raise SettingsError(f"The operation {name!r} has no magnitude; got {given!r}.")
        return PolicyStep(operation=name, magnitude=None)
    return PolicyStep(
        operation=name, magnitude=_magnitude(name, given) if given else USUAL_MAGNITUDES[name]
    )


_RANGES = {"posterize": (1.0, 8.0), "solarize": (0.0, 256.0), "rotate": (0.0, 360.0)}


def _magnitude(name: str, text: str) -> float:
    low, high = _RANGES.get(name, (0.0, 1.0))
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise SettingsError(
            f"The magnitude of {name!r} is a number from {low:g} to {high:g}; got {text!r}."
        )
    return value
