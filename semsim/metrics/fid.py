"""FID and KID: distances between the Inception features of two sets of images."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from semsim.errors import WeightsError
from semsim.metrics.base import Judge, MetricSpec, Pairs, Resources, Scores, batches
from semsim.metrics.frechet import few_images_note, frechet_distance
from semsim.metrics.kid import kernel_distance
from semsim.weights import locate

INCEPTION = "inception-2015-12-05"
_BATCH = 16
Features = Callable[[Tensor], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Fid:
    """Fréchet Inception distance, with the Inception of 2015-12-05 and its own resize to 299."""

    @property
    def spec(self) -> MetricSpec:
        return _spec("fid", "FID")

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return _files(resources)

    def prepare(self, resources: Resources) -> Judge:
        features = inception_features(self.files(resources)[0], resources.device)
        return lambda pairs: frechet_scores(features, pairs)


@dataclass(frozen=True, kw_only=True)
class Kid:
    """Kernel Inception distance: the companion of FID that few images do not bias."""

    @property
    def spec(self) -> MetricSpec:
        return _spec("kid", "KID")

    def files(self, resources: Resources) -> tuple[Path, ...]:
        return _files(resources)

    def prepare(self, resources: Resources) -> Judge:
        features = inception_features(self.files(resources)[0], resources.device)

        def judge(pairs: Pairs) -> Scores:
            found = kernel_distance(features(pairs.originals), features(pairs.reconstructions))
            return Scores(values=np.array([found.value]), standard_error=found.standard_error)

        return judge


def _spec(name: str, title: str) -> MetricSpec:
    return MetricSpec(
        name=name,
        title=title,
        higher_means_more_leakage=False,
        per_image=False,
        weights=(INCEPTION,),
    )


def _files(resources: Resources) -> tuple[Path, ...]:
    return (locate(INCEPTION, resources.checkpoints),)


def frechet_scores(features: Features, pairs: Pairs) -> Scores:
    """The Fréchet distance of the features of both sides, with a note where N is below d."""
    first, second = features(pairs.originals), features(pairs.reconstructions)
    return Scores(
        values=np.array([frechet_distance(first, second)]), notes=few_images_note(*first.shape)
    )


def inception_features(path: Path, device: torch.device) -> Features:
    """A function from (N, 3, H, W) float32 in [0, 1] to (N, 2048) float64 Inception features.

    path: torch-fidelity's conversion of the network of 2015-12-05, its sha256 checked before.
    Raises `WeightsError` where the file does not hold that network.
    """
    from torch_fidelity.feature_extractor_inceptionv3 import FeatureExtractorInceptionV3

    # torch-fidelity unpickles whatever the file holds; it gets only what a safe load let through.
    checked = io.BytesIO()
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
    return (images * 255).round().to(torch.uint8)
