"""FID and KID: distances between the Inception features of two sets of images."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from semsim.base.errors import WeightsError
from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.intervals import FEWEST
from semsim.base.storage.optional import need
from semsim.base.storage.records import guarded
from semsim.metrics.base import Judge, Metric, Pairs, Resources, Scores, as_exact, batches
from semsim.metrics.frechet import Spread, check_clouds, few_images_note, frechet_distance
from semsim.weights import CHECKPOINTS, locate

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
