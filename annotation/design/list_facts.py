"""Facts on the candidate lists of a study: their source, and what they give away by themselves."""

from collections.abc import Collection
from dataclasses import dataclass

from annotation.design import guessers
from annotation.design.candidates import CandidateList
from annotation.design.guessers import Guess, Lists

RANDOM_LISTS = (
    "No independent classifier has ranked the classes on the originals, so that wrong words are "
    "drawn at random: they are easier to tell from the right one, and more is recognised than "
    "with likely ones."
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
        return guessers.most_right(self.guesses)

    @property
    def random(self) -> str:
        """That words are drawn at random, and what it does to scores; empty where none are."""
        of = f"({self.n_random:,} of {self.n_lists:,} lists.)"
        return f"{RANDOM_LISTS} {of}" if self.n_random else ""

    @property
    def said(self) -> tuple[str, ...]:
        """The facts as sentences, those of random words first."""
        return (*filter(None, [self.random]), guessers.said(self.guesses))


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
        guesses=guessers.guesses(numbers),
    )
