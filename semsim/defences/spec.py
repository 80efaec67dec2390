"""Defences as text, as a command line, a grid and a form give them.

none                                   a registry name
crop-flip:padding=2,flip=0             settings after a colon
ats:3-1-7+43-18-18                     policies by index
ops:translateX,invert,translateY=0.1   policies by name, with or without magnitudes
gradient-noise:laplacian,std=1e-3      the distribution may stand alone
crop-flip & ats:3-1-7                  one after another
"""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from semsim.errors import SettingsError
from semsim.registry import build

if TYPE_CHECKING:
    from semsim.defences.base import Defence


class Spec(NamedTuple):
    """A defence's registry name and the settings that were given."""

    name: str
    settings: dict[str, Any]


# Defences whose whole text after the colon is one setting, and those where a word without "="
# is the value of one.
_WHOLE = MappingProxyType({"ats": "policies", "ops": "steps"})
_WORD = MappingProxyType({"gradient-noise": "distribution", "gradient-pruning": "rate"})


def parse(text: str) -> Spec:
    """The name and settings that `text` means, checked.

    Raises `UnknownNameError` for a name and `SettingsError` for a setting that does not exist or
    cannot be.
    """
    parts = split_parts(text)
    if len(parts) == 1:
        return _parse_one(parts[0])
    return Spec("composed", {"parts": " & ".join(spell(*_parse_one(part)) for part in parts)})


def spell(name: str, settings: Mapping[str, Any]) -> str:
    """The text that `parse` reads as `name` with `settings`."""
    if name == "composed":
        return str(settings["parts"])
    if name in _WHOLE and settings:
        return f"{name}:{settings[_WHOLE[name]]}"
    given = ",".join(f"{key}={_spelt(value)}" for key, value in settings.items())
    return f"{name}:{given}" if given else name


def make(text: str) -> "Defence":
    """The defence that `text` means."""
    from semsim.defences import DEFENCES

    name, settings = parse(text)
    made: Defence = build(DEFENCES, name, settings)
    return made


def split_parts(text: str) -> tuple[str, ...]:
    """The specifications between the "&"; `SettingsError` where one is empty."""
    parts = tuple(part.strip() for part in text.split("&"))
    if not all(parts):
        raise SettingsError(f"A defence is missing in {text!r}; without any, write 'none'.")
    return parts


def _parse_one(text: str) -> Spec:
    from semsim.defences import DEFENCES

    name, colon, rest = (part.strip() for part in text.partition(":"))
    kind = DEFENCES[name]
    if name == "composed":
        raise SettingsError(f"Write composed defences as 'crop-flip & ats:3-1-7'; got {text!r}.")
    if colon and not rest:
        raise SettingsError(f"Settings are missing after the colon of {text!r}.")
    if name in _WHOLE:
        settings: dict[str, Any] = {_WHOLE[name]: "".join(rest.split())} if rest else {}
    else:
        settings = dict(_setting(name, item) for item in rest.split(",")) if rest else {}
    build(DEFENCES, name, settings := _typed(name, kind, settings))
    return Spec(name, settings)


def _setting(name: str, item: str) -> tuple[str, str]:
    key, equals, value = (part.strip() for part in item.partition("="))
    if equals:
        return key, value
    if name not in _WORD:
        raise SettingsError(f"Settings of {name!r} are written key=value; got {item!r}.")
    return _WORD[name], key


def _typed(name: str, kind: Any, settings: Mapping[str, str]) -> dict[str, Any]:
    """Text as the type of each setting's default; unknown keys are left for `build` to name."""
    defaults = {field.name: field.default for field in fields(kind)}
    return {
        key: _converted(name, key, value, type(defaults.get(key, "")))
        for key, value in settings.items()
    }


def _converted(name: str, key: str, value: str, kind: type) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise SettingsError(f"{key} of {name!r} is a {kind.__name__}; got {value!r}.") from None


def _spelt(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)
