"""Networks that SemSim's features come from, always freshly initialised, never pretrained."""

from torch import nn
from torchvision.models import resnet18 as torchvision_resnet18
from torchvision.models import resnet50 as torchvision_resnet50
from torchvision.models.resnet import ResNet


def resnet50(small_stem: bool) -> tuple[nn.Module, int]:
    """ResNet-50 (He et al. 2016) up to its pooled layer, and its 2048 features."""
    return _headless(torchvision_resnet50(weights=None), small_stem), 2048


def resnet18(small_stem: bool) -> tuple[nn.Module, int]:
    """ResNet-18 (He et al. 2016) up to its pooled layer, and its 512 features."""
    return _headless(torchvision_resnet18(weights=None), small_stem), 512


def lenet(small_stem: bool) -> tuple[nn.Module, int]:
    """LeNet-5 (LeCun et al. 1998) with ReLU up to its last hidden layer, and its 84 features.

    small_stem: changes nothing, since LeNet is made for 32×32.
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


def _headless(network: ResNet, small_stem: bool) -> ResNet:
    if small_stem:
        # The stem for ImageNet shrinks its input by four, which leaves 32×32 images 1×1 at the end.
        network.conv1 = nn.Conv2d(3, 64, 3, stride=1, padding=1, bias=False)
        nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
        network.maxpool = nn.Identity()
    network.fc = nn.Identity()
    return network
