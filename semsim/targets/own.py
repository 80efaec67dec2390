"""A user's own network, `package.module:Class`, as a target of campaigns."""

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

import torch
from torch import nn

from semsim.base.errors import JobError, SettingsError
from semsim.targets.layers import (
    OVERWRITES,
    idle_parameters,
    overwrites_what_is_read,
    twice_differentiable,
)

_INSTALLED = tuple({Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")})


@dataclass(frozen=True, kw_only=True)
class OwnNetwork:
    """The network that `package.module:Class` makes, as a whole, with its own last layer.

    Its features, as `TargetModel.features` has them, are its logits.

    Attributes:
        network: `Class(num_classes=…, image_size=(height, width))`, or a function so called, gives
            an `nn.Module` that takes normalised images (N, channels, H, W) float32 to logits (N,
            num_classes). What is random in its start is drawn from torch's generator.
        source: `source_of` it. It is part of every key, so that what was computed for one network
            is never taken for another's, and a changed one is refused.
    """

    network: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if not self.network or not self.source:
            raise SettingsError(
                "A network of your own is named by --own-network package.module:Class."
            )

    def classifier(self, channels: int, size: tuple[int, int], classes: int) -> nn.Module:
        """The network, freshly made;

        Args:
            size: (H, W) of its images.

        Raises:
            SettingsError: Where it cannot be imported or made, does not give logits, or has a
                parameter without a gradient.
            JobError: Where this machine has it in another version.
        """
        make = _found(self.network)
        there = source_of(self.network)
        if there != self.source:
            raise JobError(
                f"{self.network} is not what this campaign began with: its source is {there} here "
                f"and was {self.source}. Bring it back and start again what has imported it, or "
                "begin a campaign of another name."
            )
        made = _made(make, self.network, size, classes)
        _check(made, self.network, (channels, *size), classes)
        noise = torch.randn(1, channels, *size, generator=torch.Generator().manual_seed(0))
        if overwrites_what_is_read(made, noise):
            raise SettingsError(f"{self.network}: a layer {OVERWRITES}")
        return twice_differentiable(made)


def own_network(network: str) -> str:
    """The architecture `package.module:Class` of a campaign, as text.

    Raises `SettingsError` where there is no such class.
    """
    _found(network)
    return f"own:network={network},source={source_of(network)}"


@cache  # a process goes on with what it has imported, so with that it is compared
def source_of(network: str) -> str:
    """Return 12 hex digits over a network's Python files, others for each version of it.

    The files are that of its module and those it imports, as far as they are neither Python's nor
    installed packages nor ours; an installed network counts by its file and its version. What it
    reads besides, as a file of settings, is not seen.
    """
    digest = hashlib.sha256()
    for name, content in sorted(_files(network.partition(":")[0]).items()):
        digest.update(name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:12]


def _found(network: str) -> Any:
    module, _, name = network.partition(":")
    if not module or not name.isidentifier():
        raise SettingsError(f"A network is named package.module:Class; got {network!r}.")
    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        raise SettingsError(
            f"{module} cannot be imported ({error}). Begin in the folder that has it, or name "
            "that folder in PYTHONPATH; other machines need it too."
        ) from error
    except AttributeError:
        raise SettingsError(f"{module} has no {name!r}.") from None
    except Exception as error:  # somebody's module may raise anything
        raise SettingsError(f"{module} breaks when it is imported: {_told(error)}") from error


def _made(make: Any, network: str, size: tuple[int, int], classes: int) -> nn.Module:
    asked: dict[str, Any] = {"num_classes": classes, "image_size": tuple(size)}
    try:
        made = make(**asked)
    except Exception as error:  # somebody's code may raise anything
        words = ", ".join(f"{name}={value}" for name, value in asked.items())
        raise SettingsError(f"{network} cannot be made with {words}: {_told(error)}") from error
    if not isinstance(made, nn.Module):
        kind = type(made).__name__
        raise SettingsError(f"{network} should give a torch.nn.Module; it gave a {kind}.")
    return made


def _check(made: nn.Module, network: str, shape: tuple[int, ...], classes: int) -> None:
    training = made.training
    try:
        logits = made.eval()(torch.zeros(2, *shape))
    except Exception as error:  # somebody's code may raise anything
        raise SettingsError(
            f"{network} cannot take images (2, {', '.join(map(str, shape))}): {_told(error)}"
        ) from error
    found = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    if found != (2, classes):
        raise SettingsError(
            f"{network} should give logits (N, num_classes); of 2 images and {classes} classes "
            f"that is (2, {classes}), it gave {found}."
        )
    if not any(True for _ in made.parameters()):
        raise SettingsError(f"{network} has no parameter, so there is no gradient to attack.")
    if idle := idle_parameters(made, logits):
        raise SettingsError(
            f"{network}: the parameter {idle[0]} has no gradient. An attack is given the gradient "
            "of every parameter; make it a buffer, or leave it out."
        )
    made.train(training)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _files(module: str) -> dict[str, bytes]:
    """The content of every file that decides what `module` does, by the name of its module."""
    found: dict[str, bytes] = {}
    waiting = [".".join(module.split(".")[:depth]) for depth in range(1, module.count(".") + 2)]
    while waiting:
        name = waiting.pop()
        path = None if name in found else _path_of(name)
        if path is None:
            continue
        if not any(path.is_relative_to(folder) for folder in _INSTALLED):
            found[name] = path.read_bytes()
            waiting += _imported(name, path)
        elif name == module:
            found[name] = path.read_bytes() + _version(name).encode()
    return found


def _path_of(name: str) -> Path | None:
    if name.partition(".")[0] in {*sys.stdlib_module_names, "semsim"}:
        return None
    try:
        spec = find_spec(name)
    except (ImportError, ValueError, AttributeError):  # one that is optional, or no module
        return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _imported(name: str, path: Path) -> Iterator[str]:
    """Every module that a file may import, and the packages they are in."""
    if path.suffix != ".py":
        return
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            base = resolve_name(base, package) if node.level else base
            named = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for one in named:
            parts = one.split(".")
            yield from (".".join(parts[:depth]) for depth in range(1, len(parts) + 1))


def _version(module: str) -> str:
    owners = metadata.packages_distributions().get(module.partition(".")[0], [])
    return " ".join(f"{owner} {metadata.version(owner)}" for owner in sorted(set(owners)))
