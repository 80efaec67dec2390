"""A target classifier: images in [0, 1] in, logits out; normalisation and class names inside."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from semsim.base.errors import SettingsError, WeightsError
from semsim.base.registry import build
from semsim.base.storage.records import guarded
from semsim.targets.chance import CLASSIFIER
from semsim.targets.layers import plain_attention
from semsim.types import LabelledImages
from semsim.weights import read_facts, write_tensors


class Architecture(Protocol):
    """Settings of a network; calling them makes it, freshly initialised.

    `build(channels)` returns the feature extractor, (N, channels, H, W) to (N, width_out), and
    width_out.
    """

    __dataclass_fields__: ClassVar[dict]

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]: ...


@runtime_checkable
class Whole(Protocol):
    """Settings of a network that comes with its own last layer.

    `classifier(channels, size, classes)` returns all of it, (N, channels, H, W) to (N, classes).
    """

    __dataclass_fields__: ClassVar[dict]

    def classifier(self, channels: int, size: tuple[int, int], classes: int) -> nn.Module: ...


class TargetModel(nn.Module):
    """A classifier over `classes` that takes images as they are, in [0, 1].

    Attributes:
        mean, std: Of the training images, one value a channel; applied inside `features`.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        architecture: Architecture | Whole,
        classes: Sequence[str],
        *,
        mean: Sequence[float],
        std: Sequence[float],
        size: tuple[int, int],
    ) -> None:
        super().__init__()
        self.architecture = architecture
        self.classes = tuple(classes)
        self.size = size
        self.body, self.head = _parts(architecture, len(mean), size, len(self.classes))
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1))

    @classmethod
    def on(
        cls,
        architecture: Architecture | Whole,
        data: LabelledImages,
        mean: Sequence[float] = (),
        std: Sequence[float] = (),
    ) -> "TargetModel":
        """Return a classifier for the pictures of `data`; mean and std are 0.5 where not given."""
        channels, height, width = data.images.shape[1:]
        usual = [0.5] * channels
        facts: dict[str, Any] = {"mean": mean or usual, "std": std or usual}
        return cls(architecture, data.classes, **facts, size=(height, width))

    def features(self, images: Tensor) -> Tensor:
        """Return `head`'s input: (N, C, H, W) in [0, 1] to (N, d); of a whole one its logits."""
        with plain_attention():
            return self.body((images - self.mean) / self.std)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, (N, classes), of images, (N, C, H, W) in [0, 1]."""
        return self.head(self.features(images))


def _parts(
    architecture: Architecture | Whole, channels: int, size: tuple[int, int], classes: int
) -> tuple[nn.Module, nn.Module]:
    if isinstance(architecture, Whole):
        return architecture.classifier(channels, size, classes), nn.Identity()
    try:
        body, width = architecture.build(channels, size)
    except RuntimeError as error:
        raise SettingsError(
            f"{type(architecture).__name__} cannot take pictures of {size[1]}×{size[0]}, for which "
            f"it has too many layers; take larger ones, or another network: {error}"
        ) from error
    return body, nn.Linear(width, classes)


def save_target(model: TargetModel, path: Path, *, name: str, facts: Mapping[str, object]) -> None:
    """Write weights and all that is needed to load them again; `name` is its registry name."""
    config = {
        "name": name,
        "settings": asdict(model.architecture),
        "classes": model.classes,
        "mean": model.mean.flatten().tolist(),
        "std": model.std.flatten().tolist(),
        "size": model.size,
        "facts": dict(facts),
    }
    write_tensors(path, model.state_dict(), CLASSIFIER, config)


def load_target(path: Path, called: str = "") -> TargetModel:
    """The classifier written by `save_target`, in eval mode on the CPU.

    Args:
        called: What errors call a file that was copied to `path`; "" for its path.

    Raises:
        WeightsError: Where the file is missing, broken or of another kind.
    """
    from semsim.targets import NETWORKS

    if not Path(path).is_file():
        raise WeightsError(f"No classifier at {path}. `semsim-studio demo build` makes one.")
    config = read_facts(path, CLASSIFIER, called)
    with guarded(called or path, WeightsError):
        model = TargetModel(
            build(NETWORKS, config["name"], config["settings"]),
            config["classes"],
            mean=config["mean"],
            std=config["std"],
            size=tuple(config["size"]),
        )
        model.load_state_dict(load_file(str(path)), strict=True)
    return model.eval()
