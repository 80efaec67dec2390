"""Any classifier of torchvision by its name, freshly started or with torchvision's weights."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from semsim.errors import SettingsError, UnknownNameError, WeightsError
from semsim.targets.layers import feature_count, twice_differentiable
from semsim.weights import CHECKPOINTS

_AUXILIARY: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # Their side outputs in training are for their authors' own loss.
        "googlenet": {"aux_logits": False, "init_weights": True},
        "inception_v3": {"aux_logits": False, "init_weights": True},
    }
)
# torch.load has no error of its own: a broken file raises whatever its parser trips on.
_BROKEN = (OSError, RuntimeError, EOFError, LookupError, ValueError, pickle.UnpicklingError)


@dataclass(frozen=True, kw_only=True)
class Torchvision:
    """The torchvision classifier called `model`, its last linear layer left out.

    weights: the name of torchvision weights such as "DEFAULT" or "IMAGENET1K_V1", with which a
        training then starts; "" starts at random. The file is looked for in `checkpoints/` by its
        own name, then in torch's cache, and is fetched by torchvision where it is in neither.
    Normalisation stays that of the training images.
    """

    model: str = "resnet18"
    weights: str = ""

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The extractor at random weights, and its number of features.

        Raises `UnknownNameError` for a model torchvision does not have, `SettingsError` where
        its classifier does not end in a linear layer or the images are too small for it.
        """
        if channels != 3:
            raise SettingsError(f"torchvision's models take 3 channels; got {channels}.")
        body = _headless(self.model, size)
        try:
            return body, feature_count(body, channels, size)
        except (RuntimeError, AssertionError, ValueError) as error:
            raise SettingsError(
                f"torchvision's {self.model!r} cannot take {size[1]}×{size[0]} images: {error}"
            ) from error

    def start(self, body: nn.Module) -> None:
        """Give `body` the weights that a training starts with; `WeightsError` without them."""
        if not self.weights:
            return
        state = _weights(self.model, self.weights)
        kept = {key: value for key, value in state.items() if key in body.state_dict()}
        try:
            missing = body.load_state_dict(kept, strict=False).missing_keys
        except RuntimeError as error:
            raise WeightsError(f"{self.weights!r} does not fit {self.model!r}: {error}") from error
        if missing:
            raise WeightsError(f"{self.weights!r} of {self.model!r} lacks {missing[0]!r}.")


def _headless(name: str, size: tuple[int, int]) -> nn.Module:
    from torchvision import models  # slow to import, seldom needed

    if name not in models.list_models(module=models):
        known = ", ".join(models.list_models(module=models))
        raise UnknownNameError(f"torchvision has no classifier {name!r}. Known: {known}.")
    options = dict(_AUXILIARY.get(name, {}))
    if name.startswith("vit_") and size[0] == size[1]:
        options["image_size"] = size[0]
    try:
        model = models.get_model(name, weights=None, **options)
    except (ValueError, RuntimeError, AssertionError) as error:
        raise SettingsError(f"torchvision's {name!r} cannot be made: {error}") from error
    _drop_head(model, name)
    return twice_differentiable(model)


def _drop_head(model: nn.Module, name: str) -> None:
    parts = [
        (path, module) for path, module in model.named_modules() if not list(module.children())
    ]
    linear = [path for path, module in parts if isinstance(module, nn.Linear)]
    later = [m for _, m in parts[[p for p, _ in parts].index(linear[-1]) + 1 :]] if linear else []
    if not linear or later:
        raise SettingsError(f"torchvision's {name!r} does not end in a linear layer.")
    parent, _, child = linear[-1].rpartition(".")
    setattr(model.get_submodule(parent), child, nn.Identity())


def _weights(model: str, name: str) -> Mapping[str, Tensor]:
    from torchvision import models  # slow to import, seldom needed

    known = models.get_model_weights(model)
    if name != "DEFAULT" and name not in known.__members__:
        names = ", ".join(known.__members__)
        raise UnknownNameError(f"torchvision's {model!r} has no weights {name!r}. Known: {names}.")
    entry = known[name]
    path = CHECKPOINTS / Path(entry.url).name
    try:
        if path.is_file():
            return torch.load(path, map_location="cpu", weights_only=True)
        return entry.get_state_dict(check_hash=True, map_location="cpu")
    except _BROKEN as error:
        raise WeightsError(
            f"{path.name} could not be had ({error}). Fetch it from {entry.url} and put it in "
            f"{CHECKPOINTS}."
        ) from error
