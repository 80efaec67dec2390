"""Human scores: different ways to say, of each reconstruction, whether people recognise it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from semsim.base.columns import AS_NAMED, MODEL_KEY
from semsim.base.errors import DataError
from semsim.base.registry import unknown
from semsim.base.stats.dawid_skene import dawid_skene
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.leniency import adjusted
from semsim.base.stats.votes import SparseVotes, at_threshold, majority, votes_needed
from semsim.base.words import counted


@dataclass(frozen=True, kw_only=True)
class HumanScore:
    """Human score of every image.

    Attributes:
        values: (R,) in [0, 1], NaN where people have not decided.
        undefined: Why none has.
    """

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

    Args:
        rule: Of `RULES`, or a label that came with the data.

    Raises:
        UnknownNameError: For another.
    """
    return judged(evidence, rule).values


def judged(evidence: Evidence, rule: str) -> HumanScore:
    """`human_score` with the reason where no image has one."""
    if rule in evidence.given:
        return _explained(evidence.given[rule], "no image has this label")
    rules = rules_of_votes(evidence)
    if rule not in rules:
        raise unknown("human score", rule, rules_of(evidence))
    return rules[rule].score(evidence)


def verdict(evidence: Evidence, rule: str) -> np.ndarray:
    """(R,) float64: above one half is recognised by `rule`, below is not, NaN is undecided.

    That of the mean rating is the one by the threshold. Raises as `human_score`.
    """
    rated = evidence.ratings is not None and rule in _MEAN_RATING
    return human_score(evidence, "majority" if rated else rule)


def recognised_by(evidence: Evidence, rule: str) -> SparseVotes:
    """`Evidence.recognised` as `rule` counts a vote: by `AS_NAMED`, by the original's name."""
    named = evidence.as_named if rule == AS_NAMED else None
    return evidence.recognised if named is None else named


def response_by(evidence: Evidence, rule: str) -> SparseVotes:
    """`Evidence.response` as `rule` counts a vote; NaN where it goes by a name there is not."""
    return recognised_by(evidence, rule) if evidence.ratings is None else evidence.response


def rules_of(evidence: Evidence) -> tuple[str, ...]:
    """Every human score the study can have: those of votes, then the labels it came with.

    Labels that came without votes stand alone. Raises `DataError` where a label has the name of a
    rule.
    """
    rules = rules_of_votes(evidence)
    both = sorted(rules.keys() & evidence.given.keys())
    if both:
        raise DataError(f"A label that came with the data is called {both[0]!r}, as a rule is.")
    return (
        tuple(evidence.given)
        if evidence.given and not evidence.has_votes
        else (*rules, *evidence.given)
    )


def rules_of_votes(evidence: Evidence) -> Mapping[str, Rule]:
    """The ways from the votes of a study to a human score, by name."""
    if evidence.ratings is None:
        return RULES if evidence.as_named is None else {**RULES, **_NAMED}
    return {**_MEAN_RATING, **RULES, "majority": _THRESHOLD}


def title_of(evidence: Evidence, rule: str) -> str:
    """Return the title of a human score; a label that came with the data has its own name."""
    rules = rules_of_votes(evidence)
    return rules[rule].title if rule in rules else rule


def vote_counts(recognised: SparseVotes) -> tuple[np.ndarray, np.ndarray]:
    """(R,) int each: how many votes recognised each image, and how many votes there are.

    Args:
        recognised: As in `Evidence`, of all annotators or some.
    """
    return recognised.totals.astype(int), recognised.counts


def _as_original_named(evidence: Evidence) -> HumanScore:
    """The paper's own words: the answer equals what people say of the original."""
    if evidence.as_named is None:
        return _explained(np.full(len(evidence.images), np.nan), "nobody named the originals")
    return _most_of(evidence.as_named, evidence.votes_per_item)


def _most_of(said: SparseVotes, votes_per_item: int) -> HumanScore:
    """Score 1 where most of K votes say yes, 0 where they cannot.

    Args:
        said: 1 or 0.
    """
    yes, votes = vote_counts(said)
    needed = counted(votes_needed(votes, votes_per_item).min(), "vote")
    return _explained(majority(yes, votes, votes_per_item), f"no image has {needed} that agree")


def _at_threshold(evidence: Evidence) -> HumanScore:
    """Score 1 where the mean of K votes or more must reach the threshold, 0 where it cannot."""
    votes = vote_counts(evidence.recognised)[1]
    missing = np.maximum(evidence.votes_per_item - votes, 0)
    line = evidence.threshold * (votes + missing)
    values = at_threshold(evidence.response.totals, missing, line, (0, 1))
    return _explained(values, "votes that are missing could change every mean rating")


def _ignoring_none(evidence: Evidence) -> HumanScore:
    named = np.where(evidence.none.values > 0, np.nan, evidence.recognised.values)
    return _explained(evidence.recognised.of(named).means, "no vote names a class")


def _dawid_skene(evidence: Evidence) -> HumanScore:
    said = evidence.recognised

    def fit(item: np.ndarray, annotator: np.ndarray) -> tuple[np.ndarray, str]:
        truth, why = dawid_skene(item, annotator, said.values.astype(int))
        return truth[:, -1:].ravel(), why

    return _fitted(said, "Dawid-Skene", fit)


def _adjusted(evidence: Evidence) -> HumanScore:
    said = evidence.recognised
    model = evidence.images.groupby(MODEL_KEY).ngroup().to_numpy()[said.image]
    return _fitted(
        said, "Leniency", lambda item, annotator: adjusted(item, annotator, said.values, model)
    )


def _fitted(
    said: SparseVotes,
    title: str,
    fit: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, str]],
) -> HumanScore:
    """Score images by what `fit` makes of item and annotator of each vote, numbered from 0."""
    judged, item = np.unique(said.image, return_inverse=True)
    values = np.full(said.shape[0], np.nan)
    values[judged], why = fit(item, np.unique(said.annotator, return_inverse=True)[1])
    return HumanScore(values=values, undefined=f"{title}: {why}" if why else None)


def _explained(values: np.ndarray, why: str) -> HumanScore:
    return HumanScore(values=values, undefined=why if np.isnan(values).all() else None)


RULES: dict[str, Rule] = {
    "majority": Rule(
        title="Majority of votes",
        meaning="1 where more than half of the K votes, or of all where an image has more, "
        "recognise the image, 0 where more than half do not, undecided otherwise",
        score=lambda evidence: _most_of(evidence.recognised, evidence.votes_per_item),
    ),
    "mean-response": Rule(
        title="Share of votes",
        meaning="the share of votes that recognise the image",
        score=lambda evidence: _explained(evidence.recognised.means, "there are no votes"),
    ),
    "ignoring-none": Rule(
        title="Share of votes without 'none'",
        meaning="the share that is right among the votes that name a class; undecided where "
        "everybody answered 'none'",
        score=_ignoring_none,
    ),
    "dawid-skene": Rule(
        title="Votes weighed by annotator (Dawid-Skene)",
        meaning="the probability that the image is recognisable, when each annotator has an own "
        "sensitivity and specificity (Dawid and Skene 1979)",
        score=_dawid_skene,
    ),
    "adjusted": Rule(
        title="Votes adjusted for leniency (ranks, not rates)",
        meaning="the probability that an annotator of mean leniency recognises the image, where "
        "annotators differ in how readily they recognise anything (Rasch 1960); it is for ranks, "
        "as few votes draw it to the middle",
        score=_adjusted,
    ),
}
_NAMED = {
    AS_NAMED: Rule(
        title="As the original is named",
        meaning="1 where more than half of the K votes, or of all where an image has more, give "
        "the answer that more than half of the votes on its original give, 0 where more than half "
        "do not; undecided otherwise, and where no answer to the original has so many",
        score=_as_original_named,
    )
}
_MEAN_RATING = {
    "mean-rating": Rule(
        title="Mean rating",
        meaning="the mean of the ratings, as a share of the way from the lowest to the highest",
        score=lambda evidence: _explained(evidence.response.means, "there are no votes"),
    )
}
_THRESHOLD = Rule(
    title="Mean rating at the threshold",
    meaning="1 where the mean of the ratings is at or above the threshold that the protocol "
    "fixed, 0 where it is below, undecided while votes that are missing could change that",
    score=_at_threshold,
)
