"""PBPFL: clients train on a masked model, and only the server can undo the mask.

Yang et al. 2020, arXiv:2002.09843. The server multiplies every hidden channel by a secret r > 0
and adds γ a 1ᵀ to the last layer. With α the sum of the last layer's inputs, a client's output is
ŷ = y + α γ a. For Φ = α⟨a, ŷ − ȳ⟩ and Ψ = α²/2, the true loss is

    ½‖y − ȳ‖² = ½‖ŷ − ȳ‖² − γ Φ + v Ψ,   v = γ²‖a‖²,

whatever the weights are. A client returns the gradients of the three right-hand terms by its
masked weights; the server adds them up and multiplies by R = ∂Ŵ/∂W. This works for the quadratic
loss only. A client holds an ordinary network with an ordinary gradient: see
`semsim.systems.federated.views` for what that leaks.
"""

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from semsim.base.errors import SettingsError
from semsim.device import in_float64
from semsim.layer_graph import LayerGraph
from semsim.systems.federated.pbpfl_masks import FIXED, scales_of, slots_of
from semsim.systems.federated.pbpfl_settings import Pbpfl

Tensors = Mapping[str, Tensor]
# Machine precisions by which the terms are off before they cancel: forward and backward round in
# every layer. Convolutions were off by up to 4 in some 500 recoveries in float32; twice that here.
_ROUNDINGS = 8.0


@dataclass(frozen=True, kw_only=True)
class Key:
    """Secrets that the server keeps to undo a mask.

    scales: R by parameter name, broadcasting to the parameter. gamma: γ. v: γ²‖a‖².
    """

    scales: Tensors
    gamma: float
    v: float


@dataclass(frozen=True, kw_only=True)
class Masked:
    """Model that a client receives: the masked network, and a, (outputs,)."""

    network: LayerGraph
    a: Tensor


@dataclass(frozen=True, kw_only=True)
class Upload:
    """Answer of a client: gradients with respect to its masked weights, by parameter name.

    g: of the noisy loss ½‖ŷ − ȳ‖². sigma: of Φ. beta: of Ψ, without the last layer, on which Ψ
    does not depend. Means over the mini-batch.
    """

    g: Tensors
    sigma: Tensors
    beta: Tensors

    def tensors(self) -> dict[str, Tensor]:
        """All of them under one name each, as "g/…", "sigma/…" and "beta/…"; shapes as they are."""
        parts = {"g": self.g, "sigma": self.sigma, "beta": self.beta}
        return {
            f"{part}/{name}": value for part, own in parts.items() for name, value in own.items()
        }

    @classmethod
    def of(cls, tensors: Tensors) -> Self:
        """The inverse of `tensors`."""
        return cls(
            g=under("g", tensors), sigma=under("sigma", tensors), beta=under("beta", tensors)
        )


@dataclass(frozen=True, kw_only=True)
class Losses:
    """The three scalars of a client's forward pass: the noisy loss, Φ and Ψ."""

    noisy: Tensor
    phi: Tensor
    psi: Tensor


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """The true gradient by parameter name, and how much rounding was amplified on the way.

    condition: (‖R∘g‖ + |γ|‖R∘σ‖ + v‖R∘β‖) / ‖gradient‖, 1 or more. error: the relative error that
    it lets rounding make, estimated from above.
    """

    gradients: dict[str, Tensor]
    condition: float
    error: float


def perturb(network: LayerGraph, settings: Pbpfl, rng: torch.Generator) -> tuple[Key, Masked]:
    """The server's part: mask the weights (Eqs 6, 7, 8, 12, 13, 14).

    The key stays on the server. `network` is left as it is. Raises `SettingsError` for layers that
    a mask does not pass through.
    """
    scales = _drawn_scales(network, settings, rng)
    outputs = _last_weight(network).shape[0]
    like = next(network.parameters())
    a = settings.a_high * torch.rand(outputs, generator=rng, dtype=torch.float64)
    if len(a.unique()) != outputs:
        raise SettingsError(f"The additive noise needs {outputs} different numbers; got {a}.")
    gamma = _uniform(1, settings.gamma_low, settings.gamma_high, rng).item()
    masked = _multiplied(network, scales)
    a = a.to(like)
    with torch.no_grad():
        _last_weight(masked).add_(gamma * a[:, None])
    v = gamma**2 * a.square().sum().item()
    return Key(scales=scales, gamma=gamma, v=v), Masked(network=masked, a=a)


def release(network: LayerGraph, settings: Pbpfl, rng: torch.Generator) -> LayerGraph:
    """The final model for clients: other weights, the same predictions ("data processing", §3.3).

    Only the multiplicative mask is used.
    """
    return _multiplied(network, _drawn_scales(network, settings, rng))


def client_forward(masked: Masked, inputs: Tensor, targets: Tensor) -> Losses:
    """A client's forward pass (Eqs 9 to 11 and 16, 17).

    inputs: (N, …). targets: (N, outputs), one-hot for classes.
    """
    noisy, features = masked.network.with_features(inputs)
    alpha = features.sum(1)
    gap = noisy - targets.to(noisy.dtype)
    return Losses(
        noisy=gap.square().sum(1).mean() / 2,
        phi=(alpha * (gap @ masked.a)).mean(),
        psi=alpha.square().mean() / 2,
    )


def client_backward(masked: Masked, losses: Losses) -> Upload:
    """A client's three backward passes (§3.2)."""
    named = dict(masked.network.named_parameters())

    def gradients(loss: Tensor, *, keep: bool) -> dict[str, Tensor]:
        found = torch.autograd.grad(
            loss, tuple(named.values()), retain_graph=keep, allow_unused=True
        )
        return {name: g for name, g in zip(named, found, strict=True) if g is not None}

    return Upload(
        g=gradients(losses.noisy, keep=True),
        sigma=gradients(losses.phi, keep=True),
        beta=gradients(losses.psi, keep=False),
    )


def recover(key: Key, upload: Upload, settings: Pbpfl) -> Recovered:
    """The true gradient, R ∘ (g − γ σ + v β) (Eqs 18 and 19).

    Raises `SettingsError` where cancellation leaves too few digits.
    """
    gradients, terms = {}, torch.zeros(3, dtype=torch.float64)
    for name, g in upload.g.items():
        scale = key.scales[name]
        parts = [scale * g, (scale * upload.sigma[name]).mul_(key.gamma)]
        if name in upload.beta:
            parts.append((scale * upload.beta[name]).mul_(key.v))
        for place, part in enumerate(parts):
            terms[place] += torch.linalg.vector_norm(in_float64(part)).item() ** 2
        gradients[name] = parts[0].sub_(parts[1])
        if name in upload.beta:
            gradients[name].add_(parts[2])
    condition = _condition(terms, gradients)
    dtype = next(iter(gradients.values())).dtype
    error = _ROUNDINGS * condition * torch.finfo(dtype).eps
    _check_error(error, condition, dtype, settings)
    return Recovered(gradients=gradients, condition=condition, error=error)


def under(part: str, tensors: Tensors) -> dict[str, Tensor]:
    """Those of `tensors`, of any shape, whose names start with "part/", without that start."""
    start = f"{part}/"
    return {name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)}


def _condition(terms: Tensor, gradients: Tensors) -> float:
    size = math.sqrt(sum(in_float64(g).square().sum().item() for g in gradients.values()))
    sum_of_terms = terms.sqrt().sum().item()
    if sum_of_terms == 0:
        return 1.0  # every unit is dead: nothing to recover, nothing lost
    return sum_of_terms / size if size > 0 else math.inf


def _check_error(error: float, condition: float, dtype: torch.dtype, settings: Pbpfl) -> None:
    if not error <= settings.tolerance:
        raise SettingsError(
            f"The recovered gradient could be off by {error:.1g} of its size (condition "
            f"{condition:.1e} in {str(dtype).removeprefix('torch.')}); {settings.tolerance:g} is "
            "accepted. Compute in float64, or take smaller a_high and gamma_high: the masks must "
            "not outweigh the signal."
        )


def _drawn_scales(network: LayerGraph, settings: Pbpfl, rng: torch.Generator) -> dict[str, Tensor]:
    slots = slots_of(network)
    r = torch.ones(slots.count, dtype=torch.float64)
    r[1:] = _uniform(slots.count - 1, settings.r_low, settings.r_high, rng)
    r[FIXED] = 1.0
    like = next(network.parameters())
    return {name: scale.to(like) for name, scale in scales_of(network, slots, r).items()}


def _uniform(count: int, low: float, high: float, rng: torch.Generator) -> Tensor:
    return low + (high - low) * torch.rand(count, generator=rng, dtype=torch.float64)


@torch.no_grad()
def _multiplied(network: LayerGraph, scales: Tensors) -> LayerGraph:
    masked = copy.deepcopy(network)
    for name, parameter in masked.named_parameters():
        parameter.mul_(scales[name])
    return masked


def _last_weight(network: LayerGraph) -> Tensor:
    weight = network.nodes[-1].layer.weight
    if not isinstance(weight, Tensor):
        raise SettingsError("The last layer of a masked network has weights; got none.")
    return weight
