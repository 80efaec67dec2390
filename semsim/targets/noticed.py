"""Signs by which a client can tell that a server changed the model it sends."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from semsim.targets.model import load_target
from semsim.types import LabelledImages

# Neighbouring steps of numbers drawn at random differ by a factor of 3 in the median: the ratio of
# two exponential variables is log-logistic, and |log| of it has the median log 3.
AT_RANDOM = 3.0
EVEN = 2.0  # such a factor below which biases are spaced too evenly
OUTSTANDING = 10.0  # D-SNR from which one picture's gradient stands out of the sum of the others
_SAME = 1e-5  # of a row's length: what rounding may add
HELD = 8  # pictures of a client that suffice for signs
_LOOKS = 3  # random directions by which rows are compared
_LEAST = 4  # weights of a row; shorter ones are often alike


@dataclass(frozen=True, kw_only=True)
class Sign:
    """One thing to notice.

    Attributes:
        ordinary: The same of an ordinary network.
        warns: Whether the value is none that an ordinary network has.
        means: A sentence on what follows where it warns.
    """

    what: str
    value: str
    ordinary: str
    warns: bool
    means: str


def signs_of(weights: Path, pictures: LabelledImages) -> list[Sign]:
    """`signs` of a target in a file of weights, with pictures of a client."""
    return signs(load_target(weights).eval(), pictures.images, pictures.labels)


def signs(model: nn.Module, images: Tensor, labels: Tensor) -> list[Sign]:
    """Look for signs in a model that a client received, in eval mode.

    Args:
        images: (N, C, H, W), pictures of the client, as the model takes them; the first `HELD`
            count.
        labels: (N,).
    """
    images, labels = images[:HELD], labels[:HELD]
    layers = [(name, _in_groups(rows), biases) for name, rows, biases in _layers(model)]
    nothing = ("", torch.zeros(0, dtype=torch.bool), torch.zeros(0))
    layer, alike, biases = max(
        layers, key=lambda one: one[1].sum().item() / len(one[1]), default=nothing
    )
    equal, of = int(alike.sum()), len(alike)
    factor = _evenness(biases[alike])
    ratio, place = d_snr(model, images, labels)
    return [
        Sign(
            what="equal rows in a layer",
            value=f"{equal} of {of} in {layer}" if equal else "none",
            ordinary="none",
            warns=equal > 0,
            means="Equal rows with other biases sort pictures into bins; one that is alone in its "
            "bin can be read off the gradient.",
        ),
        Sign(
            what="steps between the biases of these rows, factor between neighbours (median)",
            value="–" if math.isnan(factor) else f"{factor:.2f}",
            ordinary=f"{AT_RANDOM:g}",
            warns=factor < EVEN,
            means="Biases in even steps are planned, so that few pictures share a bin.",
        ),
        Sign(
            what=f"D-SNR of {len(images)} pictures",
            value=f"{ratio:.1f} in {place}" if place else "–",
            ordinary=f"< {OUTSTANDING:g}",
            warns=ratio >= OUTSTANDING,
            means="The gradient of one picture hides the others', as if it were shared alone.",
        ),
    ]


def d_snr(model: nn.Module, images: Tensor, labels: Tensor) -> tuple[float, str]:
    """D-SNR of a batch, max ‖∂ℓᵢ‖ / ‖Σ ∂ℓⱼ, j ≠ i‖ over linear and convolution weights, and where.

    Garov et al. 2024, arXiv:2306.03013. Infinite where one picture alone has a gradient; 0 and ""
    where none has.

    Args:
        images: (N, C, H, W).
        labels: (N,).
    """
    weights = {name: weight for name, weight in _weights(model) if weight.requires_grad}

    def gradients(place: int) -> tuple[Tensor, ...]:
        loss = F.cross_entropy(model(images[place, None]), labels[place, None])
        return torch.autograd.grad(loss, [*weights.values()], materialize_grads=True)

    totals = [torch.zeros_like(one) for one in weights.values()]
    for place in range(len(images)):
        for total, own in zip(totals, gradients(place), strict=True):
            total += own
    largest = (0.0, "")
    for place in range(len(images)):
        for name, total, own in zip(weights, totals, gradients(place), strict=True):
            length, others = float(own.norm()), float((total - own).norm())
            if length > 0:
                largest = max(largest, (length / others if others else math.inf, name))
    return largest


def _weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Linear | _ConvNd):
            yield name, layer.weight


def _layers(model: nn.Module) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Name, rows, (units, n), of length 1, and biases over the same lengths, (units,), of layers.

    Without rows of zeros; biases are NaN where there are none.
    """
    for name, weight in _weights(model):
        rows = weight.detach().flatten(1).double()
        lengths = rows.norm(dim=1)
        alive = lengths > 0
        bias = getattr(model.get_submodule(name), "bias", None)
        biases = torch.full_like(lengths, math.nan) if bias is None else bias.detach() / lengths
        if rows.shape[1] >= _LEAST and alive.any():
            yield name, rows[alive] / lengths[alive, None], biases[alive]


def _in_groups(rows: Tensor) -> Tensor:
    """Check which rows, (units, n), equal another: (units,) bool."""
    rng = torch.Generator().manual_seed(0)
    looks = rows @ torch.randn(rows.shape[1], _LOOKS, generator=rng).to(rows)
    order = looks[:, 0].argsort()
    same = (looks[order].diff(dim=0).abs() < _SAME).all(1)
    found = torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
    found[order[1:][same]] = True
    found[order[:-1][same]] = True
    return found


def _evenness(biases: Tensor) -> float:
    """Median factor between neighbouring steps of the biases of equal rows; NaN for too few."""
    steps = biases.unique().diff()  # sorted; what is there twice counts once
    ratios = steps.log().diff().abs()
    return float(ratios.median().exp()) if len(ratios) else math.nan
