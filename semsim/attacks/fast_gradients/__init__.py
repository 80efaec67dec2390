"""The parameter gradient of every image on its own, for many images in one pass.

Where every layer is known (`plan`) the gradients, and their slopes by the images, come from four
hand-made passes, which work on the inputs of each layer and the slopes of its outputs (Goodfellow
2015, arXiv:1510.01799, for linear layers; Rochette et al. 2019, arXiv:1912.06015, for
convolutions). Automatic differentiation gives the same numbers, but it differentiates a graph of
gradients, most nodes of which no attack needs. Everything else goes through `torch.func.vmap`, or,
one image at a time, through automatic differentiation alone.

A distance by cosine needs of the gradient g and the target t only ⟨g, t⟩ and ‖g‖², and its slope
by g is a mixture of both. For the weight of a linear layer g is an outer product, which is never
written out for that: it is by far the largest gradient of small networks.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.attacks.batch_norm import BatchNorm, batch_norm_mode
from semsim.attacks.fast_gradients.layers import (
    Along,
    Change,
    Kinked,
    Outer,
    OuterAlong,
    Passed,
    WithoutParameters,
)
from semsim.attacks.fast_gradients.plan import LayerStep, PassPlan, plan_for
from semsim.attacks.fast_gradients.surrogate_curvature import lending
from semsim.targets.each_image import gradients_by_vmap
from semsim.types import AttackedModel

_JOINED_LIMIT = 4_000_000  # values up to which copying them costs less than many small products


class EachGradient(torch.autograd.Function):
    """`fast_gradients.gradient_of_each`, of a plan."""

    @staticmethod
    def forward(
        ctx: Any, images: Tensor, labels: Tensor, plan: PassPlan, curvature: float
    ) -> tuple[Tensor, ...]:
        """One (N, *parameter.shape) a parameter, of images, (N, C, H, W), and labels, (N,)."""
        ctx.run, ctx.curvature = Passes(plan, images.detach(), labels), curvature
        found: dict[int, Tensor] = {}
        for place, one in ctx.run.pull_back():
            own = one.written() if isinstance(one, Outer) else one
            found[place] = found[place] + own if place in found else own
        return tuple(found[place] for place in range(plan.parameters))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *along: Tensor) -> tuple[Tensor, None, None, None]:
        """The slope by the images, (N, C, H, W);

        Args:
            along: (N, *parameter.shape) a parameter.
        """
        return ctx.run.slope_along(dict(enumerate(along)), ctx.curvature), None, None, None


class EachProduct(torch.autograd.Function):
    """`fast_gradients.products_of_each`, of a plan that shares no parameter."""

    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        labels: Tensor,
        how: tuple[PassPlan, float, bool],
        *targets: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """⟨g, t⟩ and ‖g‖², both (N, parts), of targets t, each (N, *parameter.shape).

        Args:
            how: Plan, curvature, and whether parts are joint.
        """
        plan, ctx.curvature, joint = how
        ctx.run = Passes(plan, images.detach(), labels)
        ctx.parts = _beside(dict(ctx.run.pull_back()), targets, joint=joint)
        dots = torch.stack([part.dot for part in ctx.parts], dim=1)
        return dots, torch.stack([part.square for part in ctx.parts], dim=1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, by_dots: Tensor, by_squares: Tensor) -> tuple[Tensor | None, ...]:
        """The slope by the images, (N, C, H, W), from those by the products, both (N, parts)."""
        along: dict[int, Tensor | OuterAlong] = {}
        for part, own, target in zip(ctx.parts, (2 * by_squares).T, by_dots.T, strict=True):
            along |= part.mixed(own[:, None], target[:, None])
        slope = ctx.run.slope_along(along, ctx.curvature)
        return slope, None, None, *[None] * len(along)


class Passes:
    """The four passes over one batch, of images (N, C, H, W) and labels (N,); the first at once."""

    def __init__(self, plan: PassPlan, images: Tensor, labels: Tensor) -> None:
        self.layers: list[tuple[int, LayerStep, Passed]] = []
        nodes = [images]
        for node, step in enumerate(plan.steps, start=1):
            made = step.make(*[nodes[source] for source in step.sources])
            self.layers.append((node, step, made))
            nodes.append(made.output)
        self.chances = nodes[-1].softmax(dim=1)
        misses = self.chances - F.one_hot(labels, self.chances.shape[1])
        self.slopes = {len(plan.steps): misses}  # of the loss by every node, from the second on

    def pull_back(self) -> list[tuple[int, Tensor | Outer]]:
        """The place of each parameter, and the gradients by it, (N, *parameter.shape).

        A parameter of two layers is there twice, with a part of its gradients each.
        """
        found: list[tuple[int, Tensor | Outer]] = []
        for node, step, made in reversed(self.layers):
            slope = self.slopes.get(node)
            if slope is None:
                continue  # nothing before or at this node has parameters
            if not isinstance(made, WithoutParameters):
                found += zip(step.places, made.own(slope), strict=True)
            if step.trained:
                _add_to(self.slopes, step.sources, made.pull(slope))
        return found

    def slope_along(self, along: Mapping[int, Any], curvature: float) -> Tensor:
        """The slope of ⟨along, g⟩ by the images, (N, C, H, W), with `along` held fixed.

        Args:
            along: By places.
            curvature: Of `fast_gradients.gradient_of_each`.

        Raises:
            ValueError: Where the network has no parameters.
        """
        of_step = [[along[place] for place in step.places] for _, step, _ in self.layers]
        changes = self._push(of_step)
        if changes[-1] is None:
            raise ValueError("A network without parameters has no gradient to match.")
        moved = self.chances * changes[-1]
        bent = {len(self.layers): moved - self.chances * moved.sum(dim=1, keepdim=True)}
        for node, step, made in reversed(self.layers):
            if curvature and isinstance(made, Kinked):
                made.lend(curvature)
            by_output, change = bent.pop(node), changes[step.sources[0]]
            if step.trained or step.places:
                own = of_step[node - 1]
                pulled = made.pull_change(by_output, self.slopes[node], change, own)
            else:
                pulled = made.pull(by_output)
            _add_to(bent, step.sources, pulled)
        return bent[0]

    def _push(self, along: Sequence[Along]) -> list[Change]:
        """The change of every node as the parameters change by `along`, that of each layer."""
        changes: list[Change] = [None]
        for (_, step, made), own in zip(self.layers, along, strict=True):
            several = [c for source in step.sources if (c := changes[source]) is not None]
            change = sum(several[1:], several[0]) if several else None
            if not isinstance(made, WithoutParameters):
                changes.append(made.push(change, own))
            else:
                changes.append(None if change is None else made.push(change))
        return changes


def _add_to(slopes: dict[int, Tensor], sources: tuple[int, ...], pulled: Tensor) -> None:
    for source in sources:
        slopes[source] = slopes[source] + pulled if source in slopes else pulled


class _Written:
    """Parameters at some places whose gradients are written out, joined, beside their targets.

    Attributes:
        dot: ⟨g, t⟩ and square: ‖g‖² of each image, both (N,).
    """

    def __init__(self, gradients: Mapping[int, Tensor], targets: Sequence[Tensor]) -> None:
        self.shapes = {place: one.shape for place, one in gradients.items()}
        self.gradient = _joined(list(gradients.values()))
        self.target = _joined([targets[place] for place in gradients])
        self.dot = _row_dots(self.gradient, self.target)
        self.square = _row_dots(self.gradient, self.gradient)

    def mixed(self, own: Tensor, target: Tensor) -> dict[int, Tensor]:
        """own · g + target · t of each image, for each of the parameters.

        Args:
            own, target: (N, 1), what ⟨g, t⟩ and ‖g‖² make of the slope of a distance.
        """
        both = torch.addcmul(self.target * target, self.gradient, own)
        parts = both.split([shape[1:].numel() for shape in self.shapes.values()], dim=1)
        pairs = zip(self.shapes.items(), parts, strict=True)
        return {place: part.view(shape) for (place, shape), part in pairs}


class _Unwritten:
    """The weight of a linear layer, as `_Written`; its target is (N, O, I)."""

    def __init__(self, place: int, gradient: Outer, target: Tensor) -> None:
        self.place, self.gradient, self.target = place, gradient, target
        slope, x = gradient
        self.target_x = torch.bmm(target, x[:, :, None])[:, :, 0]
        self.squares = _row_dots(slope, slope), _row_dots(x, x)
        self.dot, self.square = _row_dots(slope, self.target_x), self.squares[0] * self.squares[1]

    def mixed(self, own: Tensor, target: Tensor) -> dict[int, OuterAlong]:
        """As `_Written.mixed`."""
        (slope, x), (slope_square, x_square) = self.gradient, self.squares
        slope_target = torch.bmm(slope[:, None], self.target)[:, 0]
        along = OuterAlong(
            times_x=own * x_square[:, None] * slope + target * self.target_x,
            times_slope=own * slope_square[:, None] * x + target * slope_target,
        )
        return {self.place: along}


def _beside(
    gradients: Mapping[int, Tensor | Outer], targets: Sequence[Tensor], *, joint: bool
) -> list[_Written | _Unwritten]:
    """Gradients beside their targets, in as few parts as is quick; one each unless `joint`."""
    parts: list[_Written | _Unwritten] = []
    written = {p: one for p, one in sorted(gradients.items()) if isinstance(one, Tensor)}
    if joint and written and sum(map(torch.numel, written.values())) <= _JOINED_LIMIT:
        parts.append(_Written(written, targets))
        written = {}
    for place, one in sorted(gradients.items()):
        if isinstance(one, Outer):
            parts.append(_Unwritten(place, one, targets[place]))
        elif place in written:
            parts.append(_Written({place: one}, targets))
    return parts


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    if len(tensors) == 1:
        return tensors[0].flatten(1)
    return torch.cat([tensor.flatten(1) for tensor in tensors], dim=1)


def _row_dots(a: Tensor, b: Tensor) -> Tensor:
    return torch.bmm(a[:, None], b[:, :, None]).view(len(a))


def parameter_gradients(model: AttackedModel, images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    """Gradient of the mean cross-entropy with respect to every parameter of `model`.

    Args:
        images: (N, C, H, W) in [0, 1]; where they require a gradient the result can be
            differentiated by them.
        labels: (N,) class indices, or (N, classes) probabilities.
    """
    loss = F.cross_entropy(model(images), labels)
    return torch.autograd.grad(loss, tuple(model.parameters()), create_graph=images.requires_grad)


def gradient_of_each(
    model: AttackedModel,
    images: Tensor,
    labels: Tensor,
    *,
    batch_norm: BatchNorm = "eval",
    curvature: float = 0.0,
) -> tuple[Tensor, ...]:
    """`parameter_gradients` of each image alone, one (N, *parameter.shape) a parameter.

    The result can be differentiated once by images that require a gradient.

    Args:
        batch_norm: "train" normalises each image by its own statistics.
        curvature: Share of `lent_curvature` that ReLUs have where the result is differentiated. The
            gradients themselves do not depend on it.
    """
    plan = plan_for(model, images, labels) if batch_norm == "eval" else None
    if plan is not None:
        found: tuple[Tensor, ...] = EachGradient.apply(images, labels, plan, curvature)
        return found
    with batch_norm_mode(model, batch_norm), lending(curvature):
        if len(images) > 1 and isinstance(model, nn.Module):
            return gradients_by_vmap(model, images, labels)
        alone = map(partial(parameter_gradients, model), images.split(1), labels.split(1))
        return tuple(torch.stack(each) for each in zip(*alone, strict=True))


def products_of_each(
    model: AttackedModel,
    images: Tensor,
    labels: Tensor,
    targets: Sequence[Tensor],
    *,
    joint: bool,
    batch_norm: BatchNorm = "eval",
    curvature: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """⟨g, t⟩ and ‖g‖² of each image, with g as `gradient_of_each` and t from `targets`.

    Both (N, parameters), or, if `joint`, of groups of parameters. The gradients are not written
    out where every layer is known and none shares its parameters.
    """
    plan = plan_for(model, images, labels) if batch_norm == "eval" else None
    if plan is not None and not plan.shares:
        how = plan, curvature, joint
        products: tuple[Tensor, Tensor] = EachProduct.apply(images, labels, how, *targets)
        return products
    found = gradient_of_each(model, images, labels, batch_norm=batch_norm, curvature=curvature)
    pairs = zip(found, targets, strict=True)
    return torch.stack([sums(a * b) for a, b in pairs], dim=1), squares_of_each(found)


def squares_of_each(gradients: Sequence[Tensor]) -> Tensor:
    """The squared norm of each tensor of each image, (N, tensors).

    Args:
        gradients: One (N, *parameter.shape) a parameter.
    """
    return torch.stack([sums(gradient.square()) for gradient in gradients], dim=1)


def sums(values: Tensor) -> Tensor:
    """The sum over all but the first dimension: (N, …) to (N,)."""
    if len(values) == 1:  # one long sum is faster, and adds up as the authors' code does
        return values.sum()[None]
    return values.flatten(1).sum(1)
