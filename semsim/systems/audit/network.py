"""A PyTorch network read step by step as the layers of which c(M) is made, and one gradient."""

import copy
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from semsim.attacks.linear.rank import Convolution, Shape
from semsim.base.errors import SettingsError
from semsim.systems.audit.numeric_rank import LeakedLayer
from semsim.systems.audit.security_index import FullyConnected, Layer, Pooling, shapes_of


@dataclass(frozen=True, kw_only=True)
class ForwardStep:
    """One step of `forward`.

    Attributes:
        kind: Its type in small letters without underscores.
        module: None where it is a function, which then has arguments `given` behind its input.
        inputs, outputs: Shapes of one example.
        scaled: See `_is_scaled`.
    """

    name: str
    kind: str
    module: nn.Module | None
    given: tuple[Any, ...]
    named: dict[str, Any]
    inputs: Shape
    outputs: Shape
    scaled: bool


def steps_of(model: nn.Module, input_shape: Shape) -> Iterator[ForwardStep]:
    """Each step of `forward` for an input of (C, H, W), which must feed only the next one.

    Raises `SettingsError` that names a branch, or says what stops the reading.
    """
    graph = _traced(model, input_shape)
    modules = dict(graph.named_modules())
    before: fx.Node | None = None
    for node in graph.graph.nodes:
        if node.op != "output" and (node.op == "get_attr" or "shape" not in node.meta):
            continue
        if before is None:
            before = node
            continue
        fed = [n for n in node.all_input_nodes if "shape" in n.meta and n.op != "get_attr"]
        if fed != [before]:
            raise SettingsError(
                f"The network branches at {_shown(node)}. c(M) is defined for layers one after the "
                "other; shortcuts, several inputs and several results are not."
            )
        if node.op != "output":
            yield _step(node, modules, before)
            before = node


class _Shapes(fx.Interpreter):
    """Runs a network and keeps of what each step puts out: its shape, whether a value is 0."""

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if isinstance(result, Tensor):
            n.meta["shape"] = tuple(result.shape)
            n.meta["has_0"] = bool((result == 0).any())
        return result


def _traced(model: nn.Module, input_shape: Shape) -> fx.GraphModule:
    plain = copy.deepcopy(model).cpu().float().eval()
    name = type(model).__name__
    try:
        graph = fx.symbolic_trace(plain)
    except Exception as error:  # what a stranger's forward can raise has no common type
        raise SettingsError(
            f"{name} cannot be read: {first_line(error)}. Its forward must take one batch of "
            "images and must not decide anything by their values."
        ) from error
    try:
        with torch.no_grad():
            _Shapes(graph).run(torch.zeros(1, *input_shape))
    except Exception as error:  # as above
        size = "×".join(map(str, input_shape))
        raise SettingsError(
            f"{name} does not take images of {size}: {first_line(error)}. Give the size it was "
            "made for, as channels, height, width."
        ) from error
    return graph


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, without the pages that PyTorch adds."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


def _step(node: fx.Node, modules: dict[str, nn.Module], before: fx.Node) -> ForwardStep:
    if node.op == "call_module":
        module = modules[str(node.target)]
        kind, name = type(module).__name__, str(node.target)
    else:
        module, name = None, node.name
        kind = str(getattr(node.target, "__name__", node.target))
    return ForwardStep(
        name=name,
        kind=kind.lower().replace("_", ""),
        module=module,
        given=tuple(node.args[1:]),
        named=dict(node.kwargs),
        inputs=before.meta["shape"][1:],
        outputs=node.meta["shape"][1:],
        scaled=_is_scaled(node, before),
    )


def _is_scaled(node: fx.Node, before: fx.Node) -> bool:
    """Return whether only constants join `before`: none is divided by it, none wipes it out."""
    given = [*node.args, *node.kwargs.values()]
    others = [one for one in given if one is not before]
    first = node.args[:1] == (before,) or node.target in (operator.add, operator.mul)
    if not first or len(others) != len(given) - 1 or not all(map(_is_constant, others)):
        return False
    return node.target in (operator.add, operator.sub) or not any(map(_has_0, others))


def _is_constant(value: Any) -> bool:
    return value.op == "get_attr" if isinstance(value, fx.Node) else isinstance(value, int | float)


def _has_0(value: Any) -> bool:
    return bool(value.meta.get("has_0", True) if isinstance(value, fx.Node) else value == 0)


def _shown(node: fx.Node) -> str:
    return f"{node.name} ({getattr(node.target, '__name__', node.target)})"


# What rgap and copa go back through (`semsim.attacks.linear.chain`), what only can be undone,
# and what cannot, wherever it gets the same output from different inputs.
_UNDONE = {"tanh", "sigmoid", "leakyrelu"}
_REVERSIBLE = {"elu", "selu", "celu", "prelu", "softplus", "logsigmoid", "softsign"}
_LOSSY = {"relu", "relu6", "silu", "gelu", "hardtanh", "hardswish", "hardsigmoid", "mish"}
_LOSSY |= {"rrelu", "threshold", "clamp"}
# Those with pieces of slope 0, where nothing comes back of the gradient.
_CUTTING = {"relu", "relu6", "hardtanh", "hardswish", "hardsigmoid", "threshold", "clamp"}
_SLOPES = {"leakyrelu": "negative_slope", "elu": "alpha", "celu": "alpha"}  # must be above 0
_DROPOUTS = {"dropout", "dropout2d", "alphadropout"}
_HARMLESS = {"identity", "contiguous", "softmax", "logsoftmax", "double", "float"} | _DROPOUTS
_FLATTENING = {"flatten", "view", "reshape", "squeeze"}
_SCALING = {"add", "sub", "mul", "truediv", "div"}
_NORMS = {"batchnorm2d", "batchnorm1d"}
_POOLS = {"maxpool2d", "avgpool2d"}
_FIXED_POOLS = {"adaptiveavgpool2d", "adaptivemaxpool2d"}


@dataclass(frozen=True, kw_only=True)
class ReadNetwork:
    """Layers of a network that c(M) can count.

    Attributes:
        layers: As `security_index` takes them.
        names: Of the convolutions, as the model calls them.
        notes: What the network has that c(M) does not count, in words.
    """

    layers: tuple[Layer, ...]
    names: tuple[str, ...]
    notes: tuple[str, ...]


def read_network(model: nn.Module, input_shape: Shape) -> ReadNetwork:
    """The layers of a network in which each step feeds only the next one.

    Args:
        input_shape: (C, H, W). Functions such as `torch.relu` in `forward` are read too.

    Raises:
        SettingsError: That names a step that c(M) does not know, a branch, a layer used twice, or
            what stops the reading.
    """
    steps = list(steps_of(model, input_shape))
    _check_used_once(steps)
    layers: list[Layer] = []
    names = []
    for step in steps:
        layer = _layer_of(step)
        if layer is not None:
            layers.append(layer)
        if isinstance(layer, Convolution):
            names.append(step.name)
        if step.kind in _CUTTING and layers and isinstance(layers[-1], Convolution):
            layers[-1] = replace(layers[-1], cut=True)
    shapes_of(layers, input_shape)
    return ReadNetwork(layers=tuple(layers), names=tuple(names), notes=tuple(_notes(steps)))


def leaked_layers(
    model: nn.Module, names: Sequence[str], input_shape: Shape, rng: torch.Generator
) -> list[LeakedLayer]:
    """Weight and ∂J/∂Z of the convolutions called `names`, for an image of uniform noise.

    In float64 and eval mode, on a copy of which no parameter is frozen; J is the cross-entropy for
    class 0. Raises `SettingsError` where there is no such gradient.
    """
    if not names:
        return []
    exact = copy.deepcopy(model).cpu().double().eval().requires_grad_(True)
    outputs: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[nn.Module, Any, Tensor], Tensor]:
        def hook(module: nn.Module, given: Any, output: Tensor) -> Tensor:
            outputs[name] = output
            return output.clone()  # what follows may write into its input

        return hook

    modules = dict(exact.named_modules())
    hooks = [modules[name].register_forward_hook(keep(name)) for name in names]
    image = torch.rand(1, *input_shape, generator=rng, dtype=torch.float64)
    try:
        loss = F.cross_entropy(exact(image), torch.tensor([0]))
        slopes = torch.autograd.grad(loss, [outputs[name] for name in names])
    except RuntimeError as error:
        raise SettingsError(
            f"{type(model).__name__} has no gradient to check: {first_line(error)}. Its forward "
            "must return a value a class, and neither detach anything nor switch gradients off."
        ) from error
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


def _check_used_once(steps: Sequence[ForwardStep]) -> None:
    weighted = [step.name for step in steps if isinstance(step.module, nn.Conv2d | nn.Linear)]
    for name, times in Counter(weighted).items():
        if times > 1:
            raise SettingsError(
                f"{name} is used {times} times. The gradient of its weight is then a sum, which "
                "c(M) does not know; use a layer of its own each time."
            )


def _layer_of(step: ForwardStep) -> Layer | None:
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
    if step.kind in _FLATTENING:
        _check_flattened(step)
        return None
    if step.kind in _SCALING and not step.scaled:
        raise SettingsError(
            f"{step.name} ({step.kind}) is not arithmetic of a map with constants, as in "
            "(x - 0.5) / 2. c(M) knows no other, and no multiplying by 0."
        )
    if step.kind in _UNDONE | _REVERSIBLE | _LOSSY | _HARMLESS | _NORMS | _SCALING:
        _check_same_shape(step)
        return None
    if step.kind in ("conv2d", "linear"):
        proper = {"conv2d": "nn.Conv2d", "linear": "nn.Linear"}[step.kind]
        raise SettingsError(
            f"{step.name} is a function, or a subclass of {proper}. c(M) reads modules; use "
            f"{proper} itself."
        )
    raise SettingsError(
        f"c(M) does not know {step.kind} ({step.name}). It knows Conv2d, Linear, pooling by "
        "maximum or mean, batch norm, dropout, flattening and activations of one value."
    )


def _check_flattened(step: ForwardStep) -> None:
    if step.outputs not in (step.inputs, (math.prod(step.inputs),)):
        raise SettingsError(
            f"{step.name} ({step.kind}) makes {_size(step.outputs)} of {_size(step.inputs)}. c(M) "
            "knows only flattening all values of a map, before the first Linear."
        )


def _check_same_shape(step: ForwardStep) -> None:
    if step.outputs != step.inputs:
        raise SettingsError(
            f"{step.name} ({step.kind}) makes {_size(step.outputs)} of {_size(step.inputs)}; c(M) "
            "knows it only where it leaves the shape as it is."
        )


def _size(shape: Shape) -> str:
    return "×".join(map(str, shape)) or "one vector for all images"


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


def _pooling(step: ForwardStep) -> Pooling:
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


def _argument(step: ForwardStep, name: str, place: int, otherwise: Any) -> Any:
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


def _notes(steps: Sequence[ForwardStep]) -> Iterator[str]:
    bent = [step for step in steps if step.kind in _UNDONE | _REVERSIBLE | _LOSSY]
    lossy = _counted(step for step in bent if not _can_be_undone(step))
    other = _counted(step for step in steps if _is_refused(step) and _can_be_undone(step))
    pools = _counted(step for step in steps if step.kind in _POOLS | _FIXED_POOLS)
    norms = _counted(step for step in steps if step.kind in _NORMS)
    if lossy:
        yield (
            f"{lossy}: cannot be undone everywhere. Its loss is not counted, so the "
            "recursion gets less than by c(M)."
        )
    if other:
        yield f"{other}: c(M) holds with it, but the attacks rgap and copa do not take it."
    if pools:
        yield (
            f"{pools}: the recursion cannot go back past pooling. c(M) counts the convolutions "
            "alone, as if the layers before the pooling were known."
        )
    if norms:
        yield (
            f"{norms}: counted as fixed scaling, as in eval mode. The attacks rgap and copa do not "
            "take it."
        )


def _can_be_undone(step: ForwardStep) -> bool:
    """Return whether no two inputs of an activation have the same output."""
    if step.kind in _SLOPES:
        return bool(_argument(step, _SLOPES[step.kind], 0, 1.0) > 0)
    if step.kind == "prelu":
        return isinstance(step.module, nn.PReLU) and bool((step.module.weight > 0).all())
    return step.kind not in _LOSSY


def _is_refused(step: ForwardStep) -> bool:
    """Return whether c(M) holds with a step that rgap and copa do not take."""
    module = step.module
    if isinstance(module, nn.Conv2d):
        dilated = _pair(module.dilation) != (1, 1)
        return module.groups > 1 or dilated or isinstance(module.padding, str)
    return step.kind in _REVERSIBLE | _DROPOUTS


def _counted(steps: Iterable[ForwardStep]) -> str:
    """The kinds of steps, with how often each comes."""
    kinds = Counter(
        step.kind if step.module is None else type(step.module).__name__ for step in steps
    )
    return ", ".join(kind if n == 1 else f"{kind} ({n} times)" for kind, n in kinds.items())
