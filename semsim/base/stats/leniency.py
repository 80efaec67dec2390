"""Leniency of annotators, and scores of images that hang less on who judged them."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, log_expit, logit

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
