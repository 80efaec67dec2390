"""GradAttack's formulation (Huang, Gupta, Song, Li and Arora 2021, arXiv:2112.00059).

It asks what an attack gains from knowing more: the batch norm statistics of the private image, and
its label. Each is a setting here, and each is something an observation has or has not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from semsim.attacks.batch_norm import BatchNorm
from semsim.attacks.descent.distance import Kind
from semsim.attacks.descent.first_order import FirstOrder, Start, Statistics
from semsim.attacks.labels import Label
from semsim.base.registry import setting


@dataclass(frozen=True, kw_only=True)
class GradAttack(FirstOrder):
    """Match gradients by Adam under total variation and batch norm statistics.

    Presets "paper" and "code" are both from the examples of the authors' code: an attacker who
    knows label and statistics, as the paper finds that earlier attacks assume, and one who knows
    neither. There the code optimises the label with the image; for one image the sign rule is
    exact, and used instead.

    Attributes:
        steps, lr: As for InvGrad.
        signed: Adam takes the sign of the gradient, as the authors' code does.
        distance: "cosine", "cosine-per-layer" or "l2", see `distance.distance_of_each`.
        tv, statistics_weight: Weights of the priors.
        statistics: What the image's batch norm statistics are drawn to: "none"; "running", the
            model's own, which every attacker has; or "leaked", the private image's, without which
            in the observation the attack fails.
        label: "known", or "inferred" from the gradient.
        batch_norm: By which statistics the target model normalises.
        boxed: Keep the image in [0, 1] at every step, or only at the end.
        mixed_precision: As for InvGrad.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            "steps": 10_000,
            "tv": 0.1,
            "statistics": "leaked",
            "statistics_weight": 0.005,
            "label": "known",
            "batch_norm": "train",
        },
        "code": {
            "steps": 10_000,
            "tv": 0.05,
            "statistics": "running",
            "statistics_weight": 0.001,
            "label": "inferred",
        },
        "fast": {"steps": 500, "tv": 0.05, "start": "grey"},
    }

    steps: int = setting(10_000, least=1)
    lr: float = setting(0.1, above=0)
    distance: Kind = "cosine"
    signed: bool = True
    tv: float = setting(0.1, least=0)
    statistics: Statistics = "none"
    statistics_weight: float = 0.005
    batch_norm: BatchNorm = "eval"
    label: Label = "known"
    start: Start = "normal"
    boxed: bool = True
    restarts: int = setting(1, least=1)
    mixed_precision: bool = False
