"""A plug-in is a frozen dataclass; a registry maps its public name to the class, or to where it is.

Written as text, as in `invgrad:fast,steps=200`, it is a name with the settings that are given.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from pkgutil import resolve_name
from types import NoneType
from typing import (
    Any,
    Generic,
    Literal,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from semsim.base.errors import SettingsError, UnknownNameError

T = TypeVar("T")
Registered = Mapping[str, Any]
_WORDS = {"true": True, "false": False}
_SORTS = {bool: "true or false", int: "a whole number", float: "a number"}


def unknown(kind: str, name: object, known: Iterable[str], more: str = "") -> UnknownNameError:
    """Return the error on a `name` that no `kind` has, the nearest of `known` first.

    >>> str(unknown("metric", "pnsr", ["mse", "psnr"]))
    "No metric is called 'pnsr'. Did you mean psnr? Known: mse, psnr."
    """
    names = list(known)
    told = f"No {kind} is called {name!r}.{nearest(name, names)} "
    return UnknownNameError(f"{told}Known: {', '.join(names) or 'none'}{more}.")


def nearest(name: object, known: Iterable[str]) -> str:
    """Return " Did you mean …?" with those of `known` that `name` may be a slip for, or ""."""
    names, typed = list(known), str(name).lower()
    longer = [one for one in names if typed and one.lower().startswith(typed)][:3]
    near = " or ".join(longer or get_close_matches(typed, names))
    return f" Did you mean {near}?" if near else ""


@dataclass(frozen=True)
class Entry:
    """A plug-in of a registry, "package.module:Name", and what it needs."""

    plugin: str
    needs: Any


class Registry(Mapping[str, T], Generic[T]):
    """An immutable mapping from public names to plug-ins that names the alternatives on a miss.

    A plug-in written as text, "package.module:Name", is imported when it is asked for: what lists
    the names alone need not wait for all that plug-ins compute with.
    """

    def __init__(self, kind: str, entries: Mapping[str, T | str | Entry]) -> None:
        self.kind = kind
        self._needs = {name: one.needs for name, one in entries.items() if isinstance(one, Entry)}
        self._entries = {
            name: one.plugin if isinstance(one, Entry) else one for name, one in entries.items()
        }

    def needs(self, name: str) -> Any:
        """Return what the plug-in's `Entry` declares."""
        return self._needs[name]

    def __getitem__(self, name: str) -> T:
        try:
            found = self._entries[name]
        except KeyError:
            raise unknown(self.kind, name, sorted(self._entries)) from None
        return resolve_name(found) if isinstance(found, str) else found

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A registry name with the settings that differ from its defaults."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


class SettingFacts(TypedDict, total=False):
    """Bounds of a `setting`, its `option`, and the word of the glossary for it, `term`.

    Attributes:
        option: Of a command, where it is not called like the field.
        choices: The texts it can be, where its type is no `Literal` of them.
        offers: The same where a library has to be asked: texts by the value of the setting `by`,
            under "" where they hang on none; who builds the plug-in checks them.
        least, above, most, below: Numbers it is not below, is above, not above, and below, unless
            it is left out.
    """

    choices: tuple[str, ...]
    offers: Callable[[], Mapping[str, Sequence[str]]] | None
    by: str
    least: float | None
    above: float | None
    most: float | None
    below: float | None
    option: str
    term: str


_FACTS = {
    **dict.fromkeys(SettingFacts.__annotations__),
    "choices": (),
    "by": "",
    "option": "",
    "term": "",
}


def setting(default: Any, label: str = "", text: str = "", **facts: Unpack[SettingFacts]) -> Any:
    """Return a field with its default, what a page calls it and prints of it, and `facts`."""
    return field(default=default, metadata={"label": label, "text": text, **_FACTS, **facts})


def help_of(kind: Any, name: str) -> str:
    """Return the help on a `setting` of `kind`, a sentence: its text, or its label without one."""
    (said,) = (one.metadata for one in fields(kind) if one.name == name)
    return said["text"] or f"{said['label']}."


_LARGEST = 2**63 - 1  # whole number that torch takes


@cache
def choices_of(kind: Any) -> Mapping[str, tuple[Any, ...]]:
    """Return the choices of each field of `kind` that has some, from its `Literal` or `setting`."""
    hints = get_type_hints(kind)
    found = {
        one.name: get_args(hints[one.name])
        if get_origin(hints[one.name]) is Literal
        else one.metadata.get("choices", ())
        for one in fields(kind)
    }
    return {name: choices for name, choices in found.items() if choices}


def check_settings(settings: Any) -> None:
    """`SettingsError` for the first of `settings` that is not what its field says it may be."""
    known = choices_of(settings.__class__)
    for one in fields(settings):
        value, choices = getattr(settings, one.name), known.get(one.name)
        wrong = "" if _left_out(settings, one.name) else _beyond(value, one.metadata)
        if choices and value not in choices:
            wrong = " or ".join(map(str, choices))
        if wrong:
            raise SettingsError(f"{one.name} must be {wrong}; got {value!r}.")


class Checked:
    """Settings of a frozen dataclass that `check_settings` looks at when they are made."""

    def __post_init__(self) -> None:
        check_settings(self)


def _left_out(settings: Any, name: str) -> bool:
    if getattr(settings, name) is not None:
        return False
    return NoneType in get_args(get_type_hints(settings.__class__)[name])


def _beyond(value: Any, facts: Mapping[str, Any]) -> str:
    """Return the bound that a number breaks, by the facts of its `setting`; "" for none."""
    least, above, most, below = map(facts.get, ("least", "above", "most", "below"))
    if isinstance(value, int) and abs(value) > _LARGEST:
        return f"at most {_LARGEST}"
    if least is not None and not value >= least:  # negated, so that NaN is refused too
        return f"at least {least}" if least else "0 or more"
    if above is not None and not value > above:
        return f"above {above}"
    if most is not None and not value <= most:
        return f"at most {most}"
    return f"below {below}" if below is not None and not value < below else ""


def build(registry: Mapping[str, Any], name: str, settings: Mapping[str, Any] | None = None) -> Any:
    """The plug-in `name` with `settings`, looked at by `check_settings`.

    Raises `SettingsError` that names a setting it does not have, or one that cannot be.
    """
    plugin = registry[name]
    settings = dict(settings or {})
    known = [f.name for f in fields(plugin)]
    odd = sorted(set(settings) - set(known))
    if odd:
        raise _no_setting(name, odd[0], known)
    made = plugin(**settings)
    check_settings(made)
    return made


def _no_setting(name: str, key: str, known: Iterable[str]) -> SettingsError:
    return SettingsError(
        f"{name!r} has no setting {key!r}.{nearest(key, known)} It has: {', '.join(known)}."
    )


def read_plugin(
    registry: Registered, text: str, presets: Mapping[str, Registered] | None = None
) -> Plugin:
    """The plug-in in `text`: a registry name, then after a colon settings as `key=value,…`.

    Args:
        presets: Settings by name; a word among the settings that has no "=" chooses one of them,
            over which settings that are given stand wherever they are. Any other such word goes on
            with the text before it, as a folder's name may have commas, unless that is one of a
            few.

    Raises:
        SettingsError: Where there is no such name, setting or preset.
        UnknownNameError: Where there is no such name, setting or preset.
    """
    name, _, rest = text.strip().partition(":")
    plugin = registry[name]
    chosen: dict[str, Any] = {}
    given: dict[str, Any] = {}
    last = ""
    for part in [part for part in rest.split(",") if part.strip()]:
        key, equals, value = (word.strip() for word in part.partition("="))
        if equals:
            last, given[key] = key, _value(plugin, name, key, value)
        elif _goes_on(plugin, last, given) and key not in (presets or {}):
            given[last] += f",{part.rstrip()}"
        else:
            chosen |= _preset(name, key, presets or {})
    settings = {**chosen, **given}
    build(registry, name, settings)
    return Plugin(name=name, settings=settings)


def built(registry: Registered, plugin: Plugin | str) -> Any:
    """Return the plug-in by `build`; one in a text is read by `read_plugin` first."""
    one = read_plugin(registry, plugin) if isinstance(plugin, str) else plugin
    return build(registry, one.name, one.settings)


def short_labels(texts: Sequence[str]) -> list[str]:
    """Return a label of each of `texts`: its name alone where no other has it, else all of it."""
    names = [text.partition(":")[0].strip() for text in texts]
    return [
        name if names.count(name) == 1 else text.strip()
        for name, text in zip(names, texts, strict=True)
    ]


def all_settings(registry: Registered, plugin: Plugin) -> dict[str, Any]:
    """Every setting of the plug-in, defaults too, as plain values."""
    return {**plain(built(registry, plugin)), "name": plugin.name}


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


def _goes_on(plugin: Any, last: str, given: Mapping[str, Any]) -> bool:
    """Return whether the setting `last` was given, as a text that is not one of a few."""
    known: dict[str, Field] = {field.name: field for field in fields(plugin)}
    if not isinstance(given.get(last), str) or last in choices_of(plugin):
        return False
    return not known[last].metadata.get("offers")


def _preset(name: str, chosen: str, presets: Mapping[str, Registered]) -> dict[str, Any]:
    if chosen not in presets:
        known = ", ".join(presets) or "none"
        raise SettingsError(
            f"{name!r} has no preset {chosen!r}.{nearest(chosen, presets)} Presets: {known}. "
            "Settings are key=value."
        )
    return dict(presets[chosen])


def _value(plugin: Any, name: str, key: str, text: str) -> Any:
    known: dict[str, Field] = {field.name: field for field in fields(plugin)}
    if key not in known:
        raise _no_setting(name, key, known)
    default = known[key].default
    given = _literal(text)
    if default is None or (given is None and NoneType in get_args(get_type_hints(plugin)[key])):
        return _optional(plugin, name, key, text)
    if default is MISSING or isinstance(given, type(default)):
        return given
    if isinstance(default, str):
        return text
    if isinstance(default, float) and isinstance(given, int) and not isinstance(given, bool):
        return float(given)
    if isinstance(default, tuple):
        return tuple(_literal(part) for part in text.split("+"))
    expected = _SORTS.get(type(default), "value of another sort")
    raise SettingsError(f"{name}: {key} must be {expected}; got {text!r}. Default: {default!r}.")


def _optional(plugin: Any, name: str, key: str, text: str) -> Any:
    """A value that may be left out, as it is where `text` is empty or says None."""
    kinds = get_args(get_type_hints(plugin)[key])
    given = None if not text else _literal(text)
    if given is None or isinstance(given, kinds):
        return given
    if float in kinds and isinstance(given, int) and not isinstance(given, bool):
        return float(given)
    expected = " or ".join(kind.__name__ for kind in kinds if kind is not NoneType)
    raise SettingsError(f"{name}: {key}={text} is no {expected}; None leaves it out.")


def _literal(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
