"""Interface of a kind of task; all other code asks it and names none."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self

from semsim.base import alike

NONE = alike.NONE


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question on the instructions: `options` are (name, text), `right` names the right one.

    `reminder` explains the matter to an annotator who got it wrong, without pointing at an option.
    """

    name: str
    text: str
    options: tuple[tuple[str, str], ...]
    right: str
    reminder: str


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key of the labelling page: its usual code on the keyboard, and the answer it gives."""

    code: str
    answer: str
    label: str
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Answers that are numbers from 1 to `levels`; a mean of `threshold` or more is recognised."""

    levels: int
    threshold: float


@dataclass(frozen=True, kw_only=True)
class Kind(ABC):
    """A kind of task, with the settings of a study that it goes by as its fields.

    Attributes:
        words, choice: What it is called in a sentence, and in a list to choose from.
        question: What stands above the answers.
        about: What people read before they join.
        rules: What every annotator is to know before the first answer.
        check: Questions on that.
        only: Settings of a study that mean something to this kind alone, and what to say of others
            that have one; empty: they pass over it.
        lists: Whether an item offers classes of a list drawn for its original.
        beside: Whether the original is shown with the reconstruction, to compare the two.
        binary: Whether an answer says no more than recognised or not.
        decoys: Whether an item may set an original beside something else.
        simulated: Whether what a classifier sees shows what an annotator might answer.
        decides: What of its votes decides whether an item is recognised.
        headline: The human score of all its studies; None: one of those of yes and no.
        nothing: The answer to noise.
        truth: The column of votes that says what was shown; truth_words.
        answers_words: What a table of answers by `truth` is called.
        caught: What clear catch trials and those of noise are called, short and long.
    """

    name: ClassVar[str]
    words: ClassVar[str]
    choice: ClassVar[str]
    question: ClassVar[str]
    about: ClassVar[str]
    rules: ClassVar[tuple[str, ...]]
    check: ClassVar[tuple[Question, ...]]
    only: ClassVar[Mapping[str, str]] = MappingProxyType({})
    lists: ClassVar[bool] = False
    beside: ClassVar[bool] = False
    binary: ClassVar[bool] = False
    decoys: ClassVar[bool] = False
    simulated: ClassVar[bool] = False
    decides: ClassVar[str] = "majority"
    headline: ClassVar[str | None] = None
    nothing: ClassVar[str]
    truth: ClassVar[str]
    truth_words: ClassVar[str]
    answers_words: ClassVar[str] = ""
    caught: ClassVar[tuple[tuple[str, str], tuple[str, str]]]

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The kind as a study with these settings, by name, has it."""
        del settings
        return cls()

    @property
    @abstractmethod
    def keys(self) -> tuple[Key, ...]:
        """The answers that every item offers, in the order of the screen."""

    @property
    def first_ms(self) -> int:
        """For how long the original is shown before the reconstruction; 0 is never."""
        return 0

    @property
    def scale(self) -> Scale | None:
        """Scale of answers that are numbers; None: they are right or wrong, a majority decides."""
        return None

    @property
    def terms(self) -> tuple[str, ...]:
        """Phrases on what the settings make of the task, one thing each."""
        return ()

    @property
    def near(self) -> Mapping[str, tuple[str, ...]]:
        """Other answers that pass for a known one, by that one."""
        return {}

    @property
    def has_none(self) -> bool:
        """True if an annotator may answer that they see none of what is offered."""
        return any(key.answer == NONE for key in self.keys)

    def offered(self, candidates: Sequence[str] | None) -> tuple[str, ...]:
        """Return the answers that an item with these candidates allows, each once."""
        return (*(candidates or ()), *dict.fromkeys(key.answer for key in self.keys))

    @abstractmethod
    def recognised(self, true_class: str, answer: str) -> bool:
        """Return whether `answer` means that the original was recognised."""

    @abstractmethod
    def expected(self, class_name: str, *, differs: bool, clear: bool = True) -> str | None:
        """The answer to a picture of a class; `differs` where its original is another's.

        Args:
            clear: Whether it is an original, as it is. None where the answer cannot be known.
        """

    def passes(self, expected: str, answer: str) -> bool:
        """Return whether `answer` is right where `expected` is known."""
        return answer == expected or answer in self.near.get(expected, ())

    def flaws(self) -> Iterable[str]:
        """Return what is wrong with the settings it goes by."""
        return ()

    def problems(self, classes: Sequence[str]) -> list[str]:
        """Return why a set with these classes cannot be asked about: what follows its name."""
        del classes
        return []
