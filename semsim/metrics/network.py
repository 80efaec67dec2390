"""SemSim itself: a network whose feature distance says how much of an original is left."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from semsim.base.errors import WeightsError
from semsim.base.jobs.orders import from_record
from semsim.base.storage.records import guarded
from semsim.metrics.backbones import make_backbone
from semsim.metrics.base import checked_pairs
from semsim.metrics.provenance import FORMAT, Provenance, read_config
from semsim.weights import write_tensors

_BATCH = 256  # images at once


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Settings of SemSim's network; `TrainSettings` explains each."""

    backbone: str = "resnet50"
    small_stem: bool = True
    input_size: int = 32
    normalize: bool = False


class SemSimModel(nn.Module):
    """Images to features; resizing and normalisation are inside.

    Attributes:
        mean, std: One value a channel of the images it learns from. In training mode it is a plain
            module; `semsim_distance` scores.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, settings: ModelSettings, *, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        super().__init__()
        self.settings = settings
        self.body, self.width = make_backbone(
            settings.backbone, settings.small_stem, settings.input_size
        )
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Features (N, d) of images (N, 3, H, W) in [0, 1]; unit length where settings say so."""
        images = resize(images, (self.settings.input_size,) * 2)
        features: Tensor = self.body((images - self.mean) / self.std)
        return F.normalize(features, dim=1) if self.settings.normalize else features


def resize(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Images (N, C, H, W) in [0, 1] at `size`, (H, W); the same tensor where they are."""
    if images.shape[2:] == size:
        return images
    resized = F.interpolate(images, size, mode="bicubic", antialias=True, align_corners=False)
    return resized.clamp(0, 1)  # bicubic overshoots at edges


def semsim_distance(
    model: SemSimModel,
    originals: Tensor,
    reconstructions: Tensor,
    of_originals: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """‖f(x) − f(x̂)‖₂ of each pair, (N,) on the CPU; smaller means more leakage.

    Sun et al. 2023, Fig. 4.

    Args:
        originals, reconstructions: (N, 3, H, W) in [0, 1]; H and W may differ between the two.
        of_originals: Gives f(x) of originals, as `semsim_features` does, where that is known
            already. The model is used in eval mode and left as it was.

    Raises:
        DataError: For anything else than float tensors in [0, 1] of these shapes.
    """
    originals, reconstructions = checked_judged(originals, reconstructions)
    first = of_originals(originals) if of_originals else semsim_features(model, originals)
    return torch.linalg.vector_norm(first - semsim_features(model, reconstructions), dim=1)


def checked_judged(originals: Tensor, reconstructions: Tensor) -> tuple[Tensor, Tensor]:
    """Return both as `checked_pairs`, (N, 3, H, W) of floats in [0, 1]; `DataError` for others.

    H and W may differ between the two, as each is resized.
    """
    kinds = ("float32", "float64")
    return checked_pairs(originals, reconstructions, dtypes=kinds, sizes_may_differ=True)


def semsim_features(model: SemSimModel, images: Tensor) -> Tensor:
    """f(x) of images (N, 3, H, W) in [0, 1], which are not checked: (N, d) on the CPU.

    The model is used in eval mode and left as it was.
    """
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            found = [_embed(model, batch).cpu() for batch in images.split(_BATCH)]
    finally:
        model.train(was_training)
    return torch.cat(found).clone()


def save_semsim(model: SemSimModel, path: Path, training: Provenance) -> None:
    """Write weights, settings and origin as one safetensors file; whole or not at all."""
    config = {
        "settings": asdict(model.settings),
        "mean": model.mean.flatten().tolist(),
        "std": model.std.flatten().tolist(),
        "training": asdict(training),
    }
    write_tensors(path, model.state_dict(), FORMAT, config)


def load_semsim(path: Path) -> SemSimModel:
    """The model written by `save_semsim`, in eval mode on the CPU.

    Raises `WeightsError` where the file is missing, broken, of another kind, or its weights do
    not fit its settings or are not finite.
    """
    config = read_config(path)
    with guarded(path, WeightsError, "holds no SemSim that can be used: {}"):
        weights = load_file(path)
        settings = from_record(ModelSettings, config["settings"])
        model = SemSimModel(settings, mean=config["mean"], std=config["std"])
        model.load_state_dict(weights, strict=True)
    check_usable(model, path)
    return model.eval()


def check_usable(model: SemSimModel, path: object) -> None:
    """Raise `WeightsError` where numbers of a model read from `path` are none to compute with."""
    weights = model.state_dict().values()
    if not all(bool(w.isfinite().all()) for w in weights if w.is_floating_point()):
        raise WeightsError(f"{path} has weights that are not finite; train it again.")
    if not bool((model.std > 0).all()):
        raise WeightsError(f"{path} has a spread of 0 or less in its channels; train it again.")


def _embed(model: SemSimModel, images: Tensor) -> Tensor:
    features: Tensor = model(images.to(device=model.mean.device, dtype=model.mean.dtype))
    return features
