"""CAFE, against vertical federated learning (Jin, Chen, Hsu, Yu and Chen 2021, arXiv:2110.15122).

The server draws the batches, so it knows which images a mean gradient is the mean of, and several
rounds make a system of equations for each image's own share. Three steps: the gradient of every
image's loss behind the first fully connected layer; what that layer saw of every image; and the
images, which must give both that and the gradients of the layers before.

The first two objectives of the paper are linear least squares problems. They are solved here in
closed form, where the paper descends: same minimum, exact where enough rounds were seen.

`QuarteredNet` is vertical federated learning in small: every participant holds a part of an image.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from semsim.attacks.fast_gradients import parameter_gradients
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import Checked, setting
from semsim.targets.model import TargetModel
from semsim.types import Reconstruction, VerticalModel, VerticalObservation, VerticalRound

_REPORT_EVERY = 20


@dataclass(frozen=True, kw_only=True)
class Cafe(Checked):
    """Recover all images behind several rounds of vertical federated learning at once.

    Only the code was read: "paper" has its numbers of rounds and step size too. It also descends
    in the first two steps, and looks for the labels, which here the server holds.

    Attributes:
        steps: Adam steps of the third step of the attack, each on the next round.
        lr: Their size, in units of the network's input.
        gradient, inputs, tv: Weights of the squared distance of the gradients, of that of what the
            first fully connected layer sees, and of total variation, which counts only where it is
            above `tv_from` an image.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"steps": 20_000, "lr": 0.01},
        "code": {"steps": 20_000, "lr": 0.01},
        "fast": {"steps": 300, "lr": 0.05},
    }

    steps: int = setting(2000, least=1)
    lr: float = setting(0.05, above=0)
    gradient: float = 1.0
    inputs: float = 1e-3
    tv: float = setting(1e-4, least=0)
    tv_from: float = 25.0

    def __call__(
        self, seen: VerticalObservation, *, rng: torch.Generator, report: Report = silent
    ) -> list[Reconstruction]:
        """One reconstruction an image; raises `AttackFailedError` where there is none.

        The residuals are those of all rounds together, and the same for every image.
        """
        _check_finite(seen)
        behind = gradients_behind_joint(seen)
        inputs = inputs_of_joint(seen, behind)
        images, value = self.descended(seen, inputs, rng=rng, report=report)
        residual = _gradient_distance(seen, images)
        grey = _gradient_distance(seen, torch.full_like(images, 0.5))
        return [
            Reconstruction(
                image=image.to(torch.float32),
                objective=value,
                residual=residual,
                grey_residual=grey,
            )
            for image in images
        ]

    def descended(
        self, seen: VerticalObservation, inputs: Tensor, *, rng: torch.Generator, report: Report
    ) -> tuple[Tensor, float]:
        """Step 3: the images, (N, C, H, W) in [0, 1], and the objective before the last step.

        Args:
            inputs: What `joint` saw of each, (N, inputs).

        Raises:
            AttackFailedError: On divergence.
        """
        mean, std = seen.model.mean, seen.model.std
        shape = (len(seen.labels), *seen.shape)
        unknown = torch.randn(shape, generator=rng).to(mean).requires_grad_(True)
        optimiser = torch.optim.Adam([unknown], lr=self.lr)
        value = float("nan")
        for step in range(1, self.steps + 1):
            round_ = seen.rounds[step % len(seen.rounds)]
            objective = self._objective(seen, round_, unknown, inputs)
            value = objective.item()
            if not torch.isfinite(objective):
                raise AttackFailedError(
                    f"The objective became {value} at step {step} of {self.steps}."
                )
            (unknown.grad,) = torch.autograd.grad(objective, unknown)
            optimiser.step()
            with torch.no_grad():
                unknown.clamp_(-mean / std, (1 - mean) / std)
            if step % _REPORT_EVERY == 0 or step == self.steps:
                report(Progress(step, self.steps, values={"objective": value}))
        images = (unknown.detach() * std + mean).clamp(0, 1)
        if not torch.isfinite(images).all():
            raise AttackFailedError("A pixel is not finite after the last step.")
        return images, value

    def _objective(
        self, seen: VerticalObservation, round_: VerticalRound, unknown: Tensor, inputs: Tensor
    ) -> Tensor:
        """The weighted sum of the third step, on one round."""
        index = torch.tensor(round_.members)
        images = unknown[index] * seen.model.std + seen.model.mean
        distance = _round_distance(seen, round_, images)
        own = seen.model.joint_inputs(images)
        variation = _variations(unknown[index])
        return (
            self.gradient * distance
            + self.inputs * (own - inputs[index]).square().sum()
            + self.tv * torch.where(variation > self.tv_from, variation, 0.0).sum()
        )


def gradients_behind_joint(seen: VerticalObservation) -> Tensor:
    """Step 1: the gradient of each image's loss by the output of `joint`, (N, outputs).

    The mean of these over a batch is the gradient of the bias of `joint`. Raises
    `AttackFailedError` where the rounds do not tell the images apart.
    """
    _, bias = _places(seen)
    shares = _shares(seen)
    if torch.linalg.matrix_rank(shares) < len(seen.labels):
        raise AttackFailedError(
            f"{len(seen.rounds)} rounds do not tell {len(seen.labels)} images apart; CAFE needs "
            "at least as many rounds with different batches as there are images."
        )
    means = torch.stack([each.gradients[bias] for each in seen.rounds])
    return torch.linalg.lstsq(shares, means.to(shares)).solution.to(means)


def inputs_of_joint(seen: VerticalObservation, behind: Tensor) -> Tensor:
    """Step 2: what `joint` saw of each image, (N, inputs).

    The gradient of the weight is the mean over the batch of outer products of `behind` and this.
    """
    weight, _ = _places(seen)
    shares = _shares(seen)
    # (rounds × outputs, N): how much of each image is in each row of each weight gradient.
    system = (shares[:, None, :] * behind.to(shares).T[None]).flatten(0, 1)
    rows = torch.cat([each.gradients[weight] for each in seen.rounds]).to(shares)
    return torch.linalg.lstsq(system, rows).solution.to(behind)


def _check_finite(seen: VerticalObservation) -> None:
    for place, each in enumerate(seen.rounds):
        if not all(torch.isfinite(gradient).all() for gradient in each.gradients):
            raise AttackFailedError(f"The gradient of round {place + 1} is not finite.")


def _shares(seen: VerticalObservation) -> Tensor:
    """The share of each image in each round's mean, (rounds, N), in float64."""
    shares = torch.zeros(len(seen.rounds), len(seen.labels), dtype=torch.float64)
    for row, each in zip(shares, seen.rounds, strict=True):
        row[list(each.members)] = 1 / len(each.members)
    return shares


def _places(seen: VerticalObservation) -> tuple[int, int]:
    """Return the places of weight and bias of `joint` among the model's parameters."""
    places = {id(parameter): place for place, parameter in enumerate(seen.model.parameters())}
    return places[id(seen.model.joint.weight)], places[id(seen.model.joint.bias)]


def _variations(images: Tensor) -> Tensor:
    """Summed anisotropic total variation an image, (N,)."""
    dx = (images[..., 1:] - images[..., :-1]).abs().sum(dim=(1, 2, 3))
    dy = (images[..., 1:, :] - images[..., :-1, :]).abs().sum(dim=(1, 2, 3))
    return dx + dy


def _round_distance(seen: VerticalObservation, round_: VerticalRound, images: Tensor) -> Tensor:
    found = parameter_gradients(seen.model, images, seen.labels[list(round_.members)])
    pairs = zip(found, round_.gradients, strict=True)
    return torch.stack([(a - b).square().sum() for a, b in pairs]).sum()


def _gradient_distance(seen: VerticalObservation, images: Tensor) -> float:
    """The mean over rounds of the squared distance of the gradients."""
    distances = [_round_distance(seen, each, images[list(each.members)]) for each in seen.rounds]
    return float(torch.stack(distances).mean().detach())


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

    Attributes:
        width: Channels of each participant.
        hidden: Outputs of the joining layer.
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

    Args:
        images: (N, C, H, W) in [0, 1].
        labels: (N,).
    """
    rounds = []
    for members in batches:
        index = torch.tensor(members)
        gradients = parameter_gradients(model, images[index], labels[index])
        rounds.append(VerticalRound(members=members, gradients=gradients))
    shape = (images.shape[1], images.shape[2], images.shape[3])
    return VerticalObservation(model=model, rounds=tuple(rounds), labels=labels, shape=shape)
