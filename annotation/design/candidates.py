"""The classes offered for a reconstruction (recognition task).

Two ways of drawing the distractors. `top` takes the classes that an independent classifier finds
likeliest on the original, as the paper has it. A class that is rarely confused then stands on few
lists but its own. That gives it away to an annotator who never looks at a picture. `balanced` draws
them from the classifier's first `POOL`, so that every class stands on about as many lists as any
other; where a guesser still sees through lists, these are drawn again from further down, so that a
few words in a hundred come from beyond.

Guessers see only the lists, never a picture. A share recognised that one reaches shows nothing of
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

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Self

import numpy as np

from annotation.errors import StudyError

BOUND = 1.5  # times chance, above which a guesser is warned of
MOST_LEARNED = 8000  # pictures, of all draws of an annotator who learns


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


def learned(lists: Sequence[tuple[str, ...]], answers: Sequence[str], share: float) -> float:
    """Compute the share named by an annotator who learns from lists.

    A `share` of the pictures they recognise, and remember each list with its answer. A list that
    comes again has the same answer. On another one they guess among the words that were right
    before, if any stands there. Nothing but the lists tells them more.

    Args:
        lists, answers: One for each picture, in the order of one person.
        share: Of pictures recognised without any list, 0 to 1; the mean of several draws.
    """
    rng, right, courses = np.random.default_rng(0), 0.0, max(1, MOST_LEARNED // len(lists))
    for _ in range(courses):
        known: dict[tuple[str, ...], str] = {}
        for words, answer, sees in zip(lists, answers, rng.random(len(lists)) < share, strict=True):
            among = set(known.values()) & set(words) or set(words)
            if sees:
                known[words] = answer
            right += 1 if sees or known.get(words) == answer else (answer in among) / len(among)
    return right / courses / len(lists)


def most_right(found: Sequence[Guess]) -> Guess:
    """The bounded guesser who reaches most."""
    return max((one for one in found if one.bounded), key=lambda one: one.rate)


def said(found: Sequence[Guess]) -> str:
    """Describe the results of guessers in three sentences; empty without lists."""
    if not found:
        return ""
    most = most_right(found)
    reach = (
        f"Guessing from the candidate lists alone: {most.rate:.1%} correct at best, by {most.rule} "
        f"(chance {most.chance:.1%})."
    )
    fair = f"That is not above {BOUND:g} times chance."
    warning = f"Warning: above {BOUND:g} times chance the lists give the answer away."
    return f"{reach} {warning if most.too_good else fair} {_said_of_told(found)}"


def _said_of_told(found: Sequence[Guess]) -> str:
    reached = [f"{one.rate:.1%} by {one.rule}" for one in found if not one.bounded]
    return f"With inside knowledge, which is not bounded: {'; '.join(reached)}."


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
    "rarest": ("the word on the fewest lists", lambda lists: -lists.counts()),
    "commonest": ("the word on the most lists", Lists.counts),
    "outside-the-run": ("the word furthest from others in the alphabet", _outside_the_run),
    "central": ("the word that fits best with its list", attrgetter("central")),
    "first-word-place": (
        "the usual place of the word that fits best with its list",
        _first_word_place,
    ),
    "usual-place": (
        "the usual place of the other answers",
        _usual_place,
    ),
    "told-originals": ("the words that are answers somewhere", _told_originals),
}
# Both need answers, which no list tells. A bound would be on what people are asked about.
_TOLD = {"usual-place", "told-originals"}
BOUNDED = tuple(name for name in GUESSERS if name not in _TOLD)


RANDOM_LISTS = (
    "No independent classifier has ranked the classes on the originals, so that wrong words are "
    "drawn at random. They are easier to rule out, and more is recognised than with likely "
    "ones."
)
POOL = 30  # of a classifier's ranking, from which `balanced` draws
_SWEEPS = 8  # after which hardly a list changes
_TRIES = 12  # after which the best lists so far are taken up again
# Times that lists which a guesser sees through are drawn again; fewer where there are many lists.
_REDRAWN, _FEWEST, _MOST = 400, 40, 400_000


@dataclass(frozen=True, kw_only=True)
class CandidateList:
    """At most 20 classes in display order, the true one among them.

    `true_rank` is the true class's place in the classifier's ranking (1 = first; None without
    one), `forced` says that the ranking alone would have left it out.
    """

    classes: tuple[str, ...]
    true_position: int
    true_rank: int | None
    forced: bool

    @property
    def sha256(self) -> str:
        """Hash of the classes in their order."""
        return hashlib.sha256(json.dumps(self.classes).encode()).hexdigest()

    @property
    def true_class(self) -> str:
        """The class that is right."""
        return self.classes[self.true_position]


def ranked(logs: Mapping[str, float], rng: random.Random) -> tuple[str, ...]:
    """Classes by falling log-probability; `rng` breaks ties, which no order of names may decide."""
    return tuple(sorted(sorted(logs), key=lambda name: (-logs[name], rng.random())))


def candidate_list(
    true_class: str,
    classes: Sequence[str],
    size: int,
    ranking: Sequence[str] = (),
    *,
    rng: random.Random,
) -> CandidateList:
    """`size` of `classes` (all, if there are fewer) with `true_class` and its best distractors.

    `ranking` holds classes by falling probability on the *original*, from a classifier other than
    the attacked ones; where it is too short or missing, `rng` draws the rest. Raises `StudyError`
    if `true_class` is not one of `classes`.
    """
    order = _distractors(true_class, classes, ranking, rng)
    return _shown(true_class, order[: size - 1], classes, size, ranking)


def balanced_lists(
    true_classes: Sequence[str],
    classes: Sequence[str],
    size: int,
    rankings: Sequence[Sequence[str]],
    *,
    rng: random.Random,
) -> list[CandidateList]:
    """A list for each of `true_classes`, on which all `classes` stand about equally often.

    `rankings`, one a list, are as for `candidate_list`. Distractors come from the first `POOL` of
    each; a true class that would still stand on fewer lists than the others do goes on further
    ones, where it ranks best. Raises `StudyError` as `candidate_list`.
    """
    pairs = zip(true_classes, rankings, strict=True)
    orders = [_distractors(true, classes, ranking, rng) for true, ranking in pairs]
    drawn = _Drawn(true_classes, classes, orders, size - 1, rng)
    drawn.balance()
    return [
        _shown(true, words, classes, size, ranking)
        for true, words, ranking in zip(true_classes, drawn.fairest(), rankings, strict=True)
    ]


class _Drawn:
    """The distractors drawn so far, and on how many lists each class stands."""

    def __init__(
        self,
        true_classes: Sequence[str],
        classes: Sequence[str],
        orders: Sequence[Sequence[str]],
        n: int,
        rng: random.Random,
    ) -> None:
        self.true_classes, self.classes = true_classes, classes
        self.n, self.rng = n, rng
        words = self._vocabulary(orders)
        self.orders = [[word for word in order if word in words] for order in orders]
        self.lists: list[list[str]] = [[] for _ in true_classes]
        self.counts = Counter(true_classes)

    def _vocabulary(self, orders: Sequence[Sequence[str]]) -> set[str]:
        """The words to draw from: so few that all can be as common as the commonest answer."""
        used = Counter(self.true_classes)
        near = Counter(word for order in orders for word in order[:POOL])
        likely = sorted(self.classes, key=lambda word: (word not in used, -near[word]))
        most = len(orders) * (self.n + 1) // (max(used.values(), default=0) + 1)
        return set(likely[: max(most, len(used), self.n + 1)])

    def balance(self) -> None:
        """Draw lists on which all words stand about equally often."""
        for _ in range(_SWEEPS):
            self._sweep()
        self._level()

    def fairest(self) -> list[list[str]]:
        """The distractors; lists that a guesser sees through too often are drawn again before."""
        if self.n + 1 >= len(self.classes):
            return self.lists  # all words on all of them
        best: tuple[float, list[list[str]]] = (np.inf, self.lists)
        for again in range(max(_FEWEST, min(_REDRAWN, _MOST // len(self.lists)))):
            lists = self._as_numbers()
            through = {name: hits(name, lists) for name in BOUNDED}
            worst = max(through, key=lambda name: through[name].mean())
            if (share := through[worst].mean()) < best[0]:
                best = share, [list(words) for words in self.lists]
            if best[0] <= BOUND * lists.chance:
                break
            if again % _TRIES == _TRIES - 1:  # lost: on from the best there was
                self.lists = [list(words) for words in best[1]]
                self.counts = Counter(word for words in self.lists for word in words)
                self.counts.update(self.true_classes)
                continue
            numbers = np.flatnonzero(through[worst]).tolist()
            if worst in ("commonest", "rarest"):
                answers = {self.true_classes[number] for number in numbers}
                self._shift(answers, more=worst == "rarest")
            elif worst == "first-word-place":  # the first word in the alphabet has but one place
                self._draw_again(range(len(self.lists)), POOL + 2 * again)
            else:
                self._draw_again(numbers, POOL + 2 * again)
        return best[1]

    def _as_numbers(self) -> Lists:
        whole = [[*words, true] for words, true in zip(self.lists, self.true_classes, strict=True)]
        return Lists.of(whole, self.true_classes)

    def _shift(self, words: Collection[str], *, more: bool) -> None:
        """Put each of `words` on one list `more`, for the commonest word there, or on one less."""
        for word in sorted(words):
            at = [
                n
                for n, shown in enumerate(self.lists)
                if (word in shown) != more and word != self.true_classes[n]
            ]
            if not at:
                continue
            number = self.rng.choice(at)
            shown = self.lists[number]
            others = [one for one in self.orders[number] if one not in shown]
            if more:
                out, new = max(shown, key=lambda one: (self.counts[one], self.rng.random())), word
            elif others:
                out, new = word, min(others, key=lambda one: (self.counts[one], self.rng.random()))
            else:
                continue
            shown[shown.index(out)] = new
            self.counts.update({new: 1, out: -1})

    def _draw_again(self, numbers: Sequence[int], pool: int) -> None:
        for number in self.rng.sample(numbers, (len(numbers) + 1) // 2):
            self.counts.subtract(self.lists[number])
            self.lists[number] = self.rng.sample(self.orders[number][: max(pool, self.n)], self.n)
            self.counts.update(self.lists[number])
        self._level()

    def _sweep(self) -> None:
        for number in self.rng.sample(range(len(self.lists)), len(self.lists)):
            self.counts.subtract(self.lists[number])
            pool = self.orders[number][: max(POOL, self.n)]
            keyed = sorted((self.counts[word], self.rng.random(), word) for word in pool)
            self.lists[number] = [word for *_, word in keyed[: self.n]]
            self.counts.update(self.lists[number])

    def _level(self) -> None:
        """Exchange words that stand on more lists than usual for rarer ones, likeliest first."""
        on_lists = {word for words in self.lists for word in words} | set(self.true_classes)
        usual = len(self.lists) * (self.n + 1) / max(1, len(on_lists))
        for number in self.rng.sample(range(len(self.lists)), len(self.lists)):
            rare = [
                word
                for word in self.orders[number]
                if word in on_lists and self.counts[word] < usual - 0.5
            ]
            for out in sorted(self.lists[number], key=lambda word: -self.counts[word]):
                new = next((word for word in rare if word not in self.lists[number]), None)
                if new is None or self.counts[out] <= usual + 0.5:
                    break
                self.lists[number][self.lists[number].index(out)] = new
                self.counts.update({new: 1, out: -1})
                rare = [word for word in rare if self.counts[word] < usual - 0.5]


def _distractors(
    true_class: str, classes: Sequence[str], ranking: Sequence[str], rng: random.Random
) -> list[str]:
    """All classes but the true one, the best first."""
    if true_class not in classes:
        raise StudyError(f"Class {true_class!r} is not in the data set's list of classes.")
    known = set(classes)
    first = [name for name in dict.fromkeys(ranking) if name in known]
    rest = sorted(known - set(first))
    return [name for name in first + rng.sample(rest, len(rest)) if name != true_class]


def _shown(
    true_class: str,
    distractors: Sequence[str],
    classes: Sequence[str],
    size: int,
    ranking: Sequence[str],
) -> CandidateList:
    known = set(classes)
    places = [name for name in dict.fromkeys(ranking) if name in known]
    chosen = sorted([true_class, *distractors], key=as_shown)
    true_rank = places.index(true_class) + 1 if true_class in places else None
    return CandidateList(
        classes=tuple(chosen),
        true_position=chosen.index(true_class),
        true_rank=true_rank,
        forced=bool(places) and len(known) > size and (true_rank is None or true_rank > size),
    )


@dataclass(frozen=True, kw_only=True)
class ListFacts:
    """Of `n_lists`, how many have words drawn at random, and what guessers reach on all."""

    n_lists: int
    n_random: int
    guesses: tuple[Guess, ...]

    @property
    def most(self) -> Guess:
        """The bounded guesser who reaches most."""
        return most_right(self.guesses)

    @property
    def random(self) -> str:
        """That words are drawn at random, and what it does to scores; empty where none are."""
        of = f"({self.n_random:,} of {self.n_lists:,} lists.)"
        return f"{RANDOM_LISTS} {of}" if self.n_random else ""

    @property
    def said(self) -> tuple[str, ...]:
        """The facts as sentences, those of random words first."""
        return (*filter(None, [self.random]), said(self.guesses))


def list_facts(lists: Collection[CandidateList]) -> ListFacts | None:
    """The facts of a study's lists; None where it has none."""
    if not lists:
        return None
    numbers = Lists.of([one.classes for one in lists], [one.true_class for one in lists])
    # With every word on every list there is nothing to draw.
    chosen = len(lists) == 1 or numbers.n_classes > numbers.words.shape[1]
    return ListFacts(
        n_lists=len(lists),
        n_random=sum(one.true_rank is None for one in lists) if chosen else 0,
        guesses=guesses(numbers),
    )
