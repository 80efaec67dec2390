"""Plug-ins written as text, as in `invgrad:fast,steps=200`, and back to their full settings."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from types import MappingProxyType
from typing import Any

from semsim.attacks import ATTACKS, VERTICAL_ATTACKS
from semsim.attacks.presets import PRESETS
from semsim.campaign.cell import Plugin
from semsim.defences import DEFENCES, STRATEGIES, parse
from semsim.errors import SettingsError
from semsim.registry import build
from semsim.targets.train import TrainSettings

Registered = Mapping[str, Any]
_WORDS = {"true": True, "false": False}
# The paper's strategies, where its words and its code differ each under a name of its own.
NAMED_STRATEGIES: Mapping[str, str] = MappingProxyType(
    {
        name if STRATEGIES["paper"][name] == spec else f"{name}-{source}": spec
        for source, specs in STRATEGIES.items()
        for name, spec in specs.items()
    }
)


def read_plugin(
    registry: Registered, text: str, presets: Mapping[str, dict] | None = None
) -> Plugin:
    """The plug-in in `text`: a registry name, then after a colon settings as `key=value,…`.

    presets: settings by name; a word among the settings that has no "=" chooses one of them.
    Raises `SettingsError` or `UnknownNameError` where there is no such name, setting or preset.
    """
    name, _, rest = text.strip().partition(":")
    plugin = registry[name]
    settings: dict[str, Any] = {}
    for part in [part.strip() for part in rest.split(",") if part.strip()]:
        key, equals, value = part.partition("=")
        if equals:
            settings[key.strip()] = _value(plugin, name, key.strip(), value.strip())
        else:
            settings |= _preset(name, part, presets or {})
    build(registry, name, settings)
    return Plugin(name=name, settings=settings)


def read_attack(text: str) -> Plugin:
    """An attack, as in `invgrad`, `invgrad:fast` or `invgrad:paper,steps=100`."""
    name = text.partition(":")[0].strip()
    if name in VERTICAL_ATTACKS:
        raise SettingsError(
            f"{name!r} attacks rounds of vertical federated learning, and a campaign's targets "
            f"share the gradient of one image. Use `python -m semsim campaign vertical`."
        )
    return read_plugin(ATTACKS, text, PRESETS.get(name, {}))


def read_strategy(text: str) -> Plugin:
    """A training strategy: a name in `NAMED_STRATEGIES` or the words of `semsim.defences.parse`."""
    found = parse(NAMED_STRATEGIES.get(text.strip(), text))
    build(DEFENCES, found.name, dict(found.settings))
    return Plugin(name=found.name, settings=dict(found.settings))


def strategy_label(text: str) -> str:
    """The strategy's name in `NAMED_STRATEGIES` where it has one, else its text."""
    names = {spec: name for name, spec in NAMED_STRATEGIES.items()}
    return names.get(text.strip(), text.strip())


def read_training(text: str, base: TrainSettings) -> TrainSettings:
    """`base` with the settings in `text`, as in `epochs=2,lr=0.05`, in their place."""
    changed = read_plugin({"training": TrainSettings}, f"training:{text}").settings
    merged = {field.name: getattr(base, field.name) for field in fields(TrainSettings)}
    return TrainSettings(**{**merged, **changed})


def with_preset(attacks: Sequence[str], preset: str | None) -> list[str]:
    """The attacks, those that have `preset` and name none of their own under it."""
    if preset is None:
        return list(attacks)
    return [_under(text, preset) for text in attacks]


def short_labels(texts: Sequence[str]) -> list[str]:
    """What each of `texts` is called: its name alone where no other has it, else all of it."""
    names = [text.partition(":")[0].strip() for text in texts]
    return [
        name if names.count(name) == 1 else text.strip()
        for name, text in zip(names, texts, strict=True)
    ]


def all_settings(registry: Registered, plugin: Plugin) -> dict[str, Any]:
    """Every setting of the plug-in, defaults too, as plain values: what a key is made of."""
    return {**plain(build(registry, plugin.name, plugin.settings)), "name": plugin.name}


def named(registry: Registered, plugin: Plugin) -> dict[str, Any]:
    """The plug-in's name and all its settings, defaults too, as records have them."""
    settings = all_settings(registry, plugin)
    kept = {key: value for key, value in settings.items() if key not in ("name", "class")}
    return {"name": plugin.name, "settings": kept}


def plain(value: Any) -> Any:
    """`value` as lists, dicts, numbers and text; a dataclass keeps the name of its class."""
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        return {"class": type(value).__name__, **named}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _under(text: str, preset: str) -> str:
    name, _, rest = text.partition(":")
    words = [word for word in rest.split(",") if word]
    named = any("=" not in word for word in words)
    if named or preset not in PRESETS.get(name, {}):
        return text
    return f"{name}:{','.join([preset, *words])}"


def _preset(name: str, chosen: str, presets: Mapping[str, dict]) -> dict[str, Any]:
    if chosen not in presets:
        known = ", ".join(presets) or "none"
        raise SettingsError(
            f"{name!r} has no preset {chosen!r}. Presets: {known}. Settings are key=value."
        )
    return dict(presets[chosen])


def _value(plugin: Any, name: str, key: str, text: str) -> Any:
    known: dict[str, Field] = {field.name: field for field in fields(plugin)}
    if key not in known:
        raise SettingsError(f"{name!r} has no setting {key!r}. It has: {', '.join(known)}.")
    default = known[key].default
    given = _literal(text)
    if default is MISSING or default is None or isinstance(given, type(default)):
        return given
    if isinstance(default, str):
        return text
    if isinstance(default, float) and isinstance(given, int) and not isinstance(given, bool):
        return float(given)
    if isinstance(default, tuple):
        return tuple(_literal(part) for part in text.split("+"))
    expected = type(default).__name__
    raise SettingsError(f"{name}: {key}={text} is no {expected}; the default is {default!r}.")


def _literal(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
