"""Intervals of shares, also where no resample of the images can vary them."""

import numpy as np
import scipy
from scipy.special import ndtri

WILSON = (
    "Where every resample gives the same share, as at 0 and 1, the interval is Wilson's score "
    "interval with each image of the model as one trial."
)
NEWCOMBE = (
    "Where every resample gives the same AUC, as at 0 and 1, the interval is Newcombe's score "
    "interval (method 5), which counts an original once for each kind of image it has."
)
FEW_ORIGINALS = (
    "Else its percentiles are taken further out where few originals have images of one kind, as "
    "Student's t is (Hesterberg 2015), and there is none where fewer than 4 have, or where more "
    "than 5 % of the resamples lack a kind."
)
NO_WIDTH = 1e-9  # means that are summed in another order differ by less
_Z = float(ndtri(0.975))  # scipy.stats.norm.ppf, which takes long to import


def wilson(share: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(M,) each: the ends of the 95 % score interval (Wilson 1927) of each share of n trials.

    NaN where the share is, or where n is 0.
    """
    spread = np.divide(_Z**2, n, out=np.full(np.shape(n), np.nan), where=np.asarray(n) > 0)
    middle = (share + spread / 2) / (1 + spread)
    half = np.sqrt(spread * share * (1 - share) + spread**2 / 4) / (1 + spread)
    # Rounding must not put an end beyond the shares there are.
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def newcombe(auc: float, m: int, n: int) -> tuple[float, float]:
    """The ends of the 95 % score interval of an AUC of `m` of one kind against `n` of the other.

    Newcombe 2006, "Confidence intervals for an effect size measure based on the Mann-Whitney
    statistic. Part 2", method 5: all values from which the AUC is at most 1.96 standard errors
    away, with the error that the value would have (Hanley and McNeil's, with (m + n) / 2 for
    either number in its numerator). With m = n = 1 it is Wilson's of one trial.
    """
    return _lowest_auc(auc, m, n), 1 - _lowest_auc(1 - auc, m, n)


def _lowest_auc(auc: float, m: int, n: int) -> float:
    more = (m + n) / 2 - 1

    def beyond(true: float) -> float:
        paired = 1 + more * ((1 - true) / (2 - true) + true / (1 + true))
        return (auc - true) ** 2 - _Z**2 * true * (1 - true) * paired / (m * n)

    # At an AUC of 1 the value 1 itself solves the equation, too; the other solution is below it.
    return 0.0 if auc <= 0 else float(scipy.optimize.brentq(beyond, 0.0, min(auc, 1 - NO_WIDTH)))
