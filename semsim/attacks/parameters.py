"""The parameters whose gradient a client shares, by name; the others are frozen and known."""

import copy
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TypeVar

from torch import nn

from semsim.attacks import ATTACKS
from semsim.base.errors import SettingsError
from semsim.base.registry import Plugin, all_settings, unknown

ALL = "all"
_WORDS = {"first": "the first layer", "all": "every layer"}
NetworkT = TypeVar("NetworkT", bound=nn.Module)


def shared_names(network: nn.Module, shared: Iterable[str]) -> frozenset[str]:
    """Return the names of the parameters that are shared.

    Args:
        network: Whose `named_parameters` are meant.
        shared: "all"; "last", the last layer with weights, as a linear probe has it; "biases";
            "lora", whose names have "lora_"; names of parameters or modules; patterns with * or ?.

    Raises:
        SettingsError: For a part that the network has no parameter of.
        UnknownNameError: For a name that the network has not.
    """
    every = [name for name, one in network.named_parameters() if one.is_floating_point()]
    words = {
        ALL: every,
        "last": layer_names(network)[-1],
        "biases": [name for name in every if name.endswith("bias")],
        "lora": [name for name in every if "lora_" in name],
    }
    modules = [
        name
        for name, part in network.named_modules()
        if name and next(part.parameters(), None) is not None
    ]
    found: set[str] = set()
    for part in shared:
        mine = words.get(part) or [
            name for name in every if f"{name}.".startswith(f"{part}.") or fnmatchcase(name, part)
        ]
        if not mine and part not in words and not {*part} & {*"*?["}:
            raise unknown("parameter or module of the model", part, [*words, *every, *modules])
        if not mine:
            raise SettingsError(
                f"The model has no parameter that {part!r} stands for, so there is no gradient to "
                f"share. Its modules: {', '.join(modules)}."
            )
        found |= {*mine}
    return frozenset(found)


def layer_names(network: nn.Module) -> list[list[str]]:
    """Return the parameters of each layer with weights, in the order of `modules`; one at least."""
    found = [
        [f"{name}.{own}" if name else own for own, _ in part.named_parameters(recurse=False)]
        for name, part in network.named_modules()
        if any(one.dim() > 1 for one in part.parameters(recurse=False))
    ]
    return found or [[]]


def as_buffers(network: nn.Module, names: Iterable[str]) -> None:
    """Make buffers of the parameters of these names: no participant has a gradient of them."""
    for name in names:
        place, _, last = name.rpartition(".")
        module = network.get_submodule(place)
        value = getattr(module, last).detach()
        delattr(module, last)
        module.register_buffer(last, value)


def shared_part(network: NetworkT, parameters: str) -> NetworkT:
    """Return a copy whose parameters are those shared; `network` itself where all are.

    Args:
        parameters: As of `semsim.attacks.observe.Gradient`.
    """
    if parameters == ALL:
        return network
    names, made = shared_names(network, parameters.split("+")), copy.deepcopy(network)
    as_buffers(made, {name for name, _ in made.named_parameters()} - names)
    return made


def seen_in(network: nn.Module, names: Collection[str]) -> Mapping[str, int]:
    """Return the numbers of parameters that are seen, those called so, and of all."""
    sizes = {name: one.numel() for name, one in network.named_parameters()}
    return {"parameters": sum(sizes[name] for name in names), "of": sum(sizes.values())}


def check_layers(attack: Plugin, network: nn.Module, names: Collection[str]) -> None:
    """`SettingsError` where an attack needs the gradient of a layer that is not shared.

    Args:
        attack: By its name in `ATTACKS`.
        network: Whose parameters are named.
        names: Of the parameters that are shared.
    """
    layers, needs = layer_names(network), ATTACKS.needs(attack.name).layers
    every = {name for name, _ in network.named_parameters()}
    asked: Mapping[str, Collection[str]] = {"any": (), "first": layers[0], "all": every}
    if lacking := sorted({*asked[needs]} - {*names}):
        raise SettingsError(
            f"{attack.name} needs the gradient of {_WORDS[needs]}, and {lacking[0]} is not "
            "shared. Share all parameters, or take invgrad or prior."
        )
    inferred = all_settings(ATTACKS, attack).get("label") == "inferred"
    if inferred and not {*layers[-1]} & {*names}:
        raise SettingsError(
            f"{attack.name} reads the label off the gradient of the last layer, and "
            f"{layers[-1][0]} is not shared. Share it, or take label=known."
        )
