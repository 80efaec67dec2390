"""DP-SGD: gradients that are clipped image by image, added up and noised, and what it promises.

The account is the privacy loss ε of a training on clipped, noised gradients of sampled images:
Rényi differential privacy of the sampled Gaussian mechanism (Mironov, Talwar and Zhang 2019,
arXiv:1908.10530, §3) is added up over the steps, and turned into (ε, δ) as in Balle, Barthe,
Gaboardi, Hsu and Sato 2020, arXiv:1905.09982, Theorem 21. Neighbours differ by one image added or
left out. As every account of this kind it is an upper bound.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from semsim.base.errors import SettingsError
from semsim.base.registry import Checked, setting
from semsim.defences.base import ApplyAt, Defence, Phase, gaussian, noise_source


@dataclass(frozen=True, kw_only=True)
class DpSgd(Defence, Checked):
    """Abadi et al. 2016, arXiv:1607.00133, Algorithm 1, with batches drawn as its account needs.

    The draws are of torch's own generator, good for a measurement and not for a secret.

    Attributes:
        clip: The Euclidean norm C, over all parameters, that each image's gradient is cut to.
        noise: Σ; normal noise of σC is added to their sum, which is then divided by the size of a
            batch.
        delta: The δ at which ε is told, below 1 over the number of training images.
        apply_at: As for gradient noise. At "train" what is shared is the clean gradient of a model
            that was trained so; at "attack" the model is promised nothing.
    """

    clip: float = setting(1.0, above=0, below=math.inf)
    noise: float = setting(1.0, least=0, below=math.inf)
    delta: float = setting(1e-5, above=0, below=1)
    apply_at: ApplyAt = "both"

    @property
    def private(self) -> "DpSgd":
        return self

    def acts(self, phase: Phase) -> bool:
        """Return whether gradients are clipped and noised in `phase`."""
        return self.apply_at in (phase, "both")

    def clipped_sum(self, each: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The sum over images of their gradients, each cut to the norm `clip`.

        Args:
            each: One (N, *parameter.shape) a parameter.

        Returns:
            One of its shape a parameter.
        """
        squares = torch.stack([g.flatten(1).square().sum(1) for g in each])
        factor = (self.clip / squares.sum(0).sqrt().clamp_min(1e-12)).clamp_max(1)
        return tuple(torch.tensordot(factor, g, dims=1) for g in each)

    def noised_mean(
        self, total: Sequence[Tensor], batch: int, rng: torch.Generator, phase: Phase
    ) -> tuple[Tensor, ...]:
        """A clipped sum with noise, over `batch`, the size a batch should have; shapes as given."""
        std, source = self.noise * self.clip, noise_source(total[0].device, rng, phase)
        return tuple((g + std * gaussian(g, source).to(g.device)) / batch for g in total)

    def promise(self, images: int, batch: int, epochs: int) -> dict[str, Any]:
        """`epsilon`, None where it is infinite, and `delta` of a training, as kept in its facts.

        All `epochs` count, also those after one that ends the training early. Raises
        `SettingsError` where `delta` promises nothing to any one of the `images`.
        """
        if not self.delta < 1 / images:
            raise SettingsError(
                f"delta={self.delta:g} lets one of {images} training images be given away whole; "
                f"take one below {1 / images:.1g}."
            )
        spent = math.inf
        if self.acts("train"):
            steps = epochs * math.ceil(images / batch)
            spent = epsilon(self.noise, min(1.0, batch / images), steps, self.delta)
        return {"epsilon": None if math.isinf(spent) else spent, "delta": self.delta}


# Real orders near 1 for little noise, whole ones for much, as opacus and dp-accounting try them.
_ORDERS = (*(1 + tenth / 10 for tenth in range(1, 100)), *range(11, 64), 80, 128, 256, 512)
_LITTLE = 0.1  # noise below which sampling is left out of account: the bound is astronomical anyway


def epsilon(noise: float, rate: float, steps: int, delta: float) -> float:
    """ε of `steps` steps at `delta`, 0 or more; infinity without noise.

    Args:
        noise: Standard deviation of the noise on the sum of gradients, over the norm that each is
            clipped to.
        rate: Chance of each image to be in a step, by itself (Poisson sampling), 0 to 1.

    Raises:
        SettingsError: For what cannot be.
    """
    if not (noise >= 0 and 0 <= rate <= 1 and steps >= 0 and 0 < delta < 1):
        raise SettingsError(
            "An account needs noise of 0 or more, a rate from 0 to 1, no fewer than 0 steps and a "
            f"delta between 0 and 1; got {noise}, {rate}, {steps} and {delta}."
        )
    if rate == 0 or steps == 0:
        return 0.0
    if noise == 0:
        return math.inf
    return max(0.0, min(_at_order(order, noise, rate, steps, delta) for order in _ORDERS))


def renyi(order: float, noise: float, rate: float) -> float:
    """Rényi divergence of one step at `order` above 1, as Mironov et al. 2019, Eq. 4.

    log E[((1 − q) + q e^((2z−1)/2σ²))^α] / (α − 1) over z of N(0, σ²), by the trapezoid rule: its
    step is so small beside the distance of the integrand's poles, πσ², that its error is rounding.
    """
    plain = order / (2 * noise**2)
    if rate == 1 or noise < _LITTLE:
        return plain
    step = min(noise / 8, noise**2 / 2)
    z = np.arange(-12 * noise, order + 12 * noise, step)
    drawn = np.log(rate) + (2 * z - 1) / (2 * noise**2)
    logs = order * np.logaddexp(np.log1p(-rate), drawn) - z**2 / (2 * noise**2)
    total = np.logaddexp.reduce(logs) + math.log(step / (noise * math.sqrt(2 * math.pi)))
    return float(min(plain, max(total, 0.0) / (order - 1)))


def _at_order(order: float, noise: float, rate: float, steps: int, delta: float) -> float:
    spent = steps * renyi(order, noise, rate)
    return spent + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
