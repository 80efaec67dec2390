"""PBPFL: clients train on a masked model, and only the server can undo the mask.

Yang et al. 2020, arXiv:2002.09843. The server multiplies every hidden channel by a secret r > 0
and adds γ a 1ᵀ to the last layer. With α the sum of the last layer's inputs, a client's output is
ŷ = y + α γ a. For Φ = α⟨a, ŷ − ȳ⟩ and Ψ = α²/2, the true loss is

    ½‖y − ȳ‖² = ½‖ŷ − ȳ‖² − γ Φ + v Ψ,   v = γ²‖a‖²,

whatever the weights are. A client returns the gradients of the three right-hand terms by its
masked weights; the server adds them up and multiplies by R = ∂Ŵ/∂W. This works for the quadratic
loss only. A client holds an ordinary network with an ordinary gradient: see
`semsim.systems.federated.views` for what that leaks.

A mask passes through a network whose layers are positively homogeneous: a ReLU network computes the
same where a channel is multiplied by r > 0 and every weight that reads it is divided by r. Channels
that are added to each other need one common r; the network's inputs and outputs keep r = 1. Each
channel of each node therefore has a *slot*: the number of the r that it carries. PBPFL draws the r;
an attacker may choose them so that the result is the same for every draw.
"""

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from semsim.base.errors import SettingsError
from semsim.device import in_float64
from semsim.layer_graph import INPUT, Add, Concat, LayerGraph, Node
from semsim.systems.federated.settings import Pbpfl

FIXED = 0  # the slot of r = 1
_SAME = (
    nn.ReLU,
    nn.LeakyReLU,
    nn.MaxPool2d,
    nn.AvgPool2d,
    nn.AdaptiveAvgPool2d,
    nn.Identity,
)
_REASONS: Mapping[type[nn.Module], str] = {
    nn.Sigmoid: "a sigmoid of r·y is not r times a sigmoid of y; use ReLU",
    nn.Tanh: "a tanh of r·y is not r times a tanh of y; use ReLU",
    nn.BatchNorm2d: (
        "in training it divides by the batch's own deviation plus a constant. This undoes the "
        "mask and makes the recovered gradient wrong. Leave it out, or fold it into the "
        "convolution before it in evaluation mode"
    ),
    nn.LayerNorm: "it divides by each sample's own deviation, which undoes the mask; leave it out",
    nn.GELU: "a GELU of r·y is not r times a GELU of y; use ReLU",
}


@dataclass(frozen=True, kw_only=True)
class Slots:
    """The slots of all nodes.

    Attributes:
        of_node: One slot a channel (a feature, after flattening) of each node's output.
        count: Slots are 0 to count − 1, of which `FIXED` means r = 1; not every number in between
            is in use.
    """

    of_node: Mapping[str, tuple[int, ...]]
    count: int

    @property
    def free(self) -> tuple[int, ...]:
        """The slots whose r can be chosen."""
        used = {slot for slots in self.of_node.values() for slot in slots}
        return tuple(sorted(used - {FIXED}))


def slots_of(network: LayerGraph) -> Slots:
    """The slots of a network whose layers are all positively homogeneous.

    Raises `SettingsError` that names the layer that is not, and why.
    """
    finder = _Finder(network.shapes())
    for node in network.nodes:
        finder.visit(node, last=node is network.nodes[-1])
    return finder.result()


def scales_of(network: LayerGraph, slots: Slots, r: Tensor) -> dict[str, Tensor]:
    """Return the factor of each parameter: R_ij = r_i / r_j for weights, r_i for biases.

    Args:
        r: (slots.count,) positive, r[FIXED] = 1.

    Returns:
        Tensors that broadcast to the parameters, by parameter name. Yang et al. 2020,
        arXiv:2002.09843, Eqs 7, 13 and 14.
    """
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    scales = {}
    for node in network.nodes:
        if not isinstance(node.layer, nn.Linear | nn.Conv2d):
            continue
        outer = r[list(slots.of_node[node.name])]
        inner = r[list(slots.of_node[node.inputs[0]])]
        ratio = outer[:, None] / inner[None, :]
        kernel = (1,) * (node.layer.weight.dim() - 2)
        scales[names[id(node.layer.weight)]] = ratio.reshape(*ratio.shape, *kernel)
        if node.layer.bias is not None:
            scales[names[id(node.layer.bias)]] = outer
    return scales


class _Finder:
    """Slots under construction; slots that must be equal are joined."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.shapes = shapes
        self.parents = [FIXED]
        self.of_node: dict[str, list[int]] = {INPUT: [FIXED] * shapes[INPUT][0]}

    def visit(self, node: Node, *, last: bool) -> None:
        layer, inputs = node.layer, [self.of_node[name] for name in node.inputs]
        if last and not isinstance(layer, nn.Linear):
            raise SettingsError(
                f"The last layer is a linear one; got {type(layer).__name__} ({node.name!r}). "
                "PBPFL takes its additive noise back out of a linear output only."
            )
        if isinstance(layer, nn.Linear | nn.Conv2d):
            _check_weights(node, self.shapes[node.inputs[0]])
            width = self.shapes[node.name][0]
            self.of_node[node.name] = [FIXED] * width if last else self._fresh(width)
        elif isinstance(layer, Add):
            self.of_node[node.name] = self._joined(inputs)
        else:
            self.of_node[node.name] = self._passed_on(node, inputs)

    def result(self) -> Slots:
        of_node = {
            name: tuple(self._root(slot) for slot in slots) for name, slots in self.of_node.items()
        }
        return Slots(of_node=of_node, count=len(self.parents))

    def _passed_on(self, node: Node, inputs: list[list[int]]) -> list[int]:
        if isinstance(node.layer, Concat):
            return [slot for slots in inputs for slot in slots]
        if isinstance(node.layer, nn.Flatten):
            places = self.shapes[node.name][0] // len(inputs[0])
            return [slot for slot in inputs[0] for _ in range(places)]
        if type(node.layer) in _SAME:
            return inputs[0]
        kind = type(node.layer)
        why = _REASONS.get(kind, "it is not known to pass a positive factor through")
        raise SettingsError(f"PBPFL cannot mask {kind.__name__} ({node.name!r}): {why}.")

    def _fresh(self, width: int) -> list[int]:
        start = len(self.parents)
        self.parents += range(start, start + width)
        return list(range(start, start + width))

    def _joined(self, inputs: list[list[int]]) -> list[int]:
        for other in inputs[1:]:
            for mine, its in zip(inputs[0], other, strict=True):
                low, high = sorted((self._root(mine), self._root(its)))
                self.parents[high] = low  # the lower wins, so that FIXED stays FIXED
        return inputs[0]

    def _root(self, slot: int) -> int:
        while self.parents[slot] != slot:
            slot = self.parents[slot]
        return slot


def _check_weights(node: Node, shape: tuple[int, ...]) -> None:
    layer = node.layer
    if isinstance(layer, nn.Linear) and len(shape) != 1:
        raise SettingsError(
            f"The linear layer {node.name!r} takes flat features; got shape {shape}. Add a Flatten."
        )
    if isinstance(layer, nn.Conv2d) and (layer.groups != 1 or layer.padding_mode != "zeros"):
        raise SettingsError(
            f"The convolution {node.name!r} needs one group and zero padding; got "
            f"groups={layer.groups}, padding_mode={layer.padding_mode!r}."
        )


Tensors = Mapping[str, Tensor]
# Machine precisions by which the terms are off before they cancel: forward and backward round in
# every layer. Convolutions were off by up to 4 in some 500 recoveries in float32; twice that here.
_ROUNDINGS = 8.0


@dataclass(frozen=True, kw_only=True)
class MaskKey:
    """Secrets that the server keeps to undo a mask.

    Attributes:
        scales: R by parameter name, broadcasting to the parameter.
        gamma: Γ.
        v: Γ²‖a‖².
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
class ClientUpload:
    """Answer of a client: gradients with respect to its masked weights, by parameter name.

    Attributes:
        g: Of the noisy loss ½‖ŷ − ȳ‖².
        sigma: Of Φ.
        beta: Of Ψ, without the last layer, on which Ψ does not depend. Means over the mini-batch.
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

    Attributes:
        condition: (‖R∘g‖ + |γ|‖R∘σ‖ + v‖R∘β‖) / ‖gradient‖, 1 or more.
        error: The relative error that it lets rounding make, estimated from above.
    """

    gradients: dict[str, Tensor]
    condition: float
    error: float


def perturb(network: LayerGraph, settings: Pbpfl, rng: torch.Generator) -> tuple[MaskKey, Masked]:
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
    return MaskKey(scales=scales, gamma=gamma, v=v), Masked(network=masked, a=a)


def release(network: LayerGraph, settings: Pbpfl, rng: torch.Generator) -> LayerGraph:
    """The final model for clients: other weights, the same predictions ("data processing", §3.3).

    Only the multiplicative mask is used.
    """
    return _multiplied(network, _drawn_scales(network, settings, rng))


def client_forward(masked: Masked, inputs: Tensor, targets: Tensor) -> Losses:
    """A client's forward pass (Eqs 9 to 11 and 16, 17).

    Args:
        inputs: (N, …).
        targets: (N, outputs), one-hot for classes.
    """
    noisy, features = masked.network.with_features(inputs)
    alpha = features.sum(1)
    gap = noisy - targets.to(noisy.dtype)
    return Losses(
        noisy=gap.square().sum(1).mean() / 2,
        phi=(alpha * (gap @ masked.a)).mean(),
        psi=alpha.square().mean() / 2,
    )


def client_backward(masked: Masked, losses: Losses) -> ClientUpload:
    """A client's three backward passes (§3.2)."""
    named = dict(masked.network.named_parameters())

    def gradients(loss: Tensor, *, keep: bool) -> dict[str, Tensor]:
        found = torch.autograd.grad(
            loss, tuple(named.values()), retain_graph=keep, allow_unused=True
        )
        return {name: g for name, g in zip(named, found, strict=True) if g is not None}

    return ClientUpload(
        g=gradients(losses.noisy, keep=True),
        sigma=gradients(losses.phi, keep=True),
        beta=gradients(losses.psi, keep=False),
    )


def recover(key: MaskKey, upload: ClientUpload, settings: Pbpfl) -> Recovered:
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
