"""Settings of trainings and attacks of networks in split inference, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from semsim.base.progress import Report, silent
from semsim.base.registry import check_settings, setting

if TYPE_CHECKING:
    import torch

    from semsim.systems.split.attacks import Inversion
    from semsim.systems.split.system import FeatureObservation

STARTS = ("random", "identity")


@dataclass(frozen=True, kw_only=True)
class SplitTrainSettings:
    """Adam, the step size rising and falling once.

    ensemble_epochs, ensemble_lr: of Ensembler's stage 2, which needs about three times as many to
    come near the undefended accuracy.
    """

    epochs: int = setting(12, "Epochs", "Of networks trained whole.")
    ensemble_epochs: int = setting(36, "Epochs of stage 2", "Of Ensembler's second stage.")
    batch_size: int = 64
    lr: float = 2e-3
    ensemble_lr: float = 5e-3


@dataclass(frozen=True, kw_only=True)
class ShadowAttack:
    """A shadow head trained through the server's frozen bodies, then a decoder of its features.

    bodies: places of the bodies it trains through; None for all.
    learn_selector: whether it learns how much each counts (the paper's adaptive attack) or
        counts them equally.
    start: how the two layers of the shadow head start that stand for the client's noise: "random"
        or as the "identity", which is no noise. The paper does not say; with random ones the
        shadow's accuracy often stays low, on photographs, and with the identity seldom.
    align: weight of a penalty that draws mean and deviation of the shadow's features, by channel
        and position, to those of the features the client has sent; 0 as published.
    """

    bodies: tuple[int, ...] | None = None
    learn_selector: bool = True
    align: float = 0.0
    epochs: int = setting(15, "Epochs of the attack", "Of shadow head and decoder.")
    decoder_epochs: int = 15
    lr: float = 2e-3
    batch_size: int = 64
    start: str = setting(
        "random",
        "Noise layers start as",
        "How the shadow's two layers that stand for noise start: random or identity.",
        choices=STARTS,
    )

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(
        self, seen: FeatureObservation, *, rng: torch.Generator, report: Report = silent
    ) -> Inversion:
        from semsim.systems.split.attacks import invert  # with torch, which settings need not

        return invert(self, seen, rng, report)
