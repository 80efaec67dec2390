"""The Fréchet distance between the Gaussians of two feature clouds."""

import numpy as np

from semsim.errors import DataError


def frechet_distance(first: np.ndarray, second: np.ndarray) -> float:
    """|μ₁ − μ₂|² + tr(C₁ + C₂ − 2 (C₁C₂)^½) for the means and covariances of two clouds.

    first, second: (N, d), one feature vector a row, N ≥ 2 and equal: the distance is biased by
    an amount that depends on N, so unequal counts raise `DataError`. Returns 0 or more.
    Dowson and Landau 1982; Heusel et al. 2017, "GANs trained by a two time-scale update rule",
    equation 6. With Cₖ = FₖᵀFₖ, tr (C₁C₂)^½ is the sum of the singular values of F₁F₂ᵀ, which
    is exact, real, and needs no square root of a matrix that N ≤ d makes singular.
    """
    check_clouds(first, second)
    factors = [_factor(cloud) for cloud in (first, second)]
    means = first.mean(axis=0, dtype=np.float64) - second.mean(axis=0, dtype=np.float64)
    cross = np.linalg.svd(factors[0] @ factors[1].T, compute_uv=False).sum()
    spread = sum(float(np.square(factor).sum()) for factor in factors)
    distance = float(means @ means) + spread - 2 * float(cross)
    return max(0.0, distance)  # rounding leaves about -1e-13 for equal clouds


def check_clouds(first: np.ndarray, second: np.ndarray) -> None:
    """Raise `DataError` unless both are finite (N, d) of one shape with N ≥ 2."""
    for cloud in (first, second):
        if cloud.ndim != 2 or not np.isfinite(cloud).all():
            raise DataError(f"Features must be finite, (N, d); got shape {cloud.shape}.")
    if len(first) != len(second):
        raise DataError(
            f"The distance of feature clouds needs equal counts; got {len(first)} and "
            f"{len(second)}. Its bias depends on the count."
        )
    if first.shape != second.shape or len(first) < 2:
        raise DataError(
            f"Features must be two clouds of one shape with at least 2 rows; got {first.shape} "
            f"and {second.shape}."
        )


def few_images_note(n: int, d: int) -> tuple[str, ...]:
    """A warning where there are fewer images than feature dimensions, else nothing."""
    if n >= d:
        return ()
    return (
        f"{n} images for {d} feature dimensions: biased upward. Compare only sets of {n} images.",
    )


def _factor(cloud: np.ndarray) -> np.ndarray:
    """F with FᵀF the covariance of `cloud`, of at most min(N, d) rows."""
    centred = cloud.astype(np.float64) - cloud.mean(axis=0, dtype=np.float64)
    factor = centred / np.sqrt(len(cloud) - 1)
    if len(cloud) <= cloud.shape[1]:
        return factor
    return np.asarray(np.linalg.qr(factor, mode="r"))
