"""One pass through a network's `forward`, step by step, with the shapes in between."""

import copy
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from semsim.attacks.security.index import Shape
from semsim.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of `forward`. kind: its type in small letters without underscores.

    module: None where it is a function, which then has arguments `given` behind its input.
    inputs, outputs: shapes of one example. scaled: see `_is_scaled`.
    """

    name: str
    kind: str
    module: nn.Module | None
    given: tuple[Any, ...]
    named: dict[str, Any]
    inputs: Shape
    outputs: Shape
    scaled: bool


def steps_of(model: nn.Module, input_shape: Shape) -> Iterator[Step]:
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
    """What an error says, without the pages that PyTorch adds."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


def _step(node: fx.Node, modules: dict[str, nn.Module], before: fx.Node) -> Step:
    if node.op == "call_module":
        module = modules[str(node.target)]
        kind, name = type(module).__name__, str(node.target)
    else:
        module, name = None, node.name
        kind = str(getattr(node.target, "__name__", node.target))
    return Step(
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
    """Whether constants alone join what is `before`: none divided by it, none that wipes it out."""
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
