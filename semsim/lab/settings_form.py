"""Settings as fields of a form: what a dataclass says of itself, and a form's answer read back.

A field's words are those in its metadata, see `semsim.base.registry.setting`; where it has none,
those that the docstring of its class has after its name. Nothing here needs Gradio, torch or a
plug-in that is only listed: what a plug-in says is asked for by name, in the process beside this
one.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import lru_cache
from inspect import cleandoc
from itertools import chain
from pkgutil import resolve_name
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

from semsim.attacks.as_text import presets
from semsim.base.errors import SettingsError
from semsim.base.registry import Registered, choices_of, read_plugin
from semsim.grid.subprocess_worker import apart

T = TypeVar("T")
# What fields of many plug-ins are called where they do not say.
_CALLED = {
    "lr": "Step size",
    "tv": "Weight of smoothness",
    "h": "First cut h",
    "t": "Second cut t",
    "until": "Stop at accuracy",
    "root": "Folder",
    "batch_norm": "Batch norm",
}
# The word of the glossary that explains fields of many plug-ins.
_TERMS = {"tv": "total variation"}
MOST_SEEDS = 100  # of a form
_NUMBERS = {int: "whole", float: "number"}
_BARRED = re.compile(r"[,;\n]")  # they part settings from one another


@dataclass(frozen=True, kw_only=True)
class FormField:
    """One field of a form. kind: whole, number, yes, choice or text. value: what it begins with.

    Attributes:
        by: The setting on whose value the choices hang, "" where they hang on none.
        offers: The choices by that value, all of which `choices` has.
        optional: Whether it may be left empty, which is no limit.
        term: The word of the glossary that explains it, "" where it needs none.
    """

    name: str
    label: str
    text: str
    kind: str
    value: str
    choices: tuple[str, ...] = ()
    by: str = ""
    offers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    least: float | None = None
    optional: bool = False
    term: str = ""


@dataclass(frozen=True, kw_only=True)
class Given:
    """Input of a form.

    Attributes:
        fields: By name.
        lists: Of each the chosen items with changed settings.
    """

    fields: Mapping[str, Any]
    lists: Mapping[str, Mapping[str, Mapping[str, str]]]

    @classmethod
    def of(cls, text: str | None) -> "Given":
        """Read what the script of the form sends; raises `SettingsError` for anything else."""
        try:
            found = json.loads(text or "")
            return cls(
                fields=dict(found["fields"]),
                lists={
                    name: {
                        item: {key: str(value) for key, value in changed.items()}
                        for item, changed in chosen.items()
                    }
                    for name, chosen in found["lists"].items()
                },
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise SettingsError("The form came back empty; reload the page.") from None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the items chosen in a list, each as `read_plugin` takes it."""
        return tuple(_with(item, changed) for item, changed in self.lists.get(name, {}).items())

    def whole(self, name: str, called: str) -> int:
        """A field that holds a whole number; `SettingsError` in its own words where it does not."""
        return int(_number(self.fields.get(name), called, whole=True))

    def text(self, name: str) -> str:
        """A field that holds text."""
        return str(self.fields.get(name) or "").strip()

    def seeds(self, name: str, called: str, first: int = 0) -> tuple[int, ...]:
        """Seeds from `first` on, as many as a field says; `SettingsError` for none or too many."""
        count = self.whole(name, called)
        if not 1 <= count <= MOST_SEEDS:
            raise SettingsError(f"{called} must be 1 to {MOST_SEEDS}; got {count}.")
        if first < 0:
            raise SettingsError(
                f"The first of the {called.lower()} must be 0 or more; got {first}."
            )
        return tuple(range(first, first + count))


def settings_of(made: Any, names: Iterable[str] = ()) -> tuple[FormField, ...]:
    """A dataclass, or what one is made with, as fields; `names`: these, in this order."""
    kind = made if isinstance(made, type) else type(made)
    hints, said = get_type_hints(kind), _said(kind)
    known = {one.name: one for one in fields(kind)}
    return tuple(
        _setting(known[name], kind, hints[name], said, getattr(made, name, known[name].default))
        for name in names or known
    )


@lru_cache(maxsize=256)
def plugin_settings(registry: str, item: str, preset: str = "") -> tuple[FormField, ...]:
    """The settings of a plug-in of `registry`, "package.module:NAME", as "cnn4:width=16".

    Args:
        preset: Of attacks, where they have it.

    Raises:
        SemsimError: For no such plug-in.
    """
    found: tuple[FormField, ...] = apart(f"{__name__}:settings_apart", registry, item, preset)
    return found


def settings_apart(registry: str, item: str, preset: str) -> tuple[FormField, ...]:
    """Return the settings that `plugin_settings` asks for where plug-ins can be imported."""
    known: Registered = resolve_name(registry)
    plugin = read_plugin(known, item)
    given = {**presets(plugin.name).get(preset, {}), **plugin.settings}
    return tuple(
        replace(one, value=_spelt(given[one.name])) if one.name in given else one
        for one in settings_of(known[plugin.name])
    )


def changed(settings: T, given: Mapping[str, Any], prefix: str = "") -> T:
    """`settings` with what a form holds under its fields' names, after `prefix`, in their place.

    Raises `SettingsError` in the form's words where a value is missing or of another kind.
    """
    known = {one.name: one for one in settings_of(settings)}
    new = {
        name: _value(known[name], given[prefix + name]) for name in known if prefix + name in given
    }
    return replace(settings, **new)  # type: ignore[type-var]  # a dataclass, as `fields` asks


def _value(one: FormField, value: Any) -> Any:
    if one.kind == "yes":
        return value in (True, "true")
    if one.optional and not str("" if value is None else value).strip():
        return None
    if one.kind in ("whole", "number"):
        return _number(value, one.label, whole=one.kind == "whole")
    text = str(value or "").strip()
    if not text and one.value:
        raise SettingsError(f"{one.label} is empty; give a value.")
    if one.choices and text not in one.choices:
        raise SettingsError(f"{one.label} must be {' or '.join(one.choices)}; got {text!r}.")
    return text


def _number(value: Any, called: str, whole: bool) -> int | float:
    text = str("" if value is None else value).strip()
    if not text:
        raise SettingsError(f"{called} is empty; give a number.")
    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if found != found or (whole and not found.is_integer()):
        what = "a whole number" if whole else "a number"
        raise SettingsError(f"{called} must be {what}; got {text!r}.")
    return int(found) if whole else found


def _with(item: str, changed: Mapping[str, str]) -> str:
    """An item of a list with the settings that differ, a later one in place of an earlier."""
    name, _, rest = item.partition(":")
    words = [word for word in rest.split(",") if word]
    kept = [word for word in words if word.partition("=")[0] not in changed]
    for key, value in changed.items():
        if _BARRED.search(value):
            raise SettingsError(f"{key} takes no comma, semicolon or line break; got {value!r}.")
        kept.append(f"{key}={value.strip()}")
    return f"{name}:{','.join(kept)}" if kept else name


def _setting(one: Field, of: type, hint: Any, said: Mapping[str, str], value: Any) -> FormField:
    facts = one.metadata
    offers = facts["offers"]() if facts.get("offers") else {}
    choices = tuple(map(str, choices_of(of).get(one.name, ())))
    choices = choices or tuple(dict.fromkeys(chain.from_iterable(offers.values())))
    kinds = [kind for kind in get_args(hint) if kind in _NUMBERS]
    value = "" if value is MISSING else value
    return FormField(
        name=one.name,
        label=facts.get("label") or _CALLED.get(one.name, one.name.replace("_", " ")),
        text=facts.get("text") or said.get(one.name, ""),
        kind="choice" if choices else _NUMBERS[kinds[0]] if kinds else _kind(value),
        value=_spelt(value),
        choices=choices,
        by=facts.get("by", ""),
        offers=offers if facts.get("by") else {},
        least=facts.get("least"),
        optional=bool(kinds) and NoneType in get_args(hint),
        term=facts.get("term") or _TERMS.get(one.name, ""),
    )


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "yes"
    if isinstance(value, int):
        return "whole"
    return "number" if isinstance(value, float) else "text"


def _spelt(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "+".join(map(str, value))
    return str(value)


def _said(kind: type) -> dict[str, str]:
    """Return the notes on fields under `Attributes:` in a class's docstring."""
    section = cleandoc(kind.__doc__ or "").partition("\nAttributes:\n")[2].partition("\n\n")[0]
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    found: dict[str, str] = {}
    for entry in re.split(r"\n {4}(?! )", f"\n{section}")[1:]:
        heads, _, words = " ".join(entry.split()).partition(": ")
        found |= {name: words.replace("`", "") for name in heads.split(", ") if name in names}
    return found
