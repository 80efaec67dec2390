"""Distances of what images would leak from what leaked, and priors of images.

Everything here works on many images at once: a gradient is one tensor (N, *parameter.shape) a
parameter, and a distance or prior is one value an image, (N,), so that no image sways another;
unless a client shared one thing for all of them.

Federated averaging (McMahan et al. 2017, arXiv:1602.05629) shares weights after several steps. An
attacker who knows the steps goes them with a guess at the pictures and differentiates through them
(Geiping et al. 2020, arXiv:2003.14053, section 6).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from semsim.attacks.batch_norm import BatchNorm, batch_norm_mode
from semsim.attacks.descent import Leaked
from semsim.attacks.fast_gradients import (
    gradient_of_each,
    products_of_each,
    squares_of_each,
    sums,
)
from semsim.attacks.fast_gradients.surrogate_curvature import lending
from semsim.base.errors import SettingsError
from semsim.types import AttackedModel, BatchNormStatistics, LocalSteps, UpdateObservation

Kind = Literal["cosine", "cosine-per-layer", "l2"]

# Share of the whole gradient's norm below which a tensor of it is taken to be rounding. A bias
# before batch norm in training mode has the gradient 0, and as computed some 1e-8 of the whole.
FLOOR = 1e-6
_TINY = 1e-12  # keeps a cosine with a vanished gradient finite


@dataclass(frozen=True, kw_only=True)
class Distance(ABC):
    """Distance between what images would leak and what leaked.

    Attributes:
        leaked: One (N, *parameter.shape) a parameter, (1, *parameter.shape) where it is of all
            images.
        labels: Theirs, (N,) class indices or (N, classes) probabilities.
        kind: Of `distance_of_each`.
        batch_norm, curvature: Of `fast_gradients.gradient_of_each`.
        joint: Whether the images share one distance, which then stands for each of them.
    """

    joint: ClassVar[bool]
    model: AttackedModel
    leaked: tuple[Tensor, ...]
    labels: Tensor
    kind: Kind | Literal["scaled"]
    batch_norm: BatchNorm = "eval"
    curvature: float = 0.0

    @abstractmethod
    def __call__(self, images: Tensor) -> Tensor:
        """(N, C, H, W) in [0, 1] to (N,), differentiable once by images that ask for it."""

    @abstractmethod
    def some(self, places: Sequence[int]) -> Self:
        """That of the images at `places` alone."""

    def beside_grey(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """That of images, (N, C, H, W) in [0, 1], and that of mid-grey ones; both (N,).

        For grey at most that of a gradient of zeros where batch norm takes an image's own
        statistics: of a plain image these are none, and its gradient is as large as rounding says.
        Attacks are compared by it; no gradient goes through.
        """
        grey = self(torch.full_like(images, 0.5)).detach()
        if self.batch_norm == "train":
            nothing = [torch.zeros_like(one) for one in self.leaked]
            grey = grey.minimum(distance_of_each(nothing, self.leaked, self.kind))
        return self(images).detach(), grey


def distance_from(
    seen: Leaked,
    labels: Sequence[int],
    kind: Kind | Literal["scaled"],
    *,
    batch_norm: BatchNorm = "eval",
    curvature: float = 0.0,
) -> Distance:
    """Distance of images from what leaked, on the model's device.

    Args:
        batch_norm: Of a picture that leaked alone; a client's steps say how they work.
    """
    if isinstance(seen, UpdateObservation):
        return UpdateDistance(
            model=seen.model,
            leaked=tuple(each[None] for each in seen.update),
            labels=torch.tensor(list(labels), device=seen.model.mean.device),
            kind=kind,
            batch_norm=seen.local.batch_norm,
            curvature=curvature,
            local=seen.local,
        )
    columns = zip(*(one.gradients for one in seen), strict=True)
    return GradientDistance(
        model=seen[0].model,
        leaked=tuple(torch.stack(column) for column in columns),
        labels=torch.tensor(list(labels), device=seen[0].model.mean.device),
        kind=kind,
        batch_norm=batch_norm,
        curvature=curvature,
    )


@dataclass(frozen=True, kw_only=True)
class GradientDistance(Distance):
    """Distance of the gradient of each image from the one that leaked of it."""

    joint: ClassVar[bool] = False

    def __call__(self, images: Tensor) -> Tensor:
        asked = self.model, images, self.labels
        if self.kind not in ("cosine", "cosine-per-layer"):
            found = gradient_of_each(*asked, batch_norm=self.batch_norm, curvature=self.curvature)
            return distance_of_each(found, self.leaked, self.kind)
        joint = self.kind == "cosine"
        dots, squares = products_of_each(
            *asked,
            self.leaked,
            joint=joint,
            batch_norm=self.batch_norm,
            curvature=self.curvature,
        )
        return _cosine_of_each(dots, squares, self._squares, joint=joint)

    def some(self, places: Sequence[int]) -> Self:
        if list(places) == list(range(len(self.labels))):
            return self
        index = torch.tensor(list(places), device=self.labels.device)
        leaked = tuple(one[index] for one in self.leaked)
        return replace(self, leaked=leaked, labels=self.labels[index])

    @cached_property
    def _squares(self) -> Tensor:
        return squares_of_each(self.leaked)


@dataclass(frozen=True, kw_only=True)
class UpdateDistance(Distance):
    """Distance of the simulated update of a client's pictures from the one that it shared.

    The labels are in the order of the pictures; `model` has the weights that the client was sent.
    """

    joint: ClassVar[bool] = True
    local: LocalSteps

    def __call__(self, images: Tensor) -> Tensor:
        with lending(self.curvature):
            made = simulated_update(self.model, images, self.labels, self.local)
        found = [each[None] for each in made]
        return distance_of_each(found, self.leaked, self.kind).expand(len(images))

    def some(self, places: Sequence[int]) -> Self:
        """That of all pictures; `SettingsError` for some of them, which have no distance."""
        if len(places) != len(self.labels):
            raise SettingsError("Pictures whose update is shared together are attacked together.")
        return self


def distance_of_each(
    found: Sequence[Tensor], target: Sequence[Tensor], kind: Kind | Literal["scaled"]
) -> Tensor:
    """Return the distance of each image's gradient from its target, (N,); 0 where they are equal.

    "l2": squared Euclidean distance, all tensors joined (Zhu et al. 2019, Eq. 3). "scaled": see
    `scaled_distance_of_each`.

    Args:
        found, target: One (N, *parameter.shape) a parameter. "cosine": one minus the cosine, all
            tensors joined (Geiping et al. 2020, Eq. 4), 0 to 2. "cosine-per-layer": the mean over
            tensors of one minus the cosine of each, 0 to 2; without those whose target is below
            `FLOOR` of the whole target. No tensor of `found` counts as shorter than that share of
            the whole.
    """
    pairs = list(zip(found, target, strict=True))
    if kind == "l2":
        return torch.stack([sums((a - b).square()) for a, b in pairs]).sum(0)
    if kind == "scaled":
        return scaled_distance_of_each(found, target)
    dots = torch.stack([sums(a * b) for a, b in pairs], dim=1)
    squares = squares_of_each(found), squares_of_each(target)
    return _cosine_of_each(dots, *squares, joint=kind == "cosine")


def scaled_distance_of_each(found: Sequence[Tensor], target: Sequence[Tensor]) -> Tensor:
    """Squared distance of gradients with small tensors lifted, one value an image, (N,).

    Σ w_i ‖found_i − target_i‖² / Σ w_i ‖target_i‖², i over tensors, each (N, *parameter.shape),
    w_i = ‖target_i‖^(−1/2), where no ‖target_i‖ counts as less than `FLOOR` of the whole: 0 where
    equal, 1 where `found` is 0. Between the joint relative distance, w_i = 1, which hears only the
    largest tensors, and one relative to each tensor, w_i = ‖target_i‖^(−2), in which the smallest
    drown the others; measured best for L-BFGS.
    """
    squares = torch.stack([b.flatten(1).square().sum(1) for b in target])
    norms = squares.sqrt().maximum(FLOOR * squares.sum(0).sqrt())
    weights = norms.clamp_min(torch.finfo(norms.dtype).tiny).rsqrt()
    errors = [(a - b).flatten(1).square().sum(1) for a, b in zip(found, target, strict=True)]
    return (weights * torch.stack(errors)).sum(0) / (weights * norms.square()).sum(0)


def _cosine_of_each(
    dots: Tensor, squares: Tensor, target_squares: Tensor, *, joint: bool
) -> Tensor:
    if joint:
        dots, squares, target_squares = (
            each.sum(dim=1, keepdim=True) for each in (dots, squares, target_squares)
        )
        return 1 - (dots / (squares * target_squares).sqrt().clamp_min(_TINY))[:, 0]
    least, target_least = (
        FLOOR**2 * each.sum(dim=1, keepdim=True) for each in (squares, target_squares)
    )
    # A root at exactly 0, which a layer behind dead units has, would have an infinite slope.
    lengths = squares.maximum(least).clamp_min(_TINY**2).sqrt()
    lengths = lengths * target_squares.clamp_min(_TINY**2).sqrt()
    heard = target_squares >= target_least
    apart = (1 - dots / lengths.clamp_min(_TINY)) * heard
    return apart.sum(1) / heard.sum(1)


class _TotalVariation(torch.autograd.Function):
    """Anisotropic total variation, mean |dx| + mean |dy|: (N, C, H, W) to (N,).

    By hand, as differentiating it costs more than the passes of a small network.
    """

    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        dx, dy = images.diff(dim=-1), images.diff(dim=-2)
        ctx.signs = dx.sign(), dy.sign()
        ctx.shares = 1 / max(1, dx[0].numel()), 1 / max(1, dy[0].numel())  # a row alone has no dy
        return sums(dx.abs()) * ctx.shares[0] + sums(dy.abs()) * ctx.shares[1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        by_dx, by_dy = (
            sign * (slope * share).view(-1, 1, 1, 1)
            for sign, share in zip(ctx.signs, ctx.shares, strict=True)
        )
        by_images = F.pad(by_dx, (1, 0)) - F.pad(by_dx, (0, 1))
        by_images[..., 1:, :] += by_dy
        by_images[..., :-1, :] -= by_dy
        return by_images


total_variation_of_each: Callable[[Tensor], Tensor] = _TotalVariation.apply


def batch_norm_distance(
    found: Sequence[tuple[Tensor, Tensor]], known: Sequence[BatchNormStatistics]
) -> Tensor:
    """Σ over layers of ‖mean − known mean‖ + ‖variance − known variance‖, one value an image.

    Args:
        found: Mean and variance, (N, channels) each, of every batch norm layer; there is one.
        known: N. Yin et al. 2021, arXiv:2104.07586; Huang et al. 2021, arXiv:2112.00059.
    """
    layers = []
    for layer, (mean, variance) in enumerate(found):
        means = torch.stack([one.means[layer] for one in known])
        variances = torch.stack([one.variances[layer] for one in known])
        layers.append(_lengths(mean - means) + _lengths(variance - variances))
    return torch.stack(layers).sum(0)


def _lengths(differences: Tensor) -> Tensor:
    # The norm has no slope at 0, where an attack that is right ends up.
    return (differences.square().sum(1) + _TINY).sqrt()


def simulated_update(
    model: AttackedModel, images: Tensor, labels: Tensor, local: LocalSteps
) -> tuple[Tensor, ...]:
    """The update of a client with these pictures: parameters after the steps less before.

    Args:
        images: (P, C, H, W) in [0, 1], in the order in which the client takes them; where they
            require a gradient the result can be differentiated by them, through all steps.
        labels: (P,).

    Returns:
        One tensor a parameter, as `UpdateObservation.update`.

    Raises:
        SettingsError: Where the model is no `torch.nn.Module`.
    """
    if not isinstance(model, nn.Module):
        raise SettingsError("Local steps are simulated for a torch.nn.Module alone.")
    names, start = zip(*model.named_parameters(), strict=True)
    pace = [torch.zeros_like(one) for one in start]
    moved = pace
    with batch_norm_mode(model, local.batch_norm, alone=False):
        for turn in local.turns(len(images)):
            now = [_leaf(one.detach() + by) for one, by in zip(start, moved, strict=True)]
            logits = functional_call(model, dict(zip(names, now, strict=True)), (images[turn],))
            loss = F.cross_entropy(logits, labels[turn])
            slopes = torch.autograd.grad(loss, now, create_graph=images.requires_grad)
            pace = [local.momentum * p + slope for p, slope in zip(pace, slopes, strict=True)]
            moved = [by - local.lr * p for by, p in zip(moved, pace, strict=True)]
    return tuple(moved)


def _leaf(weights: Tensor) -> Tensor:
    """Weights by which a loss can be differentiated."""
    return weights if weights.requires_grad else weights.requires_grad_(True)
