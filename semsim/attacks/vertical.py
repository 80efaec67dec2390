"""Vertical federated learning in small: each participant holds a part of every image."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from semsim.attacks.per_sample import parameter_gradients
from semsim.errors import SettingsError
from semsim.types import VerticalModel, VerticalObservation, VerticalRound


class QuarteredNet(nn.Module):
    """Four participants with a quarter of the image each, joined by two linear layers.

    Each quarter goes through a 3×3 convolution and a smooth activation of its own; the outputs
    are joined by the first fully connected layer, where the server takes over, as in the setting
    of Jin et al. 2021, arXiv:2110.15122.
    """

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
        if size[0] % 2 or size[1] % 2:
            raise SettingsError(f"Images that are quartered need even sides, got {size}.")
        self.quarter = (size[0] // 2, size[1] // 2)
        self.parts = nn.ModuleList(nn.Conv2d(len(mean), width, 3, padding=1) for _ in range(4))
        self.joint = nn.Linear(4 * width * self.quarter[0] * self.quarter[1], hidden)
        self.head = nn.Linear(hidden, classes)
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1))

    def joint_inputs(self, images: Tensor) -> Tensor:
        """What the first fully connected layer sees: (N, C, H, W) in [0, 1] to (N, features)."""
        down, right = self.quarter
        x = (images - self.mean) / self.std
        rows = (x[:, :, :down], x[:, :, down:])
        quarters = [part for row in rows for part in (row[..., :right], row[..., right:])]
        seen = [part(quarter) for part, quarter in zip(self.parts, quarters, strict=True)]
        return torch.cat([torch.tanh(each).flatten(1) for each in seen], dim=1)

    def forward(self, images: Tensor) -> Tensor:
        """Logits, (N, number of classes)."""
        return self.head(torch.tanh(self.joint(self.joint_inputs(images))))


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
    """What the server sees over one round a batch, the weights staying as they are.

    images: (N, C, H, W) in [0, 1]. labels: (N,).
    """
    rounds = []
    for members in batches:
        index = torch.tensor(members)
        gradients = parameter_gradients(model, images[index], labels[index])
        rounds.append(VerticalRound(members=members, gradients=gradients))
    shape = (images.shape[1], images.shape[2], images.shape[3])
    return VerticalObservation(model=model, rounds=tuple(rounds), labels=labels, shape=shape)
