"""Networks that can be cut twice, and the client and the server that classify together by one.

The client has the head and the tail, the server the body; here is what crosses between them, and
what the server sees.
"""

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

    Attributes:
        inputs: Channels it normally takes.
        make: Builds it for another number of input channels, as a tail needs that sees the answers
            of several bodies.
        flat: Whether it makes vectors of maps.
    """

    inputs: int
    make: Callable[[int], nn.Module]
    flat: bool = False


class SplitNetwork(Protocol):
    """Settings of a network and of its two cuts.

    Attributes:
        h: Units at the start that the client runs.
        t: Units at the end that the client runs.
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
    """Task that networks are made for: `ImageTask` of images, `SentenceTask` of sentences."""

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
class ImageTask:
    """Images to classify.

    Attributes:
        size: (H, W) of an image.
        mean, std: One value a channel, by which the head normalises images.
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
def _task_of_images(data: LabelledImages) -> ImageTask:
    return ImageTask(
        size=(data.images.shape[2], data.images.shape[3]),
        classes=len(data.classes),
        mean=tuple(data.images.mean(dim=(0, 2, 3)).tolist()),
        std=tuple(deviations(data.images, (0, 2, 3))),
    )


def make_parts(network: SplitNetwork, task: AnyTask, seed: int, *, copies: int = 1) -> Parts:
    """Head, body and tail with fresh weights; the same seed gives the same ones.

    Args:
        copies: Of the body that the server has; the tail takes all their answers side by side.

    Raises:
        SettingsError: Where a cut leaves a part empty.
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

    Attributes:
        width: Channels of the stem and the first stage, doubled in the second.
        pool: Whether the stem halves the image.
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

    Attributes:
        width: Channels of the stem.
        pool: Whether the stem halves the image, as the paper has it on CIFAR-10 (64×16×16 crosses)
            and not on CIFAR-100 (64×32×32).
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

    Attributes:
        width: Channels of the first block; 2, 4, 8 and 8 times as many in the others, and 8 times
            in the hidden fully connected layers. Images of at least 32 pixels a side.
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


class FeatureNoise(nn.Module):
    """Noise that the client adds to its features before it sends them.

    Attributes:
        fixed: (C, H, W), the same in training and in use, for every image.
        fresh: Standard deviation of Gaussian noise drawn anew for every image.
    """

    fixed: Tensor

    def __init__(self, fixed: Tensor, fresh: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("fixed", fixed)
        self.fresh = fresh

    def forward(self, features: Tensor) -> Tensor:
        """(N, C, H, W) to the same shape."""
        noisy = features + self.fixed
        return noisy + self.fresh * torch.randn_like(noisy) if self.fresh else noisy


class SplitSystem(nn.Module):
    """The client's head, noise, selector and tail; the server's bodies.

    Attributes:
        selector: (N,), one weight a body, summing to one (Ensembler, Eq. 1); the client's secret.
        drop: Dropout of the bodies' answers while training. In a translation, see
            `semsim.papers.sentences`, what is called an image is a row of words.
    """

    selector: Tensor

    def __init__(
        self,
        *,
        head: nn.Module,
        noise: FeatureNoise,
        bodies: Sequence[nn.Module],
        selector: Tensor,
        tail: nn.Module,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        self.head, self.noise, self.tail = head, noise, tail
        self.bodies = nn.ModuleList(bodies)
        self.drop = nn.Dropout(drop)
        self.register_buffer("selector", selector)

    @property
    def selected(self) -> tuple[int, ...]:
        """Places of the bodies whose answers the client uses."""
        return tuple(self.selector.nonzero().flatten().tolist())

    def send(self, images: Tensor) -> Tensor:
        """Return the features that cross to the server: (N, 3, H, W) in [0, 1] to (N, C, h, w)."""
        return self.noise(self.head(images))

    def conclude(self, features: Tensor) -> Tensor:
        """Logits, (N, classes), from what was sent, (N, C, h, w).

        Only the bodies that count are run; the answer is the same.
        """
        answers = {i: self.bodies[i](features) for i in self.selected}
        return self.tail(self.drop(select(answers, self.selector)))

    def forward(self, images: Tensor) -> Tensor:
        """Logits, (N, classes), from images, (N, 3, H, W) in [0, 1]."""
        return self.conclude(self.send(images))


def empty_system(
    network: SplitNetwork, task: AnyTask, *, bodies: int, fresh: float = 0.0
) -> SplitSystem:
    """A system of the right shape, whose weights, noise and selector are to be loaded."""
    parts = [make_parts(network, task, 0, copies=bodies) for _ in range(bodies)]
    return SplitSystem(
        head=parts[0].head,
        noise=FeatureNoise(torch.zeros(feature_shape(parts[0].head, task)), fresh),
        bodies=[part.body for part in parts],
        selector=torch.full((bodies,), 1 / bodies),
        tail=parts[0].tail,
    )


def select(answers: dict[int, Tensor], selector: Tensor) -> Tensor:
    """Answers of the bodies side by side, each times its weight (Ensembler, Eq. 1).

    Args:
        answers: (N, C, …) by the body's place; a body that is missing counts as zero.
    """
    empty = torch.zeros_like(next(iter(answers.values())))
    parts = [
        weight * answers[place] if place in answers else empty
        for place, weight in enumerate(selector)
    ]
    return torch.cat(parts, dim=1)


@dataclass(frozen=True, kw_only=True)
class FeatureObservation:
    """Features seen by a curious server that may not query the client (Ensembler paper, §2.2).

    There is no field for the private inputs, the client's weights, its noise or its selector, so
    no attack can look at them.

    Attributes:
        features: (N, C, …), what the client has sent, one row a query.
        bodies: The server's own networks with their weights.
        network: The architecture and its cuts, which are public.
        public: Examples of the same distribution as the private ones.
    """

    features: Tensor
    bodies: tuple[nn.Module, ...]
    network: SplitNetwork
    public: Examples


@torch.no_grad()
def observe(
    system: SplitSystem,
    inputs: Tensor,
    network: SplitNetwork,
    public: Examples,
    rng: torch.Generator,
) -> FeatureObservation:
    """Return the server's observation when the client classifies `inputs`, (N, …)."""
    system.eval()
    seed = int(torch.randint(2**31, (1,), generator=rng))
    with torch.random.fork_rng():
        torch.manual_seed(seed)  # for noise that is drawn anew
        sent = [system.send(part.to(system.selector.device)) for part in inputs.split(256)]
    bodies = tuple(system.bodies)
    return FeatureObservation(
        features=torch.cat(sent), bodies=bodies, network=network, public=public
    )


@torch.no_grad()
def system_accuracy(system: SplitSystem, data: LabelledImages, seed: int = 0) -> float:
    """Share of `data` that client and server classify right together, 0 to 1."""
    system.eval()
    device, hits = system.selector.device, 0
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for images, labels in zip(data.images.split(256), data.labels.split(256), strict=True):
            hits += int((system(images.to(device)).argmax(1).cpu() == labels).sum())
    return hits / len(data)
