"""Success of guessers who see only the candidate lists, never a picture.

A researcher who plans a study needs it: a share recognised that a guesser reaches shows nothing of
what leaks. A guesser scores the words of each list and takes the best; where words tie it guesses
among them, so the figures are expected shares and need no chance.

Lists are drawn around the first word of their judge, which no list names. `central` stands for
a guesser who looks for it on each list, `first-word-place` for one who takes the place where it
usually stands. Taken at its word, the place of the judge's own first word is no bounded guesser.
That word is nearly always the answer, so only a guesser who knows answers knows its place. That is
`usual-place`, and no way of drawing can bound it. Words stand in the order of the alphabet, so that
its first word stands first on every list it is on: where it is right for half of the pictures, so
is the first place. And where a list has all words, places are words and nothing is drawn. Drawn
again for it as for the others, 84 of 400 studies as the property test has stay above the bound (78
of them have all words on all lists) and others lose theirs. It and `told-originals` know answers
besides: they are told, not bounded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Self

import numpy as np

BOUND = 1.5  # times chance, above which a guesser is warned of


def as_shown(name: str) -> tuple[str, str]:
    """By what words stand in the order of the alphabet: "chess knight" is read for chess_knight."""
    return name.replace("_", " ").casefold(), name


@dataclass(frozen=True, kw_only=True)
class Lists:
    """Candidate lists as numbers.

    Attributes:
        words: (N, k) places of the words among the `n_classes` that stand on any list, in the order
            of the alphabet, rising in each row.
        right: (N,) the column that is right.
    """

    words: np.ndarray
    right: np.ndarray
    n_classes: int

    @classmethod
    def of(cls, lists: Sequence[Sequence[str]], answers: Sequence[str]) -> Self:
        """`lists` of equally many words, `answers` the right one of each."""
        known = sorted({word for one in lists for word in one}, key=as_shown)
        place = {name: k for k, name in enumerate(known)}
        words = np.sort([[place[word] for word in one] for one in lists], axis=1)
        right = words == np.array([[place[answer]] for answer in answers])
        return cls(words=words, right=right.argmax(axis=1), n_classes=len(place))

    @property
    def chance(self) -> float:
        """Probability that a blind guess is right."""
        return 1 / self.words.shape[1]

    def counts(self) -> np.ndarray:
        """(N, k) on how many lists each word stands."""
        return np.bincount(self.words.ravel(), minlength=self.n_classes)[self.words]

    @cached_property
    def central(self) -> np.ndarray:
        """(N, k) on how many other lists a word meets words of this one, for each it stands on.

        The classes like one class are like each other less: the right word is in their midst.
        """
        on = np.zeros((len(self.words), self.n_classes), dtype=np.float32)
        np.put_along_axis(on, self.words, 1, axis=1)
        together = on.T @ on
        np.fill_diagonal(together, 0)
        met = np.take_along_axis(on @ together, self.words, axis=1) - (self.words.shape[1] - 1)
        return met / np.maximum(1, self.counts() - 1)


@dataclass(frozen=True, kw_only=True)
class Guess:
    """Result of one guesser.

    Attributes:
        rate: The share of lists on which they are right, 0 to 1.
        chance: Of who guesses blindly.
        bounded: Whether more than `BOUND` times chance is a flaw of the lists; it is none of
            whoever has been told more than the lists say.
    """

    name: str
    rule: str
    rate: float
    chance: float
    bounded: bool

    @property
    def too_good(self) -> bool:
        """True if the lists give the answer away."""
        return self.bounded and self.rate > BOUND * self.chance + 1e-9


def guesses(lists: Lists) -> tuple[Guess, ...]:
    """Compute the result of each guesser on `lists`."""
    return tuple(
        Guess(
            name=name,
            rule=rule,
            rate=float(hits(name, lists).mean()),
            chance=lists.chance,
            bounded=name not in _TOLD,
        )
        for name, (rule, _) in GUESSERS.items()
    )


def hits(name: str, lists: Lists) -> np.ndarray:
    """(N,) how likely the guesser `name` is right on each list."""
    scores = GUESSERS[name][1](lists)
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-9
    return best[np.arange(len(best)), lists.right] / best.sum(axis=1)


def most_right(found: Sequence[Guess]) -> Guess:
    """The bounded guesser who reaches most."""
    return max((one for one in found if one.bounded), key=lambda one: one.rate)


def said(found: Sequence[Guess]) -> str:
    """Describe the results of guessers in three sentences; empty without lists."""
    if not found:
        return ""
    most = most_right(found)
    reach = (
        f"Somebody who sees only the lists, and {most.rule}, names {most.rate:.1%} of the "
        f"right answers; chance is {most.chance:.1%}."
    )
    fair = f"That is not above {BOUND:g} times chance."
    warning = f"Warning: above {BOUND:g} times chance the lists give the answer away."
    return f"{reach} {warning if most.too_good else fair} {_said_of_told(found)}"


def _said_of_told(found: Sequence[Guess]) -> str:
    reached = [f"who {one.rule} names {one.rate:.1%}" for one in found if not one.bounded]
    return f"Some know more than lists say, which nothing bounds: {'; '.join(reached)}."


def _outside_the_run(lists: Lists) -> np.ndarray:
    """(N, k) how far the next word of the list is in the alphabet."""
    ends = np.full((len(lists.words), 1), lists.n_classes)
    gaps = np.hstack([ends, np.diff(lists.words, axis=1), ends])
    return np.minimum(gaps[:, :-1], gaps[:, 1:])


def _first_word_place(lists: Lists) -> np.ndarray:
    """(N, k) how often the word in the midst of its list stands at each place, tied words shared.

    That word is the best guess, from lists alone, at the first word of the judge.
    """
    best = lists.central >= lists.central.max(axis=1, keepdims=True) - 1e-9
    usual = (best / best.sum(axis=1, keepdims=True)).sum(axis=0)
    return np.tile(usual, (len(best), 1))


def _usual_place(lists: Lists) -> np.ndarray:
    """(N, k) how many answers of the other lists stand at each place."""
    own = np.arange(lists.words.shape[1]) == lists.right[:, None]
    return own.sum(axis=0) - own


def _told_originals(lists: Lists) -> np.ndarray:
    answers = np.take_along_axis(lists.words, lists.right[:, None], axis=1)
    return np.isin(lists.words, answers).astype(float)


GUESSERS: Mapping[str, tuple[str, Callable[[Lists], np.ndarray]]] = {
    "rarest": ("takes the word that stands on the fewest lists", lambda lists: -lists.counts()),
    "commonest": ("takes the word that stands on the most lists", Lists.counts),
    "outside-the-run": ("takes the word furthest from others in the alphabet", _outside_the_run),
    "central": ("takes the word that goes best with the rest of its list", attrgetter("central")),
    "first-word-place": (
        "takes the place where the word that goes best with its list usually stands",
        _first_word_place,
    ),
    "usual-place": (
        "was told the other answers and takes the place where most of them stand",
        _usual_place,
    ),
    "told-originals": ("was told which words are right somewhere", _told_originals),
}
# Both need answers, which no list tells. A bound would be on what people are asked about.
_TOLD = {"usual-place", "told-originals"}
BOUNDED = tuple(name for name in GUESSERS if name not in _TOLD)
