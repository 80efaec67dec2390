"""Who is how reliable, and what is true? Both at once, from votes alone."""

from dataclasses import dataclass

import numpy as np

TOLERANCE = 1e-8  # the largest change of a posterior in the last step
MOST_STEPS = 2000
_EDGE = 1e-9  # keeps a rate off 0 and 1, where its logarithm ends


@dataclass(frozen=True, kw_only=True)
class DawidSkene:
    """What the model makes of the votes.

    posterior: (R,), the probability that an image is recognisable; NaN without a vote.
    sensitivity, specificity: (A,), how often each annotator recognises what is recognisable and
        does not recognise what is not.
    prevalence: the share of images that are recognisable.
    undefined: why there is no answer, or None; the numbers are NaN then.
    """

    posterior: np.ndarray
    sensitivity: np.ndarray
    specificity: np.ndarray
    prevalence: float
    undefined: str | None = None


def dawid_skene(recognised: np.ndarray) -> DawidSkene:
    """Fit the binary model of Dawid and Skene by expectation and maximisation.

    recognised: (R, A), 1, 0, or NaN where there is no vote. It starts from the share of votes that
    recognised an image, so "recognisable" means what most people mean, and ends where no posterior
    moves by more than `TOLERANCE`. Nothing in it is random.
    Dawid and Skene 1979, "Maximum likelihood estimation of observer error-rates using the EM
    algorithm", equations 2.3 to 2.5 with two classes.
    """
    cast = ~np.isnan(recognised)
    judged = cast.any(axis=1)
    votes, cast = np.where(cast, recognised, 0.0)[judged], cast[judged].astype(float)
    if not len(votes):
        return _undefined(recognised, "there are no votes")
    if votes.sum() in (0, cast.sum()):
        return _undefined(recognised, "every vote says the same")
    truth = votes.sum(axis=1) / cast.sum(axis=1)
    for _ in range(MOST_STEPS):
        rates = _rates(truth, votes, cast)
        before, truth = truth, _posterior(*rates, votes, cast)
        if np.abs(truth - before).max() < TOLERANCE:
            break
    else:
        return _undefined(recognised, f"it did not settle within {MOST_STEPS} steps")
    posterior = np.full(len(recognised), np.nan)
    posterior[judged] = truth
    prevalence, sensitivity, specificity = rates
    return DawidSkene(
        posterior=posterior,
        sensitivity=sensitivity,
        specificity=specificity,
        prevalence=prevalence,
    )


def _rates(
    truth: np.ndarray, votes: np.ndarray, cast: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Prevalence, sensitivity and specificity that fit the posterior best."""
    yes, no = truth @ cast, (1 - truth) @ cast
    # An annotator who saw nothing of a kind has no rate there: one half says nothing about it.
    sensitivity = np.divide(truth @ votes, yes, out=np.full(len(yes), 0.5), where=yes > 0)
    specificity = np.divide((1 - truth) @ (cast - votes), no, np.full(len(no), 0.5), where=no > 0)
    return float(truth.mean()), _off_the_edge(sensitivity), _off_the_edge(specificity)


def _posterior(
    prevalence: float,
    sensitivity: np.ndarray,
    specificity: np.ndarray,
    votes: np.ndarray,
    cast: np.ndarray,
) -> np.ndarray:
    """The probability that each image is recognisable, by Bayes' rule."""
    share = _off_the_edge(np.array(prevalence))
    odds = np.log(share / (1 - share))
    odds = odds + votes @ np.log(sensitivity / (1 - specificity))
    odds = odds + (cast - votes) @ np.log((1 - sensitivity) / specificity)
    return 1 / (1 + np.exp(-np.clip(odds, -500, 500)))


def _off_the_edge(rate: np.ndarray) -> np.ndarray:
    return np.clip(rate, _EDGE, 1 - _EDGE)


def _undefined(recognised: np.ndarray, why: str) -> DawidSkene:
    n, annotators = recognised.shape
    nothing = np.full(annotators, np.nan)
    return DawidSkene(
        posterior=np.full(n, np.nan),
        sensitivity=nothing,
        specificity=nothing,
        prevalence=np.nan,
        undefined=f"Dawid-Skene: {why}",
    )
