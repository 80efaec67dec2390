"""Who is how reliable, and what is true? Both at once, from votes alone."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

_EDGE = 1e-9  # keeps a probability off 0 and 1: no vote is proof


@dataclass(frozen=True, kw_only=True)
class _Votes:
    """given: (I, A·K) one 1 a vote, in the column of its annotator and answer; A, K."""

    given: sparse.csr_matrix
    annotators: int
    answers: int


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

    item, annotator, answer: (V,) int from 0, of each vote; every item has one. Every annotator has
    a matrix of what they take for what, A·K² numbers, so with few votes an annotator and answer it
    follows the noise. even: they are right with one probability and err evenly otherwise.

    Expectation and maximisation begin with the shares of votes, so that the truth is what most
    people mean and nothing in it is random, and end where no probability moves by `tolerance`.
    Dawid and Skene 1979, "Maximum likelihood estimation of observer error-rates using the EM
    algorithm", equations 2.3 to 2.5; even with the restriction of Zhang et al. 2016 ("Spectral
    methods meet EM", section 4).
    """
    items, people, k = (int(one.max(initial=-1)) + 1 for one in (item, annotator, answer))
    nothing = np.full((items, k), np.nan)
    if not items:
        return nothing, "there are no votes"
    if len(np.unique(answer)) == 1:
        return nothing, "every vote says the same"
    columns = annotator * k + answer
    given = sparse.csr_matrix((np.ones(len(item)), (item, columns)), (items, people * k))
    votes = _Votes(given=given, annotators=people, answers=k)
    by_answer = sparse.csr_matrix(np.tile(np.eye(k), (people, 1)))
    shares = (given @ by_answer).toarray()
    truth = shares / shares.sum(axis=1, keepdims=True)
    for _ in range(most_steps):
        errors = _even_errors(votes, truth) if even else _own_errors(votes, truth)
        before, truth = truth, _posterior(votes, truth.mean(axis=0), errors)
        if np.abs(truth - before).max() < tolerance:
            return truth, ""
    return nothing, f"it did not settle within {most_steps} steps"


def _posterior(votes: _Votes, prior: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """(I, K) by Bayes' rule; `errors` (A, K, K) is P(answer | truth), truth in the last place."""
    logarithms = np.log(np.clip(errors, _EDGE, 1 - _EDGE)).reshape(-1, votes.answers)
    odds = np.log(np.clip(prior, _EDGE, 1 - _EDGE)) + votes.given @ logarithms
    likely = np.exp(odds - odds.max(axis=1, keepdims=True))
    return likely / likely.sum(axis=1, keepdims=True)


def _counts(votes: _Votes, truth: np.ndarray) -> np.ndarray:
    """(A, K, K) expected votes by annotator, answer and truth."""
    return (votes.given.T @ truth).reshape(votes.annotators, votes.answers, votes.answers)


def _own_errors(votes: _Votes, truth: np.ndarray) -> np.ndarray:
    counts = _counts(votes, truth)
    seen = counts.sum(axis=1, keepdims=True)
    # Of a class an annotator never saw nothing is known: every answer is as likely.
    even = np.full(counts.shape, 1 / votes.answers)
    return np.divide(counts, seen, out=even, where=seen > 0)


def _even_errors(votes: _Votes, truth: np.ndarray) -> np.ndarray:
    counts = _counts(votes, truth)
    right = np.trace(counts, axis1=1, axis2=2) / counts.sum(axis=(1, 2))
    wrong = (1 - right) / (votes.answers - 1)
    return np.where(np.eye(votes.answers, dtype=bool), right[:, None, None], wrong[:, None, None])
