"""A network as a list of the layers whose passes are known, made once from its traced graph."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, fx, nn

from semsim.attacks.batch_norm import batch_norm_mode
from semsim.attacks.fast_gradients import layers
from semsim.attacks.fast_gradients.layers import Passed
from semsim.types import AttackedModel

_LAYERS: dict[type[nn.Module], Callable[[Any, Tensor], Passed]] = {
    nn.Conv2d: layers.ConvolutionPass,
    nn.Linear: layers.Linear,
    nn.BatchNorm2d: layers.BatchNorm,
    nn.ReLU: layers.relu,
    nn.LeakyReLU: layers.leaky_relu,
    nn.Tanh: layers.tanh,
    nn.Sigmoid: layers.sigmoid,
    nn.SiLU: layers.silu,
    nn.Softplus: layers.softplus,
    nn.MaxPool2d: layers.max_pool,
    nn.AdaptiveAvgPool2d: layers.mean_pool,
    nn.Flatten: layers.flatten,
    nn.Identity: layers.unchanged,
    nn.Dropout: layers.unchanged,
}
# Input channels up to which a product of matrices beats torch's convolution on one image: measured,
# 1.4 times in all of LeNet; on more channels, and on many images, neither wins.
_FEW = 12
_FEW_CHANNELS: Callable[[Any, Tensor], Passed] = layers.SmallConvolution
_SUMS = {operator.add, operator.iadd, torch.add}


@dataclass(frozen=True)
class LayerStep:
    """One node of the network: what it computes from which nodes, and whose parameters.

    Attributes:
        places: Of its own parameters among all of the model's.
        trained: Whether anything before it has parameters, so that a slope must be pulled through.
    """

    make: Callable[..., Passed]
    sources: tuple[int, ...]
    places: tuple[int, ...]
    trained: bool


@dataclass(frozen=True)
class PassPlan:
    """A network as steps; step i makes node i + 1, node 0 is the images, the last the logits.

    Attributes:
        parameters: Their number.
        shares: True where one of them has a part in two layers, so that its gradient is a sum.
    """

    steps: tuple[LayerStep, ...]
    parameters: int
    shares: bool


# A model's structure does not change while it is attacked; tracing it takes longer than a step.
# What a plan holds must not hold the model, or no entry would ever go.
_PLANS: WeakKeyDictionary[nn.Module, dict[torch.Size, PassPlan | None]] = WeakKeyDictionary()


def plan_for(model: AttackedModel, images: Tensor, labels: Tensor) -> PassPlan | None:
    """The steps of `model` in eval mode, or None where it has one that is not known here.

    Args:
        images: (N, C, H, W). Nor is there a plan where a linear layer sees several rows of an
            image, or one value is added to many, of which only shapes tell; under autocast, as what
            the passes multiply with is float32; for labels that are probabilities.
    """
    mixed = torch.is_autocast_enabled(labels.device.type)
    if mixed or labels.dim() > 1 or not isinstance(model, nn.Module):
        return None
    known, shape = _PLANS.setdefault(model, {}), images.shape[1:]
    if shape not in known:
        with batch_norm_mode(model, "eval"):
            plan = plan_of(model)
        known[shape] = plan if plan is not None and _fits(plan, images[:1].detach()) else None
    return known[shape]


@torch.no_grad()
def _fits(plan: PassPlan, image: Tensor) -> bool:
    nodes = [image]
    for step in plan.steps:
        inputs = [nodes[source] for source in step.sources]
        made = step.make(*inputs)
        rows = isinstance(made, layers.Linear) and inputs[0].dim() != 2
        if rows or any(made.pull(made.output).shape != one.shape for one in inputs):
            return False
        nodes.append(made.output)
    return True


def plan_of(model: nn.Module) -> PassPlan | None:
    """As `plan_for`, in the mode that it is in, for images whose shape fits."""
    try:
        graph = fx.Tracer().trace(model)
    except (fx.proxy.TraceError, TypeError, RuntimeError, ValueError):
        return None  # control flow that depends on the data
    places = {id(parameter): place for place, parameter in enumerate(model.parameters())}
    numbers: dict[fx.Node, int] = {}
    trained: list[bool] = [False]
    steps: list[LayerStep] = []
    for node in _needed(graph):
        if node.op == "placeholder":
            numbers[node] = 0
            continue
        if node.op in {"get_attr", "output"}:
            continue
        sources = tuple(numbers[n] for n in node.all_input_nodes if n in numbers)
        found = _node(model, node)
        if found is None or len(sources) != (2 if node.target in _SUMS else 1):
            return None
        make, owned = found
        before = any(trained[source] for source in sources)
        steps.append(LayerStep(make, sources, tuple(places[id(p)] for p in owned), before))
        trained.append(before or bool(owned))
        numbers[node] = len(steps)
    used = [place for step in steps for place in step.places]
    if set(used) != set(places.values()):
        return None
    return PassPlan(tuple(steps), len(places), shares=len(used) > len(places))


def _needed(graph: fx.Graph) -> list[fx.Node]:
    """The nodes that the output depends on, and it, in the order in which they run."""
    needed: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or node in needed:
            needed.update([node, *node.all_input_nodes])
    return [node for node in graph.nodes if node in needed]


_Made = tuple[Callable[..., Passed], list[nn.Parameter]]


def _node(model: nn.Module, node: fx.Node) -> _Made | None:
    """Return the maker of a node and its own parameters, or None where it is not known."""
    if node.op == "call_module":
        return _layer(model.get_submodule(str(node.target)))
    if node.op != "call_function":
        return None
    if node.target in _SUMS:
        nodes = [each for each in node.args if isinstance(each, fx.Node)]
        is_sum = len(nodes) == 2 and not node.kwargs and nodes[0] is not nodes[1]
        return (layers.added, []) if is_sum and all(n.op != "get_attr" for n in nodes) else None
    if node.target is torch.flatten and node.args[1:] == (1,) and not node.kwargs:
        return _layer(nn.Flatten())
    if node.target in {operator.sub, operator.truediv} and len(node.args) == 2:
        return _shifted_or_scaled(model, node)
    return None


def _layer(layer: nn.Module) -> _Made | None:
    small = isinstance(layer, nn.Conv2d) and layer.in_channels <= _FEW
    make = _FEW_CHANNELS if small else _LAYERS.get(type(layer))
    if make is None or not _is_known(layer) or _does_more(layer) or _is_partly_shared(layer):
        return None
    return partial(make, layer), list(layer.parameters(recurse=False))


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
    if isinstance(operator.attrgetter(name)(model), nn.Parameter):
        return None
    return partial(layers.by_constant, node.target, ref(model), name), []
