"""Rating: how much of an original a reconstruction beside or after it still shows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self

from annotation.tasks.kind import Key, Kind, Question, Scale

LONGEST_WORDS = 24  # letters on a button, of which a phone has five side by side
LONGEST_FIRST_MS = 10_000
_CHECK = (
    Question(
        name="nothing",
        text="You can make out nothing of the original in the second picture. What do you answer?",
        options=(
            ("lowest", "The lowest number."),
            ("middle", "A number in the middle, to be on the safe side."),
            ("leave", "Nothing; I close the page."),
        ),
        right="lowest",
        reminder="Pictures in which nothing can be seen are part of the study. See the rule about "
        "them.",
    ),
    Question(
        name="quality",
        text="The second picture is pale and blurred, but all of the original is there. What do "
        "you rate?",
        options=(
            ("content", "How much of the original I can make out."),
            ("beauty", "How good the second picture looks."),
            ("pixels", "How many points have changed."),
        ),
        right="content",
        reminder="The question is what can be made out, not how well it is shown.",
    ),
    Question(
        name="guess",
        text="You hesitate between two numbers. What do you do?",
        options=(
            ("likely", "I take the one that fits better what I see."),
            ("always", "I always take the lower one."),
            ("wait", "I wait until the picture gets clearer."),
        ),
        right="likely",
        reminder="Pictures stay as they are, and nobody is sure all the time. Decide by the "
        "pictures, each time anew.",
    ),
    Question(
        name="alone",
        text="You have given the same number five times in a row. How do you rate the next one?",
        options=(
            ("itself", "By these two pictures alone."),
            ("other", "With another number, because one must come by now."),
            ("same", "With the same number, as before."),
        ),
        right="itself",
        reminder="Any number may be right often, or never. Earlier answers do not help with the "
        "next pictures.",
    ),
)
_OWN = (
    *("rating_levels", "rating_threshold", "rating_lowest", "rating_highest"),
    "original_first_ms",
)
_ALONE = "The setting {} belongs to the rating task; leave it out or choose task rating."


@dataclass(frozen=True, kw_only=True)
class Rating(Kind):
    """Rating of how much of the original can be made out, from 1 to `levels`; the ends have names.

    Attributes:
        first_ms: For how long the original is shown before the reconstruction; 0 is beside it.
    """

    levels: int = 4
    threshold: float = 3.0
    lowest: str = "Nothing of it"
    highest: str = "All of it"
    first_ms: int = 0

    name = "rating"
    words = "rating"
    choice = "Rating: how much of the original can be made out?"
    question = "How much of the original can you make out?"
    about = (
        "You will see an original and a second picture made from it, often damaged. Choose one "
        "number each time: how much of the original can you make out in the second picture?"
    )
    rules = (
        "Compare the second picture with the original and choose a number. The meaning of the "
        "lowest and the highest number is on their buttons.",
        "Rate how much of the original can be made out, not how good the second picture looks.",
        "If you can make out nothing of the original, choose the lowest number. If nothing is "
        "missing, choose the highest.",
        "You need not be sure. Choose the number that fits best.",
        "Rate every picture by itself, whatever you answered before. Any number may be right "
        "often, or never.",
        "Undo takes the last answer back.",
    )
    check = _CHECK
    only: ClassVar[Mapping[str, str]] = MappingProxyType({one: _ALONE.format(one) for one in _OWN})
    beside = True
    decides = "mean rating"
    headline = "mean-rating"
    nothing = "1"
    truth = "model"
    truth_words = "target model"
    answers_words = "Ratings by target model"
    caught = (("Clear", "original beside itself"), ("Noise", "noise"))

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """With the scale that the study has."""
        return cls(
            levels=settings["rating_levels"],
            threshold=settings["rating_threshold"],
            lowest=settings["rating_lowest"].strip(),
            highest=settings["rating_highest"].strip(),
            first_ms=settings["original_first_ms"],
        )

    @property
    def keys(self) -> tuple[Key, ...]:
        """A number each, on the key of that number."""
        ends = {1: self.lowest, self.levels: self.highest}
        return tuple(
            Key(
                code=f"Digit{number}",
                answer=str(number),
                label=f"{number}: {ends[number]}" if number in ends else str(number),
            )
            for number in range(1, self.levels + 1)
        )

    @property
    def scale(self) -> Scale:
        """From the lowest rating to the highest."""
        return Scale(levels=self.levels, threshold=self.threshold)

    @property
    def terms(self) -> tuple[str, ...]:
        """The scale, the threshold, and when the original is seen."""
        seen = f"{self.first_ms} ms before" if self.first_ms else "beside"
        return (
            f"rated from 1 ({self.lowest}) to {self.levels} ({self.highest})",
            f"recognised from a mean rating of {self.threshold:g} on, undecided while missing "
            "votes could change that",
            f"the original shown {seen} the reconstruction",
        )

    def recognised(self, true_class: str, answer: str) -> bool:
        """Return whether one rating alone is at or above the threshold."""
        del true_class
        return int(answer) >= self.threshold

    def expected(self, class_name: str, *, differs: bool, clear: bool = True) -> str | None:
        """Return the highest rating for an original, and None for a reconstruction."""
        del class_name, differs
        return str(self.levels) if clear else None

    @property
    def near(self) -> Mapping[str, tuple[str, ...]]:
        """The ratings beside each known one; all of a picture in itself is not to be missed."""
        return {
            str(known): tuple(str(n) for n in (known - 1, known + 1) if n)
            for known in range(1, self.levels)
        }

    def flaws(self) -> Iterator[str]:
        """A scale that is none, and words that no button holds."""
        if self.levels not in (4, 5):
            yield f"Ratings go from 1 to 4 or from 1 to 5; got {self.levels} levels."
        if not 1 < self.threshold <= self.levels:
            yield (
                f"The threshold of ratings must be above 1 and at most {self.levels}; got "
                f"{self.threshold:g}."
            )
        for words in (self.lowest, self.highest):
            if not 1 <= len(words) <= LONGEST_WORDS:
                yield (
                    f"The ends of the scale are called by 1 to {LONGEST_WORDS} letters; got "
                    f"{words!r}."
                )
