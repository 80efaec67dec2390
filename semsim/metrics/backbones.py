"""Networks that SemSim's features come from, always freshly initialised here."""

import re
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from semsim.base.errors import SettingsError, UnknownNameError
from semsim.base.metric_spec import CALIBRATED
from semsim.base.registry import unknown
from semsim.metrics.base import BACKBONES
from semsim.metrics.calibrated import PixelBlocks

if TYPE_CHECKING:
    from torchvision.models import ResNet

TIMM = "timm:"
# Names only: timm would take "hf-hub:…" as an order to fetch something.
_TIMM_NAME = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.]*")


def resnet50(small_stem: bool) -> tuple[nn.Module, int]:
    """ResNet-50 (He et al. 2016) up to its pooled layer, and its 2048 features."""
    from torchvision.models import resnet50  # slow to import, often not needed

    return _headless(resnet50(weights=None), small_stem), 2048


def resnet34(small_stem: bool) -> tuple[nn.Module, int]:
    """ResNet-34 (He et al. 2016) up to its pooled layer, and its 512 features."""
    from torchvision.models import resnet34  # slow to import, often not needed

    return _headless(resnet34(weights=None), small_stem), 512


def resnet18(small_stem: bool) -> tuple[nn.Module, int]:
    """ResNet-18 (He et al. 2016) up to its pooled layer, and its 512 features."""
    from torchvision.models import resnet18  # slow to import, often not needed

    return _headless(resnet18(weights=None), small_stem), 512


def resnet8(small_stem: bool) -> tuple[nn.Module, int]:
    """ResNet-8 for CIFAR (He et al. 2016, §4.2, n = 1) up to its pooled layer, and its 64 features.

    Args:
        small_stem: Changes nothing, since it is made for 32×32.
    """
    from torchvision.models.resnet import BasicBlock  # slow to import, often not needed

    stem = nn.Conv2d(3, 16, 3, padding=1, bias=False)
    body: list[nn.Module] = [stem, nn.BatchNorm2d(16), nn.ReLU()]
    for before, width in ((16, 16), (16, 32), (32, 64)):
        stride = 1 if width == before else 2
        narrowed = nn.Conv2d(before, width, 1, stride, bias=False)
        shortcut = None if stride == 1 else nn.Sequential(narrowed, nn.BatchNorm2d(width))
        body.append(BasicBlock(before, width, stride, shortcut))
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten()), 64


def lenet(small_stem: bool) -> tuple[nn.Module, int]:
    """LeNet-5 (LeCun et al. 1998) with ReLU up to its last hidden layer, and its 84 features.

    Args:
        small_stem: Changes nothing, since LeNet is made for 32×32.
    """
    body = nn.Sequential(
        nn.Conv2d(3, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(5),  # at 32×32 the 2×2 pooling of the paper
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
    )
    return body, 84


def make_backbone(name: str, small_stem: bool, input_size: int) -> tuple[nn.Module, int]:
    """The network called `name` without its classifier, and its number of features.

    Args:
        name: One of `BACKBONES`, any classifier of torchvision, or timm:<name> where timm is
            installed.
        input_size: Pixels a side of the images it will see.

    Raises:
        UnknownNameError: For another name.
        SettingsError: Where the network cannot take such images, has no linear classifier, or is no
            ResNet and `small_stem` is asked for.
    """
    from torchvision.models import ResNet  # slow to import, often not needed

    if name == CALIBRATED:  # weighted pixels stand where others have a network
        return PixelBlocks(), _width(PixelBlocks(), name, input_size)
    if name in BACKBONES:
        body, width = BACKBONES[name](small_stem)
        if not isinstance(body, ResNet):  # which takes any size
            _width(body, name, input_size)
        return body, width
    network = _named(name)
    if isinstance(network, ResNet):
        network = _with_stem(network, small_stem)
    elif small_stem:
        raise SettingsError(
            f"{name!r} has no stem for small images, only ResNets have. Use --no-small-stem, and "
            "a larger --input-size if it shrinks its input much."
        )
    if not name.startswith(TIMM):
        network = _without_classifier(network, name)
    return network, _width(network, name, input_size)


def torchvision_name(backbone: str) -> str:
    """Return torchvision's name of `backbone`; `SettingsError` where it has no such network."""
    if not _torchvision_has(backbone):
        raise SettingsError(
            f"torchvision has no weights for {backbone!r}. Start from scratch, or give a file."
        )
    return backbone


def _torchvision_has(classifier: str) -> bool:
    from torchvision import models  # slow to import, often not needed

    return classifier in models.list_models(module=models)


def _named(name: str) -> nn.Module:
    if name.startswith(TIMM):
        return _of_timm(name.removeprefix(TIMM))
    from torchvision.models import get_model  # slow to import, often not needed

    if not _torchvision_has(name):
        others = ", every classifier of torchvision by its name there, and timm:<name>"
        raise unknown("backbone", name, sorted(BACKBONES), others)
    network: nn.Module = get_model(name, weights=None)
    if hasattr(network, "aux_logits"):
        # In training they would come beside the features.
        network.aux_logits = False  # type: ignore[assignment]
    return network


def _of_timm(name: str) -> nn.Module:
    if not _TIMM_NAME.fullmatch(name):
        raise SettingsError(f"{name!r} cannot be a network of timm; expected a plain name.")
    if find_spec("timm") is None:
        raise SettingsError(f"{TIMM}{name} needs timm, which is not installed: pip install timm.")
    timm = import_module("timm")
    try:
        network: nn.Module = timm.create_model(name, pretrained=False, num_classes=0)
    except (RuntimeError, TypeError) as error:
        raise UnknownNameError(f"timm makes no network {name!r}: {error}.") from error
    return network


def _without_classifier(network: nn.Module, name: str) -> nn.Module:
    linear = [at for at, module in network.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise SettingsError(f"{name!r} has no linear classifier to take off; use another network.")
    network.set_submodule(linear[-1], nn.Identity())
    return network


def _width(network: nn.Module, name: str, side: int) -> int:
    was_training = network.training
    try:
        with torch.no_grad():
            features: Tensor = network.eval()(torch.zeros(1, 3, side, side))
    except (RuntimeError, ValueError, AssertionError) as error:
        raise SettingsError(
            f"{name!r} cannot take images of {side}×{side} ({error}). Set another input_size."
        ) from error
    finally:
        network.train(was_training)
    if features.ndim != 2:
        raise SettingsError(f"{name!r} gives {tuple(features.shape)}, not one row of features.")
    return features.shape[1]


def _headless(network: "ResNet", small_stem: bool) -> "ResNet":
    network = _with_stem(network, small_stem)
    network.fc = nn.Identity()
    return network


def _with_stem(network: "ResNet", small_stem: bool) -> "ResNet":
    if small_stem:
        # The stem for ImageNet shrinks its input by four, which leaves 32×32 images 1×1 at the end.
        network.conv1 = nn.Conv2d(3, 64, 3, stride=1, padding=1, bias=False)
        nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
        network.maxpool = nn.Identity()
    return network
