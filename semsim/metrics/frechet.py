"""The Fréchet distance between the Gaussians of two feature clouds."""

import numpy as np

from semsim.base.errors import DataError

_BLOCK = 64  # columns that are worked on at once; 32 and 128 take longer


class Spread:
    """Mean and covariance of N feature vectors that come in parts; some 2 d of them are held.

    A factor F of the covariance FᵀF, not the covariance, is what the distance needs: the square
    root of a sum of outer products would have half of the digits only. Of rows [1, x] the first
    column takes the mean out, so that R of their QR decomposition without its first row and column
    is that factor, and R can stand for all rows seen so far (Demmel et al. 2012,
    "Communication-optimal parallel and sequential QR and LU factorizations", section 4). Rows that
    come later are put under R by LAPACK's `tpqrt`, which knows that R is a triangle.

    Attributes:
        shape: (N, d) of all parts.
        held: Rows in memory, with those of R.
    """

    def __init__(self) -> None:
        self.shape = (0, 0)
        self._triangle: np.ndarray | None = None
        self._rows: list[np.ndarray] = []
        self._near = self._sum = np.zeros(0)

    def add(self, features: np.ndarray) -> None:
        """Count in `features`, (n, d) of any n; `DataError` where they are not finite, or not d."""
        check_features(features)
        n, d = features.shape
        if not self.shape[0]:  # what is near the mean leaves the digits to what differs from it
            self._near = features.mean(axis=0, dtype=np.float64)
            self.shape, self._sum = (0, d), np.zeros(d)
        if d != self.shape[1]:
            raise DataError(f"Features came with {self.shape[1]} dimensions, then with {d}.")
        apart = features - self._near
        self._sum += apart.sum(axis=0)
        self._rows.append(np.column_stack([np.ones(n), apart]))
        self.shape = (self.shape[0] + n, d)
        if sum(map(len, self._rows)) > d + 1:
            self._triangle, self._rows = self._reduced(), []

    @property
    def held(self) -> int:
        return sum(map(len, self._rows)) + (0 if self._triangle is None else len(self._triangle))

    @property
    def mean(self) -> np.ndarray:
        """(d,) float64."""
        return np.asarray(self._near + self._sum / self.shape[0])

    @property
    def factor(self) -> np.ndarray:
        """F with FᵀF the covariance, shape (at most d, d); of N ≤ d the centred rows themselves."""
        n, d = self.shape
        if n > d:
            return self._reduced()[1:, 1:] / np.sqrt(n - 1)
        rows = np.concatenate(self._rows)[:, 1:]
        return np.asarray((rows - rows.mean(axis=0)) / np.sqrt(n - 1))

    def _reduced(self) -> np.ndarray:
        """R of all rows, (d + 1, d + 1), its lower part zero; there are more than d."""
        if not self._rows and self._triangle is not None:
            return self._triangle
        rows = np.concatenate(self._rows)
        if self._triangle is None:
            return np.asarray(np.linalg.qr(rows, mode="r"), order="F")
        from scipy.linalg.lapack import dtpqrt  # only many pictures come here

        upper, _, _, _ = dtpqrt(0, min(_BLOCK, len(self._triangle)), self._triangle, rows)
        return np.asarray(upper)


def frechet_distance(first: Spread, second: Spread) -> float:
    """|μ₁ − μ₂|² + tr(C₁ + C₂ − 2 (C₁C₂)^½) for the means and covariances of two clouds.

    Args:
        first, second: Of (N, d), N ≥ 2 and equal: the distance is biased by an amount that depends
            on N, so unequal counts raise `DataError`.

    Returns:
        0 or more. Dowson and Landau 1982; Heusel et al. 2017, "GANs trained by a two time-scale
        update rule", equation 6. With Cₖ = FₖᵀFₖ, tr (C₁C₂)^½ is the sum of the singular values of
        F₁F₂ᵀ, which is exact, real, and needs no square root of a matrix that N ≤ d makes singular.
    """
    check_alike(first.shape, second.shape)
    factors = first.factor, second.factor
    means = first.mean - second.mean
    cross = np.linalg.svd(factors[0] @ factors[1].T, compute_uv=False).sum()
    spread = sum(float(np.square(factor).sum()) for factor in factors)
    distance = float(means @ means) + spread - 2 * float(cross)
    return max(0.0, distance)  # rounding leaves about -1e-13 for equal clouds


def check_clouds(first: np.ndarray, second: np.ndarray) -> None:
    """Raise `DataError` unless both are finite (N, d) of one shape with N ≥ 2."""
    for cloud in (first, second):
        check_features(cloud)
    check_alike(first.shape, second.shape)


def check_features(cloud: np.ndarray) -> None:
    """Raise `DataError` unless it is (n, d) and finite."""
    if cloud.ndim != 2 or not np.isfinite(cloud).all():
        raise DataError(f"Features must be finite, (N, d); got shape {cloud.shape}.")


def check_alike(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """Raise `DataError` unless both are the (N, d) of one cloud and of another, N ≥ 2."""
    if first[0] != second[0]:
        raise DataError(
            f"The distance of feature clouds needs equal counts; got {first[0]} and "
            f"{second[0]}. Its bias depends on the count."
        )
    if first != second or first[0] < 2:
        raise DataError(
            f"Features must be two clouds of one shape with at least 2 rows; got {first} "
            f"and {second}."
        )


def few_images_note(n: int, d: int) -> tuple[str, ...]:
    """A warning where there are fewer images than feature dimensions, else nothing."""
    if n >= d:
        return ()
    return (
        f"{n} images for {d} feature dimensions: biased upward. Compare only sets of {n} images.",
    )
