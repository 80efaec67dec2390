"""FID, KID and the Fréchet distance: between the features of two sets of images."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from semsim.base.errors import DataError, WeightsError
from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.intervals import FEWEST
from semsim.base.storage.optional import need
from semsim.base.storage.records import guarded
from semsim.metrics.base import Judge, Metric, Pairs, Resources, Scores, as_exact, batches
from semsim.weights import CHECKPOINTS, locate

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


if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class KernelDistance:
    """An estimate and its jackknife standard error, None below `FEWEST` rows."""

    value: float
    standard_error: float | None


def kernel_distance(first: np.ndarray, second: np.ndarray) -> KernelDistance:
    """Unbiased squared maximum mean discrepancy with the kernel (x·y / d + 1)³.

    The standard error is the jackknife's, which leaves out one row of both clouds at a time.
    Bińkowski et al. 2018, "Demystifying MMD GANs", equation 4; Gretton et al. 2012, "A kernel
    two-sample test", equation 3.

    Args:
        first: (N, d), N ≥ 2, of equal counts. The mean of k over pairs within either cloud,
            xᵢ with itself left out, less twice the mean over all pairs across: the estimator behind
            published KIDs. Around 0 for independent draws of equal distributions, and so below 0
            for about half of them and for clouds that are equal.
        second: As `first`.

    Raises:
        DataError: As `frechet_distance`.
    """
    check_clouds(first, second)
    x, y = first.astype(np.float64), second.astype(np.float64)
    within = _kernel(x, x) + _kernel(y, y)
    np.fill_diagonal(within, 0.0)
    across = _kernel(x, y)
    inside, outside, n = within.sum(), across.sum(), len(x)
    return KernelDistance(float(_estimate(inside, outside, n)), _jackknife(within, across))


def _estimate(inside: np.ndarray, outside: np.ndarray, n: int) -> np.ndarray:
    """The distance from the sums of all terms within the clouds, and of all across, n rows each."""
    return inside / (n * (n - 1)) - 2 * outside / n**2


def _jackknife(within: np.ndarray, across: np.ndarray) -> float | None:
    """The standard error over leaving out row and column i of both (n, n), one i at a time."""
    n = len(within)
    if n < FEWEST:
        return None
    inside = within.sum() - 2 * within.sum(axis=1)
    outside = across.sum() - across.sum(axis=0) - across.sum(axis=1) + np.diagonal(across)
    without = _estimate(inside, outside, n - 1)
    return float(np.sqrt((n - 1) / n * np.square(without - without.mean()).sum()))


def _kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x @ y.T / x.shape[1] + 1) ** 3


INCEPTION = "inception-2015-12-05"
_BATCH = 16
_KEPT = 4096  # images of which features are kept, 64 MiB of Inception's
Features = Callable[["Tensor"], np.ndarray]
FeaturesT = TypeVar("FeaturesT", bound=Sized)  # arrays or tensors, one row an image


def fid(
    originals: Tensor, reconstructions: Tensor, *, checkpoints: Path | str = CHECKPOINTS
) -> Tensor:
    """Fréchet Inception distance of two sets of images; lower means more leakage.

    The example needs weights, as `lpips` does, so it is not run:

    Heusel, Ramsauer, Unterthiner, Nessler and Hochreiter 2017, "GANs trained by a two time-scale
    update rule", equation 6.

    Args:
        originals: (N, 3, H, W) float32 in [0, 1].
        reconstructions: As `originals`.
        checkpoints: As for `lpips`.

    Returns:
        (1,) float64, 0 or more, on the device of the originals, without a gradient; it is biased
        where N is small.

    Raises:
        DataError: For other images.
        WeightsError: Without weights.

    >>> import torch
    >>> images = torch.rand(8, 3, 32, 32)
    >>> fid(images, images).shape  # doctest: +SKIP
    torch.Size([1])
    """
    return _of_sets(Fid(), originals, reconstructions, checkpoints)


def kid(
    originals: Tensor, reconstructions: Tensor, *, checkpoints: Path | str = CHECKPOINTS
) -> Tensor:
    """Kernel Inception distance of two sets of images; lower means more leakage.

    The example needs weights, as `lpips` does, so it is not run:

    Bińkowski, Sutherland, Arbel and Gretton 2018, "Demystifying MMD GANs", section 4.

    Args:
        originals: (N, 3, H, W) float32 in [0, 1].
        reconstructions: As `originals`.
        checkpoints: As for `lpips`.

    Returns:
        (1,) float64 on the device of the originals, without a gradient; it can be negative, being
        unbiased.

    Raises:
        DataError: For other images.
        WeightsError: Without weights.

    >>> import torch
    >>> images = torch.rand(8, 3, 32, 32)
    >>> kid(images, images).shape  # doctest: +SKIP
    torch.Size([1])
    """
    return _of_sets(Kid(), originals, reconstructions, checkpoints)


def _of_sets(
    metric: Metric, originals: Tensor, reconstructions: Tensor, checkpoints: Path | str
) -> Tensor:
    import torch

    pairs = Pairs(originals=originals, reconstructions=reconstructions)
    resources = Resources(checkpoints=Path(checkpoints), device=originals.device)
    values = metric.prepare(resources)(pairs).values
    return as_exact(torch.from_numpy(values), originals.device)


class _Inception:
    def files(self, resources: Resources) -> tuple[Path, ...]:
        need("torch_fidelity", "Inception", "fid")
        return (locate(INCEPTION, resources.checkpoints),)

    def features(self, resources: Resources) -> Features:
        """Loaded once for both metrics, of which the second finds the first's answers."""
        (path,), device = self.files(resources), resources.device
        return resources.shared(path, lambda: remembered(inception_features(path, device)))


@dataclass(frozen=True, kw_only=True)
class Fid(_Inception):
    """Fréchet Inception distance, with the Inception of 2015-12-05 and its own resize to 299."""

    @property
    def spec(self) -> MetricSpec:
        return _spec("fid", "FID")

    def prepare(self, resources: Resources) -> Judge:
        return FrechetJudge(features=self.features(resources))


@dataclass(frozen=True, kw_only=True)
class Kid(_Inception):
    """Kernel Inception distance: the companion of FID that few images do not bias."""

    @property
    def spec(self) -> MetricSpec:
        return _spec("kid", "KID")

    def prepare(self, resources: Resources) -> Judge:
        return _KernelJudge(features=self.features(resources))


def _spec(name: str, title: str) -> MetricSpec:
    return MetricSpec(
        name=name,
        title=title,
        higher_means_more_leakage=False,
        per_image=False,
        weights=(INCEPTION,),
        libraries=("torch-fidelity",),
    )


@dataclass(frozen=True, kw_only=True)
class FrechetJudge:
    """A judge by the Fréchet distance of `features`, with a note where N is below d.

    Of a set in parts it holds one part and, of either side, two features a dimension.
    """

    features: Features

    def __call__(self, pairs: Pairs) -> Scores:
        return self.of_parts(pairs.parts())

    def of_parts(self, parts: Iterable[Pairs]) -> Scores:
        first, second = Spread(), Spread()
        for part in parts:
            first.add(self.features(part.originals))
            second.add(self.features(part.reconstructions))
        value = frechet_distance(first, second)
        return Scores(values=np.array([value]), notes=few_images_note(*first.shape))


@dataclass(frozen=True, kw_only=True)
class _KernelJudge(FrechetJudge):
    """A judge by the kernel distance of `features`, which has to hold those of all images."""

    def of_parts(self, parts: Iterable[Pairs]) -> Scores:
        both = [
            (self.features(part.originals), self.features(part.reconstructions)) for part in parts
        ]
        found = kernel_distance(*(np.concatenate(side) for side in zip(*both, strict=True)))
        return Scores(values=np.array([found.value]), standard_error=found.standard_error)


def remembered(
    features: Callable[[Tensor], FeaturesT], most: int = _KEPT
) -> Callable[[Tensor], FeaturesT]:
    """`features` that keeps its last answers: sets of a study share originals, metrics both.

    Args:
        features: Of images (N, C, H, W), (N, d).
        most: Images of which answers are kept, beside those asked for last.
    """
    kept: dict[str, FeaturesT] = {}

    def of(images: Tensor) -> FeaturesT:
        content = images.cpu().numpy()
        key = f"{content.shape} {hashlib.sha256(content.tobytes()).hexdigest()}"
        found = kept.pop(key, None)
        kept[key] = features(images) if found is None else found  # the newest is the last
        while len(kept) > 1 and sum(map(len, kept.values())) > most:
            del kept[next(iter(kept))]
        return kept[key]

    return of


def inception_features(path: Path, device: torch.device | str) -> Features:
    """A function from (N, 3, H, W) float32 in [0, 1] to (N, 2048) float64 Inception features.

    Args:
        path: Torch-fidelity's conversion of the network of 2015-12-05, its sha256 checked before.

    Raises:
        WeightsError: Where the file does not hold that network.
    """
    import torch
    from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3

    # torch-fidelity unpickles whatever the file holds; it gets only what a safe load let through.
    checked = io.BytesIO()
    with guarded(path, WeightsError):
        torch.save(torch.load(path, map_location="cpu", weights_only=True), checked)
    checked.seek(0)
    try:
        with torch.random.fork_rng(devices=[]):
            network = FeatureExtractorInceptionV3(
                "inception", ["2048"], feature_extractor_weights_path=checked
            ).to(device)
    except (RuntimeError, TypeError) as error:
        raise WeightsError(f"{path} does not hold Inception v3: {error}") from error

    def features(images: Tensor) -> np.ndarray:
        with torch.inference_mode():
            parts = [network(_bytes(part))[0].cpu() for part in batches(images, _BATCH, device)]
        return torch.cat(parts).double().numpy()

    return features


def _bytes(images: Tensor) -> Tensor:
    return (images * 255).round().byte()
