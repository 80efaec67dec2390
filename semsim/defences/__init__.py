"""Training strategies and defences: what a participant does before it shares anything.

A command line, a grid and a form give a defence as text:

none                                   a registry name
crop-flip:padding=2,flip=0             settings after a colon
ats:3-1-7+43-18-18                     policies by index
ops:translateX,invert,translateY=0.1   policies by name, with or without magnitudes
gradient-noise:laplacian,std=1e-3      the distribution may stand alone
dp-sgd:clip=1,noise=0.5                DP-SGD, with an account of its ε
crop-flip & ats:3-1-7                  one after another
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from semsim.base.errors import SettingsError
from semsim.base.registry import Plugin, Registry, build, built, read_plugin

if TYPE_CHECKING:
    from semsim.defences.base import Defence

DEFENCES: Registry[type[Defence]] = Registry(
    "defence",
    {
        "none": "semsim.defences.none:NoDefence",
        "crop-flip": "semsim.defences.crop_flip:CropFlip",
        "resized-crop-flip": "semsim.defences.resized_crop_flip:ResizedCropFlip",
        "ats": "semsim.defences.policies:Ats",
        "ops": "semsim.defences.policies:Operations",
        "gradient-noise": "semsim.defences.gradient_noise:GradientNoise",
        "gradient-pruning": "semsim.defences.gradient_pruning:GradientPruning",
        "dp-sgd": "semsim.defences.dp_sgd:DpSgd",
        "composed": "semsim.defences.composed:Composed",
    },
)

# Defences whose whole text after the colon is one setting, and those where a word without "="
# is the value of one.
_WHOLE = MappingProxyType({"ats": "policies", "ops": "steps"})
_WORD = MappingProxyType({"gradient-noise": "distribution", "gradient-pruning": "rate"})


def parse(text: str) -> Plugin:
    """The name and settings that `text` means, checked.

    Raises `UnknownNameError` for a name and `SettingsError` for a setting that does not exist or
    cannot be.
    """
    parts = split_parts(text)
    if len(parts) == 1:
        return _parse_one(parts[0])
    each = [_parse_one(part) for part in parts]
    spelt = " & ".join(spell(one.name, one.settings) for one in each)
    return Plugin(name="composed", settings={"parts": spelt})


def spell(name: str, settings: Mapping[str, Any]) -> str:
    """The text that `parse` reads as `name` with `settings`."""
    if name == "composed":
        return str(settings["parts"])
    if name in _WHOLE and settings:
        return f"{name}:{settings[_WHOLE[name]]}"
    given = ",".join(f"{key}={value}" for key, value in settings.items())
    return f"{name}:{given}" if given else name


def make(text: str) -> Defence:
    """The defence that `text` means."""
    made: Defence = built(DEFENCES, parse(text))
    return made


def split_parts(text: str) -> tuple[str, ...]:
    """The specifications between the "&"; `SettingsError` where one is empty."""
    parts = tuple(part.strip() for part in text.split("&"))
    if not all(parts):
        raise SettingsError(f"A defence is missing in {text!r}; without any, write 'none'.")
    return parts


def _parse_one(text: str) -> Plugin:
    name, colon, rest = (part.strip() for part in text.partition(":"))
    if name == "composed":
        raise SettingsError(f"Write composed defences as 'crop-flip & ats:3-1-7'; got {text!r}.")
    if colon and not rest:
        raise SettingsError(f"Settings are missing after the colon of {text!r}.")
    if name in _WHOLE and rest:
        found = Plugin(name=name, settings={_WHOLE[name]: "".join(rest.split())})
        build(DEFENCES, name, found.settings)
        return found
    words = [word.strip() for word in rest.split(",")] if rest else []
    if name in _WORD:
        words = [word if "=" in word else f"{_WORD[name]}={word}" for word in words]
    return read_plugin(DEFENCES, f"{name}:{','.join(words)}")


# The seven training strategies of SemSim's 14 target models (two architectures each).
# The order is that of the model numbers 1…7 and 8…14 in the authors' released data.
# "code": what their program does. Crop and flip come before every policy and every gradient
# defence, and gradient defences act in training only, so that the attacked gradient is clean.
# "paper": what Table 3 says. It names the operations otherwise than the code applies them, gives
# no magnitudes (43-18-18's are taken from the list of ATS) and no crop with the gradient defences;
# these act wherever a gradient is used, as the text describes a defence. Its crop is drawn as the
# code does; the one that Table 3 names is `resized-crop-flip`.
STRATEGIES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "code": MappingProxyType(
            {
                "none": "none",
                "crop-flip": "crop-flip",
                "3-1-7": "crop-flip & ats:3-1-7",
                "43-18-18": "crop-flip & ats:43-18-18",
                "hybrid": "crop-flip & ats:3-1-7+43-18-18",
                "pruning": "crop-flip & gradient-pruning:rate=0.7,apply_at=train",
                "noise": "crop-flip & gradient-noise:std=0.001,apply_at=train",
            }
        ),
        "paper": MappingProxyType(
            {
                "none": "none",
                "crop-flip": "crop-flip",
                "3-1-7": "ops:translateX,invert,translateY",
                "43-18-18": "ops:translateY=0.1511,autocontrast,autocontrast",
                "hybrid": (
                    "ops:translateX,invert,translateY+translateY=0.1511,autocontrast,autocontrast"
                ),
                "pruning": "gradient-pruning:rate=0.7,apply_at=both",
                "noise": "gradient-noise:std=0.001,apply_at=both",
            }
        ),
    }
)

# The paper's strategies, where its words and its code differ each under a name of its own, and what
# is deployed and the paper has not.
NAMED_STRATEGIES: Mapping[str, str] = MappingProxyType(
    {
        name if STRATEGIES["paper"][name] == spec else f"{name}-{source}": spec
        for source, specs in STRATEGIES.items()
        for name, spec in specs.items()
    }
    | {"dp-sgd": "dp-sgd"}
)


def read_strategy(text: str) -> Plugin:
    """A training strategy: a name in `NAMED_STRATEGIES` or the words of `semsim.defences.parse`."""
    return parse(NAMED_STRATEGIES.get(text.strip(), text))


def strategy_label(text: str) -> str:
    """The strategy's name in `NAMED_STRATEGIES` where it has one, else its text."""
    names = {spec: name for name, spec in NAMED_STRATEGIES.items()}
    return names.get(text.strip(), text.strip())
