"""The questions on the instructions, and which answers to them are wrong."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from annotation.domain import Task


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question: `options` are (name, text), `right` is the name of the right one.

    `reminder` explains the matter to somebody who got it wrong, without pointing at an option.
    """

    name: str
    text: str
    options: tuple[tuple[str, str], ...]
    right: str
    reminder: str


_RECOGNITION = (
    Question(
        name="nothing",
        text="You can make nothing out in a picture. What do you do?",
        options=(
            ("cannot", "I press the key for “I can’t make it out”."),
            ("any", "I press the key of any word, to get on."),
            ("leave", "I close the page."),
        ),
        right="cannot",
        reminder="Damaged pictures in which nothing can be seen are part of the study, and there "
        "is an answer for them.",
    ),
    Question(
        name="guess",
        text="You are not sure, but something in the picture speaks for one of the words. What do "
        "you do?",
        options=(
            ("word", "I give that word."),
            ("none", "I answer none, since only certainty counts."),
            ("first", "I give the first word of the list."),
        ),
        right="word",
        reminder="Nobody is sure all the time. The rule about not being sure tells which guesses "
        "are wanted and which are not.",
    ),
    Question(
        name="none",
        text="What does the answer none mean?",
        options=(
            ("unseen", "I do not see any of these things in the picture."),
            ("again", "I want to see the picture again later."),
            ("bad", "The picture is not worth an answer, and I pass over it."),
        ),
        right="unseen",
        reminder="None is an answer like any other. It does not put a picture off, and it does not "
        "leave it out.",
    ),
    Question(
        name="alone",
        text="A picture reminds you of one that you have answered before. How do you answer?",
        options=(
            ("itself", "By what I see in this picture alone."),
            ("same", "As I did before."),
            ("other", "Differently than before, as every word comes up once."),
        ),
        right="itself",
        reminder="How often a word is right is not fixed, and earlier answers say nothing about "
        "the next picture.",
    ),
)
_PAIR = (
    Question(
        name="nothing",
        text="You can make nothing out in one of the two pictures. What do you answer?",
        options=(
            ("different", "Different."),
            ("same", "Same."),
            ("leave", "Nothing; I close the page."),
        ),
        right="different",
        reminder="Pictures in which nothing can be seen are part of the study. The rule about them "
        "tells what to answer when you do not recognise the subject.",
    ),
    Question(
        name="guess",
        text="You are not sure whether both show the same subject. What do you do?",
        options=(
            ("likely", "I answer what seems more likely from what I see."),
            ("always", "I always answer the same way when I am not sure."),
            ("wait", "I wait until the picture gets clearer."),
        ),
        right="likely",
        reminder="Pictures stay as they are, and nobody is sure all the time. What you see should "
        "decide, in each pair anew.",
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
            ("itself", "By what I see in this pair alone."),
            ("different", "Different, as it is bound to come by now."),
            ("same", "Same, as before."),
        ),
        right="itself",
        reminder="How often an answer is right is not fixed, and earlier answers say nothing about "
        "the next pair.",
    ),
)
_QUESTIONS = {Task.RECOGNITION: _RECOGNITION, Task.PAIR: _PAIR}


def questions(task: Task, seed: int, person: str) -> tuple[Question, ...]:
    """The questions for one person, in an order of their own, options too; always the same."""
    digest = hashlib.sha256(f"check:{seed}:{person}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    asked = _QUESTIONS[task]
    return tuple(_shuffled(asked[i], rng) for i in rng.permutation(len(asked)))


def _shuffled(question: Question, rng: np.random.Generator) -> Question:
    order = rng.permutation(len(question.options))
    return replace(question, options=tuple(question.options[i] for i in order))


def unanswered(task: Task, answers: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the questions that `answers`, question → option, do not answer."""
    return tuple(
        one.name
        for one in _QUESTIONS[task]
        if answers.get(one.name) not in {name for name, _ in one.options}
    )


def wrong(task: Task, answers: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the questions that `answers`, question → option, get wrong."""
    return tuple(one.name for one in _QUESTIONS[task] if answers.get(one.name) != one.right)


def reminders(task: Task, names: tuple[str, ...]) -> tuple[str, ...]:
    """What to tell somebody who got the questions of these names wrong."""
    return tuple(one.reminder for one in _QUESTIONS[task] if one.name in names)
