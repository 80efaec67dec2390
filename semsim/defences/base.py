"""Hooks of a defence: the images that are trained on, and the gradients that are shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from semsim.defences.dp_sgd import DpSgd

Phase = Literal["train", "attack"]
ApplyAt = Literal["train", "attack", "both"]


@dataclass(frozen=True, kw_only=True)
class Augmented:
    """Images after augmentation, and what was done to each.

    Attributes:
        images: (N, C, H, W).
        shift_x, shift_y: (N,) whole pixels, right and down positive.
        flipped: (N,) bool, mirrored left to right before the shift.
    """

    images: Tensor
    shift_x: Tensor
    shift_y: Tensor
    flipped: Tensor

    def one(self, place: int) -> tuple[Tensor, int, int, bool]:
        """The image at `place`, (C, H, W), its shift right and down, and whether it is mirrored."""
        shift = int(self.shift_x[place]), int(self.shift_y[place])
        return self.images[place], *shift, bool(self.flipped[place])


class Defence(Protocol):
    """A plug-in with two hooks; each is the identity unless a defence says otherwise."""

    __dataclass_fields__: ClassVar[dict]

    @property
    def private(self) -> DpSgd | None:
        """Defence of each image's gradient before they are added up; None where there is none."""
        return None

    def images(self, images: Tensor, rng: torch.Generator) -> Augmented:
        """The images that are really trained on, which are also those an attacker can get.

        Args:
            images: (N, C, H, W) in [0, 1]; so are those returned.
            rng: On the CPU; the same draws on every machine.
        """
        return unchanged(images)

    def gradients(
        self, gradients: Sequence[Tensor], rng: torch.Generator, phase: Phase
    ) -> tuple[Tensor, ...]:
        """The gradients that are used in training, or shared with the attacker.

        Args:
            gradients: One tensor a parameter, of its shape, and so returned.
            phase: "train" or "attack", whether they are used or shared.
        """
        return tuple(gradients)


def unchanged(images: Tensor) -> Augmented:
    """The images, (N, C, H, W), as they are."""
    still = torch.zeros(len(images), dtype=torch.long)
    return Augmented(images=images, shift_x=still, shift_y=still, flipped=still.bool())


def of_one(
    defence: Defence, gradients: Sequence[Tensor], rng: torch.Generator, phase: Phase
) -> tuple[Tensor, ...]:
    """The gradients of one image alone, a batch of one, as used or shared; shapes as given."""
    private = defence.private
    if private is not None and private.acts(phase):
        total = private.clipped_sum([gradient[None] for gradient in gradients])
        gradients = private.noised_mean(total, 1, rng, phase)
    return defence.gradients(gradients, rng, phase)


def noise_source(device: torch.device, rng: torch.Generator, phase: Phase) -> torch.Generator:
    """Return the generator that draws noise on gradients.

    Shared gradients get the same noise on every machine. In training a GPU would wait for the CPU,
    and its weights are its own anyway, so it draws from a seed that `rng` gives.
    """
    if phase == "attack" or device == rng.device:
        return rng
    seed = int(torch.randint(2**62, (1,), generator=rng))
    return torch.Generator(device).manual_seed(seed)


def gaussian(like: Tensor, rng: torch.Generator) -> Tensor:
    """Standard normal noise of the shape and type of `like`, where `rng` is."""
    return torch.randn(like.shape, generator=rng, dtype=like.dtype, device=rng.device)
