"""Defences as text, as a command line, a grid and a form give them.

none                                   a registry name
crop-flip:padding=2,flip=0             settings after a colon
ats:3-1-7+43-18-18                     policies by index
ops:translateX,invert,translateY=0.1   policies by name, with or without magnitudes
gradient-noise:laplacian,std=1e-3      the distribution may stand alone
dp-sgd:clip=1,noise=0.5                DP-SGD, with an account of its ε
crop-flip & ats:3-1-7                  one after another
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from semsim.base.errors import SettingsError
from semsim.base.registry import Plugin, build, built, read_plugin

if TYPE_CHECKING:
    from semsim.defences.base import Defence

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


def make(text: str) -> "Defence":
    """The defence that `text` means."""
    from semsim.defences import DEFENCES

    made: Defence = built(DEFENCES, parse(text))
    return made


def split_parts(text: str) -> tuple[str, ...]:
    """The specifications between the "&"; `SettingsError` where one is empty."""
    parts = tuple(part.strip() for part in text.split("&"))
    if not all(parts):
        raise SettingsError(f"A defence is missing in {text!r}; without any, write 'none'.")
    return parts


def _parse_one(text: str) -> Plugin:
    from semsim.defences import DEFENCES

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
