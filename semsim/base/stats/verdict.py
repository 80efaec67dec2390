"""Human scores: different ways to say, of each reconstruction, whether people recognise it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, log_expit, logit

from semsim.base.columns import AS_NAMED, MODEL_KEY
from semsim.base.errors import DataError
from semsim.base.registry import unknown
from semsim.base.stats.dawid_skene import dawid_skene
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.votes import SparseVotes, at_threshold, majority, votes_needed
from semsim.base.words import counted

SPREAD = 2.0  # standard deviation of the normal prior of θ
_TOLERANCE = 1e-10  # of the last step
_MOST_STEPS = 100


@dataclass(frozen=True, kw_only=True)
class _Votes:
    """Votes as numbers.

    Attributes:
        item, annotator: (V,) int from 0, of I and A.
        said: (V,) 1 recognised, 0 not.
    """

    item: np.ndarray
    annotator: np.ndarray
    said: np.ndarray
    items: int
    annotators: int

    def surplus(self, theta: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return (V,) the logit of each vote's probability to recognise."""
        return np.asarray(theta[self.item] - b[self.annotator])

    def penalised(self, theta: np.ndarray, b: np.ndarray) -> float:
        """Return the logarithm of the likelihood and of the prior, up to a constant."""
        signed = np.where(self.said > 0, 1, -1) * self.surplus(theta, b)
        return float(log_expit(signed).sum() - (theta**2).sum() / (2 * SPREAD**2))

    def step(self, theta: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Newton's step of θ and of b.

        Items meet in annotators alone, so θ is eliminated and (A, A) equations remain.
        """
        chance = expit(self.surplus(theta, b))
        left, weight = self.said - chance, chance * (1 - chance)
        of_item = 1 / (np.bincount(self.item, weight, self.items) + 1 / SPREAD**2)
        slope = np.bincount(self.item, left, self.items) - theta / SPREAD**2
        shape = (self.items, self.annotators)
        both = sparse.csr_matrix((weight, (self.item, self.annotator)), shape)
        own = np.diag(np.bincount(self.annotator, weight, self.annotators))
        equations = own - (both.T @ both.multiply(of_item[:, None])).toarray()
        right = both.T @ (of_item * slope) - np.bincount(self.annotator, left, self.annotators)
        of_b = np.linalg.solve(equations, right)
        return of_item * (slope + both @ of_b), of_b


def adjusted(
    item: np.ndarray, annotator: np.ndarray, recognised: np.ndarray, group: np.ndarray
) -> tuple[np.ndarray, str]:
    """Return how likely an annotator of mean leniency recognises each item, or why it is unknown.

    One-parameter item response (Rasch 1960): logit P(recognised) = θ of the item − b of the
    annotator. θ has a normal prior of mean 0 and standard deviation `SPREAD`, b a flat one.
    Newton's method finds the mode of both, halving steps that lead down. The prior draws items
    with few votes to the middle, so scores rank items and models, and are no rates.

    Args:
        item: (V,) int from 0, of each vote; every item has one.
        annotator: (V,) int from 0; each gave a vote.
        recognised: (V,) 1 or 0.
        group: (V,) int from 0, the target model of each vote's item. Annotators are compared by
            items of one model, as few votes an item often leave no two of them one item.

    Returns:
        (I,) in (0, 1), all NaN where the reason, else "", is not empty.
    """
    items, people = (int(one.max(initial=-1)) + 1 for one in (item, annotator))
    if why := _undefined(annotator, recognised, group):
        return np.full(items, np.nan), why
    votes = _Votes(
        item=item,
        annotator=annotator,
        said=recognised.astype(float),
        items=items,
        annotators=people,
    )
    given = np.bincount(annotator)
    theta, b = np.zeros(items), -logit(np.bincount(annotator, votes.said) / given)
    for _ in range(_MOST_STEPS):
        steps, length, now = votes.step(theta, b), 1.0, votes.penalised(theta, b)
        while length > _TOLERANCE and (
            votes.penalised(theta + length * steps[0], b + length * steps[1]) < now
        ):
            length /= 2
        theta, b = theta + length * steps[0], b + length * steps[1]
        if length * max(np.abs(one).max() for one in steps) < _TOLERANCE:
            break
    return expit(theta - b @ given / given.sum()), ""


def _undefined(annotator: np.ndarray, recognised: np.ndarray, group: np.ndarray) -> str:
    """Return why votes cannot tell leniency from what was shown, "" where they can."""
    if not len(annotator):
        return "there are no votes"
    given, yes = np.bincount(annotator), np.bincount(annotator, recognised)
    if len(given) == 1:
        return "one annotator alone: there is nobody to compare their leniency with"
    if stuck := int(((yes == 0) | (yes == given)).sum()):
        return (
            f"{stuck} of {len(given)} annotators recognise everything or nothing, so their "
            "leniency has no finite value; exclude them, or take another human score"
        )
    models, model = np.unique(group, return_inverse=True)
    nodes, ends = len(given) + len(models), (annotator, len(given) + model)
    links = sparse.coo_matrix((np.ones(len(group)), ends), (nodes, nodes))
    apart, _ = connected_components(links, directed=False)
    if apart > 1:
        return (
            f"the annotators are {apart} groups that judged no target model in common, so "
            "leniency cannot be told from what was shown"
        )
    return ""


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
