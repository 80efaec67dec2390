"""The settings of a study as fields of a form: which step asks for them, and what may stand there.

A setting that no step names is asked for among the further ones of the second step, so that a new
one needs no line here.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from types import NoneType
from typing import Any, get_args, get_type_hints

from annotation.errors import StudyError
from annotation.spec import (
    MAX_LIST_SIZE,
    USUAL_TASK,
    Distractors,
    HeadlineRule,
    Lists,
    StudySpec,
    View,
    headlines,
)
from annotation.study.protocols import LEAST_LEASE
from annotation.study.setting_texts import as_text
from annotation.tasks import KINDS

STEPS = ("pictures", "question", "people", "review")
CHOICES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "task": tuple((kind.choice, name) for name, kind in KINDS.items()),
    "headline": (
        ("Majority: more than half recognise it", HeadlineRule.MAJORITY),
        ("Mean response: share of votes that recognise it", HeadlineRule.MEAN_RESPONSE),
        ("Ignoring none: share among votes that name a class", HeadlineRule.IGNORING_NONE),
        (
            "As original named: what most call the original (needs “Name the originals too”)",
            HeadlineRule.AS_ORIGINAL_NAMED,
        ),
        ("Dawid-Skene: annotators weighted by reliability", HeadlineRule.DAWID_SKENE),
        ("Mean rating: what ratings are averaged to", HeadlineRule.MEAN_RATING),
    ),
    "distractors": (
        ("Balanced: every word on about as many lists", Distractors.BALANCED),
        ("Top: an independent classifier's likeliest words", Distractors.TOP),
    ),
    "lists": (
        ("All items of an original, as in the paper", Lists.ORIGINAL),
        ("Each item: wrong words drawn anew", Lists.ITEM),
    ),
    "rating_levels": (("1 to 4", "4"), ("1 to 5", "5")),
    "view": (
        ("Smooth, and small beside it", View.SMOOTH_AND_SMALL),
        ("Smooth", View.SMOOTH),
        ("Squares: pixels stay squares", View.SQUARES),
    ),
}
# What a number may be, where its name does not tell: least, most, step.
_LIMITS: Mapping[str, tuple[float, float | None, float]] = {
    "list_size": (2, MAX_LIST_SIZE, 1),
    "decoy_rate": (0, 1, 0.05),
    "rating_threshold": (1, 5, 0.25),
    "votes_per_item": (1, 100, 1),
    "lease_seconds": (LEAST_LEASE, None, 1),
    "min_rt_ms": (0, 5000, 1),
    "image_scale": (0, 64, 1),
    "check_attempts": (1, 10, 1),
    "seed": (0, 2**31 - 1, 1),
}
# Where a form starts from another value than the specification does.
STARTS: Mapping[str, Any] = {"decoy_rate": 0.5}  # pairs without decoys have all the same answer
_LONG = {"consent", "instructions"}
_NAMED = {"texts", "class_names"}
_ELSEWHERE = {"task", "simulated"}  # asked otherwise, and made in a terminal
# Setting that means something in one task only → that task.
ONLY_OF = {setting: name for name, kind in KINDS.items() for setting in kind.only}


@dataclass(frozen=True, kw_only=True)
class Field:
    """One setting on the form.

    kind: choice, switch, number, text, long, named (texts by name) or secret. usual: its default
    as text. only: the task in which it means something, "" for any. limits: least, most and step
    of a number. term: the word of the glossary that explains it, or "".
    """

    name: str
    label: str
    text: str
    kind: str
    usual: str
    start: str
    only: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    limits: tuple[float, float | None, float] = (0, None, 1)
    empty: bool = False
    term: str = ""

    @property
    def usual_words(self) -> str:
        """Its default, as a person reads it; "" where that is an empty text."""
        named = {value: label for label, value in self.choices}
        if self.kind == "number" and not self.usual:
            return "no limit"
        return named.get(self.usual, self.usual).split(":")[0]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of making a study: what everybody is asked, and the rest in groups."""

    name: str
    asked: tuple[Field, ...] = ()
    more: Mapping[str, tuple[Field, ...]] = field(default_factory=dict)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All settings it asks for."""
        return (*self.asked, *(one for group in self.more.values() for one in group))


_ASKED: Mapping[str, tuple[str, ...]] = {
    "question": (
        "title",
        "list_size",
        "decoy_rate",
        "rating_levels",
        "rating_lowest",
        "rating_highest",
    ),
    "people": ("votes_per_item", "max_views", "items_per_person", "password"),
    "review": ("name",),
}
OTHERS = "Words"
_MORE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "pictures": {"Which of them": ("set_aside", "seed")},
    "question": {
        "Answers": (
            "distractors",
            "lists",
            "rating_threshold",
            "original_first_ms",
            "headline",
            "label_originals",
            "extra_vote",
        ),
        "On screen": ("view", "image_scale", "background"),
        OTHERS: (),
    },
    "people": {
        "Who sees what": ("balanced", "min_lag", "lease_seconds", "min_rt_ms"),
        "Are they looking?": (
            "practice",
            "catch_rate",
            "catch_warn_after",
            "catch_pause_after",
            "gold_rate",
            "repeat_rate",
            "repeat_lag",
        ),
        "Before and after": (
            "consent",
            "instructions",
            "check",
            "check_attempts",
            "completion_code",
            "completion_url",
            "framed_by",
        ),
    },
}


def steps() -> tuple[Step, ...]:
    """The four steps with all settings that a page can make."""
    every = {one.name: _field(one) for one in fields(StudySpec) if one.name not in _ELSEWHERE}
    groups = [*_ASKED.values(), *(one for more in _MORE.values() for one in more.values())]
    named = {name for names in groups for name in names}
    rest = tuple(one for name, one in every.items() if one is not None and name not in named)
    found = []
    for step in STEPS:
        asked = tuple(one for name in _ASKED.get(step, ()) if (one := every.get(name)))
        more = {
            title: tuple(one for name in names if (one := every.get(name)))
            + (rest if title == OTHERS else ())
            for title, names in _MORE.get(step, {}).items()
        }
        kept = {title: group for title, group in more.items() if group}
        found.append(Step(name=step, asked=asked, more=kept))
    return tuple(found)


_TYPES = get_type_hints(StudySpec)
_LIMITLESS = {name for name, kind in _TYPES.items() if kind == int | None}


def _field(setting: Any) -> Field | None:
    """The field for a setting; None where it is no single value."""
    kinds = get_args(_TYPES[setting.name]) or (_TYPES[setting.name],)
    kind = next(one for one in kinds if one is not NoneType)
    if not isinstance(kind, type) or not issubclass(kind, bool | int | float | str):
        return None
    usual = "" if setting.default is MISSING else as_text(_plain(setting.default))
    start = STARTS.get(setting.name)
    return Field(
        name=setting.name,
        label=setting.metadata["label"],
        text=setting.metadata["text"],
        kind=_kind(setting.name, kind),
        usual=usual,
        start=usual if start is None else as_text(start),
        only=ONLY_OF.get(setting.name, ""),
        choices=_choices(setting.name, kind),
        limits=_LIMITS.get(setting.name, (0, 0.5, 0.01) if kind is float else (0, None, 1)),
        empty=NoneType in kinds,
        term=setting.metadata["term"],
    )


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value


def _kind(name: str, kind: type) -> str:
    if name in CHOICES or issubclass(kind, StrEnum):
        return "choice"
    if kind is bool:
        return "switch"
    if name == "password":
        return "secret"
    if name in _NAMED:
        return "named"
    if name in _LONG:
        return "long"
    return "text" if kind is str else "number"


def _choices(name: str, kind: type) -> tuple[tuple[str, str], ...]:
    if name in CHOICES:
        return tuple((label, str(value)) for label, value in CHOICES[name])
    if issubclass(kind, StrEnum):
        return tuple((one.value.replace("-", " ").capitalize(), one.value) for one in kind)
    return ()


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
