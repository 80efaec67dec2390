"""ATS: every image goes through a fixed policy of image operations before it is trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from semsim.base.errors import SettingsError
from semsim.defences.base import Augmented, Defence
from semsim.defences.operations import OPERATIONS, POLICIES, USUAL_MAGNITUDES


@dataclass(frozen=True, kw_only=True)
class Step:
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

    def groups(self) -> tuple[tuple[Step, ...], ...]:
        """The groups of operations; `SettingsError` or `UnknownNameError` for a wrong one."""
        raise NotImplementedError

    def images(self, images: Tensor, rng: torch.Generator) -> Augmented:
        return transform(images, self.groups(), rng)


@dataclass(frozen=True, kw_only=True)
class Ats(_Policies):
    """Automatic transformation search (Gao et al. 2021, arXiv:2011.12505), policies by index.

    policies: indices 0 to 49 of the authors' list: "3-1-7" applies three in that order;
        "3-1-7+43-18-18" draws one of the groups for each image (their hybrid).
    In the authors' training a random crop and flip comes first: `crop-flip & ats:3-1-7`.
    """

    policies: str = "3-1-7"

    def groups(self) -> tuple[tuple[Step, ...], ...]:
        return tuple(
            tuple(Step.of_policy(_index(part, self.policies)) for part in group.split("-"))
            for group in self.policies.split("+")
        )


@dataclass(frozen=True, kw_only=True)
class Operations(_Policies):
    """A policy by the names of its operations, as SemSim's Table 3 gives it.

    Names and indices differ: the paper calls 3-1-7 "TranslateX & Invert & TranslateY", but the
    authors' list has contrast at 1; and 43-18-18 "TranslateY & Autocontrast & Autocontrast",
    but it has contrast at 18.

    steps: "translateX,invert,translateY", or with magnitudes, "translateX=0.45,invert"; "+"
        separates groups of which one is drawn for each image. A translation's magnitude is a
        share of the image's side, an enhancer's the distance of its factor from 1. A name
        without magnitude takes that of the first ATS policy that uses it.
    """

    steps: str = "translateX,invert,translateY"

    def groups(self) -> tuple[tuple[Step, ...], ...]:
        return tuple(
            tuple(_named_step(part) for part in group.split(",")) for group in self.steps.split("+")
        )


def transform(images: Tensor, groups: Sequence[Sequence[Step]], rng: torch.Generator) -> Augmented:
    """Draw a group for each image and apply its steps, directions drawn anew for each.

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


def _applied(images: Tensor, step: Step, sign: int) -> Tensor:
    operation = OPERATIONS[step.operation]
    if step.magnitude is None:
        return operation.apply(images, 0.0)
    if step.magnitude == operation.neutral:
        return images  # exactly: some operations round even where they change nothing
    return operation.apply(images, _signed(step, sign))


def _shift_of(step: Step, sign: int, images: Tensor) -> Tensor:
    shift = OPERATIONS[step.operation].shift
    size = (images.shape[-2], images.shape[-1])
    pixels = (0, 0) if shift is None else shift(_signed(step, sign), size)
    return torch.tensor(pixels)[:, None]


def _signed(step: Step, sign: int) -> float:
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


def _named_step(text: str) -> Step:
    name, _, given = (part.strip() for part in text.partition("="))
    operation = OPERATIONS[name]
    if operation.neutral is None:
        if given:
            raise SettingsError(f"The operation {name!r} has no magnitude; got {given!r}.")
        return Step(operation=name, magnitude=None)
    return Step(
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
