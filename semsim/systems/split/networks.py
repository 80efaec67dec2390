"""Networks that can be cut twice: the client's head, the server's body, the client's tail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn

from semsim.base.errors import SettingsError
from semsim.targets.resnet import BasicBlock
from semsim.targets.train import deviations
from semsim.types import LabelledImages


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A piece of a network that is never cut.

    inputs: channels it normally takes. make: builds it for another number of input channels, as a
    tail needs that sees the answers of several bodies. flat: whether it makes vectors of maps.
    """

    inputs: int
    make: Callable[[int], nn.Module]
    flat: bool = False


class SplitNetwork(Protocol):
    """Settings of a network and of its two cuts.

    h: units at the start that the client runs. t: units at the end that the client runs.
    """

    __dataclass_fields__: ClassVar[dict]

    @property
    def h(self) -> int: ...

    @property
    def t(self) -> int: ...

    def units(self, channels: int, size: tuple[int, int], classes: int) -> list[Unit]: ...


class Examples(Protocol):
    """Examples that networks learn from."""

    @property
    def inputs(self) -> Tensor:
        """Inputs of a network, (N, …)."""
        ...

    @property
    def labels(self) -> Tensor:
        """Classes, (N,) or (N, …) where an input has several."""
        ...

    def __len__(self) -> int: ...


class AnyTask(Protocol):
    """Task that networks are made for: `Task` of images, `SentenceTask` of sentences."""

    @property
    def channels(self) -> int: ...

    @property
    def size(self) -> tuple[int, int]: ...

    @property
    def classes(self) -> int: ...

    def entrance(self) -> list[nn.Module]:
        """Return the head's modules before its first unit."""
        ...

    def blank(self) -> Tensor:
        """One input without content, (1, …)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Task:
    """Images to classify.

    size: (H, W) of an image. mean, std: one value a channel, by which the head normalises images.
    """

    size: tuple[int, int]
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def channels(self) -> int:
        """Of an image."""
        return len(self.mean)

    def entrance(self) -> list[nn.Module]:
        """The normalisation."""
        return [Standardise(self.mean, self.std)]

    def blank(self) -> Tensor:
        """A black image, (1, C, H, W)."""
        return torch.zeros(1, self.channels, *self.size)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A freshly made network in its three pieces."""

    head: nn.Module
    body: nn.Module
    tail: nn.Module


@singledispatch
def task_of(data: Examples) -> AnyTask:
    """The task that `data` sets; a kind of examples registers how."""
    raise NotImplementedError(f"{type(data).__name__} sets no task.")


@task_of.register
def _task_of_images(data: LabelledImages) -> Task:
    return Task(
        size=(data.images.shape[2], data.images.shape[3]),
        classes=len(data.classes),
        mean=tuple(data.images.mean(dim=(0, 2, 3)).tolist()),
        std=tuple(deviations(data.images, (0, 2, 3))),
    )


def make_parts(network: SplitNetwork, task: AnyTask, seed: int, *, copies: int = 1) -> Parts:
    """Head, body and tail with fresh weights; the same seed gives the same ones.

    copies: of the body that the server has; the tail takes all their answers side by side.
    Raises `SettingsError` where a cut leaves a part empty.
    """
    units = check_cuts(network, task)
    h, t = network.h, network.t
    with torch.random.fork_rng():  # torch's layers initialise from the global generator only
        torch.manual_seed(seed)
        head = nn.Sequential(*task.entrance(), *_made(units[:h]))
        body = nn.Sequential(*_made(units[h:-t]))
        first = units[-t]
        tail = nn.Sequential(first.make(copies * first.inputs), *_made(units[len(units) - t + 1 :]))
    return Parts(head=head, body=body, tail=tail)


def check_cuts(network: SplitNetwork, task: AnyTask) -> list[Unit]:
    """The network's units; `SettingsError` where a cut leaves a part empty, or sends no maps."""
    units = network.units(task.channels, task.size, task.classes)
    if network.h < 1 or network.t < 1 or network.h + network.t >= len(units):
        raise SettingsError(
            f"{type(network).__name__} has {len(units)} units: h and t must be at least 1 and "
            f"leave the server at least one; got h={network.h}, t={network.t}."
        )
    flat = next((place for place, unit in enumerate(units) if unit.flat), len(units))
    if network.h > flat:
        raise SettingsError(
            f"After unit {flat} {type(network).__name__} has vectors, and attacks need maps: h "
            f"must be at most {flat}; got {network.h}."
        )
    return units


@torch.no_grad()
def feature_shape(head: nn.Module, task: AnyTask) -> tuple[int, ...]:
    """(C, H, W), or (C, places), of what `head` makes of one input."""
    was = head.training
    shape = head.eval()(task.blank().to(_device(head))).shape
    head.train(was)
    return tuple(shape[1:])


class Standardise(nn.Module):
    """Images in [0, 1] to zero mean and unit deviation a channel."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """(N, C, H, W) in [0, 1] to the same shape."""
        return (images - self.mean) / self.std


@dataclass(frozen=True, kw_only=True)
class SmallResNet:
    """A stem, two stages of one basic block, a linear layer: minutes on a laptop. 4 units.

    width: channels of the stem and the first stage, doubled in the second.
    pool: whether the stem halves the image.
    """

    h: int = 1
    t: int = 1
    width: int = 16
    pool: bool = True

    def units(self, channels: int, size: tuple[int, int], classes: int) -> list[Unit]:
        """Stem, stage, stage with its global average pool, linear layer."""
        return _residual_units((1, 1), self.width, self.pool, channels, classes)


@dataclass(frozen=True, kw_only=True)
class ResNet18:
    """ResNet-18 for small images, stem of one 3×3 convolution (He et al. 2016). 6 units.

    Cuts as in the Ensembler paper's §3: h=1 is the first convolution, h=2 the end of the first of
    four stages; t=1 is the linear layer.
    width: channels of the stem. pool: whether the stem halves the image, as the paper has it on
        CIFAR-10 (64×16×16 crosses) and not on CIFAR-100 (64×32×32).
    """

    h: int = 1
    t: int = 1
    width: int = 64
    pool: bool = True

    def units(self, channels: int, size: tuple[int, int], classes: int) -> list[Unit]:
        """Stem, four stages, the last with its global average pool, linear layer."""
        return _residual_units((2, 2, 2, 2), self.width, self.pool, channels, classes)


@dataclass(frozen=True, kw_only=True)
class Vgg16:
    """VGG-16 with batch norm (Simonyan and Zisserman 2015, configuration D). 16 units.

    h and t count layers: thirteen convolutions, three fully connected layers.
    width: channels of the first block; 2, 4, 8 and 8 times as many in the others, and 8 times in
        the hidden fully connected layers. Images of at least 32 pixels a side.
    """

    h: int = 1
    t: int = 1
    width: int = 64

    def units(self, channels: int, size: tuple[int, int], classes: int) -> list[Unit]:
        """A unit a layer; a block's last convolution takes its max pool along."""
        if min(size) < 32:
            raise SettingsError(f"vgg16 halves images five times: 32 pixels or more, not {size}.")
        w = self.width
        plan = [w, w, 2 * w, 2 * w, *[4 * w] * 3, *[8 * w] * 3, *[8 * w] * 3]
        units, inputs = [], channels
        for place, outputs in enumerate(plan):
            units.append(_convolution_unit(inputs, outputs, pool=place in (1, 3, 6, 9, 12)))
            inputs = outputs
        spatial = (size[0] // 32) * (size[1] // 32)
        hidden = 8 * w
        units += [_hidden_unit(inputs, spatial, hidden), _hidden_unit(hidden, 1, hidden)]
        return [*units, _linear_unit(hidden, classes)]


def _residual_units(
    blocks: Sequence[int], width: int, pool: bool, channels: int, classes: int
) -> list[Unit]:
    units = [_convolution_unit(channels, width, pool=pool)]
    inputs = width
    for stage, count in enumerate(blocks):
        outputs = width * 2**stage
        last = stage == len(blocks) - 1
        units.append(_stage_unit(inputs, outputs, count, 1 if stage == 0 else 2, last))
        inputs = outputs
    return [*units, _linear_unit(inputs, classes)]


def _convolution_unit(inputs: int, outputs: int, *, pool: bool) -> Unit:
    def make(channels: int) -> nn.Module:
        layers: list[nn.Module] = [
            nn.Conv2d(channels, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        ]
        return nn.Sequential(*layers, *([nn.MaxPool2d(2)] if pool else []))

    return Unit(inputs=inputs, make=make)


def _stage_unit(inputs: int, outputs: int, blocks: int, stride: int, last: bool) -> Unit:
    def make(channels: int) -> nn.Module:
        layers: list[nn.Module] = [BasicBlock(channels, outputs, stride, "relu")]
        layers += [BasicBlock(outputs, outputs, 1, "relu") for _ in range(blocks - 1)]
        end = [nn.AdaptiveAvgPool2d(1), nn.Flatten()] if last else []
        return nn.Sequential(*layers, *end)

    return Unit(inputs=inputs, make=make)


def _hidden_unit(inputs: int, spatial: int, outputs: int) -> Unit:
    def make(channels: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(channels * spatial, outputs), nn.ReLU())

    return Unit(inputs=inputs, make=make, flat=True)


def _linear_unit(inputs: int, classes: int) -> Unit:
    return Unit(inputs=inputs, make=lambda features: nn.Linear(features, classes))


def _made(units: Sequence[Unit]) -> list[nn.Module]:
    return [unit.make(unit.inputs) for unit in units]


def _device(module: nn.Module) -> torch.device:
    return next(module.parameters()).device
