"""Inverting Gradients (Geiping, Bauermeister, Dröge and Moeller 2020, arXiv:2003.14053)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from semsim.attacks.batch_norm import BatchNorm
from semsim.attacks.descent import Updates
from semsim.attacks.descent.first_order import FirstOrder, Start
from semsim.attacks.labels import Label
from semsim.base.registry import setting


@dataclass(frozen=True, kw_only=True)
class InvGrad(FirstOrder):
    """Match gradient directions by signed Adam under total variation, kept inside the image box.

    Its "fast" weight of total variation is the best of seven on training images
    (`benchmarks.attacks`). So a reader credits no other attack with what smoothing alone gains.

    Attributes:
        steps: Iterations of one restart.
        lr: First step size, in units of the model's normalised input.
        tv: Weight of total variation.
        restarts: Independent starts; the one with the lowest objective of its own is kept, since
            the attacker has nothing else to go by.
        start: "normal" noise as published, or "grey", the mean image, which needs fewer steps to
            look clean.
        label: "known", or "inferred" from the gradient.
        batch_norm: "eval" uses running statistics, "train" the image's own, as a participant in
            training mode with one image does. From "grey", which has no variance, rounding then
            says which way the first steps go, and machines differ.
        curvature: Share of the curvature that ReLUs are lent in the slope of the distance; 0, as
            published, is the true slope.
        updates: Where a client shares the change of its weights, "simulated" goes its local steps
            with the guess, "one-gradient" takes the change for one gradient, as if there had been
            one step.
        mixed_precision: Bfloat16 in the network, for GPUs, for as long as it turns no step.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"steps": 4800, "lr": 0.1, "tv": 1e-4, "restarts": 1, "start": "normal"},
        "code": {"steps": 8000, "lr": 0.1, "tv": 1e-4, "restarts": 1, "start": "normal"},
        "fast": {"steps": 500, "lr": 0.1, "tv": 2e-2, "restarts": 1, "start": "grey"},
    }

    steps: int = setting(4800, least=1)
    lr: float = setting(0.1, above=0)
    tv: float = setting(1e-4, least=0)
    restarts: int = setting(1, least=1)
    start: Start = "normal"
    label: Label = "known"
    batch_norm: BatchNorm = "eval"
    curvature: float = setting(0.0, least=0)
    updates: Updates = "simulated"
    mixed_precision: bool = False
