"""What a researcher decides before a study starts: the settings its protocol is made of."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from annotation.errors import StudyError
from annotation.tasks import KINDS
from annotation.tasks.kind import Kind
from annotation.tasks.wording import PLAIN, Wording, flaws
from annotation.texts import flaw_of_class
from semsim.base.alike import alike

_SITE = re.compile(r"https://(\*\.)?[A-Za-z0-9.-]+(:\d+)?")
_UNTITLED = PLAIN("label.untitled")
MAX_LIST_SIZE = 20  # one key each on the 4 × 5 block of the keyboard


if TYPE_CHECKING:

    class Task(StrEnum):
        """What people are asked about an item: the name of one of `tasks.KINDS`."""

else:
    Task = StrEnum("Task", {name.upper(): name for name in KINDS}, module=__name__)

USUAL_TASK = Task(next(iter(KINDS)))  # where nothing else is said


class HeadlineRule(StrEnum):
    """How votes become the human score that metrics are judged by; fixed before the first vote."""

    MAJORITY = "majority"  # more than half of the K votes recognised it
    MEAN_RESPONSE = "mean-response"  # the share of votes that recognised it
    IGNORING_NONE = "ignoring-none"  # that share among the votes that named a class
    AS_ORIGINAL_NAMED = "as-original-named"  # more than half name it as most name its original
    DAWID_SKENE = "dawid-skene"  # annotators weighted by how reliable they seem
    MEAN_RATING = "mean-rating"  # of tasks whose answers are numbers, which have no other


def headlines(task: str) -> tuple[HeadlineRule, ...]:
    """The human scores that a study of this task may have, the usual one first."""
    own = KINDS[task].headline
    if own:
        return (HeadlineRule(own),)
    others = {kind.headline for kind in KINDS.values()}
    if not KINDS[task].lists:  # nothing is named
        others |= {HeadlineRule.AS_ORIGINAL_NAMED}
    return tuple(rule for rule in HeadlineRule if rule not in others)


class Distractors(StrEnum):
    """How the wrong words of a candidate list are drawn (annotation.design.candidates)."""

    BALANCED = "balanced"  # every word on about as many lists as any other
    TOP = "top"  # the likeliest, as the paper has it; lists then tell more


class Lists(StrEnum):
    """Which items offer the same candidate list."""

    ORIGINAL = "original"  # all of one original, as the paper has it
    ITEM = "item"  # none: the wrong words are drawn anew for each


class View(StrEnum):
    """How image pixels become screen pixels; it changes what people recognise."""

    SQUARES = "squares"  # each pixel a square
    SMOOTH = "smooth"  # interpolated
    SMOOTH_AND_SMALL = "smooth-and-small"  # and the same small beside it


class Background(StrEnum):
    """What surrounds an image on the labelling page."""

    GREY = "grey"  # #808080, the same in light and dark
    BLACK = "black"
    WHITE = "white"


def words(label: str, text: str, term: str = "") -> Mapping[str, str]:
    """What a setting is called on a page, and what it means, in the metadata of its field.

    term: the word of the glossary that explains it, "" where it needs none.
    """
    return {"label": label, "text": text, "term": term}


def setting(default: Any, label: str, text: str, term: str = "", **of_field: Any) -> Any:
    """A field of `StudySpec` that has a default, and its `words`."""
    return field(default=default, metadata=words(label, text, term), **of_field)


@dataclass(frozen=True, kw_only=True)
class StudySpec:
    """What a researcher decides before a study starts; see `study.protocols` for changes.

    Raises `StudyError` for a value that no study can have.
    """

    name: str = field(metadata=words("Name", ""))
    task: Task = field(metadata=words("Task", "What people are asked."))
    # Never the name, which may tell too much.
    title: str = setting(
        "",
        "Title for annotators",
        f'What annotators see; they never see the name. Empty: "{_UNTITLED}".',
    )
    votes_per_item: int = setting(5, "Votes per item (K)", "K, the people who judge each item.")
    # Where K are split as evenly as an odd K can be.
    extra_vote: bool = setting(
        False, "A further vote on close items", "One vote more on items that are split 3 : 2."
    )
    list_size: int = setting(
        MAX_LIST_SIZE,
        "Candidates per item",
        "Recognition: classes offered, the true one among them.",
        "candidate list",
    )
    distractors: Distractors = field(
        default=Distractors.BALANCED,
        metadata=words(
            "Wrong words of a list",
            "Recognition: drawn so that no list tells its answer, or an independent classifier's "
            "likeliest.",
            "judge",
        ),
    )
    lists: Lists = field(
        default=Lists.ORIGINAL,
        metadata=words(
            "One list for",
            "Recognition: a list that all items of an original share (the paper) tells which "
            "pictures show the same; one of its own an item does not.",
            "guesser",
        ),
    )
    # 0.5 is one decoy to two matched.
    decoy_rate: float = setting(
        0.0, "Decoys per matched item", "Pair: decoys per matched item.", "decoy"
    )
    rating_levels: int = setting(4, "Scale", "Rating: the highest number, 4 or 5; the lowest is 1.")
    rating_threshold: float = setting(
        3.0,
        "Recognised from",
        "Rating: the mean rating from which an item counts as recognised.",
        "recognised",
    )
    rating_lowest: str = setting(
        "Nothing of it", "Name of the lowest", "Rating: what the number 1 stands for."
    )
    rating_highest: str = setting(
        "All of it", "Name of the highest", "Rating: what the highest number stands for."
    )
    original_first_ms: int = setting(
        0,
        "Original first (ms; 0: beside)",
        "Rating: milliseconds for which the original is shown before the reconstruction; 0 is "
        "beside it.",
    )
    headline: HeadlineRule = field(
        default=HeadlineRule.MAJORITY,
        metadata=words(
            "Headline human score", "Human score that metrics are judged by.", "recognised"
        ),
    )
    seed: int = setting(0, "Seed", "Decides lists, decoys, orders and quality items.")
    simulated: bool = setting(False, "Simulated", "Answered by simulated annotators only.")
    lease_seconds: int = setting(
        600, "Seconds of a reservation", "How long an item stays reserved for somebody who left."
    )
    # Kept only as a salted hash.
    password: str | None = setting(
        None, "Password (optional)", "Asked for when people join.", repr=False
    )
    min_rt_ms: int = setting(
        150,
        "Too quick (ms)",
        "Milliseconds in which nobody can have looked: a sooner answer is not taken. 0 takes any.",
    )

    # Who sees what (annotation.design.exposure)
    balanced: bool = setting(
        True,
        "Balanced order of target models",
        "Latin square: each annotator takes the target models in turn.",
        "target",
    )
    max_views: int | None = setting(
        None,
        "Most views of one original (empty: any)",
        "Items of one original that one person may see, gold items too; blind repeats come on "
        "top. Empty is any number.",
        "carry-over",
    )
    min_lag: int = setting(
        0,
        "Least lag between them",
        "Other items between two of one original, at least, gold items and repeats too.",
        "carry-over",
    )
    label_originals: bool = setting(
        False,
        "Name the originals too",
        "Recognition: people name the originals too, after all else of them; the headline score "
        "“as original named” needs it.",
    )
    items_per_person: int | None = setting(
        None,
        "Votes per person (empty: all)",
        "Votes after which somebody is done; empty is all there are.",
    )

    # Items that never count (annotation.design.quality)
    set_aside: int = setting(
        0, "Originals set aside", "Originals kept out of the study, for practice and catch trials."
    )
    practice: int = setting(0, "Practice items", "Items with feedback before the study begins.")
    catch_rate: float = setting(
        0.0, "Catch trials", "Catch trials per vote: clear originals, and noise."
    )
    catch_warn_after: int = setting(
        2,
        "Warn after failed catch trials (0: never)",
        "Failed catch trials after which you are warned; 0 is never.",
    )
    catch_pause_after: int = setting(
        0,
        "Pause after failed catch trials (0: never)",
        "Failed catch trials that pause somebody by itself; 0 is never.",
    )
    gold_rate: float = setting(
        0.0,
        "Gold items",
        "Gold items per vote, reconstructions whose answer you gave; fewer where limits leave "
        "none.",
        "gold item",
    )
    repeat_rate: float = setting(
        0.05,
        "Blind repeats",
        "Blind repeats per vote; fewer where limits leave none.",
        "blind repeat",
    )
    repeat_lag: int = setting(
        50,
        "Least lag of repeats",
        "Votes between an item and its repeat, at least.",
        "blind repeat",
    )

    # What people read (annotation.design.way)
    consent: str = setting("", "Consent", "Text people agree to; empty leaves the step out.")
    instructions: str = setting(
        "", "Instructions", "Text people read first; empty takes the usual one."
    )
    check: bool = setting(
        False,
        "Ask about the instructions",
        "Questions on the instructions before the study begins.",
    )
    check_attempts: int = setting(2, "Attempts", "Attempts at these questions.")
    completion_code: str = setting(
        "", "Completion code", "Code told at the end; empty gives everybody one of their own."
    )
    completion_url: str = setting(
        "", "Completion address", "Where people go on to at the end; {code} stands for the code."
    )

    framed_by: str = setting(
        "",
        "Sites that may frame it",
        "Sites, spaces between, that may show the study inside a page of theirs, such as "
        "https://worker.mturk.com. Empty: none may, and only the link works.",
    )

    # In which words (annotation.tasks.wording)
    texts: Mapping[str, str] = field(
        default_factory=dict,
        metadata=words(
            "Texts",
            "Texts in place of the usual ones, by name, for a study in another language. "
            "`semsim-studio study texts` lists them all.",
        ),
    )
    class_names: Mapping[str, str] = field(
        default_factory=dict,
        metadata=words(
            "Shown names of classes",
            "What annotators read in place of a class's name; answers are kept under that name.",
        ),
    )

    # What an image looks like on screen
    view: View = field(
        default=View.SMOOTH_AND_SMALL,
        metadata=words(
            "View",
            "How image pixels become screen pixels. Usually smooth, with the small picture beside "
            "it: the edges of large squares are not in the picture and hide what is (Harmon and "
            "Julesz 1973), and whoever wants to recognise something would not look at it so. A "
            "held key shows the other views; which were looked at is kept with each vote.",
        ),
    )
    image_scale: int = setting(
        0,
        "Most screen pixels per image pixel (0: all that fit)",
        "The most screen pixels an image pixel may take, in whole multiples; 0 is as many as fit.",
    )
    background: Background = field(
        default=Background.GREY, metadata=words("Background", "What surrounds an image.")
    )

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            object.__setattr__(self, name, kind(getattr(self, name)))
        if self.headline is HeadlineRule.MAJORITY:  # which stands for the usual one
            object.__setattr__(self, "headline", headlines(self.task)[0])
        problems = [message for wrong, message in self._checks() if wrong]
        if problems:
            raise StudyError("\n".join(problems))

    @property
    def kind(self) -> Kind:
        """What people are asked, as these settings have it."""
        return KINDS[self.task].of(vars(self))

    @property
    def wording(self) -> Wording:
        """The words annotators read."""
        return Wording(own=self.texts, classes=self.class_names)

    @property
    def shown_title(self) -> str:
        """What annotators are told the study is called."""
        return self.title or self.wording("label.untitled")

    def _checks(self) -> tuple[tuple[bool, str], ...]:
        return (
            *self._checks_of_items(),
            *self._checks_of_people(),
            *self._checks_of_quality(),
            *self._checks_of_words(),
        )

    def _checks_of_items(self) -> tuple[tuple[bool, str], ...]:
        return (
            (not self.name.strip(), "A study needs a name; got an empty one."),
            (
                not 1 <= self.votes_per_item <= 100,
                f"Votes per item must be 1 to 100; got {self.votes_per_item}.",
            ),
            (
                self.extra_vote and self.votes_per_item % 2 == 0,
                "An extra vote settles nothing where the number of votes is even; got "
                f"{self.votes_per_item} votes per item.",
            ),
            (
                not 2 <= self.list_size <= MAX_LIST_SIZE,
                f"The list size must be 2 to {MAX_LIST_SIZE}, a key each; got {self.list_size}.",
            ),
            (
                not 0 <= self.decoy_rate <= 1,
                f"The decoy rate must be 0 to 1 per matched item; got {self.decoy_rate}.",
            ),
            (
                not 0 <= self.image_scale <= 64,
                f"The image scale must be 1 to 64, or 0 for all that fits; got {self.image_scale}.",
            ),
            *self._checks_of_task(),
        )

    def _checks_of_task(self) -> Iterator[tuple[bool, str]]:
        usual = {one.name: one.default for one in fields(self)}
        for name, kind in KINDS.items():
            for setting, message in kind.only.items() if name != self.task else ():
                yield bool(message) and getattr(self, setting) != usual[setting], message
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

    def _checks_of_people(self) -> tuple[tuple[bool, str], ...]:
        return (
            (
                self.lease_seconds < 1,
                f"The lease must be at least 1 second; got {self.lease_seconds}.",
            ),
            (
                not 0 <= self.min_rt_ms <= 5000,
                f"The shortest time to an answer must be 0 to 5000 ms; got {self.min_rt_ms}.",
            ),
            (self.password == "", "An empty password protects nothing; leave it out instead."),
            (
                self.max_views is not None and self.max_views < 1,
                f"Views per original must be 1 or more; got {self.max_views}.",
            ),
            (self.min_lag < 0, f"The lag cannot be negative; got {self.min_lag}."),
            (
                self.items_per_person is not None and self.items_per_person < 1,
                f"Items per person must be 1 or more; got {self.items_per_person}.",
            ),
            (
                not 1 <= self.check_attempts <= 10,
                f"Attempts at the check must be 1 to 10; got {self.check_attempts}.",
            ),
            (
                bool(self.completion_url) and not self.completion_url.startswith("https://"),
                f"The completion address must start with https://; got {self.completion_url!r}.",
            ),
            (
                not all(map(_SITE.fullmatch, self.framed_by.split())),
                "Sites that may frame the study are addresses such as https://worker.mturk.com, "
                f"spaces between; got {self.framed_by!r}.",
            ),
        )

    def _checks_of_quality(self) -> tuple[tuple[bool, str], ...]:
        rates = {"catch": self.catch_rate, "gold": self.gold_rate, "repeat": self.repeat_rate}
        return (
            *(
                (not 0 <= rate <= 0.5, f"The {name} rate must be 0 to 0.5; got {rate}.")
                for name, rate in rates.items()
            ),
            (
                min(self.set_aside, self.practice, self.repeat_lag) < 0,
                "Numbers of originals, of practice items and of votes cannot be negative; got "
                f"{self.set_aside}, {self.practice} and {self.repeat_lag}.",
            ),
            (
                min(self.catch_warn_after, self.catch_pause_after) < 0,
                "Numbers of failed catch trials cannot be negative; 0 is never. Got "
                f"{self.catch_warn_after} and {self.catch_pause_after}.",
            ),
            (
                self.set_aside == 0 and (self.practice > 0 or self.catch_rate > 0),
                "Practice and catch trials show originals that the study does not ask about; set "
                "some originals aside for them.",
            ),
        )

    def _checks_of_words(self) -> Iterator[tuple[bool, str]]:
        yield from ((True, flaw) for flaw in flaws(self.texts))
        pairs = self.class_names.items() if isinstance(self.class_names, Mapping) else [(None,)]
        if not all(isinstance(one, str) for pair in pairs for one in pair):
            yield True, f"Shown names of classes are texts by class; got {self.class_names!r}."
            return
        shown = [alike(name) for name in self.class_names.values()]
        yield (
            len(set(shown)) < len(shown),
            "Two classes are shown under the same name; nobody could tell them apart.",
        )
        for name, words_of in self.class_names.items():
            flaw = flaw_of_class(words_of)
            yield bool(flaw), f"The shown name of the class {name!r}: {flaw}"


_KINDS = {
    one.name: one.type
    for one in fields(StudySpec)
    if isinstance(one.type, type) and issubclass(one.type, StrEnum)
}
