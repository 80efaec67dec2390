"""The settings of a training on the page Train SemSim: a form, and what it means."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from semsim.base.errors import SettingsError
from semsim.base.pages_library import gr
from semsim.learning import PRESETS, TrainSettings
from semsim.learning.initial import starts
from semsim.learning.settings import IMAGENET, SCRATCH, acting
from semsim.metrics import BACKBONES
from semsim.ui import lab

PLAIN = (
    *("backbone", "epochs", "lr", "batch_size", "triplets_per_original", "margin"),
    *("validation_fraction", "small_stem", "normalize", "seed"),
)
ADVANCED = (
    *("weights", "batch_norm", "loss", "ordering", "mining", "augmentation", "identity_weight"),
    *("input_size", "weight_decay", "patience", "mixed_precision"),
)
# In the order of the form; the settings that are not on it keep the preset's values.
FORM = (*PLAIN, *ADVANCED)
FIELDS = {one.name: one for one in fields(TrainSettings)}
_WHOLE = {name for name in FORM if type(FIELDS[name].default) is int}
_NO_FILE = [
    ("None, from scratch", SCRATCH),
    ("ImageNet, torchvision's, fetched the first time", IMAGENET),
]


def build(settings: TrainSettings) -> dict[str, Any]:
    """Lay the form out, filled with `settings`; return its components in the order of `FORM`."""
    with gr.Accordion("Settings", open=False, elem_id="learn-settings"):
        components = {name: _component(name) for name in PLAIN}
        lab.words(*_terms(PLAIN))
    with gr.Accordion("Advanced", open=False, elem_id="learn-advanced"):
        components |= {name: _component(name) for name in ADVANCED}
        lab.words(*_terms(ADVANCED))
    for name, value in zip(FORM, form_values(settings), strict=True):
        components[name].value = value
        components[name].elem_id = f"learn-{name.replace('_', '-')}"
    return components


def form_values(settings: TrainSettings) -> list[Any]:
    """The values of the form that mean `settings`, in the order of `FORM`."""
    return [getattr(settings, field) for field in FORM]


def shown(loss: str) -> list[Any]:
    """Updates of the fields, in the order of `FORM`: those that act under `loss` are to be seen."""
    acts = acting({**TrainSettings().result_settings(), "loss": loss})
    return [gr.update(visible=name in acts) for name in FORM]


def settings_of(preset: str, values: Sequence[Any], checkpoints: Path) -> TrainSettings:
    """The preset with the values of the form, in the order of `FORM`, in their place.

    Args:
        checkpoints: Folder of the files of weights that are offered.

    Raises:
        SettingsError: For an empty value, or a file that is not there.
    """
    given = dict(zip(FORM, values, strict=True))
    empty = [field for field, value in given.items() if value is None]
    if empty:
        raise SettingsError(f"{empty[0]} is empty; give a value.")
    whole = {field: int(given[field]) for field in _WHOLE}
    weights = {"weights": _start(str(given["weights"]), checkpoints)}
    return replace(PRESETS[preset], **{**given, **whole, **weights})


def starts_offered(checkpoints: Path) -> Any:
    """An update of the dropdown of weights: the files there are now, and which cannot be read."""
    broken: list[str] = []
    found = starts(checkpoints, broken.append)
    files = [(f"{name} ({says})", name) for name, says in found.items()]
    told = " ".join(filter(None, (FIELDS["weights"].metadata["text"], *broken)))
    return gr.Dropdown(choices=[*_NO_FILE, *files], info=told or None)


def _start(chosen: str, checkpoints: Path) -> str:
    if chosen in (SCRATCH, IMAGENET):
        return chosen
    if chosen not in starts(checkpoints):
        raise SettingsError(f"There are no weights {chosen!r} in the folder of checkpoints.")
    return str((Path(checkpoints) / chosen).resolve())


def _terms(names: Sequence[str]) -> list[str]:
    """The words of the glossary that explain these settings, each once."""
    return [term for term in dict.fromkeys(FIELDS[name].metadata["term"] for name in names) if term]


def _component(name: str) -> Any:
    """Return the form component that edits a setting, by the metadata of its field."""
    one = FIELDS[name]
    facts = one.metadata
    said: dict[str, Any] = {"label": facts["label"], "info": facts["text"] or None}
    if name == "backbone":
        return gr.Dropdown(list(BACKBONES), **said)
    if name == "weights":  # after a restart the server knows only the first choices
        return gr.Dropdown(_NO_FILE, allow_custom_value=True, **said)
    if name == "validation_fraction":
        return gr.Slider(0, 0.5, step=0.05, **said)
    if facts["choices"]:
        return gr.Radio(list(facts["choices"]), **said)
    if isinstance(one.default, bool):
        return gr.Checkbox(**said)
    least = facts["above"] if facts["least"] is None else facts["least"]
    return gr.Number(precision=0 if name in _WHOLE else None, minimum=least, **said)
