"""Recognition: one picture, and which of up to twenty classes it shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from annotation.tasks.kind import NONE, Key, Kind, Question
from semsim.base.alike import alike, called

_CHECK = (
    Question(
        name="nothing",
        text="You can make nothing out in a picture. What do you do?",
        options=(
            ("cannot", "I choose “I can’t make it out”."),
            ("any", "I choose any word, to get on."),
            ("leave", "I close the page."),
        ),
        right="cannot",
        reminder="Some pictures are so damaged that nothing can be seen. They are part of the "
        "study, and there is an answer for them.",
    ),
    Question(
        name="guess",
        text="You are not sure, but something in the picture suggests one of the words. What do "
        "you do?",
        options=(
            ("word", "I give that word."),
            ("none", "I answer none, since only certainty counts."),
            ("first", "I give the first word of the list."),
        ),
        right="word",
        reminder="Nobody is sure all the time. See the rule about not being sure.",
    ),
    Question(
        name="none",
        text="What does the answer none mean?",
        options=(
            ("unseen", "I do not see any of these things in the picture."),
            ("again", "I want to see the picture again later."),
            ("bad", "The picture is not worth an answer, and I skip it."),
        ),
        right="unseen",
        reminder="None is an answer like any other. The picture counts as answered and does not "
        "come back.",
    ),
    Question(
        name="alone",
        text="A picture reminds you of one that you have answered before. How do you answer?",
        options=(
            ("itself", "By this picture alone."),
            ("same", "As I did before."),
            ("other", "Not as before, because every word comes up once."),
        ),
        right="itself",
        reminder="A word may be right often, or never. Earlier answers do not help with the next "
        "picture.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Recognition(Kind):
    """Choice among the classes of a list; the original is never shown; none is an answer."""

    name = "recognition"
    words = "recognition"
    choice = "Recognition: which of these classes is it?"
    question = "What do you see in the picture?"
    about = (
        "You will see small pictures, one after the other. Many are damaged. For each picture, "
        "choose the word for what you recognise in it, or none."
    )
    rules = (
        "If you recognise something, choose the button with its word.",
        "If none of the words fits, choose one of the two none buttons: “I can’t make it out” or "
        "“I see something else”. None is as good an answer as any word.",
        "You need not be sure. Choose a word if something in the picture suggests it. If you would "
        "only be guessing, choose none.",
        "Judge every picture by itself, whatever you answered before. A word may be right often, "
        "or never.",
        "Undo takes the last answer back.",
    )
    check = _CHECK
    only: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "list_size": "",
            "distractors": "",
            "lists": "",
            "label_originals": "Originals can be named, not compared with themselves; leave them "
            "out of another task.",
        }
    )
    lists = True
    simulated = True
    nothing = NONE
    truth = "class_name"
    truth_words = "class shown"
    caught = (("Clear", "clear original"), ("Noise", "noise"))

    @property
    def keys(self) -> tuple[Key, ...]:
        """None, for one of two reasons; classes take the block of keys."""
        return (
            Key(code="Space", answer=NONE, label="I can’t make it out", reason="cannot_make_out"),
            Key(code="KeyN", answer=NONE, label="I see something else", reason="not_in_list"),
        )

    def recognised(self, true_class: str, answer: str) -> bool:
        """Return whether the true class was named."""
        return alike(answer) == alike(true_class)

    def expected(self, class_name: str, *, differs: bool, clear: bool = True) -> str:
        """The class itself."""
        del differs, clear
        return class_name

    def problems(self, classes: Sequence[str]) -> list[str]:
        """A class called as an answer is, and too few classes to choose from."""
        problems = []
        if name := called([NONE], classes):
            problems.append(f"has a class called {name!r}, which is an answer; rename the class.")
        if len(classes) == 1:
            problems.append(
                f"has only the class {classes[0]!r}; there is nothing to choose from. Import it "
                "with a list of classes, or choose another task."
            )
        if not classes:
            problems.append(
                "names no classes, so there is nothing to choose from. Import it with a list or a "
                "table of classes, or choose another task."
            )
        return problems
