"""The settings of a training on the page Train SemSim: a form, and what it means."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr

from semsim.errors import SettingsError
from semsim.learning import BACKBONES, PRESETS, TrainSettings
from semsim.learning.initial import starts
from semsim.learning.settings import (
    AUGMENTATIONS,
    BATCH_NORMS,
    IMAGENET,
    LOSS_NAMES,
    MININGS,
    ORDERINGS,
    SCRATCH,
)

PLAIN = (
    "backbone",
    "epochs",
    "lr",
    "batch_size",
    "triplets_per_original",
    "margin",
    "validation_fraction",
    "small_stem",
    "normalize",
    "seed",
)
ADVANCED = (
    "weights",
    "batch_norm",
    "loss",
    "ordering",
    "mining",
    "augmentation",
    "identity_weight",
    "input_size",
    "weight_decay",
    "patience",
    "mixed_precision",
)
# In the order of the form; the settings that are not on it keep the preset's values.
FORM = (*PLAIN, *ADVANCED)
_WHOLE = {"epochs", "batch_size", "triplets_per_original", "seed", "input_size", "patience"}
_NO_FILE = [
    ("None, from scratch", SCRATCH),
    ("ImageNet, torchvision's, fetched the first time", IMAGENET),
]


@dataclass(frozen=True, kw_only=True)
class Form:
    """The components of the form; fields: in the order of `FORM`, weights: one of them."""

    fields: list[Any]
    weights: Any


def build(settings: TrainSettings) -> Form:
    """Lay the form out where the caller stands, filled with `settings`."""
    with gr.Accordion("Settings", open=False, elem_id="learn-settings"):
        plain = _plain()
    with gr.Accordion("Advanced", open=False, elem_id="learn-advanced"):
        advanced = _advanced()
    fields = plain | advanced
    for name, value in zip(FORM, form_values(settings), strict=True):
        fields[name].value = value
        fields[name].elem_id = f"learn-{name.replace('_', '-')}"
    return Form(fields=[fields[name] for name in FORM], weights=fields["weights"])


def form_values(settings: TrainSettings) -> list[Any]:
    """The values of the form that mean `settings`, in the order of `FORM`."""
    return [getattr(settings, field) for field in FORM]


def settings_of(preset: str, values: Sequence[Any], checkpoints: Path) -> TrainSettings:
    """The preset with the values of the form, in the order of `FORM`, in their place.

    checkpoints: folder of the files of weights that are offered.
    Raises `SettingsError` for an empty value, or a file that is not there.
    """
    given = dict(zip(FORM, values, strict=True))
    empty = [field for field, value in given.items() if value is None]
    if empty:
        raise SettingsError(f"{empty[0]} is empty; give a value.")
    whole = {field: int(given[field]) for field in _WHOLE}
    weights = {"weights": _start(str(given["weights"]), checkpoints)}
    return replace(PRESETS[preset], **{**given, **whole, **weights})


def starts_offered(checkpoints: Path) -> Any:
    """An update of the dropdown of weights: the files there are now."""
    files = [(f"{name} ({says})", name) for name, says in starts(checkpoints).items()]
    return gr.Dropdown(choices=[*_NO_FILE, *files])


def _start(chosen: str, checkpoints: Path) -> str:
    if chosen in (SCRATCH, IMAGENET):
        return chosen
    if chosen not in starts(checkpoints):
        raise SettingsError(f"There are no weights {chosen!r} in the folder of checkpoints.")
    return str((Path(checkpoints) / chosen).resolve())


def _plain() -> dict[str, Any]:
    return {
        "backbone": gr.Dropdown(list(BACKBONES), label="Network", info="LeNet is the fastest."),
        "epochs": gr.Number(
            precision=0, minimum=1, label="Epochs", info="Passes over the originals."
        ),
        "lr": gr.Number(
            minimum=0, label="Learning rate", info="Lower it if the features collapse."
        ),
        "batch_size": gr.Number(precision=0, minimum=1, label="Triplets a step"),
        "triplets_per_original": gr.Number(
            precision=0, minimum=1, label="Triplets an original", info="Drawn anew each epoch."
        ),
        "margin": gr.Number(
            minimum=0, label="Margin", info="How much farther an unrecognisable one should be."
        ),
        "validation_fraction": gr.Slider(
            0,
            0.5,
            step=0.05,
            label="Share for validation",
            info="Of those it learns from, for its curves.",
        ),
        "small_stem": gr.Checkbox(
            label="Stem for small images",
            info="Sees more of 32×32 images, and takes ten times as long. LeNet has it anyway.",
        ),
        "normalize": gr.Checkbox(
            label="Features of length one", info="In training and in scoring alike."
        ),
        "seed": gr.Number(
            precision=0, minimum=0, label="Seed", info="The same seed trains the same SemSim."
        ),
    }


def _advanced() -> dict[str, Any]:
    return {
        # As the lists of the page: after a restart the server knows only the first choices.
        "weights": gr.Dropdown(
            _NO_FILE,
            allow_custom_value=True,
            label="Starting weights",
            info="Files in the folder of checkpoints, of the same network and stem.",
        ),
        "batch_norm": gr.Radio(
            list(BATCH_NORMS),
            label="Batch normalisation",
            info="frozen keeps the averages of the starting weights; for small batches.",
        ),
        "loss": gr.Radio(
            list(LOSS_NAMES),
            label="Loss",
            info="pooled also makes distances of different originals comparable.",
        ),
        "ordering": gr.Radio(
            list(ORDERINGS),
            label="What orders triplets",
            info="votes: more votes are nearer, and the difference is the weight.",
        ),
        "mining": gr.Radio(
            list(MININGS),
            label="Choice of triplets",
            info="semi-hard prefers those inside the margin.",
        ),
        "augmentation": gr.Radio(
            list(AUGMENTATIONS),
            label="Augmentation",
            info="joint moves and mirrors all images of an original alike.",
        ),
        "identity_weight": gr.Number(
            minimum=0,
            label="Weight of the identity term",
            info="Keeps an original near to itself mildly changed; 0 leaves it out.",
        ),
        "input_size": gr.Number(
            precision=0, minimum=1, label="Input size", info="Pixels a side, in scoring too."
        ),
        "weight_decay": gr.Number(minimum=0, label="Weight decay"),
        "patience": gr.Number(
            precision=0,
            minimum=0,
            label="Patience",
            info="Epochs without a better AUC before it stops; 0 never stops.",
        ),
        "mixed_precision": gr.Checkbox(
            label="Mixed precision", info="bfloat16 in the network; for GPUs."
        ),
    }
