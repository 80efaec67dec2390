"""Settings of a study as text, as the command line and files give them."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import StrEnum
from types import NoneType
from typing import Any, get_args, get_type_hints

from annotation.errors import StudyError
from annotation.spec import UNTITLED, StudySpec

HELP: Mapping[str, str] = {
    "title": f'What annotators see; they never see the name. Empty: "{UNTITLED}".',
    "task": "What people are asked.",
    "votes_per_item": "K, the people who judge each item.",
    "extra_vote": "One vote more on items that are split 3 : 2.",
    "list_size": "Recognition: classes offered, the true one among them.",
    "decoy_rate": "Pair: decoys per matched item.",
    "headline": "Human score that metrics are judged by.",
    "seed": "Decides lists, decoys, orders and quality items.",
    "simulated": "Answered by simulated annotators only.",
    "lease_seconds": "How long an item stays reserved for somebody who left.",
    "min_rt_ms": "Milliseconds in which nobody can have looked: a sooner answer is not taken. "
    "0 takes any.",
    "password": "Asked for when people join.",
    "balanced": "Latin square: each annotator takes the target models in turn.",
    "max_views": "Items of one original that one person may see, gold items too; blind repeats "
    "come on top. Empty is any number.",
    "min_lag": "Other items between two of one original, at least, gold items and repeats too.",
    "label_originals": "Recognition: people name the originals too, after all else of them.",
    "items_per_person": "Votes after which somebody is done; empty is all there are.",
    "set_aside": "Originals kept out of the study, for practice and catch trials.",
    "practice": "Items with feedback before the study begins.",
    "catch_rate": "Catch trials per vote: clear originals, and noise.",
    "catch_warn_after": "Failed catch trials after which you are warned; 0 is never.",
    "catch_pause_after": "Failed catch trials that pause somebody by itself; 0 is never.",
    "gold_rate": "Gold items per vote, reconstructions whose answer you gave; fewer where limits "
    "leave none.",
    "repeat_rate": "Blind repeats per vote; fewer where limits leave none.",
    "repeat_lag": "Votes between an item and its repeat, at least.",
    "consent": "Text people agree to; empty leaves the step out.",
    "instructions": "Text people read first; empty takes the usual one.",
    "check": "Questions on the instructions before the study begins.",
    "check_attempts": "Attempts at these questions.",
    "completion_code": "Code told at the end; empty gives everybody one of their own.",
    "completion_url": "Where people go on to at the end; {code} stands for the code.",
    "image_scale": "Screen pixels per image pixel.",
    "interpolation": "How image pixels become screen pixels.",
    "background": "What surrounds an image.",
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
    kinds = get_args(hints[name]) or (hints[name],)
    if not text and NoneType in kinds:
        return None
    return _read(name, text, next(kind for kind in kinds if kind is not NoneType))


def as_text(value: Any) -> str:
    """A setting's value as `value_of` reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


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
    rows = [(one.name, one.default) for one in fields(StudySpec) if one.name in HELP]
    lines = []
    for name, default in rows:
        shown = "" if not isinstance(default, (bool, int, float, str)) or default == "" else default
        default_words = f" (default {shown})" if shown != "" else ""
        lines.append(f"{name}: {HELP[name]}{default_words}")
    return "\n\n".join(lines)
