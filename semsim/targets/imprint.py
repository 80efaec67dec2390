"""A layer that a server puts before a network to read a client's pictures off its gradient.

Fowl et al. 2022, arXiv:2110.13057. Every row measures a picture's brightness; the biases are so
spaced that few pictures lie between the thresholds of two neighbours.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import torch
from torch import Tensor, nn

from semsim.base.registry import Checked, build, setting
from semsim.targets import TARGETS

_DARKEST = -10.0  # in deviations of pixels: the first threshold, below all pictures
_STRENGTH = 1e-3  # of rows and biases: small, so that weights as floats hold a step of a client
_LEANING = 2.0  # by which halves of usual pictures differ by about 1


class Imprint(nn.Module):
    """Pictures, (N, C, H, W), in and out, brighter by the mean output of the rows.

    Each threshold stands twice. The second copy's output counts by how much brighter the picture's
    left half is, and is subtracted on the right half: a bin with several pictures mixes them by
    other weights than the first copy.
    Training leaves the rows alone; they are written again whenever it ends.

    Attributes:
        thresholds: (bins,), brightness, the mean of normalised values, at which bins begin.
    """

    thresholds: Tensor
    side: Tensor

    def __init__(
        self, channels: int, size: tuple[int, int], bins: int, deviation: float = 0.5
    ) -> None:
        super().__init__()
        self.flatten, self.relu = nn.Flatten(), nn.ReLU()
        self.rows = nn.Linear(channels * size[0] * size[1], 2 * bins)
        normal = NormalDist(0, deviation)
        inner = [normal.inv_cdf(place / bins) for place in range(1, bins)]
        self.register_buffer("thresholds", torch.tensor([_DARKEST, *inner]))
        self.register_buffer("side", torch.where(torch.arange(size[1]) < size[1] // 2, 1.0, -1.0))
        self.plant()

    def learn(self, brightness: Tensor) -> None:
        """Take thresholds from auxiliary pictures, of which none is attacked.

        Args:
            brightness: (N,), the mean of each one's normalised values.
        """
        bins = len(self.thresholds)
        inner = torch.quantile(brightness.double(), torch.arange(1, bins).double() / bins)
        self.thresholds[1:] = inner.to(self.thresholds)
        self.plant()

    @torch.no_grad()
    def plant(self) -> None:
        """Write rows and biases."""
        self.rows.weight.fill_(_STRENGTH / self.rows.in_features)
        self.rows.bias.copy_(-_STRENGTH * self.thresholds.repeat(2))

    def train(self, mode: bool = True) -> "Imprint":
        """As of any module; rows are planted where training ends."""
        super().train(mode)
        if not mode:
            self.plant()
        return self

    def forward(self, pictures: Tensor) -> Tensor:
        """(N, C, H, W) to the same shape."""
        on = self.relu(self.rows(self.flatten(pictures))).unflatten(1, (2, -1)).mean(2)
        if self.training:
            on = on.detach() + 0 * on
        all_over, by_side = on[:, :, None, None, None].unbind(1)
        leaning = 1 + _LEANING * (pictures * self.side).mean((1, 2, 3), keepdim=True)
        return pictures + all_over + leaning * by_side * self.side


@dataclass(frozen=True, kw_only=True)
class Imprinted(Checked):
    """A network behind an `Imprint`, as a server that attacks its clients sends it.

    Attributes:
        network: The one behind, with its usual settings.
        auxiliary: Source of the distribution of brightness: "training", the pictures that the
            target learned from, of which none is attacked, or "normal", which is also that of a
            network that was never trained or by DP-SGD.
        deviation: Of the normal distribution of brightness, in deviations of pixels.
    """

    network: str = setting("cnn4", choices=tuple(name for name in TARGETS if name != "imprint"))
    bins: int = setting(256, least=2)
    auxiliary: Literal["training", "normal"] = "training"
    deviation: float = setting(0.5, above=0)

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """The layer and the extractor behind it, and its number of features."""
        behind = build(TARGETS, self.network)
        body, width = behind.build(channels, size)
        return nn.Sequential(Imprint(channels, size, self.bins, self.deviation), body), width

    def calibrate(self, body: nn.Module, brightness: Tensor) -> None:
        """Place the thresholds of `body`, a fresh one, as `auxiliary` has them.

        Args:
            brightness: (N,), of the training pictures, the mean of each one's normalised values.
        """
        layer = next(iter(body.children()))
        if self.auxiliary == "training" and isinstance(layer, Imprint):
            layer.learn(brightness)
