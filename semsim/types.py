"""What an attacker sees, and what an attack returns. The threat model is a type."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor, nn


class AttackedModel(Protocol):
    """A classifier whose gradient leaks: images in [0, 1] in, logits out.

    mean, std: (1, C, 1, 1), by which it normalises images; public like its weights.
    """

    mean: Tensor
    std: Tensor

    def __call__(self, images: Tensor) -> Tensor: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


@dataclass(frozen=True, kw_only=True)
class GradientObservation:
    """What a server sees in federated learning: the model and one participant's gradient.

    There is no field for the private image, so no attack can look at it.

    gradients: one tensor a parameter of `model`, in the order of `model.parameters()`.
    shape: (C, H, W) of the private image.
    label: class index, or None where the attacker must infer it.
    """

    model: AttackedModel
    gradients: tuple[Tensor, ...]
    shape: tuple[int, int, int]
    label: int | None


@dataclass(frozen=True, kw_only=True)
class Reconstruction:
    """What an attack got back.

    image: (C, H, W) float32 RGB in [0, 1].
    objective: the attack's own final objective, by which restarts are compared.
    """

    image: Tensor
    objective: float


@dataclass(frozen=True, kw_only=True)
class LabelledImages:
    """One split of a data set, in memory.

    images: (N, 3, H, W) float32 RGB in [0, 1]. labels: (N,) int64 indices into `classes`.
    ids: one stable name an image, unique within the data set.
    """

    dataset: str
    classes: tuple[str, ...]
    ids: tuple[str, ...]
    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def pick(self, indices: Sequence[int]) -> "LabelledImages":
        """The images at `indices`, in that order."""
        index = torch.as_tensor(list(indices), dtype=torch.long)
        return replace(
            self,
            ids=tuple(self.ids[i] for i in indices),
            images=self.images[index],
            labels=self.labels[index],
        )
