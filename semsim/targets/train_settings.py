"""Settings of the training of a target classifier, as plain values."""

from dataclasses import dataclass, replace
from typing import Literal

from semsim.base.errors import SettingsError
from semsim.base.registry import Checked, read_plugin, setting


@dataclass(frozen=True, kw_only=True)
class TrainSettings(Checked):
    """SGD with Nesterov momentum, step size ×0.1 after 3/8, 5/8 and 7/8 of the epochs, rounded up.

    That is the schedule "steps". These are the settings of the SemSim authors' code but for
    `epochs` (there 200 on CIFAR-100 and 100 elsewhere) and `loss_scale` (there 0.5, by which
    cross-entropy is multiplied).

    Attributes:
        until: The share of test images, 0 to 1, from which no further epoch is trained; 1 for none,
            so that all epochs are. The schedule is that of all epochs.
        mixed_precision: Bfloat16 inside the network, for GPUs, and CPUs that have it; refused where
            it changes the gradient of the first batch too much, see `mixed_precision.check_mixed`.
        schedule: Of the step size; "cosine" is half of one, down to 0, for few epochs.
    """

    epochs: int = setting(200, least=0)
    batch_size: int = setting(64, least=1)
    lr: float = setting(0.1, least=0)
    momentum: float = setting(0.9, least=0)
    weight_decay: float = 5e-4
    seed: int = 0
    loss_scale: float = 1.0
    until: float = setting(1.0, above=0, most=1)
    mixed_precision: bool = False
    schedule: Literal["steps", "cosine"] = "steps"


def read_training(text: str, base: TrainSettings, seeds: str = "") -> TrainSettings:
    """`base` with the settings in `text`, as in `epochs=2,lr=0.05`, in their place.

    Args:
        seeds: The option that says seeds, where there is one; `text` that says one is then refused.
    """
    changed = read_plugin({"training": TrainSettings}, f"training:{text}").settings
    if seeds and "seed" in changed:
        raise SettingsError(f"A training has no seed of its own here: give seeds with {seeds}.")
    return replace(base, **changed)
