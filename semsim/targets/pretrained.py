"""Any classifier of torchvision by its name, freshly started or with torchvision's weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from semsim.base.errors import SettingsError, WeightsError
from semsim.base.registry import setting, unknown
from semsim.base.storage.records import guarded
from semsim.targets.layers import feature_count, twice_differentiable
from semsim.weights import CHECKPOINTS

_AUXILIARY: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # Their side outputs in training are for their authors' own loss.
        "googlenet": {"aux_logits": False, "init_weights": True},
        "inception_v3": {"aux_logits": False, "init_weights": True},
    }
)


_NO_TARGETS = ("squeezenet1_0", "squeezenet1_1")  # they end in a convolution


def offered_models() -> Mapping[str, Sequence[str]]:
    """The names of torchvision's classifiers that can be targets, under ""."""
    from torchvision import models  # slow to import, seldom needed

    return {"": [one for one in models.list_models(module=models) if one not in _NO_TARGETS]}


def offered_weights() -> Mapping[str, Sequence[str]]:
    """The weights that `Torchvision` takes, by the name of the model; "" first, a random start."""
    return {model: ["", *_weights_of(model)] for model in offered_models()[""]}


@dataclass(frozen=True, kw_only=True)
class Torchvision:
    """The torchvision classifier called `model`, its last linear layer left out.

    Normalisation stays that of the training images.

    Attributes:
        weights: The name of torchvision weights such as "DEFAULT" or "IMAGENET1K_V1", with which a
            training then starts; "" starts at random. The file is looked for in `checkpoints/` by
            its own name, then in torch's cache, and is fetched by torchvision where it is in
            neither.
    """

    model: str = setting(
        "resnet18", "Model", "One of torchvision's classifiers.", offers=offered_models
    )
    weights: str = setting(
        "",
        "Weights it starts from",
        "Torchvision's for that model, or none: a random start.",
        offers=offered_weights,
        by="model",
    )

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The extractor at random weights, and its number of features.

        Raises `UnknownNameError` for a model torchvision does not have, or weights that the model
        does not have, `SettingsError` where its classifier does not end in a linear layer or the
        images are too small for it.
        """
        if channels != 3:
            raise SettingsError(f"torchvision's models take 3 channels; got {channels}.")
        body = _headless(self.model, size)
        _check_weights(self.model, self.weights)
        try:
            return body, feature_count(body, channels, size)
        except (RuntimeError, AssertionError, ValueError) as error:
            raise SettingsError(
                f"torchvision's {self.model!r} cannot take {size[1]}×{size[0]} images; choose "
                f"another model, or larger images: {error}"
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
            raise WeightsError(
                f"{self.weights!r} does not fit {self.model!r} for images of this size; choose "
                f"other weights, or none: {error}"
            ) from error
        if missing:
            raise WeightsError(f"{self.weights!r} of {self.model!r} lacks {missing[0]!r}.")


def _headless(name: str, size: tuple[int, int]) -> nn.Module:
    from torchvision import models  # slow to import, seldom needed

    if name not in models.list_models(module=models):
        known = models.list_models(module=models)
        raise unknown("classifier of torchvision", name, known)
    options = dict(_AUXILIARY.get(name, {}))
    if name.startswith("vit_") and size[0] == size[1]:
        options["image_size"] = size[0]
    wanted = torch.get_default_device()
    # A RegNet computes its own widths with tensors, which need numbers.
    device = torch.device("cpu") if name.startswith("regnet_") else wanted
    try:
        with device:
            model = models.get_model(name, weights=None, **options).to(wanted)
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


def _weights_of(model: str) -> Mapping[str, Any]:
    """The weights of a classifier by name, "DEFAULT" first.

    Those that know no classes have not-a-numbers where the classifier is.
    """
    from torchvision import models  # slow to import, seldom needed

    known = models.get_model_weights(model).__members__
    whole = {name: one for name, one in known.items() if one.meta["categories"] is not None}
    return dict(sorted(whole.items(), key=lambda one: one[0] != "DEFAULT"))


def _check_weights(model: str, name: str) -> None:
    if name and name not in _weights_of(model):
        kind = f"set of weights of torchvision's {model}"
        raise unknown(kind, name, _weights_of(model))


def _weights(model: str, name: str) -> Mapping[str, Tensor]:
    _check_weights(model, name)
    entry = _weights_of(model)[name]
    path = CHECKPOINTS / Path(entry.url).name
    told = f"could not be had ({{}}). Fetch it from {entry.url} and put it in {CHECKPOINTS}."
    with guarded(path, WeightsError, told):
        if path.is_file():
            return dict(torch.load(path, map_location="cpu", weights_only=True))
        return dict(entry.get_state_dict(check_hash=True, map_location="cpu"))
