"""Reliability of annotators and true answers, both estimated at once, from votes alone."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

_EDGE = 1e-9  # keeps a probability off 0 and 1: no vote is proof


@dataclass(frozen=True, kw_only=True)
class _Votes:
    """Votes as numbers.

    Attributes:
        item, annotator, answer: (V,) int from 0, of I, A and K.
    """

    item: np.ndarray
    annotator: np.ndarray
    answer: np.ndarray
    items: int
    annotators: int
    answers: int

    @cached_property
    def given(self) -> sparse.csr_matrix:
        """(I, A·K) one 1 a vote, in the column of its annotator and answer."""
        columns = self.annotator * self.answers + self.answer
        shape = (self.items, self.annotators * self.answers)
        return sparse.csr_matrix((np.ones(len(self.item)), (self.item, columns)), shape)

    @cached_property
    def by_annotator(self) -> np.ndarray:
        """(A,) how many each annotator gave."""
        return np.bincount(self.annotator, minlength=self.annotators)

    def sums(self, amount: np.ndarray | None = None) -> np.ndarray:
        """(I, K) how many votes, or how much of `amount` (V,), each answer has on each item."""
        place = self.item * self.answers + self.answer
        found = np.bincount(place, amount, self.items * self.answers)
        return found.reshape(self.items, self.answers).astype(float)


def dawid_skene(
    item: np.ndarray,
    annotator: np.ndarray,
    answer: np.ndarray,
    *,
    even: bool = False,
    tolerance: float = 1e-8,
    most_steps: int = 2000,
) -> tuple[np.ndarray, str]:
    """(I, K) the probability that an answer is the truth of an item; why all are NaN, or "".

    Expectation and maximisation begin with the shares of votes, so that the truth is what most
    people mean and nothing in it is random, and end where no probability moves by `tolerance`.
    Dawid and Skene 1979, "Maximum likelihood estimation of observer error-rates using the EM
    algorithm", equations 2.3 to 2.5; even with the restriction of Zhang et al. 2016 ("Spectral
    methods meet EM", section 4).

    Args:
        item, annotator, answer: (V,) int from 0, of each vote; every item has one. Every annotator
            has a matrix of what they take for what, A·K² numbers, so with few votes an annotator
            and answer it follows the noise.
        even: They are right with one probability and err evenly otherwise.
    """
    items, people, k = (int(one.max(initial=-1)) + 1 for one in (item, annotator, answer))
    nothing = np.full((items, k), np.nan)
    if not items:
        return nothing, "there are no votes"
    if len(np.unique(answer)) == 1:
        return nothing, "all votes are equal"
    if len(np.unique(annotator)) == 1:
        return nothing, "one annotator alone: there is nobody to tell their errors by"
    votes = _Votes(
        item=item, annotator=annotator, answer=answer, items=items, annotators=people, answers=k
    )
    shares = votes.sums()
    truth = shares / shares.sum(axis=1, keepdims=True)
    likelihood = _by_coin if even else _by_matrix
    for _ in range(most_steps):
        before, truth = truth, _posterior(truth.mean(axis=0), likelihood(votes, truth))
        if np.abs(truth - before).max() < tolerance:
            return truth, ""
    return nothing, f"it did not settle within {most_steps} steps"


def _posterior(prior: np.ndarray, likelihood: np.ndarray) -> np.ndarray:
    """(I, K) by Bayes' rule; `likelihood` (I, K) is log P(votes of an item | truth)."""
    odds = _logarithm(prior) + likelihood
    likely = np.exp(odds - odds.max(axis=1, keepdims=True))
    return likely / likely.sum(axis=1, keepdims=True)


def _logarithm(probability: np.ndarray) -> np.ndarray:
    return np.log(np.clip(probability, _EDGE, 1 - _EDGE))


def _by_matrix(votes: _Votes, truth: np.ndarray) -> np.ndarray:
    """The likelihood where each annotator has a matrix, (A, K, K), of what they take for what."""
    shape = (votes.annotators, votes.answers, votes.answers)
    counts = (votes.given.T @ truth).reshape(shape)  # of votes expected by answer, then truth
    seen = counts.sum(axis=1, keepdims=True)
    # Of a class an annotator never saw nothing is known: every answer is as likely.
    even = np.full(shape, 1 / votes.answers)
    errors = np.divide(counts, seen, out=even, where=seen > 0)
    return votes.given @ _logarithm(errors).reshape(-1, votes.answers)


def _by_coin(votes: _Votes, truth: np.ndarray) -> np.ndarray:
    """The likelihood where each annotator is right with one probability, (A,)."""
    right = np.bincount(votes.annotator, truth[votes.item, votes.answer], votes.annotators)
    right = right / votes.by_annotator
    wrong = (1 - right) / (votes.answers - 1)
    err, better = _logarithm(wrong), _logarithm(right) - _logarithm(wrong)
    others = np.bincount(votes.item, err[votes.annotator], votes.items)
    return others[:, None] + votes.sums(better[votes.annotator])
