"""Attacks: from what leaks back to an image."""

from collections.abc import Sequence
from typing import ClassVar, Protocol, runtime_checkable

import torch

from semsim.attacks.cafe import Cafe
from semsim.attacks.copa import Copa
from semsim.attacks.copa_prior import CopaPrior
from semsim.attacks.dlg import DLG, IDLG
from semsim.attacks.gradattack import GradAttack
from semsim.attacks.invgrad import InvGrad
from semsim.attacks.minimise import one_of
from semsim.attacks.prior import Prior
from semsim.attacks.rgap import RGap
from semsim.errors import AttackFailedError
from semsim.progress import Report, silent
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


@runtime_checkable
class BatchedAttack(Protocol):
    """An attack that works on many images of one model at once, each as if it were alone."""

    def many(
        self,
        seen: Sequence[GradientObservation],
        *,
        rngs: Sequence[torch.Generator],
        report: Report = ...,
    ) -> list[Reconstruction | AttackFailedError]: ...


ATTACKS: Registry[type[Attack]] = Registry(
    "attack",
    {
        "invgrad": InvGrad,
        "dlg": DLG,
        "idlg": IDLG,
        "gradattack": GradAttack,
        "prior": Prior,
        "rgap": RGap,
        "copa": Copa,
        "copa-prior": CopaPrior,
    },
)

# These see another kind of observation: rounds of vertical federated learning.
VERTICAL_ATTACKS: Registry[type[Cafe]] = Registry("vertical attack", {"cafe": Cafe})


def run_many(
    attack: Attack,
    seen: Sequence[GradientObservation],
    *,
    rngs: Sequence[torch.Generator],
    report: Report = silent,
) -> list[Reconstruction | AttackFailedError]:
    """One result an observation, in order; a failed image does not stop the others.

    seen: observations of one model object. rngs: one generator an observation.
    All images are attacked at once where the attack can, else one after the other.
    """
    if not seen:
        return []
    if isinstance(attack, BatchedAttack):
        return attack.many(seen, rngs=rngs, report=report)
    found: list[Reconstruction | AttackFailedError] = []
    for place, (one, rng) in enumerate(zip(seen, rngs, strict=True)):
        try:
            found.append(attack(one, rng=rng, report=one_of(report, place, len(seen))))
        except AttackFailedError as failure:
            found.append(failure)
    return found
