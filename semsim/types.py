"""Observations of an attacker, and the result of an attack. The threat model is a type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from torch import Tensor, nn


class AttackedModel(Protocol):
    """A classifier whose gradient leaks: images in [0, 1] in, logits out.

    Attributes:
        mean, std: (1, C, 1, 1), by which it normalises images; public like its weights.
    """

    mean: Tensor
    std: Tensor

    def __call__(self, images: Tensor) -> Tensor:
        """(N, C, H, W) in [0, 1] to logits, (N, classes)."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


@dataclass(frozen=True, kw_only=True)
class BatchNormStatistics:
    """Statistics of the private image at each batch norm layer, where a participant shares them.

    means, variances (biased): one (channels,) for each batch norm layer that keeps running
    statistics, in the order of `model.modules()`.
    """

    means: tuple[Tensor, ...]
    variances: tuple[Tensor, ...]


@dataclass(frozen=True, kw_only=True)
class GradientObservation:
    """Observation of a server in federated learning: the model and one participant's gradient.

    There is no field for the private image, so no attack can look at it.

    Attributes:
        gradients: One tensor a parameter of `model`, in the order of `model.parameters()`.
        shape: (C, H, W) of the private image.
        label: Class index, or None where the attacker must infer it.
        batch_norm: The image's statistics at each batch norm layer, or None where they do not leak.
    """

    model: AttackedModel
    gradients: tuple[Tensor, ...]
    shape: tuple[int, int, int]
    label: int | None
    batch_norm: BatchNormStatistics | None = None


@dataclass(frozen=True, kw_only=True)
class LocalSteps:
    """Training of the sent model by a client before it shares anything; the server knows it.

    Attributes:
        steps: Of `torch.optim.SGD` with `lr` and `momentum`, each on the next `batch` of the
            client's pictures, from the first again after the last.
        batch_norm: "eval" normalises by the running statistics, "train" by those of the batch.
    """

    steps: int
    batch: int
    lr: float
    momentum: float
    batch_norm: Literal["eval", "train"]

    def turns(self, pictures: int) -> Iterator[slice]:
        """The places of the pictures of each step, of so many, a multiple of `batch`."""
        for step in range(self.steps):
            first = step * self.batch % pictures
            yield slice(first, first + self.batch)

    @property
    def reach(self) -> float:
        """Number of gradients, each times `lr`, that add up to an update if all of them are alike.

        `steps` without momentum, with which the gradient of a step counts in all that follow.
        """
        pace, total = 0.0, 0.0
        for _ in range(self.steps):
            pace = self.momentum * pace + 1
            total += pace
        return total


@dataclass(frozen=True, kw_only=True)
class UpdateObservation:
    """Observation of a server whose client shares one thing for several pictures or steps.

    Attributes:
        update: The client's parameters less those it was sent, one tensor a parameter of `model`,
            in the order of `model.parameters()`.
        pictures: How many the client has.
        shape: (C, H, W) of each.
        labels: Their class indices in the order in which the client takes them, or None where the
            attacker must infer them.
    """

    model: AttackedModel
    update: tuple[Tensor, ...]
    local: LocalSteps
    pictures: int
    shape: tuple[int, int, int]
    labels: tuple[int, ...] | None

    def mean_gradient(self) -> tuple[Tensor, ...]:
        """The gradient of which, were it the same at each step, the update would consist.

        One tensor a parameter, of its shape.
        """
        scale = self.local.lr * self.local.reach
        return tuple(-change / scale for change in self.update)

    def as_one_step(self) -> UpdateObservation:
        """As if the client had shared `mean_gradient`, of all its pictures as one batch."""
        local = replace(self.local, steps=1, batch=self.pictures, lr=1.0, momentum=0.0)
        update = tuple(-gradient for gradient in self.mean_gradient())
        return replace(self, local=local, update=update)


class VerticalModel(Protocol):
    """A classifier whose parts sit with participants that each hold a part of every image.

    Attributes:
        joint: The first fully connected layer, which sees what all parts put out.
    """

    mean: Tensor
    std: Tensor

    @property
    def joint(self) -> nn.Linear: ...

    def __call__(self, images: Tensor) -> Tensor:
        """(N, C, H, W) in [0, 1] to logits, (N, classes)."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def joint_inputs(self, images: Tensor) -> Tensor:
        """Map whole images, (N, C, H, W) in [0, 1], to the inputs of `joint`, (N, features)."""
        ...


@dataclass(frozen=True, kw_only=True)
class VerticalRound:
    """One round of vertical federated learning: the mean gradient over a batch.

    Attributes:
        members: Indices of the images in the batch, which the server itself has drawn.
        gradients: One tensor a parameter of the model, in the order of `model.parameters()`.
    """

    members: tuple[int, ...]
    gradients: tuple[Tensor, ...]


@dataclass(frozen=True, kw_only=True)
class VerticalObservation:
    """Observation of the server of vertical federated learning over rounds with the same weights.

    Attributes:
        labels: (N,) class indices of all images, which the server holds.
        shape: (C, H, W) of one.
    """

    model: VerticalModel
    rounds: tuple[VerticalRound, ...]
    labels: Tensor
    shape: tuple[int, int, int]


def worse_than_grey(residual: float, grey_residual: float) -> bool:
    """Return whether a mid-grey image explains what leaked as well as the picture found, or better.

    An undefined residual (NaN) counts as worse: an attack that cannot show that it beats grey has
    not beaten it.
    """
    return not residual < grey_residual


@dataclass(frozen=True, kw_only=True)
class Reconstruction:
    """Result of an attack on one image.

    Attributes:
        image: (C, H, W) float32 RGB in [0, 1].
        objective: The attack's own final objective, by which restarts are compared.
        residual: The distance that the attack minimises, without priors, at `image`.
        grey_residual: The same distance at a mid-grey image. A residual that is not below it means
            that the attack found nothing, see `worse_than_grey`.
        shift: (right, down) in pixels by which the attacker believes the private image was moved
            before it was used, and which `image` undoes; None where the attack does not estimate
            it.
        blown_up: Whether the solution, before it was clamped, was farther from grey than any
            picture.
        solver: Which of its solvers gave `image`, where the attack has several; else "".
        seen_parameters: Share of the model's parameters whose gradient the attacker saw, in [0, 1];
            None where it was not counted.
    """

    image: Tensor
    objective: float
    residual: float
    grey_residual: float
    shift: tuple[int, int] | None = None
    blown_up: bool = False
    solver: str = ""
    seen_parameters: float | None = None


@dataclass(frozen=True, kw_only=True)
class LabelledImages:
    """One split of a data set, in memory.

    Attributes:
        images: (N, 3, H, W) float32 RGB in [0, 1].
        labels: (N,) int64 indices into `classes`.
        ids: One stable name an image, unique within the data set.
        subjects: Who each image shows, where that is finer than its class and what people are asked
            about; else empty.
    """

    dataset: str
    classes: tuple[str, ...]
    ids: tuple[str, ...]
    images: Tensor
    labels: Tensor
    subjects: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def inputs(self) -> Tensor:
        """`images`, (N, 3, H, W): what a training goes through, of whatever kind."""
        return self.images

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what images can show, as people are asked: subjects, or else classes."""
        return tuple(dict.fromkeys(self.subjects)) or self.classes

    def shown(self, place: int) -> str:
        """Return the name of what the image at `place` shows, one of `names`."""
        return self.subjects[place] if self.subjects else self.classes[int(self.labels[place])]

    def pick(self, indices: Sequence[int]) -> LabelledImages:
        """The images at `indices`, in that order."""
        index = list(indices)
        return replace(
            self,
            ids=tuple(self.ids[i] for i in index),
            subjects=tuple(self.subjects[i] for i in index) if self.subjects else (),
            images=self.images[index],
            labels=self.labels[index],
        )
