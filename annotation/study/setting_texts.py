"""Settings of a study as text, as the command line and files give them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import StrEnum
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from annotation.errors import StudyError
from annotation.spec import StudySpec

HELP: Mapping[str, str] = {
    one.name: one.metadata["text"] for one in fields(StudySpec) if one.name != "name"
}
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def parse(pairs: Iterable[str]) -> dict[str, Any]:
    """Settings given as NAME=VALUE; an empty value is None where a setting may be that.

    Raises `StudyError` for what is no pair, a name there is not, or a value of another type.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise StudyError(f"A setting is given as NAME=VALUE; got {pair!r}.")
        found[name.strip()] = value_of(name.strip(), text.strip())
    return found


def value_of(name: str, text: str) -> Any:
    """The value of the setting `name` that `text` stands for; raises `StudyError`."""
    hints = get_type_hints(StudySpec)
    if name not in hints or name == "name":
        known = ", ".join(one for one in hints if one != "name")
        raise StudyError(f"A study has no setting {name!r}. It has: {known}.")
    if get_origin(hints[name]) is Mapping:
        return _named_texts(name, text)
    kinds = get_args(hints[name]) or (hints[name],)
    if not text and NoneType in kinds:
        return None
    return _read(name, text, next(kind for kind in kinds if kind is not NoneType))


def as_text(value: Any) -> str:
    """A setting's value as `value_of` reads it."""
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False) if value else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _named_texts(name: str, text: str) -> dict[str, str]:
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise StudyError(f"{name} must be a JSON object; got {text[:80]!r} ({error}).") from None
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise StudyError(f"{name} must be a JSON object of texts; got {text[:80]!r}.")
    return found


def _read(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.casefold() in (*_TRUE, *_FALSE):
            return text.casefold() in _TRUE
        raise StudyError(f"{name} is yes or no; got {text!r}.")
    try:
        return kind(text)
    except ValueError:
        wanted = f"one of {', '.join(kind)}" if issubclass(kind, StrEnum) else _NUMBERS[kind]
        raise StudyError(f"{name} must be {wanted}; got {text!r}.") from None


_NUMBERS = {int: "a whole number", float: "a number"}


def table() -> str:
    """All settings with their defaults, one a line."""
    lines = []
    for one in fields(StudySpec):
        if one.name in HELP:
            # Settings that must be given have none, and others an empty one.
            usual = one.default if isinstance(one.default, (bool, int, float, str)) else ""
            words = "" if usual == "" else f" (default {usual})"
            lines.append(f"{one.name}: {HELP[one.name]}{words}")
    return "\n\n".join(lines)
