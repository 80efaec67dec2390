"""Several defences one after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from semsim.base.errors import SettingsError
from semsim.defences import make, split_parts
from semsim.defences.base import Augmented, Defence, Phase, unchanged
from semsim.defences.dp_sgd import DpSgd


@dataclass(frozen=True, kw_only=True)
class Composed(Defence):
    """Defences in the order in which their specifications stand, joined by "&".

    Attributes:
        parts: Such as "crop-flip & gradient-pruning:rate=0.7"; `semsim.defences.parse` reads each.
            The shift and flip of the result describe the way from the first image to the last: what
            a part moves out of the picture stays lost. DP-SGD, of which there is one at most, works
            on the gradient of each image before any other part sees their mean, wherever it stands.
    """

    parts: str = "crop-flip & gradient-noise"

    def __post_init__(self) -> None:
        if sum(part.private is not None for part in _defences(self.parts)) > 1:
            raise SettingsError(
                f"{self.parts!r} clips each image's gradient twice; say dp-sgd once."
            )

    @property
    def private(self) -> DpSgd | None:
        return next((part.private for part in _defences(self.parts) if part.private), None)

    def images(self, images: Tensor, rng: torch.Generator) -> Augmented:
        """As `Defence.images`: of all parts, one after the other."""
        so_far = unchanged(images)
        for defence in _defences(self.parts):
            so_far = _then(so_far, defence.images(so_far.images, rng))
        return so_far

    def gradients(
        self, gradients: Sequence[Tensor], rng: torch.Generator, phase: Phase
    ) -> tuple[Tensor, ...]:
        """As `Defence.gradients`: of all parts, one after the other."""
        shared = tuple(gradients)
        for defence in _defences(self.parts):
            shared = defence.gradients(shared, rng, phase)
        return shared


@cache
def _defences(parts: str) -> tuple[Defence, ...]:
    return tuple(make(part) for part in split_parts(parts))


def _then(first: Augmented, second: Augmented) -> Augmented:
    """Both as one: mirror, then shift. A later mirror turns an earlier shift round."""
    turned = torch.where(second.flipped, -first.shift_x, first.shift_x)
    return Augmented(
        images=second.images,
        shift_x=turned + second.shift_x,
        shift_y=first.shift_y + second.shift_y,
        flipped=first.flipped ^ second.flipped,
    )
