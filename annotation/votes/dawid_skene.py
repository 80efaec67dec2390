"""What is in an image and how reliable is who? Both at once, from the classes people named."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import sparse

from annotation.votes.ballots import NO_VOTES, Ballots

TOLERANCE = 1e-5  # the largest change of a posterior in the last step
MOST_STEPS = 3000
_EDGE = 1e-9  # keeps a probability off 0, where its logarithm ends
_TIE = 1e-9  # posteriors closer than this are equal


@dataclass(frozen=True, kw_only=True)
class Model:
    """What the model makes of the votes.

    answers: (K,) the answers given to any item, sorted.
    posterior: (I, K) the probability that the truth of an item is that answer.
    reliability: (A,) how often each annotator gives the true answer, over the items they saw.
    reason: why there is nothing, else empty; the numbers are NaN then.
    """

    answers: tuple[str, ...]
    posterior: np.ndarray
    reliability: np.ndarray
    reason: str = ""

    def labels(self) -> pd.Series:
        """(I,) the most probable answer; missing where two are equally so, and without a model."""
        if self.reason:
            return pd.Series([None] * len(self.posterior), dtype="str")
        top = self.posterior.max(axis=1, keepdims=True)
        tie = (self.posterior > top - _TIE).sum(axis=1) > 1
        said = np.asarray(self.answers, dtype=object)[self.posterior.argmax(axis=1)]
        return pd.Series(said, dtype="str").mask(pd.Series(tie))


@dataclass(frozen=True, kw_only=True)
class _Votes:
    """given: (I, A·K) one 1 a vote, in the column of its annotator and answer; A, K."""

    given: sparse.csr_matrix
    annotators: int
    answers: int


def one_coin(ballots: Ballots) -> Model:
    """The model in which an annotator is right with one probability, and errs evenly otherwise.

    Expectation and maximisation from the shares of votes, so nothing in it is random. Dawid and
    Skene 1979 with the restriction of Zhang et al. 2016 ("Spectral methods meet EM", section 4).
    """
    return _fit(ballots, _even_errors)


def full(ballots: Ballots) -> Model:
    """The model in which every annotator has a matrix of what they take for what.

    Dawid and Skene 1979, equations 2.3 to 2.5. It has A·K² numbers: with few votes an annotator
    and class it follows the noise, and `one_coin` is the safer choice.
    """
    return _fit(ballots, _own_errors)


def _fit(ballots: Ballots, errors: Callable[[_Votes, np.ndarray], np.ndarray]) -> Model:
    answer, names = pd.factorize(ballots.votes["answer"], sort=True)
    n_items, people, k = len(ballots.first), len(ballots.annotators), len(names)
    reason = NO_VOTES if not n_items else "every vote says the same" if k == 1 else ""
    ones = np.ones(len(answer))
    given = sparse.csr_matrix(
        (ones, (ballots.item, ballots.annotator * k + answer)), (n_items, people * k)
    )
    votes = _Votes(given=given, annotators=people, answers=k)
    truth = np.full((n_items, k), np.nan)
    if not reason:
        truth, settled = _settle(votes, errors)
        reason = "" if settled else f"it did not settle within {MOST_STEPS} steps"
    if reason:
        truth = np.full((n_items, k), np.nan)
    right = np.bincount(ballots.annotator, truth[ballots.item, answer], people)
    return Model(
        answers=tuple(map(str, names)),
        posterior=truth,
        reliability=right / np.bincount(ballots.annotator, minlength=people),
        reason=reason,
    )


def _settle(
    votes: _Votes, errors: Callable[[_Votes, np.ndarray], np.ndarray]
) -> tuple[np.ndarray, bool]:
    """The posterior (I, K) at which expectation and maximisation settle, and whether they do."""
    by_answer = sparse.csr_matrix(np.tile(np.eye(votes.answers), (votes.annotators, 1)))
    shares = (votes.given @ by_answer).toarray()
    truth = shares / shares.sum(axis=1, keepdims=True)
    for _ in range(MOST_STEPS):
        before, truth = truth, _posterior(votes, truth.mean(axis=0), errors(votes, truth))
        if np.abs(truth - before).max() < TOLERANCE:
            return truth, True
    return truth, False


def _posterior(votes: _Votes, prior: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """(I, K) by Bayes' rule; `errors` (A, K, K) is P(answer | truth), truth in the last place."""
    logarithms = np.log(np.maximum(errors, _EDGE)).reshape(-1, votes.answers)
    odds = np.log(np.maximum(prior, _EDGE)) + votes.given @ logarithms
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
