"""Intervals of shares of images, also where no resample of the images can vary them."""

import numpy as np
from scipy.special import ndtri

WILSON = (
    "Where every resample gives the same share, as at 0 and 1, the interval is Wilson's score "
    "interval with each image of the model as one trial."
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
