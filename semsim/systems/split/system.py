"""A client and a server that classify together, what crosses between them, what the server sees."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from semsim.systems.split.networks import AnyTask, Examples, SplitNetwork, feature_shape, make_parts
from semsim.types import LabelledImages


class FeatureNoise(nn.Module):
    """Noise that the client adds to its features before it sends them.

    fixed: (C, H, W), the same in training and in use, for every image.
    fresh: standard deviation of Gaussian noise drawn anew for every image.
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

    selector: (N,), one weight a body, summing to one (Ensembler, Eq. 1); the client's secret.
    drop: dropout of the bodies' answers while training.
    In a translation, see `semsim.papers.sentences`, what is called an image is a row of
    words.
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

    features: (N, C, …), what the client has sent, one row a query.
    bodies: the server's own networks with their weights.
    network: the architecture and its cuts, which are public.
    public: examples of the same distribution as the private ones.
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
