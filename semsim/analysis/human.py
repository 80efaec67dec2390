"""Human scores: different ways to say, of each reconstruction, whether people recognise it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from semsim.analysis.dawid_skene import dawid_skene
from semsim.analysis.evidence import Evidence
from semsim.errors import DataError, UnknownNameError
from semsim.words import counted


@dataclass(frozen=True, kw_only=True)
class HumanScore:
    """values: (R,) in [0, 1], NaN where people have not decided; undefined: why none has."""

    values: np.ndarray
    undefined: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A way from votes to one human score an image; `meaning` is a sentence for a reader."""

    title: str
    meaning: str
    score: Callable[[Evidence], HumanScore]


def human_score(evidence: Evidence, rule: str) -> np.ndarray:
    """(R,) float64 in [0, 1], how recognisable people find each image; NaN where undecided.

    rule: of `RULES`, or a label that came with the data. Raises `UnknownNameError` for another.
    """
    return judged(evidence, rule).values


def judged(evidence: Evidence, rule: str) -> HumanScore:
    """`human_score` with the reason where no image has one."""
    if rule in evidence.given:
        return _explained(evidence.given[rule], "no image has this label")
    if rule not in RULES:
        known = ", ".join(rules_of(evidence))
        raise UnknownNameError(f"No human score is called {rule!r}. Known: {known}.")
    return RULES[rule].score(evidence)


def rules_of(evidence: Evidence) -> tuple[str, ...]:
    """Every human score the study can have: those of votes, then the labels it came with.

    Raises `DataError` where a label has the name of a rule.
    """
    both = sorted(RULES.keys() & evidence.given.keys())
    if both:
        raise DataError(f"A label that came with the data is called {both[0]!r}, as a rule is.")
    return (*RULES, *evidence.given)


def vote_counts(recognised: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(R,) int each: how many votes recognised each image, and how many votes there are.

    recognised: (R, A), as in `Evidence`, of all annotators or some.
    """
    given = ~np.isnan(recognised)
    return np.nansum(recognised, axis=1).astype(int), given.sum(axis=1)


def mean_response(recognised: np.ndarray) -> np.ndarray:
    """(R,): the share of votes that recognised each image, NaN without a vote.

    recognised: (R, A), as in `Evidence`, of all annotators or some.
    """
    yes, votes = vote_counts(recognised)
    return np.divide(yes, votes, out=np.full(len(votes), np.nan), where=votes > 0)


def votes_needed(votes: np.ndarray, votes_per_item: np.ndarray | int) -> np.ndarray:
    """How many votes make a majority: more than half of K, or of all `votes` where more have come.

    Three of five decide whatever the others will say, and an extra vote that makes it 3 to 3 takes
    the decision back. The human study has the same rule for its labels and its results.
    """
    return np.maximum(votes, votes_per_item) // 2 + 1


def _majority(evidence: Evidence) -> HumanScore:
    yes, votes = vote_counts(evidence.recognised)
    needed = votes_needed(votes, evidence.votes_per_item)
    values = np.full(len(votes), np.nan)
    values[yes >= needed] = 1.0
    values[votes - yes >= needed] = 0.0
    return _explained(values, f"no image has {counted(needed.min(), 'vote')} that agree")


def _mean_response(evidence: Evidence) -> HumanScore:
    return _explained(mean_response(evidence.recognised), "there are no votes")


def _ignoring_none(evidence: Evidence) -> HumanScore:
    named = np.where(evidence.none, np.nan, evidence.recognised)
    return _explained(mean_response(named), "no vote names a class")


def _dawid_skene(evidence: Evidence) -> HumanScore:
    found = dawid_skene(evidence.recognised)
    return HumanScore(values=found.posterior, undefined=found.undefined)


def _explained(values: np.ndarray, why: str) -> HumanScore:
    return HumanScore(values=values, undefined=why if np.isnan(values).all() else None)


RULES: dict[str, Rule] = {
    "majority": Rule(
        title="Majority",
        meaning="1 where more than half of the K votes, or of all where an image has more, "
        "recognise the image, 0 where more than half do not, undecided otherwise",
        score=_majority,
    ),
    "mean-response": Rule(
        title="Mean response",
        meaning="the share of votes that recognise the image",
        score=_mean_response,
    ),
    "ignoring-none": Rule(
        title="Ignoring 'none'",
        meaning="the share that is right among the votes that name a class; undecided where "
        "everybody answered 'none'",
        score=_ignoring_none,
    ),
    "dawid-skene": Rule(
        title="Dawid-Skene",
        meaning="the probability that the image is recognisable, when each annotator has an own "
        "sensitivity and specificity (Dawid and Skene 1979)",
        score=_dawid_skene,
    ),
}
