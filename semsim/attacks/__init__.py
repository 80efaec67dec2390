"""Attacks: from what leaks back to an image."""

from typing import ClassVar, Protocol

import torch

from semsim.attacks.invgrad import InvGrad
from semsim.progress import Report
from semsim.registry import Registry
from semsim.types import GradientObservation, Reconstruction


class Attack(Protocol):
    """Settings of an attack; calling them with an observation gives a reconstruction.

    Raises `AttackFailedError` where there is none; noise is never returned as a result.
    """

    __dataclass_fields__: ClassVar[dict]

    def __call__(
        self, seen: GradientObservation, *, rng: torch.Generator, report: Report = ...
    ) -> Reconstruction: ...


ATTACKS: Registry[type[Attack]] = Registry("attack", {"invgrad": InvGrad})
