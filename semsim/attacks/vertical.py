"""Vertical federated learning in small: each participant holds a part of every image."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from semsim.attacks.fast_gradients import parameter_gradients
from semsim.base.errors import SettingsError
from semsim.targets.model import TargetModel
from semsim.types import VerticalModel, VerticalObservation, VerticalRound


class QuarteredBody(nn.Module):
    """Four participants with a quarter of the image each, joined by a linear layer.

    Each quarter goes through a 3×3 convolution and a smooth activation of its own; the outputs
    are joined by the first fully connected layer, where the server takes over, as in the setting
    of Jin et al. 2021, arXiv:2110.15122. Images are normalised, (N, channels, H, W) with even
    sides; what comes out is (N, hidden).
    """

    def __init__(self, channels: int, size: tuple[int, int], width: int, hidden: int) -> None:
        super().__init__()
        if size[0] % 2 or size[1] % 2:
            raise SettingsError(f"Images that are quartered need even sides, got {size}.")
        self.quarter = (size[0] // 2, size[1] // 2)
        self.parts = nn.ModuleList(nn.Conv2d(channels, width, 3, padding=1) for _ in range(4))
        self.joint = nn.Linear(4 * width * self.quarter[0] * self.quarter[1], hidden)

    def joint_inputs(self, x: Tensor) -> Tensor:
        """Return the input of `joint` for x, (N, C, H, W): (N, features)."""
        down, right = self.quarter
        rows = (x[:, :, :down], x[:, :, down:])
        quarters = [part for row in rows for part in (row[..., :right], row[..., right:])]
        seen = [part(quarter) for part, quarter in zip(self.parts, quarters, strict=True)]
        return torch.cat([torch.tanh(each).flatten(1) for each in seen], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """Features, (N, hidden), of normalised images, (N, C, H, W)."""
        return torch.tanh(self.joint(self.joint_inputs(x)))


@dataclass(frozen=True, kw_only=True)
class Quartered:
    """The architecture of `QuarteredBody`, by which such a network is trained like any target.

    width: channels of each participant. hidden: outputs of the joining layer.
    """

    width: int = 8
    hidden: int = 64

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        return QuarteredBody(channels, size, self.width, self.hidden), self.hidden


class QuarteredNet(nn.Module):
    """A classifier over a `QuarteredBody` that takes images as they are, in [0, 1]."""

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        classes: int,
        *,
        size: tuple[int, int],
        width: int = 8,
        hidden: int = 64,
        mean: Sequence[float] = (0.5, 0.5, 0.5),
        std: Sequence[float] = (0.25, 0.25, 0.25),
    ) -> None:
        super().__init__()
        self.body = QuarteredBody(len(mean), size, width, hidden)
        self.head = nn.Linear(hidden, classes)
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1))

    @classmethod
    def of(cls, trained: TargetModel) -> "QuarteredNet":
        """The same classifier as a `trained` one of the architecture `Quartered`, on the CPU."""
        settings, mean, std = trained.architecture, trained.mean, trained.std
        if not isinstance(settings, Quartered):
            raise SettingsError(f"Only Quartered can be attacked vertically; got {settings!r}.")
        made = cls(
            len(trained.classes),
            size=trained.size,
            width=settings.width,
            hidden=settings.hidden,
            mean=mean.flatten().tolist(),
            std=std.flatten().tolist(),
        )
        made.load_state_dict({name: one.cpu() for name, one in trained.state_dict().items()})
        return made.eval()

    @property
    def joint(self) -> nn.Linear:
        """The first fully connected layer."""
        return self.body.joint

    def joint_inputs(self, images: Tensor) -> Tensor:
        """Return the input of `joint`: (N, C, H, W) in [0, 1] to (N, features)."""
        return self.body.joint_inputs((images - self.mean) / self.std)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, (N, classes), of images, (N, C, H, W) in [0, 1]."""
        return self.head(self.body((images - self.mean) / self.std))


def drawn_batches(
    count: int, *, size: int, rounds: int, rng: torch.Generator
) -> list[tuple[int, ...]]:
    """The batches of `size` out of `count` images that a server draws for `rounds` rounds."""
    return [
        tuple(sorted(torch.randperm(count, generator=rng)[:size].tolist())) for _ in range(rounds)
    ]


def observe_vertical(
    model: VerticalModel, images: Tensor, labels: Tensor, batches: Sequence[tuple[int, ...]]
) -> VerticalObservation:
    """Return the server's observation of one round a batch; the weights stay as they are.

    images: (N, C, H, W) in [0, 1]. labels: (N,).
    """
    rounds = []
    for members in batches:
        index = torch.tensor(members)
        gradients = parameter_gradients(model, images[index], labels[index])
        rounds.append(VerticalRound(members=members, gradients=gradients))
    shape = (images.shape[1], images.shape[2], images.shape[3])
    return VerticalObservation(model=model, rounds=tuple(rounds), labels=labels, shape=shape)
