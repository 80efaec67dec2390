"""Pair: an original beside a reconstruction, and whether both show the same subject."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from annotation.tasks.kind import Key, Kind, Question

SAME = "same"
DIFFERENT = "different"
_CHECK = (
    Question(
        name="nothing",
        text="You can make nothing out in one of the two pictures. What do you answer?",
        options=(
            ("different", "Different."),
            ("same", "Same."),
            ("leave", "Nothing; I close the page."),
        ),
        right="different",
        reminder="Pictures in which nothing can be seen are part of the study. See the rule about "
        "them.",
    ),
    Question(
        name="guess",
        text="You are not sure whether both show the same subject. What do you do?",
        options=(
            ("likely", "I choose the answer that seems more likely."),
            ("always", "I always answer the same way when I am not sure."),
            ("wait", "I wait until the picture gets clearer."),
        ),
        right="likely",
        reminder="Pictures stay as they are, and nobody is sure all the time. Decide by the "
        "pictures, in each pair anew.",
    ),
    Question(
        name="same",
        text="What does the answer same mean?",
        options=(
            ("subject", "Both show the same subject, even if one is damaged."),
            ("pixels", "Both are alike in every point."),
            ("colours", "Both have about the same colours."),
        ),
        right="subject",
        reminder="The question is what the pictures show, not how well they show it.",
    ),
    Question(
        name="alone",
        text="You have answered same five times in a row. How do you answer the next pair?",
        options=(
            ("itself", "By this pair alone."),
            ("different", "Different, because it must come by now."),
            ("same", "Same, as before."),
        ),
        right="itself",
        reminder="Either answer may be right often, or never. Earlier answers do not help with the "
        "next pair.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Pair(Kind):
    """Do both show the same? Decoys set an original beside the reconstruction of another one."""

    name = "pair"
    words = "pair (same or different)"
    choice = "Pair: do both show the same?"
    question = "Do both pictures show the same subject?"
    about = (
        "You will see two pictures side by side. The right one is often damaged. For each pair, "
        "answer whether both show the same subject."
    )
    rules = (
        "Compare what the two pictures show: is it the same subject, or a different one?",
        "The same subject may be damaged, paler or blurred in one picture. The answer is still "
        "same.",
        "If you can make nothing out in one picture, answer different: you do not recognise the "
        "subject there.",
        "You need not be sure. Choose the answer that seems more likely.",
        "Judge every pair by itself, whatever you answered before. Either answer may be right "
        "often, or never.",
        "Undo takes the last answer back.",
    )
    check = _CHECK
    only: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "decoy_rate": "Decoys belong to the pair task; set the decoy rate to 0 or choose task "
            "pair.",
        }
    )
    beside = True
    binary = True
    decoys = True
    nothing = DIFFERENT
    truth = "kind"
    truth_words = "what was shown"
    answers_words = "Answers to matches and decoys"
    caught = (("Same", "the same"), ("Different", "different"))

    @property
    def keys(self) -> tuple[Key, ...]:
        """Same and different, on the keys under the index fingers."""
        return (
            Key(code="KeyF", answer=SAME, label="Same"),
            Key(code="KeyJ", answer=DIFFERENT, label="Different"),
        )

    def recognised(self, true_class: str, answer: str) -> bool:
        """Return whether both were taken for the same."""
        del true_class
        return answer == SAME

    def expected(self, class_name: str, *, differs: bool, clear: bool = True) -> str:
        """Same, but for what stands beside another label's original."""
        del class_name, clear
        return DIFFERENT if differs else SAME
