"""The questions on the instructions, and which answers to them are wrong."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from annotation.tasks.kind import Kind, Question


def questions(kind: Kind, seed: int, person: str) -> tuple[Question, ...]:
    """The questions for one person, in an order of their own, options too; always the same."""
    digest = hashlib.sha256(f"check:{seed}:{person}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    asked = kind.check
    return tuple(_shuffled(asked[i], rng) for i in rng.permutation(len(asked)))


def _shuffled(question: Question, rng: np.random.Generator) -> Question:
    order = rng.permutation(len(question.options))
    return replace(question, options=tuple(question.options[i] for i in order))


def unanswered(kind: Kind, answers: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the questions that `answers`, question → option, do not answer."""
    return tuple(
        one.name
        for one in kind.check
        if answers.get(one.name) not in {name for name, _ in one.options}
    )


def wrong(kind: Kind, answers: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the questions that `answers`, question → option, get wrong."""
    return tuple(one.name for one in kind.check if answers.get(one.name) != one.right)
