"""The gradient of every image, and its slope by the images, in four hand-made passes.

Automatic differentiation gives the same numbers, but it differentiates a graph of gradients, most
nodes of which no attack needs. The passes are those of `layer_passes`; a network is turned into
a list of them once, from its traced graph.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from semsim.attacks.fast_gradients import layers as passes
from semsim.attacks.fast_gradients.layers import Kinked, LinearMap, Passed
from semsim.attacks.fast_gradients.matched import Outer, Pair, grouped

_LAYERS: dict[type[nn.Module], Callable[[Any, Tensor], Passed]] = {
    nn.Conv2d: passes.convolution,
    nn.Linear: passes.Linear,
    nn.BatchNorm2d: passes.BatchNorm,
    nn.ReLU: passes.relu,
    nn.LeakyReLU: passes.leaky_relu,
    nn.Tanh: passes.tanh,
    nn.Sigmoid: passes.sigmoid,
    nn.SiLU: passes.silu,
    nn.Softplus: passes.softplus,
    nn.MaxPool2d: passes.max_pool,
    nn.AdaptiveAvgPool2d: passes.mean_pool,
    nn.Flatten: passes.flatten,
    nn.Identity: passes.unchanged,
    nn.Dropout: passes.unchanged,
}


@dataclass(frozen=True)
class _Step:
    """One node of the network: what it computes from which nodes, and whose parameters.

    places: of its own parameters among all of the model's. trained: whether anything before it
    has parameters, so that a slope must be pulled through.
    """

    make: Callable[[Tensor], Passed] | None  # None: the sum of all sources
    sources: tuple[int, ...]
    places: tuple[int, ...]
    trained: bool


@dataclass(frozen=True)
class Plan:
    """A network as steps; step i makes node i + 1, node 0 is the images, the last the logits."""

    steps: tuple[_Step, ...]
    parameters: int

    @property
    def shares(self) -> bool:
        """True where a parameter has a part in two layers, so that its gradient is a sum."""
        return sum(len(step.places) for step in self.steps) > self.parameters


# A model's structure does not change while it is attacked; tracing it takes longer than a step.
# What a plan holds must not hold the model, or no entry would ever go.
_PLANS: WeakKeyDictionary[nn.Module, Plan | None] = WeakKeyDictionary()
_FITTING: WeakKeyDictionary[nn.Module, dict[torch.Size, bool]] = WeakKeyDictionary()


def plan_of(model: nn.Module) -> Plan | None:
    """The steps of `model`, or None where it has one that is not known here."""
    if any(layer.training for layer in model.modules() if isinstance(layer, _STATEFUL)):
        return None
    if model not in _PLANS:
        _PLANS[model] = _traced(model)
    return _PLANS[model]


def plan_for(model: nn.Module, images: Tensor) -> Plan | None:
    """`plan_of` a model where it fits `images`, (N, C, H, W), or None.

    It does not where a linear layer sees several rows of an image, or where one value is added to
    many, of which only shapes tell.
    """
    plan, known = plan_of(model), _FITTING.setdefault(model, {})
    shape = images.shape[1:]
    if plan is not None and shape not in known:
        known[shape] = _fits(plan, images[:1].detach())
    return plan if plan is not None and known[shape] else None


def planned_gradients(
    plan: Plan, images: Tensor, labels: Tensor, *, curvature: float = 0.0
) -> tuple[Tensor, ...]:
    """Compute `gradient_of_each`, differentiable once by `images`; labels: (N,) indices."""
    found: tuple[Tensor, ...] = _EachGradient.apply(images, labels, plan, curvature)
    return found


def planned_products(
    plan: Plan,
    images: Tensor,
    labels: Tensor,
    targets: Sequence[Tensor],
    *,
    joint: bool,
    curvature: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """⟨g, t⟩ and ‖g‖² of each image, both (N, parameters); if `joint` of groups of parameters.

    targets: one (N, *parameter.shape) a parameter, of a plan that does not share any.
    labels: (N,) indices. Differentiable once by `images`; no gradient by the weight of a linear
    layer is ever written out. curvature: see `fast_gradients.gradient_of_each`.
    """
    given = images, labels, plan, joint, curvature
    found: tuple[Tensor, Tensor] = _EachProduct.apply(*given, *targets)
    return found


class _EachGradient(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, images: Tensor, labels: Tensor, plan: Plan, curvature: float
    ) -> tuple[Tensor, ...]:
        ctx.run, ctx.curvature = _Run(plan, images.detach(), labels), curvature
        return ctx.run.gradients()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *along: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.run.slope_along(along, ctx.curvature), None, None, None


class _EachProduct(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        labels: Tensor,
        plan: Plan,
        joint: bool,
        curvature: float,
        *targets: Tensor,
    ) -> tuple[Tensor, Tensor]:
        ctx.run, ctx.curvature = _Run(plan, images.detach(), labels), curvature
        ctx.groups = grouped(ctx.run.matched(targets), joint=joint)
        dots = torch.stack([group.dot for _, group in ctx.groups], dim=1)
        return dots, torch.stack([group.square for _, group in ctx.groups], dim=1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, by_dots: Tensor, by_squares: Tensor) -> tuple[Tensor | None, ...]:
        along: dict[int, Any] = {}
        factors = zip(ctx.groups, (2 * by_squares).T, by_dots.T, strict=True)
        for (places, group), own, target in factors:
            along.update(zip(places, group.mixed(own, target), strict=True))
        slope = ctx.run.slope_along([along[place] for place in range(len(along))], ctx.curvature)
        return slope, None, None, None, None, *[None] * len(along)


class _Run:
    """The four passes over one batch."""

    def __init__(self, plan: Plan, images: Tensor, labels: Tensor) -> None:
        self.plan = plan
        self.passed: list[Passed | None] = []
        self.slopes: dict[int, Tensor] = {}
        nodes = [images]
        for step in plan.steps:
            if step.make is None:
                self.passed.append(None)
                nodes.append(sum((nodes[s] for s in step.sources[1:]), nodes[step.sources[0]]))
            else:
                made = step.make(nodes[step.sources[0]])
                self.passed.append(made)
                nodes.append(made.output)
        self.chances = nodes[-1].softmax(dim=1)
        self.misses = self.chances - F.one_hot(labels, self.chances.shape[1])

    def gradients(self) -> tuple[Tensor, ...]:
        found: list[Tensor | None] = [None] * self.plan.parameters

        def add(step: _Step, made: Passed, slope: Tensor) -> None:
            for place, own in zip(step.places, made.own(slope), strict=True):
                known = found[place]
                found[place] = own if known is None else known + own

        self._pull_back(add)
        return tuple(each for each in found if each is not None)

    def matched(self, targets: Sequence[Tensor]) -> list[Pair | Outer]:
        """The gradient by each parameter beside its target."""
        found: dict[int, Pair | Outer] = {}

        def match(step: _Step, made: Passed, slope: Tensor) -> None:
            wanted = [targets[place] for place in step.places]
            found.update(zip(step.places, made.matched(slope, wanted), strict=True))

        self._pull_back(match)
        return [found[place] for place in range(self.plan.parameters)]

    def _pull_back(self, visit: Callable[[_Step, Passed, Tensor], None]) -> None:
        """The slope of the loss by every node; `visit` sees every layer and that of its output."""
        self.slopes = {len(self.plan.steps): self.misses}
        for node, step, made in self._backwards():
            slope = self.slopes.get(node)
            if slope is None:
                continue  # nothing before or at this node has parameters
            if made is None:
                pulled = [slope] * len(step.sources)
            else:
                visit(step, made, slope)
                pulled = [made.pull(slope)] if step.trained else []
            _add_to(self.slopes, step.sources, pulled)

    def slope_along(self, along: Sequence[Any], curvature: float) -> Tensor:
        if curvature:
            for made in self.passed:
                if isinstance(made, Kinked):
                    made.lend(curvature)
        changes: list[Tensor | None] = [None]
        for step, made in zip(self.plan.steps, self.passed, strict=True):
            if made is None:
                several = [c for s in step.sources if (c := changes[s]) is not None]
                changes.append(sum(several[1:], several[0]) if several else None)
            else:
                own = [along[place] for place in step.places]
                changes.append(made.push(changes[step.sources[0]], own))
        last = changes[-1]
        if last is None:
            raise ValueError("A network without parameters has no gradient to match.")
        moved = self.chances * last
        bent = {len(self.plan.steps): moved - self.chances * moved.sum(dim=1, keepdim=True)}
        for node, step, made in self._backwards():
            by_output = bent.pop(node)
            if made is None:
                pulled = [by_output] * len(step.sources)
            elif step.trained or step.places:
                own = [along[place] for place in step.places]
                slope, change = self.slopes[node], changes[step.sources[0]]
                pulled = [made.pull_change(by_output, slope, change, own)]
            else:
                pulled = [made.pull(by_output)]
            _add_to(bent, step.sources, pulled)
        return bent[0]

    def _backwards(self) -> list[tuple[int, _Step, Passed | None]]:
        steps = enumerate(zip(self.plan.steps, self.passed, strict=True), start=1)
        return [(node, step, made) for node, (step, made) in reversed(list(steps))]


def _add_to(slopes: dict[int, Tensor], sources: tuple[int, ...], pulled: Sequence[Tensor]) -> None:
    for source, slope in zip(sources, pulled, strict=False):
        slopes[source] = slopes[source] + slope if source in slopes else slope


@torch.no_grad()
def _fits(plan: Plan, image: Tensor) -> bool:
    nodes = [image]
    for step in plan.steps:
        first, *others = (nodes[source] for source in step.sources)
        if step.make is None:
            if any(other.shape != first.shape for other in others):
                return False
            nodes.append(first)  # no more than a shape is asked for
            continue
        made = step.make(first)
        rows = isinstance(made, passes.Linear) and first.dim() != 2
        if rows or made.pull(made.output).shape != first.shape:
            return False
        nodes.append(made.output)
    return True


_STATEFUL = (nn.BatchNorm2d, nn.Dropout)


def _traced(model: nn.Module) -> Plan | None:
    try:
        graph = fx.Tracer().trace(model)
    except (fx.proxy.TraceError, TypeError, RuntimeError, ValueError):
        return None  # control flow that depends on the data
    places = {id(parameter): place for place, parameter in enumerate(model.parameters())}
    numbers: dict[fx.Node, int] = {}
    trained: list[bool] = [False]
    steps: list[_Step] = []
    for node in _needed(graph):
        if node.op == "placeholder":
            numbers[node] = 0
            continue
        if node.op in {"get_attr", "output"}:
            continue
        sources = tuple(numbers[n] for n in node.all_input_nodes if n in numbers)
        found = _node(model, node)
        if found is None or (found[0] is not None and len(sources) != 1):
            return None
        make, owned = found
        before = any(trained[source] for source in sources)
        steps.append(_Step(make, sources, tuple(places[id(p)] for p in owned), before))
        trained.append(before or bool(owned))
        numbers[node] = len(steps)
    used = {place for step in steps for place in step.places}
    return Plan(tuple(steps), len(places)) if used == set(places.values()) else None


def _needed(graph: fx.Graph) -> list[fx.Node]:
    """The nodes that the output depends on, and it, in the order in which they run."""
    needed: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or node in needed:
            needed.update([node, *node.all_input_nodes])
    return [node for node in graph.nodes if node in needed]


_Made = tuple[Callable[[Tensor], Passed] | None, list[nn.Parameter]]


def _node(model: nn.Module, node: fx.Node) -> _Made | None:
    """Return the maker of a node and its own parameters, or None where it is not known."""
    if node.op == "call_module":
        return _layer(model.get_submodule(str(node.target)))
    if node.op != "call_function":
        return None
    if node.target in {operator.add, operator.iadd, torch.add}:
        nodes = [each for each in node.args if isinstance(each, fx.Node)]
        is_sum = len(nodes) == 2 and not node.kwargs and nodes[0] is not nodes[1]
        return (None, []) if is_sum and all(n.op != "get_attr" for n in nodes) else None
    if node.target is torch.flatten and node.args[1:] == (1,) and not node.kwargs:
        return _layer(nn.Flatten())
    if node.target in {operator.sub, operator.truediv} and len(node.args) == 2:
        return _shifted_or_scaled(model, node)
    return None


def _layer(layer: nn.Module) -> _Made | None:
    make = _LAYERS.get(type(layer))
    if make is None or not _is_known(layer) or _does_more(layer) or _is_partly_shared(layer):
        return None
    return (lambda x: make(layer, x)), list(layer.parameters(recurse=False))


def _is_partly_shared(layer: nn.Module) -> bool:
    """Check whether its weight or bias is a buffer: no client shares the gradient of one."""
    return bool({"weight", "bias"} & dict(layer.named_buffers(recurse=False)).keys())


def _does_more(layer: nn.Module) -> bool:
    """Check whether it has hooks: their effect, as spectral norm's on a weight, is unknown here."""
    forward = layer._forward_hooks or layer._forward_pre_hooks
    return bool(forward or layer._backward_hooks or layer._backward_pre_hooks)


def _is_known(layer: nn.Module) -> bool:
    if isinstance(layer, nn.Conv2d):
        plain = layer.groups == 1 and layer.dilation == (1, 1) and layer.padding_mode == "zeros"
        return plain and not isinstance(layer.padding, str)
    if isinstance(layer, nn.BatchNorm2d):
        return layer.affine and layer.track_running_stats
    if isinstance(layer, nn.AdaptiveAvgPool2d):
        return layer.output_size in (1, (1, 1), [1, 1])
    if isinstance(layer, nn.Flatten):
        return (layer.start_dim, layer.end_dim) == (1, -1)
    return True


def _shifted_or_scaled(model: nn.Module, node: fx.Node) -> _Made | None:
    """Less, or over, a constant that belongs to the model, as normalisation does."""
    left, right = node.args
    if not isinstance(left, fx.Node) or left.op == "get_attr":
        return None
    if not isinstance(right, fx.Node) or right.op != "get_attr":
        return None
    name = str(right.target)
    read, known = operator.attrgetter(name), ref(model)
    if isinstance(read(model), nn.Parameter):
        return None

    def constant() -> Tensor:
        found: Tensor = read(known())
        return found

    if node.target is operator.sub:
        return (lambda x: _same(x - constant())), []
    return (lambda x: _over(x, constant())), []


def _same(output: Tensor) -> LinearMap:
    return LinearMap(output, lambda change: change, lambda slope: slope)


def _over(x: Tensor, by: Tensor) -> LinearMap:
    return LinearMap(x / by, lambda change: change / by, lambda slope: slope / by)
