"""Settings that a researcher decides before a study starts, of which its protocol is made.

A setting is stated once, as a field of `StudySpec`; form, file, command line and sentences go by
`SETTINGS`, which has its type, its default and what it says `About` itself. Fields stand in the
order of the form.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import partial
from types import NoneType
from typing import Any, Self, get_args, get_origin, get_type_hints

from annotation.errors import StudyError
from annotation.tasks import KINDS
from annotation.tasks import USUAL_TASK as USUAL_TASK
from annotation.tasks import Task as Task
from annotation.tasks.kind import Kind
from annotation.tasks.rating import LONGEST_FIRST_MS
from annotation.tasks.wording import PLAIN, Wording, flaws, flaws_of_names
from annotation.texts import flaw, shortened
from semsim.base.words import voters_of

_SITE = re.compile(r"https://(\*\.)?[A-Za-z0-9.-]+(:\d+)?")
_UNTITLED = PLAIN("label.untitled")
MAX_LIST_SIZE = 20  # one key each on the 4 × 5 block of the keyboard
LONGEST_VOTER = 64  # letters: the names of its annotators have a number behind it
MOST = 2**31 - 1  # that a database counts to


class Choice(StrEnum):
    """One of a few values of a setting; `label` is what a form calls it."""

    label: str

    def __new__(cls, value: str, label: str = "") -> Self:
        """Return the member that is `value`."""
        made = str.__new__(cls, value)
        made._value_, made.label = value, label
        return made


class HeadlineRule(Choice):
    """Rule that makes votes the human score for metrics; fixed before the first vote."""

    MAJORITY = "majority", "Majority: more than half recognise it"
    MEAN_RESPONSE = "mean-response", "Mean response: share of votes that recognise it"
    IGNORING_NONE = "ignoring-none", "Ignoring none: share among votes that name a class"
    AS_ORIGINAL_NAMED = (
        "as-original-named",
        "As original named: what most call the original (needs “Name the originals too”)",
    )
    DAWID_SKENE = "dawid-skene", "Dawid-Skene: annotators weighted by reliability"
    ADJUSTED = "adjusted", "Adjusted: for the leniency of annotators; for ranks, not rates"
    # Of tasks whose answers are numbers, which have no other.
    MEAN_RATING = "mean-rating", "Mean rating: what ratings are averaged to"


def headlines(task: str) -> tuple[HeadlineRule, ...]:
    """The human scores that a study of this task may have, the usual one first."""
    own = KINDS[task].headline
    if own:
        return (HeadlineRule(own),)
    others = {kind.headline for kind in KINDS.values()}
    if not KINDS[task].lists:  # nothing is named
        others |= {HeadlineRule.AS_ORIGINAL_NAMED}
    return tuple(rule for rule in HeadlineRule if rule not in others)


class Distractors(Choice):
    """Rule that draws the wrong words of a candidate list (annotation.design.candidates)."""

    BALANCED = "balanced", "Balanced: every word on about as many lists"
    # As the paper has it; lists then tell more.
    TOP = "top", "Top: an independent classifier's likeliest words"


class Lists(Choice):
    """Items that offer the same candidate list."""

    ORIGINAL = "original", "All items of an original, as in the paper"
    ITEM = "item", "Each item: wrong words drawn anew"


class View(Choice):
    """Way in which image pixels become screen pixels; it changes what people recognise."""

    SQUARES = "squares", "Squares: pixels stay squares"
    SMOOTH = "smooth", "Smooth"
    SMOOTH_AND_SMALL = "smooth-and-small", "Smooth, and small beside it"


class Background(Choice):
    """Surroundings of an image on the labelling page."""

    GREY = "grey", "Grey"  # #808080, the same in light and dark
    BLACK = "black", "Black"
    WHITE = "white", "White"


@dataclass(frozen=True)
class About:
    """Facts of a setting beside its type and its default.

    Attributes:
        label: What pages call it.
        text: What it means.
        term: The word of the glossary that explains it.
        at: The step of the form that asks for it, and the title of its group there, "" for what
            every researcher is asked; None where no form asks.
        amendable: Whether it may change once a study exists.
        limits: Least, most and step of a number; a most of None is what a database counts to.
        choices: (label, value) of the few that it may be.
        kind: Of a text that is "long" or "secret".
        start: What a form begins with, None for the default.
    """

    label: str
    text: str
    term: str = ""
    at: tuple[str, str] | None = None
    amendable: bool = False
    limits: tuple[float, float | None, float] = (0, None, 1)
    choices: tuple[tuple[str, str], ...] = ()
    kind: str = ""
    start: Any = None


def setting(default: Any, label: str, text: str, term: str = "", **how: Any) -> Any:
    """A field of `StudySpec`, with what it is `About`; `dict` stands for an empty one."""
    usual = {"default_factory" if default is dict else "default": default}
    said = vars(About(label, text, term, **how))
    return field(**usual, repr=said["kind"] != "secret", metadata=said)


# A setting of a part of the form; most of what decides the items never changes.
_of_pictures = partial(setting, at=("pictures", "Selection"))
_of_question = partial(setting, at=("question", ""))
_of_answers = partial(setting, at=("question", "Answers"))
_on_screen = partial(setting, at=("question", "On screen"), amendable=True)
_of_words = partial(setting, dict, at=("question", "Words"))
_of_people = partial(setting, at=("people", ""))
_who_sees_what = partial(setting, at=("people", "Assignment"), amendable=True)
_are_they_looking = partial(setting, at=("people", "Attention checks"), amendable=True)
_before_and_after = partial(setting, at=("people", "Consent and completion"), amendable=True)
_rate = partial(_are_they_looking, limits=(0, 0.5, 0.01))


@dataclass(frozen=True, kw_only=True)
class StudySpec:
    """Settings that a researcher decides before a study starts; see `study.protocols` for changes.

    Raises `StudyError` for a value that no study can have.
    """

    name: str = field(metadata=vars(About("Name", "", at=("review", ""))))
    task: Task = field(metadata=vars(About("Task", "What people are asked.")))
    simulated: bool = setting(False, "Simulated", "Answered by simulated annotators only.")
    voter: str = setting(
        "",
        "A model in place of people (its name; empty: people)",
        "Name of the vision-language model that answers in place of people, as its endpoint has "
        "it. The study is then a simulated one.",
        "model as annotator",
        at=("people", "Assignment"),
    )

    set_aside: int = _of_pictures(
        0, "Originals set aside", "Originals kept out of the study, for practice and catch trials."
    )
    seed: int = _of_pictures(0, "Seed", "Decides lists, decoys, orders and quality items.")

    # Never the name, which may tell too much.
    title: str = _of_question(
        "",
        "Title for annotators",
        f'Shown to annotators in place of the name. Empty: "{_UNTITLED}".',
        amendable=True,
    )
    list_size: int = _of_question(
        MAX_LIST_SIZE,
        "Candidates per item",
        "Recognition: classes offered, the true one among them.",
        "candidate list",
        limits=(2, MAX_LIST_SIZE, 1),
    )
    # 0.5 is one decoy to two matched; pairs without decoys have all the same answer.
    decoy_rate: float = _of_question(
        0.0,
        "Decoys per matched item",
        "Pair: decoys per matched item.",
        "decoy",
        limits=(0, 1, 0.05),
        start=0.5,
    )
    rating_levels: int = _of_question(
        4,
        "Scale",
        "Rating: the highest number, 4 or 5; the lowest is 1.",
        choices=(("1 to 4", "4"), ("1 to 5", "5")),
    )
    rating_lowest: str = _of_question(
        "Nothing of it", "Name of the lowest", "Rating: meaning of the number 1."
    )
    rating_highest: str = _of_question(
        "All of it", "Name of the highest", "Rating: meaning of the highest number."
    )

    distractors: Distractors = _of_answers(
        Distractors.BALANCED,
        "Distractors",
        "Recognition: balanced, so that no list gives its answer away, or an independent "
        "classifier's likeliest.",
        "distractor model",
    )
    lists: Lists = _of_answers(
        Lists.ORIGINAL,
        "Share candidate lists across",
        "Recognition: one list for all items of an original (the paper) shows that they belong "
        "together; one list per item does not.",
        "no-image baseline",
    )
    rating_threshold: float = _of_answers(
        3.0,
        "Recognition threshold",
        "Rating: the mean rating from which an item counts as recognised.",
        "recognised",
        limits=(1, 5, 0.25),
    )
    original_first_ms: int = _of_answers(
        0,
        "Original first (ms; 0: together)",
        "Rating: milliseconds for which the original is shown before the reconstruction; 0 shows "
        "both together.",
        limits=(0, LONGEST_FIRST_MS, 1),
    )
    headline: HeadlineRule = _of_answers(
        HeadlineRule.MAJORITY,
        "Headline human score",
        "Human score that metrics are judged by.",
        "recognised",
    )
    label_originals: bool = _of_answers(
        False,
        "Name the originals too",
        "Recognition: people name the originals too, after all else of them; the headline score "
        "“as original named” needs it.",
    )
    # Where K are split as evenly as an odd K can be.
    extra_vote: bool = _of_answers(
        False, "A further vote on close items", "One vote more on items that are split 3 : 2."
    )

    view: View = _on_screen(
        View.SMOOTH_AND_SMALL,
        "View",
        "How image pixels become screen pixels. Usually smooth, with the small picture next to it: "
        "edges of large pixels hinder recognition (Harmon and Julesz 1973). A held key shows the "
        "other views; each vote records the views used.",
        choices=tuple((one.label, one.value) for one in reversed(View)),  # the usual one first
    )
    image_scale: int = _on_screen(
        0,
        "Most screen pixels per image pixel (0: all that fit)",
        "The most screen pixels an image pixel may take, in whole multiples; 0 is as many as fit.",
        limits=(0, 64, 1),
    )
    background: Background = _on_screen(Background.GREY, "Background", "Colour around an image.")

    texts: Mapping[str, str] = _of_words(
        "Texts",
        "Texts in place of the usual ones, by name, for a study in another language. "
        "`semsim-studio study texts` lists them all.",
        amendable=True,
    )
    class_names: Mapping[str, str] = _of_words(
        "Shown names of classes",
        "Shown to annotators in place of a class's name; answers are kept under that name.",
    )

    votes_per_item: int = _of_people(
        5, "Votes per item (K)", "K, the annotators who answer each item.", limits=(1, 100, 1)
    )
    quiet_looks: int = _of_people(
        0,
        "Quiet looks before an early end (0: no rule)",
        "Looks in a row, one each 5% of the votes, that have to find the same bands of target "
        "models before the study may end; 0 is no rule. Results shows the state and ends "
        "nothing.",
        "band",
        limits=(0, 20, 1),
    )
    max_views: int | None = _of_people(
        None,
        "Most views of one original (empty: any)",
        "Items of one original that one person may see, gold items too; blind repeats come on "
        "top. Empty is any number.",
        "carry-over",
        limits=(1, None, 1),
        amendable=True,
    )
    items_per_person: int | None = _of_people(
        None,
        "Votes per person (empty: all)",
        "Votes after which somebody is done; empty is all there are.",
        limits=(1, None, 1),
        amendable=True,
    )
    # Kept only as a salted hash.
    password: str | None = _of_people(
        None, "Password (optional)", "Asked for when people join.", kind="secret"
    )

    balanced: bool = _who_sees_what(
        True,
        "Balanced order of target models",
        "Latin square: each annotator takes the target models in turn.",
        "target model",
        amendable=False,
    )
    min_lag: int = _who_sees_what(
        0,
        "Least lag between them",
        "Other items between two of one original, at least, gold items and repeats too.",
        "carry-over",
    )
    # A page renews its reservations every 30 seconds.
    lease_seconds: int = _who_sees_what(
        600,
        "Seconds of a reservation",
        "How long an item stays reserved for somebody who left.",
        limits=(60, None, 1),
    )
    min_rt_ms: int = _who_sees_what(
        150,
        "Too quick (ms)",
        "Milliseconds in which nobody can have looked: a sooner answer is not taken. 0 takes any.",
        limits=(0, 5000, 1),
    )

    # Items that never count (annotation.design.quality)
    practice: int = _are_they_looking(
        0, "Practice items", "Items with feedback before the study begins.", amendable=False
    )
    catch_rate: float = _rate(
        0.0, "Catch trials", "Catch trials per vote: clear originals, and noise."
    )
    catch_warn_after: int = _are_they_looking(
        2,
        "Warn after failed catch trials (0: never)",
        "Failed catch trials after which you are warned; 0 is never.",
    )
    catch_pause_after: int = _are_they_looking(
        0,
        "Pause after failed catch trials (0: never)",
        "Failed catch trials that pause somebody by itself; 0 is never.",
    )
    gold_rate: float = _rate(
        0.0,
        "Gold items",
        "Gold items per vote, reconstructions whose answer you gave; fewer where limits leave "
        "none.",
        "gold item",
    )
    repeat_rate: float = _rate(
        0.05,
        "Blind repeats",
        "Blind repeats per vote; fewer where limits leave none.",
        "blind repeat",
    )
    repeat_lag: int = _are_they_looking(
        50,
        "Least lag of repeats",
        "Votes between an item and its repeat, at least.",
        "blind repeat",
    )

    # What people read (annotation.design.flow)
    consent: str = _before_and_after(
        "", "Consent", "Text people agree to; empty leaves the step out.", kind="long"
    )
    instructions: str = _before_and_after(
        "", "Instructions", "Text people read first; empty takes the usual one.", kind="long"
    )
    check: bool = _before_and_after(
        False,
        "Ask about the instructions",
        "Questions on the instructions before the study begins.",
    )
    check_attempts: int = _before_and_after(
        2, "Attempts", "Attempts at these questions.", limits=(1, 10, 1)
    )
    completion_code: str = _before_and_after(
        "", "Completion code", "Code told at the end; empty gives everybody one of their own."
    )
    completion_url: str = _before_and_after(
        "", "Completion address", "Where people go on to at the end; {code} stands for the code."
    )
    framed_by: str = _before_and_after(
        "",
        "Sites that may frame it",
        "Sites, spaces between, that may show the study inside a page of theirs, such as "
        "https://worker.mturk.com. Empty: none may, and only the link works.",
    )

    def __post_init__(self) -> None:
        for name, one in SETTINGS.items():
            if issubclass(one.of, StrEnum):
                object.__setattr__(self, name, one.of(getattr(self, name)))
        if self.voter:
            object.__setattr__(self, "simulated", True)
        if self.headline is HeadlineRule.MAJORITY:  # which stands for the usual one
            object.__setattr__(self, "headline", headlines(self.task)[0])
        problems = [message for wrong, message in self._checks() if wrong]
        if problems:
            raise StudyError("\n".join(problems))

    @property
    def kind(self) -> Kind:
        """Kind of question that people are asked, as these settings have it."""
        return KINDS[self.task].of(vars(self))

    @property
    def wording(self) -> Wording:
        """The words annotators read."""
        return Wording(own=self.texts, classes=self.class_names)

    @property
    def voters(self) -> str:
        """Value of the column `voter` of tables: people, jury, or a model."""
        return voters_of(self.simulated, self.voter)

    @property
    def mark(self) -> str:
        """Mark of votes that are no people's, in a word or two; "" for those of people."""
        by = f"votes of {self.voter}" if self.voter else "simulated"
        return by if self.simulated else ""

    @property
    def shown_title(self) -> str:
        """Title of the study that annotators read."""
        return self.title or self.wording("label.untitled")

    def _checks(self) -> Iterable[tuple[bool, str]]:
        yield not self.name.strip(), "A study needs a name; got an empty one."
        yield (
            bool(self.voter) and bool(flaw(self.voter) or len(self.voter) > LONGEST_VOTER),
            f"The name of a model has 1 to {LONGEST_VOTER} letters, none of them a control "
            f"character; got {shortened(self.voter)}.",
        )
        yield from self._checks_of_numbers()
        yield (
            self.extra_vote and self.votes_per_item % 2 == 0,
            "An extra vote settles nothing where the number of votes is even; got "
            f"{self.votes_per_item} votes per item.",
        )
        yield from self._checks_of_task()
        yield self.password == "", "An empty password protects nothing; leave it out instead."
        yield (
            bool(self.completion_url) and not self.completion_url.startswith("https://"),
            f"The completion address must start with https://; got {self.completion_url!r}.",
        )
        yield (
            not all(map(_SITE.fullmatch, self.framed_by.split())),
            "Sites that may frame the study are addresses such as https://worker.mturk.com, "
            f"spaces between; got {self.framed_by!r}.",
        )
        yield from ((True, flaw) for flaw in flaws(self.texts))
        yield from ((True, flaw) for flaw in flaws_of_names(self.class_names))

    def _checks_of_numbers(self) -> Iterator[tuple[bool, str]]:
        flaws = [one.flaw(getattr(self, one.name)) for one in SETTINGS.values()]
        yield from ((True, flaw) for flaw in flaws if flaw)
        yield (
            self.set_aside == 0 and (self.practice > 0 or self.catch_rate > 0),
            "Practice and catch trials show originals that the study does not ask about; set "
            "some originals aside for them.",
        )

    def _checks_of_task(self) -> Iterator[tuple[bool, str]]:
        for name, kind in KINDS.items():
            for only, message in kind.only.items() if name != self.task else ():
                yield bool(message) and getattr(self, only) != SETTINGS[only].usual, message
        yield (
            self.headline not in headlines(self.task),
            f"The human score {self.headline.value} is none of the task {self.task}.",
        )
        yield (
            self.headline is HeadlineRule.AS_ORIGINAL_NAMED and not self.label_originals,
            f"The human score {self.headline.value} compares answers with what people say of the "
            "originals; let them name the originals too (label_originals).",
        )
        yield (
            self.lists is Lists.ITEM and self.distractors is Distractors.TOP,
            "The likeliest words of an original are the same for all its items. Where each item "
            "has a list of its own, wrong words are balanced, not the likeliest.",
        )
        yield from ((True, flaw) for flaw in self.kind.flaws())


@dataclass(frozen=True, kw_only=True)
class Setting(About):
    """A setting with its name and its type, as texts give it: a form, a file, a command line.

    Attributes:
        of: Its type, `Mapping` for texts by name.
        usual: Its default, `MISSING` where it must be given.
        empty: Whether it may be None, which an empty text stands for.
    """

    name: str
    of: Any
    usual: Any
    empty: bool

    def read(self, text: str) -> Any:
        """The value that `text` stands for; raises `StudyError`."""
        if self.of is Mapping:
            return self._named_texts(text)
        if self.empty and not text:
            return None
        if self.of is bool:
            if text.casefold() in (*_TRUE, *_FALSE):
                return text.casefold() in _TRUE
            raise StudyError(f"{self.name} is yes or no; got {text!r}.")
        try:
            return self.of(text)
        except ValueError:
            named = issubclass(self.of, StrEnum)
            wanted = f"one of {', '.join(self.of)}" if named else _NUMBERS[self.of]
            raise StudyError(f"{self.name} must be {wanted}; got {text!r}.") from None

    def flaw(self, value: Any) -> str:
        """Return why `value` is beyond the limits; "" where it is within them, or is no number."""
        least, most = self.limits[0], self.limits[1] or MOST
        if self.of not in (int, float) or value is None or least <= value <= most:
            return ""
        wanted = f"at least {least:,}" if value < least else f"at most {most:,}"
        return f"{self.label.partition(' (')[0]} must be {wanted}; got {value:,}."

    def _named_texts(self, text: str) -> dict[str, str]:
        wanted = f"{self.name} must be a JSON object"
        try:
            found = json.loads(text or "{}")
        except ValueError as error:
            raise StudyError(f"{wanted}; got {text[:80]!r} ({error}).") from None
        if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
            raise StudyError(f"{wanted} of texts; got {text[:80]!r}.")
        return found

    @property
    def task(self) -> str:
        """Task in which alone it means something, "" for any."""
        return next((name for name, kind in KINDS.items() if self.name in kind.only), "")

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """(label, value) of the few values that it may have; empty where there are many."""
        named = issubclass(self.of, Choice)
        return self.choices or (tuple((one.label, one.value) for one in self.of) if named else ())

    @property
    def widget(self) -> str:
        """Part of a form: choice, switch, number, text, long, named (texts by name) or secret."""
        if self.options:
            return "choice"
        widgets = {Mapping: "named", str: self.kind or "text", bool: "switch"}
        return widgets.get(self.of, "number")

    @property
    def bounds(self) -> tuple[float, float | None, float]:
        """Least, most and step of a number on a form, where 0 stands for no limit."""
        least, most, step = self.limits
        return (0 if self.empty else least, most, step)

    @property
    def begins(self) -> str:
        """Text with which a form begins."""
        return as_text(self.usual if self.start is None else self.start)

    @property
    def usual_words(self) -> str:
        """Its default, as a person reads it; "" where that is an empty text."""
        text, named = as_text(self.usual), {value: label for label, value in self.options}
        if self.widget == "number" and not text:
            return "no limit"
        return named.get(text, text).split(":")[0]


_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_NUMBERS = {int: "a whole number", float: "a number"}


def as_text(value: Any) -> str:
    """A setting's value as `Setting.read` reads it; "" for one that must be given."""
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False) if value else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None or value is MISSING else str(value)


def value_of(name: str, text: str) -> Any:
    """The value of the setting `name` that `text` stands for; raises `StudyError`."""
    known = [one for one in SETTINGS if one != "name"]
    if name not in known:
        raise StudyError(f"A study has no setting {name!r}. It has: {', '.join(known)}.")
    return SETTINGS[name].read(text)


def _settings() -> Iterator[Setting]:
    hints = get_type_hints(StudySpec)
    for one in fields(StudySpec):
        kinds = get_args(hints[one.name])
        named = get_origin(hints[one.name]) is Mapping
        of = Mapping if named else kinds[0] if kinds else hints[one.name]
        usual = one.default if one.default_factory is MISSING else one.default_factory()
        empty = NoneType in kinds
        yield Setting(name=one.name, of=of, usual=usual, empty=empty, **one.metadata)


SETTINGS: Mapping[str, Setting] = {one.name: one for one in _settings()}
