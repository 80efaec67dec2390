"""Attacks: from what leaks back to an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from semsim.base.errors import AttackFailedError
from semsim.base.progress import Report, silent
from semsim.base.registry import Entry, Registry
from semsim.base.threat import ThreatModel
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


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Needs of an attack or of a way to share, without which a run does not begin.

    Attributes:
        threat: Knowledge and powers, under default settings; attacks that the SoK's table lists
            have its letter.
        several: Whether the attack takes what a client shares of several pictures or steps.
        layers: Layers whose gradients it must see: "any", the "first", or "all".
    """

    threat: ThreatModel
    several: bool = False
    layers: Literal["any", "first", "all"] = "any"


_INFORMED = ThreatModel(basic=True)
_TOLD = ThreatModel(basic=True, labels=True)
MATCHES = Needs(threat=_TOLD)  # gradients, under a prior
_UPDATES, _SOLVES = Needs(threat=_TOLD, several=True), Needs(threat=_INFORMED, layers="all")
_FIRST = Needs(threat=_INFORMED, several=True, layers="first")
_TRAPS = Needs(
    threat=ThreatModel(auxiliary_data=True, changes_model=True), several=True, layers="first"
)
_NOTHING = Needs(threat=ThreatModel())

ATTACKS: Registry[type[Attack]] = Registry(
    "attack",
    {
        "invgrad": Entry("semsim.attacks.invgrad:InvGrad", _UPDATES),
        "dlg": Entry("semsim.attacks.dlg:DLG", _NOTHING),
        "idlg": Entry("semsim.attacks.dlg:IDLG", _NOTHING),
        "gradattack": Entry("semsim.attacks.gradattack:GradAttack", MATCHES),
        "prior": Entry("semsim.attacks.prior:Prior", _UPDATES),
        "rgap": Entry("semsim.attacks.linear.rgap:RGap", _SOLVES),
        "copa": Entry("semsim.attacks.linear.copa:Copa", _SOLVES),
        "copa-prior": Entry("semsim.attacks.linear.copa_prior:CopaPrior", _SOLVES),
        "spear": Entry("semsim.attacks.linear.spear:Spear", _FIRST),
        "imprint": Entry("semsim.attacks.linear.imprint:Imprint", _TRAPS),
    },
)

# These see another kind of observation: rounds of vertical federated learning.
VERTICAL_ATTACKS: Registry[type[Cafe]] = Registry(
    "vertical attack",
    {
        "cafe": Entry(
            "semsim.attacks.cafe:Cafe",
            Needs(threat=ThreatModel(basic=True, labels=True, system="vertical")),
        )
    },
)

# What a client shares, and an attacker sees.
SHARED: Registry[type[Sharing]] = Registry(
    "way of sharing",
    {
        "gradient": Entry("semsim.attacks.observe:Gradient", _NOTHING),
        "batch-gradient": Entry("semsim.attacks.observe:BatchGradient", _NOTHING),
        "update": Entry(
            "semsim.attacks.observe:Update", Needs(threat=ThreatModel(local_steps=True))
        ),
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
