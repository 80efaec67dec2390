"""LPIPS: the distance of deep features, weighted by what people called different."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from semsim.base.errors import WeightsError
from semsim.base.metric_spec import MetricSpec
from semsim.base.registry import Checked
from semsim.base.storage.optional import need
from semsim.base.storage.places import files_of
from semsim.base.storage.records import guarded
from semsim.metrics.base import (
    Judge,
    Pairs,
    Resources,
    Scores,
    as_array,
    as_exact,
    check_side,
    checked_pairs,
)
from semsim.weights import CHECKPOINTS, locate

if TYPE_CHECKING:
    from torch import Tensor, nn

Net = Literal["alex", "squeeze", "vgg"]
_BACKBONES: dict[Net, str] = {"alex": "alexnet", "squeeze": "squeezenet1_1", "vgg": "vgg16"}
_SIDES: dict[Net, int] = {"alex": 31, "squeeze": 17, "vgg": 16}
_TITLES: dict[Net, str] = {"alex": "AlexNet", "squeeze": "SqueezeNet", "vgg": "VGG-16"}
_BATCH = 32
_WHY = "its backbone halves them several times"  # images need a size


def lpips(
    originals: Tensor,
    reconstructions: Tensor,
    net: Net = "alex",
    *,
    checkpoints: Path | str = CHECKPOINTS,
) -> Tensor:
    """LPIPS 0.1 of each pair; lower means more leakage.

    The example needs the weights, `semsim-studio weights --download`, so it is not run:

    Zhang, Isola, Efros, Shechtman and Wang 2018, "The unreasonable effectiveness of deep features
    as a perceptual metric", equation 1.

    Args:
        originals: (N, 3, H, W) float32 in [0, 1], sides of 31 pixels or more for
            "alex", 17 for "squeeze", 16 for "vgg".
        reconstructions: As `originals`.
        checkpoints: Folder searched for the backbone's weights, before torch's own cache.

    Returns:
        (N,) float64, 0 or more, on the device of the originals, differentiable in both.

    Raises:
        DataError: For other images.
        WeightsError: Without the weights.

    >>> import torch
    >>> images = torch.rand(2, 3, 32, 32)
    >>> lpips(images, images)  # doctest: +SKIP
    tensor([0., 0.], dtype=torch.float64)
    """
    metric = Lpips(net=net)
    first, second = checked_pairs(originals, reconstructions)
    check_side(first, metric.spec, _WHY)
    model = metric.load(Resources(checkpoints=Path(checkpoints), device=originals.device))
    return as_exact(lpips_distance(model, first, second), originals.device)


@dataclass(frozen=True, kw_only=True)
class Lpips(Checked):
    """Learned perceptual image patch similarity, version 0.1, of the `lpips` package.

    Attributes:
        net: The backbone whose features are compared.
    """

    net: Net = "alex"

    @property
    def spec(self) -> MetricSpec:
        return MetricSpec(
            name=f"lpips-{self.net}",
            title=f"LPIPS ({_TITLES[self.net]})",
            higher_means_more_leakage=False,
            per_image=True,
            weights=(_BACKBONES[self.net],),
            libraries=("lpips",),
            smallest_side=_SIDES[self.net],
        )

    def files(self, resources: Resources) -> tuple[Path, ...]:
        need("lpips", "LPIPS", "lpips")
        return (locate(_BACKBONES[self.net], resources.checkpoints),)

    def prepare(self, resources: Resources) -> Judge:
        model = self.load(resources)

        def judge(pairs: Pairs) -> Scores:
            check_side(pairs.originals, self.spec, _WHY)
            distance = partial(lpips_distance, model)
            return Scores(values=as_array(distance, pairs, resources.device))

        return judge

    def load(self, resources: Resources) -> nn.Module:
        """Load the network, as `load_lpips`, onto the device of `resources`."""
        (backbone,) = self.files(resources)
        return load_lpips(self.net, backbone).to(resources.device)


def load_lpips(net: Net, backbone: Path) -> nn.Module:
    """LPIPS v0.1 with the torchvision backbone in the file `backbone`, in eval mode.

    Every weight is loaded from a file and by name; `WeightsError` where one is missing or left
    over. The caller's random state is left alone.
    """
    import lpips
    import torch

    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        # lpips still asks torchvision for `pretrained=False`, which is deprecated there.
        warnings.simplefilter("ignore", UserWarning)
        model = lpips.LPIPS(net=net, version="0.1", pretrained=False, pnet_rand=True, verbose=False)
    linear = files_of("lpips") / "weights" / "v0.1" / f"{net}.pth"
    weights = {
        **{name: value for name, value in model.named_buffers() if name.startswith("scaling")},
        **_backbone_weights(model, _read(backbone)),
        **_linear_weights(_read(linear)),
    }
    try:
        model.load_state_dict(weights, strict=True)
    except RuntimeError as error:
        raise WeightsError(f"{backbone} does not fit LPIPS's {net} backbone: {error}") from error
    return model.eval().requires_grad_(False)


def lpips_distance(model: nn.Module, originals: Tensor, reconstructions: Tensor) -> Tensor:
    """The distance of each pair, (N,), differentiable; its range [-1, 1] is made from [0, 1]."""
    import torch

    parts = zip(originals.split(_BATCH), reconstructions.split(_BATCH), strict=True)
    return torch.cat([model(a * 2 - 1, b * 2 - 1).flatten() for a, b in parts])


def _backbone_weights(model: nn.Module, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """torchvision's `features.<i>.*` under the names lpips gives them, `net.slice<k>.<i>.*`."""
    wanted = {
        name: "features." + name.split(".", 2)[2]
        for name in model.state_dict()
        if name.startswith("net.")
    }
    return {name: weights[theirs] for name, theirs in wanted.items() if theirs in weights}


def _linear_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of people's judgements; lpips holds each layer twice, as `lin0` and `lins.0`."""
    second = {"lins." + name.removeprefix("lin"): value for name, value in weights.items()}
    return {**weights, **second}


def _read(path: Path) -> dict[str, Tensor]:
    import torch

    with guarded(path, WeightsError):
        weights = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(weights, dict):
        raise WeightsError(f"{path} holds a {type(weights).__name__}; expected a state dict.")
    return weights
