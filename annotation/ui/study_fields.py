"""The settings of a study as fields of a form: which step asks for them, and what may stand there.

All of it follows from what `StudySpec` says of each.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from annotation.errors import StudyError
from annotation.spec import USUAL_TASK, Choice, StudySpec, headlines
from annotation.study.setting_texts import as_text
from annotation.tasks import KINDS

STEPS = ("pictures", "question", "people", "review")
# Setting that means something in one task only → that task.
ONLY_OF = {setting: name for name, kind in KINDS.items() for setting in kind.only}
_TYPES = get_type_hints(StudySpec)
_LIMITLESS = {name for name, kind in _TYPES.items() if kind == int | None}


@dataclass(frozen=True, kw_only=True)
class Field:
    """One setting on the form.

    label, text, term, choices, limits: as `annotation.spec.About`. kind: choice, switch, number,
    text, long, named (texts by name) or secret. usual: its default as text; start: what stands
    there first. only: the task in which it means something, "" for any. empty: whether it may be.
    """

    name: str
    label: str
    text: str
    term: str
    kind: str
    usual: str
    start: str
    only: str
    choices: Sequence[tuple[str, str]]
    limits: tuple[float, float | None, float]
    empty: bool

    @property
    def usual_words(self) -> str:
        """Its default, as a person reads it; "" where that is an empty text."""
        named = {value: label for label, value in self.choices}
        if self.kind == "number" and not self.usual:
            return "no limit"
        return named.get(self.usual, self.usual).split(":")[0]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of making a study: what every researcher is asked, and the rest by group title."""

    name: str
    asked: Sequence[Field]
    more: Mapping[str, Sequence[Field]]

    @property
    def fields(self) -> tuple[Field, ...]:
        """All settings it asks for."""
        return (*self.asked, *(one for group in self.more.values() for one in group))


def steps() -> tuple[Step, ...]:
    """The four steps with all settings that a page can make."""
    groups: dict[str, dict[str, list[Field]]] = {step: {} for step in STEPS}
    for one in dataclasses.fields(StudySpec):
        if one.metadata["at"]:
            step, title = one.metadata["at"]
            groups[step].setdefault(title, []).append(_field(one))
    return tuple(
        Step(name=step, asked=found.pop("", ()), more=found) for step, found in groups.items()
    )


def _field(one: dataclasses.Field) -> Field:
    said, kinds = one.metadata, get_args(_TYPES[one.name]) or (_TYPES[one.name],)
    usual = "" if one.default is MISSING else as_text(one.default)
    named = [(each.label, each.value) for each in kinds[0]] if issubclass(kinds[0], Choice) else ()
    choices, empty = said["choices"] or named, NoneType in kinds
    least, most, step = said["limits"]
    return Field(
        name=one.name,
        label=said["label"],
        text=said["text"],
        term=said["term"],
        kind="choice" if choices else _kind(one, kinds[0]),
        usual=usual,
        start=usual if said["start"] is None else as_text(said["start"]),
        only=ONLY_OF.get(one.name, ""),
        choices=choices,
        limits=(0 if empty else least, most, step),  # 0 stands for no limit
        empty=empty,
    )


def _kind(one: dataclasses.Field, of: type) -> str:
    if get_origin(_TYPES[one.name]) is Mapping:
        return "named"
    if of is str:
        return one.metadata["kind"] or "text"
    return "switch" if of is bool else "number"


def scores_of() -> dict[str, list[str]]:
    """The human scores that a study may have, by task."""
    return {name: [rule.value for rule in headlines(name)] for name in KINDS}


def without_others(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` without those that mean nothing in their task; where 0 means no limit, without."""
    task = settings.get("task", USUAL_TASK)
    meant = {name: value for name, value in settings.items() if ONLY_OF.get(name, task) == task}
    return {
        name: None if name in _LIMITLESS and value == 0 else value for name, value in meant.items()
    }


def problems_by_step(settings: Mapping[str, Any], error: StudyError) -> dict[str, list[str]]:
    """Each problem of `error`, which `settings` raise, under the step it goes away with.

    A step is asked by taking all of its settings as they usually are.
    """
    found: dict[str, list[str]] = {}
    left = str(error).splitlines()
    for step in reversed(steps()):
        names = {one.name for one in step.fields}
        usual = {"name": "-"} if "name" in names else {}
        kept = {name: value for name, value in settings.items() if name not in names} | usual
        still = _problems(kept)
        gone = [line for line in left if line not in still]
        if gone:
            found[step.name] = gone
        left = [line for line in left if line in still]
    if left:
        found.setdefault("question", []).extend(left)
    return found


def _problems(settings: Mapping[str, Any]) -> list[str]:
    try:
        StudySpec(**settings)
    except StudyError as error:
        return str(error).splitlines()
    return []
