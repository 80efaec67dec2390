"""Attacks: from what leaks back to an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from semsim.base.errors import AttackFailedError
from semsim.base.progress import Report, silent
from semsim.base.registry import Registry
from semsim.types import GradientObservation, Reconstruction

if TYPE_CHECKING:
    import torch

    from semsim.attacks.cafe import Cafe
    from semsim.attacks.descent import Found
    from semsim.attacks.observe import Sharing


class Attack(Protocol):
    """Settings of an attack; calling them with an observation gives a reconstruction.

    Attributes:
        presets: Named settings; what one does not name are the defaults. "paper" is the attack's
            own paper. "code": public code that runs it; for InvGrad that of the SemSim authors,
            whose reconstructions the product compares with, else that of the attack's authors.
            "fast": fewer steps for a first look on one processor core, and not for publication.

    Raises:
        AttackFailedError: Where there is none; noise is never returned as a result.
    """

    __dataclass_fields__: ClassVar[dict]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]]

    def __call__(
        self, seen: GradientObservation, *, rng: torch.Generator, report: Report = ...
    ) -> Reconstruction: ...


ATTACKS: Registry[type[Attack]] = Registry(
    "attack",
    {
        "invgrad": "semsim.attacks.invgrad:InvGrad",
        "dlg": "semsim.attacks.dlg:DLG",
        "idlg": "semsim.attacks.dlg:IDLG",
        "gradattack": "semsim.attacks.gradattack:GradAttack",
        "prior": "semsim.attacks.prior:Prior",
        "rgap": "semsim.attacks.linear.rgap:RGap",
        "copa": "semsim.attacks.linear.copa:Copa",
        "copa-prior": "semsim.attacks.linear.copa_prior:CopaPrior",
        "spear": "semsim.attacks.linear.spear:Spear",
        "imprint": "semsim.attacks.linear.imprint:Imprint",
    },
)

# These see another kind of observation: rounds of vertical federated learning.
VERTICAL_ATTACKS: Registry[type[Cafe]] = Registry(
    "vertical attack", {"cafe": "semsim.attacks.cafe:Cafe"}
)

# What a client shares, and an attacker sees.
SHARED: Registry[type[Sharing]] = Registry(
    "way of sharing",
    {
        "gradient": "semsim.attacks.observe:Gradient",
        "batch-gradient": "semsim.attacks.observe:BatchGradient",
        "update": "semsim.attacks.observe:Update",
    },
)


def run_many(
    attack: Attack,
    seen: Sequence[GradientObservation],
    *,
    rngs: Sequence[torch.Generator],
    report: Report = silent,
) -> list[Found]:
    """One result an observation, in order; a failed image does not stop the others.

    Args:
        seen: Observations of one model object.
        rngs: One generator an observation. All images are attacked at once where the attack can,
            else one after the other.
    """
    from semsim.attacks.descent import Together, in_turn  # with torch: a list needs none

    if not seen:
        return []
    if isinstance(attack, Together):
        return attack.many(seen, rngs=rngs, report=report)
    found: list[Found] = []
    for place, (one, rng) in enumerate(zip(seen, rngs, strict=True)):
        try:
            found.append(attack(one, rng=rng, report=in_turn(report, place, len(seen))))
        except AttackFailedError as failure:
            found.append(failure)
    return found
