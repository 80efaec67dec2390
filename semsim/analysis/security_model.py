"""A PyTorch network read as the layers of which c(M) is made, and one gradient of it."""

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.fx.passes.shape_prop import ShapeProp

from semsim.analysis.security import Convolution, FullyConnected, Layer, Pooling, Shape, shapes_of
from semsim.analysis.security_check import LeakedLayer
from semsim.errors import SettingsError

_REVERSIBLE = {"tanh", "sigmoid", "leakyrelu", "elu", "softplus", "logsigmoid", "softsign"}
_LOSSY = {"relu", "relu6", "silu", "gelu", "hardtanh", "hardswish", "hardsigmoid", "mish", "celu"}
_LOSSY |= {"selu", "prelu", "rrelu", "threshold", "clamp"}
_HARMLESS = {"identity", "flatten", "view", "reshape", "contiguous", "squeeze", "unflatten"}
_HARMLESS |= {"dropout", "dropout2d", "alphadropout", "softmax", "logsoftmax", "sub", "mul", "add"}
_HARMLESS |= {"truediv", "div", "double", "float", "getitem"}
_NORMS = {"batchnorm2d", "batchnorm1d"}
_POOLS = {"maxpool2d", "avgpool2d"}
_FIXED_POOLS = {"adaptiveavgpool2d", "adaptivemaxpool2d"}


@dataclass(frozen=True, kw_only=True)
class ReadNetwork:
    """layers: as `security_index` takes them. names: of the convolutions, as the model calls them.

    notes: what the network has that c(M) does not count, in words.
    """

    layers: tuple[Layer, ...]
    names: tuple[str, ...]
    notes: tuple[str, ...]


def read_network(model: nn.Module, input_shape: Shape) -> ReadNetwork:
    """The layers of a network in which each step feeds only the next one.

    input_shape: (C, H, W). Functions such as `torch.relu` in `forward` are read too. Raises
    `SettingsError` that names a step that c(M) does not know, a branch, or what stops the reading.
    """
    steps = list(_steps(model, input_shape))
    found = [(step.name, _layer_of(step)) for step in steps]
    layers = tuple(layer for _, layer in found if layer is not None)
    shapes_of(layers, input_shape)
    names = tuple(name for name, layer in found if isinstance(layer, Convolution))
    return ReadNetwork(layers=layers, names=names, notes=tuple(_notes(steps)))


def leaked_layers(
    model: nn.Module, names: Sequence[str], input_shape: Shape, rng: torch.Generator
) -> list[LeakedLayer]:
    """Weight and ∂J/∂Z of the convolutions called `names`, for an image of uniform noise.

    In float64 and eval mode, on a copy; J is the cross-entropy for class 0.
    """
    exact = copy.deepcopy(model).double().cpu().eval()
    outputs: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[nn.Module, Any, Tensor], None]:
        return lambda module, given, output: outputs.__setitem__(name, output)

    modules = dict(exact.named_modules())
    hooks = [modules[name].register_forward_hook(keep(name)) for name in names]
    image = torch.rand(1, *input_shape, generator=rng, dtype=torch.float64)
    loss = F.cross_entropy(exact(image), torch.tensor([0]))
    slopes = torch.autograd.grad(loss, [outputs[name] for name in names])
    for hook in hooks:
        hook.remove()
    weights = [exact.get_parameter(f"{name}.weight").detach() for name in names]
    pairs = zip(weights, slopes, strict=True)
    return [LeakedLayer(weight=weight, slope=slope[0]) for weight, slope in pairs]


def network_of(
    layers: Sequence[Layer], input_shape: Shape, activation: Callable[[], nn.Module] = nn.Tanh
) -> nn.Sequential:
    """A fresh network of `layers`, convolutions without bias, weights uniform as PyTorch's are."""
    shapes = shapes_of(layers, input_shape)
    modules: list[nn.Module] = []
    for place, (layer, shape) in enumerate(zip(layers, shapes, strict=False)):
        if isinstance(layer, FullyConnected):
            if len(shape) == 3:
                modules.append(nn.Flatten())
            width = int(torch.Size(shape).numel())
            modules.append(nn.Linear(width, layer.outputs))
        else:
            modules.append(_module(layer, shape[0]))
        if not isinstance(layer, Pooling) and place < len(layers) - 1:
            modules.append(activation())
    return nn.Sequential(*modules)


def _module(layer: Convolution | Pooling, channels: int) -> nn.Module:
    if isinstance(layer, Pooling):
        if layer.size is not None:
            return nn.AdaptiveAvgPool2d(layer.size)
        return nn.MaxPool2d(layer.kernel, layer.stride, layer.padding, layer.dilation)
    return nn.Conv2d(
        channels,
        layer.channels,
        layer.kernel,
        layer.stride,
        layer.padding,
        layer.dilation,
        layer.groups,
        bias=False,
    )


@dataclass(frozen=True, kw_only=True)
class _Step:
    """One step of `forward`. kind: its type in small letters without underscores.

    module: None where it is a function, which then has arguments `given` behind its input.
    """

    name: str
    kind: str
    module: nn.Module | None
    given: tuple[Any, ...]
    named: dict[str, Any]
    inputs: Shape


def _steps(model: nn.Module, input_shape: Shape) -> Iterator[_Step]:
    graph = _traced(model, input_shape)
    modules = dict(graph.named_modules())
    before: fx.Node | None = None
    for node in graph.graph.nodes:
        if node.op in ("get_attr", "output") or "tensor_meta" not in node.meta:
            continue
        if before is None:
            before = node
            continue
        fed = [n for n in node.all_input_nodes if "tensor_meta" in n.meta and n.op != "get_attr"]
        if fed != [before]:
            raise SettingsError(
                f"The network branches at {_shown(node)}. c(M) is defined for layers one after the "
                "other; shortcuts and several inputs are not."
            )
        yield _step(node, modules, tuple(before.meta["tensor_meta"].shape[1:]))
        before = node


def _traced(model: nn.Module, input_shape: Shape) -> fx.GraphModule:
    plain = copy.deepcopy(model).cpu().float().eval()
    try:
        graph = fx.symbolic_trace(plain)
        ShapeProp(graph).propagate(torch.zeros(1, *input_shape))
    except Exception as error:  # what a stranger's forward can raise has no common type
        size = "×".join(map(str, input_shape))
        raise SettingsError(
            f"{type(model).__name__} cannot be read with an input of {size}: {error}. Its forward "
            "must take one batch of images and must not decide anything by their values."
        ) from error
    return graph


def _step(node: fx.Node, modules: dict[str, nn.Module], inputs: Shape) -> _Step:
    if node.op == "call_module":
        module = modules[str(node.target)]
        kind, name = type(module).__name__, str(node.target)
    else:
        module, name = None, node.name
        kind = str(getattr(node.target, "__name__", node.target))
    return _Step(
        name=name,
        kind=kind.lower().replace("_", ""),
        module=module,
        given=tuple(node.args[1:]),
        named=dict(node.kwargs),
        inputs=inputs,
    )


def _layer_of(step: _Step) -> Layer | None:
    """The layer that a step is; None for what c(M) passes over."""
    module = step.module
    if isinstance(module, nn.Conv2d):
        return _convolution(step.name, module)
    if isinstance(module, nn.Linear):
        if len(step.inputs) != 1:
            raise SettingsError(f"{step.name} is fully connected but gets a map; flatten it first.")
        return FullyConnected(outputs=module.out_features)
    if step.kind in _POOLS:
        return _pooling(step)
    if step.kind in _FIXED_POOLS:
        size = _argument(step, "output_size", 0, None)
        return Pooling(size=_pair(size))
    if step.kind in _REVERSIBLE | _LOSSY | _HARMLESS | _NORMS:
        return None
    raise SettingsError(
        f"c(M) does not know {step.kind} ({step.name}). It knows Conv2d, Linear, pooling by "
        "maximum or mean, batch norm, dropout, flattening and activations of one value."
    )


def _convolution(name: str, module: nn.Conv2d) -> Convolution:
    if module.padding_mode != "zeros":
        raise SettingsError(f"{name} pads with {module.padding_mode!r}; c(M) knows zeros only.")
    return Convolution(
        channels=module.out_channels,
        kernel=_pair(module.kernel_size),
        stride=_pair(module.stride),
        padding=_padding(name, module),
        dilation=_pair(module.dilation),
        groups=module.groups,
    )


def _padding(name: str, module: nn.Conv2d) -> tuple[int, int]:
    if not isinstance(module.padding, str):
        return _pair(module.padding)
    if module.padding == "valid":
        return (0, 0)
    pairs = zip(_pair(module.kernel_size), _pair(module.dilation), strict=True)
    down, right = (dilation * (kernel - 1) for kernel, dilation in pairs)
    if down % 2 or right % 2:
        raise SettingsError(f"{name} pads one side more than the other; use an odd kernel.")
    return (down // 2, right // 2)


def _pooling(step: _Step) -> Pooling:
    if _argument(step, "ceil_mode", 5 if step.kind == "maxpool2d" else 3, False):
        raise SettingsError(f"{step.name} uses ceil_mode, which c(M) does not know.")
    kernel = _argument(step, "kernel_size", 0, None)
    stride = _argument(step, "stride", 1, None)
    return Pooling(
        kernel=_pair(kernel),
        stride=_pair(kernel if stride is None or stride == [] else stride),
        padding=_pair(_argument(step, "padding", 2, 0)),
        dilation=_pair(_argument(step, "dilation", 3, 1)) if step.kind == "maxpool2d" else (1, 1),
    )


def _argument(step: _Step, name: str, place: int, otherwise: Any) -> Any:
    if step.module is not None:
        return getattr(step.module, name, otherwise)
    return step.named.get(name, step.given[place] if place < len(step.given) else otherwise)


def _pair(value: Any) -> tuple[int, int]:
    if isinstance(value, int):
        return (value, value)
    down, right = (list(value) * 2)[:2]
    if down is None or right is None:
        raise SettingsError("A pooling that keeps a side as it is, is not known to c(M).")
    return (down, right)


def _notes(steps: Sequence[_Step]) -> Iterator[str]:
    lossy = _counted(step for step in steps if step.kind in _LOSSY)
    pools = _counted(step for step in steps if step.kind in _POOLS | _FIXED_POOLS)
    norms = _counted(step for step in steps if step.kind in _NORMS)
    if lossy:
        yield (
            f"{lossy}: cannot be undone everywhere. What gets lost there is not counted, so the "
            "recursion gets less than c(M) says."
        )
    if pools:
        yield (
            f"{pools}: the recursion cannot go back past pooling. c(M) counts the convolutions "
            "alone, as if what stands before the pooling were known."
        )
    if norms:
        yield f"{norms}: counted as fixed scaling, as in eval mode."


def _counted(steps: Iterable[_Step]) -> str:
    """The kinds of steps, with how often each comes."""
    kinds = Counter(
        step.kind if step.module is None else type(step.module).__name__ for step in steps
    )
    return ", ".join(kind if n == 1 else f"{kind} ({n} times)" for kind, n in kinds.items())


def _shown(node: fx.Node) -> str:
    return f"{node.name} ({getattr(node.target, '__name__', node.target)})"
