"""Query-free model inversion: imitate the client's head, learn to invert the imitation, apply it.

He, Zhang and Lee 2019; Ensembler paper, §2.2 and §5.1.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.progress import Report
from semsim.systems.split.defences import stage_of
from semsim.systems.split.networks import Examples, FeatureObservation, make_parts, select, task_of
from semsim.systems.split.plan import ShadowAttack
from semsim.systems.split.training import Loss, TrainingStage, fit, freeze
from semsim.types import Reconstruction

D = TypeVar("D", bound=nn.Module)


@dataclass(frozen=True, kw_only=True)
class FeatureInversion:
    """Result of an attack on features.

    Attributes:
        found: One reconstruction a query; its residual is the mean squared difference between the
            observed features and those the shadow head makes of the image.
        shadow_accuracy: Of the shadow network on the public images, by which an attacker can choose
            between attacks without seeing a private image.
        decoder_error: Mean squared error of the decoder on public images, in the last epoch.
    """

    found: tuple[Reconstruction, ...]
    shadow_accuracy: float
    decoder_error: float


def invert(
    attack: ShadowAttack, seen: FeatureObservation, rng: torch.Generator, report: Report
) -> FeatureInversion:
    """One image a query, from a decoder of the features of a shadow head."""
    channels, side = seen.features.shape[1], seen.features.shape[2]
    size = (seen.public.inputs.shape[2], seen.public.inputs.shape[3])

    def fresh() -> Decoder:
        return Decoder(channels, side, size, min(64, max(16, channels)))

    shadow, decoder, error = learned(attack, seen, fresh, F.mse_loss, rng, report)
    return FeatureInversion(
        found=_reconstructions(decoder, shadow.head, seen),
        shadow_accuracy=_accuracy(shadow, seen.public),
        decoder_error=error,
    )


def learned(
    attack: ShadowAttack,
    seen: FeatureObservation,
    fresh: Callable[[], D],
    loss: Loss,
    rng: torch.Generator,
    report: Report,
) -> tuple["ShadowNetwork", D, float]:
    """A shadow network and a decoder that undoes its head, both trained on public examples.

    Args:
        fresh: Makes the decoder.
        loss: Of what it made, (N, …), against the inputs, (N, …); its mean in the last epoch comes
            third.

    Raises:
        SettingsError: For a body that the server does not have, and where a training diverges.
    """
    seed = int(torch.randint(2**31, (1,), generator=rng))
    shadow = imitation(attack, seen, seed, stage_of(report, 0, 2))
    head = freeze(shadow.head)
    with torch.random.fork_rng():
        torch.manual_seed(seed + 2)
        decoder = fresh().to(seen.features.device)

    def undone(inputs: Tensor, labels: Tensor) -> Tensor:
        with torch.no_grad():
            features = head(inputs)
        return loss(decoder(features), inputs)

    stage = _stage(attack, "decoder", attack.decoder_epochs, seed + 1)
    error = fit(decoder.train(), undone, seen.public, stage, stage_of(report, 1, 2))
    return shadow.eval(), decoder.eval(), error


def imitation(
    attack: ShadowAttack, seen: FeatureObservation, seed: int, report: Report
) -> "ShadowNetwork":
    """A shadow network trained on public examples through the server's frozen bodies.

    Raises `SettingsError` for a body that the server does not have.
    """
    shadow = _fresh_shadow(seen, _chosen(attack, seen), seed, attack.start)
    _imitate(attack, shadow, seen, seed, report)
    return shadow


def _chosen(attack: ShadowAttack, seen: FeatureObservation) -> tuple[int, ...]:
    places = tuple(range(len(seen.bodies))) if attack.bodies is None else attack.bodies
    if not places or not set(places) <= set(range(len(seen.bodies))):
        raise SettingsError(
            f"The server has {len(seen.bodies)} bodies, from 0 on; got bodies={attack.bodies}."
        )
    return places


def _imitate(
    attack: ShadowAttack,
    shadow: "ShadowNetwork",
    seen: FeatureObservation,
    seed: int,
    report: Report,
) -> None:
    """Train head, selector and tail to classify public examples through the frozen bodies."""
    target, scale = moments(seen.features), seen.features.var()

    def loss(inputs: Tensor, labels: Tensor) -> Tensor:
        features = shadow.head(inputs)
        plain = F.cross_entropy(shadow.conclude(features), labels)
        if attack.align == 0:
            return plain
        return plain + attack.align * misalignment(features, target, scale)

    trained = nn.ModuleList([shadow.head.train(), shadow.tail.train()])
    if attack.learn_selector and len(shadow.bodies) > 1:
        trained.append(shadow.choice)
    fit(trained, loss, seen.public, _stage(attack, "shadow", attack.epochs, seed), report)


def _stage(attack: ShadowAttack, name: str, epochs: int, seed: int) -> TrainingStage:
    """One of an attack's trainings."""
    return TrainingStage(
        name=name, epochs=epochs, lr=attack.lr, batch_size=attack.batch_size, seed=seed
    )


class BodyChoice(nn.Module):
    """Weights of bodies that sum to one; equal ones before they are learned."""

    def __init__(self, bodies: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(bodies))

    def forward(self) -> Tensor:
        """One weight a body, (bodies,), from 0 to 1."""
        return self.logits.softmax(dim=0)


class ShadowNetwork(nn.Module):
    """The attacker's imitation: its own head, choice and tail around the server's bodies."""

    def __init__(self, head: nn.Module, bodies: tuple[nn.Module, ...], tail: nn.Module) -> None:
        super().__init__()
        self.head, self.tail = head, tail
        self.choice = BodyChoice(len(bodies))
        self.bodies = bodies  # not registered: they are the server's, and stay as they are

    def conclude(self, features: Tensor) -> Tensor:
        """Logits, (N, classes, …), from features, (N, C, …)."""
        answers = {place: body(features) for place, body in enumerate(self.bodies)}
        return self.tail(select(answers, self.choice()))

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits, (N, classes, …), from inputs, (N, …)."""
        return self.conclude(self.head(inputs))


class Decoder(nn.Module):
    """Features back to an image: one doubling by a transposed convolution for every halving.

    Attributes:
        width: Channels inside.
        size: (H, W) of the image.
    """

    def __init__(self, inputs: int, side: int, size: tuple[int, int], width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [*_block(nn.Conv2d(inputs, width, 3, padding=1), width)]
        while side < size[0]:
            layers += _block(nn.ConvTranspose2d(width, width, 4, 2, 1), width)
            side *= 2
        layers += [*_block(nn.Conv2d(width, width, 3, padding=1), width)]
        self.layers = nn.Sequential(*layers, nn.Conv2d(width, 3, 3, padding=1))
        self.size = size

    def forward(self, features: Tensor) -> Tensor:
        """(N, C, h, w) to (N, 3, H, W) in [0, 1]."""
        images = self.layers(features)
        if images.shape[2:] != self.size:  # a side that is no power of two times the features'
            images = F.interpolate(images, self.size, mode="bilinear")
        return images.sigmoid()


Moments = tuple[Tensor, Tensor | None]


def moments(features: Tensor) -> Moments:
    """Mean and standard deviation over inputs, by channel and position; each (C, …).

    One input, as the last of a data set may come in a batch of its own, has no deviation: None.
    """
    return features.mean(dim=0), features.std(dim=0) if len(features) > 1 else None


def misalignment(features: Tensor, target: Moments, scale: Tensor) -> Tensor:
    """Return the squared distance of the moments of `features` from `target`, divided by `scale`.

    Args:
        features: (N, C, …).
        target: Of `moments`; deviations count where both are known.
        scale: A variance, a scalar, as is the result. The mean takes in a fixed noise of the client
            whole.
    """
    mean, std = moments(features)
    off = F.mse_loss(mean, target[0])
    if std is not None and target[1] is not None:
        off = off + F.mse_loss(std, target[1])
    return off / scale


def grey_errors(head: nn.Module, features: Tensor, size: tuple[int, int]) -> Tensor:
    """(N,) mean squared difference of `features`, (N, C, h, w), to those of a mid-grey image.

    Args:
        size: (H, W) of that image, in pixels.
    """
    grey = head(torch.full((1, 3, *size), 0.5, device=features.device))
    return (features - grey).square().flatten(1).mean(dim=1)


def _block(layer: nn.Module, width: int) -> list[nn.Module]:
    return [layer, nn.BatchNorm2d(width), nn.ReLU()]


def _fresh_shadow(
    seen: FeatureObservation, places: tuple[int, ...], seed: int, start: str
) -> ShadowNetwork:
    """A head like the client's and two layers that stand for its noise, and a tail.

    Args:
        start: How these two start, as in `ShadowAttack`.
    """
    parts = make_parts(seen.network, task_of(seen.public), seed, copies=len(places))
    with torch.random.fork_rng():
        torch.manual_seed(seed + 1)
        extra = [_mixing(seen.features, start), nn.ReLU(), _mixing(seen.features, start)]
    bodies = tuple(freeze(deepcopy(seen.bodies[place])) for place in places)
    shadow = ShadowNetwork(nn.Sequential(parts.head, *extra), bodies, parts.tail)
    return shadow.to(seen.features.device)


def _mixing(features: Tensor, start: str) -> nn.Module:
    """A convolution of features, (N, C, h, w); of those of words, (N, C, S), one of each by
    itself, since a wider one would show a word of the translation the word that follows it.
    """
    channels = features.shape[1]
    layer: nn.Conv1d | nn.Conv2d
    if features.dim() == 3:
        layer = nn.Conv1d(channels, channels, 1)
    else:
        layer = nn.Conv2d(channels, channels, 3, padding=1)
    if start == "identity":
        nn.init.dirac_(layer.weight)
        nn.init.zeros_(cast(Tensor, layer.bias))
    return layer


@torch.no_grad()
def _reconstructions(
    decoder: nn.Module, head: nn.Module, seen: FeatureObservation
) -> tuple[Reconstruction, ...]:
    images = torch.cat([decoder(part) for part in seen.features.split(256)])
    if not bool(images.isfinite().all()):
        raise AttackFailedError("The decoder's images are not finite; take a smaller lr.")
    again = torch.cat([head(part) for part in images.split(256)])
    errors = (again - seen.features).square().flatten(1).mean(dim=1)
    greys = grey_errors(head, seen.features, (images.shape[2], images.shape[3]))
    return tuple(
        Reconstruction(image=image, objective=error, residual=error, grey_residual=grey)
        for image, error, grey in zip(images.cpu(), errors.tolist(), greys.tolist(), strict=True)
    )


@torch.no_grad()
def _accuracy(network: nn.Module, data: Examples) -> float:
    device = next(network.parameters()).device
    hits = [
        int((network(inputs.to(device)).argmax(1).cpu() == labels).sum())
        for inputs, labels in zip(data.inputs.split(256), data.labels.split(256), strict=True)
    ]
    return sum(hits) / len(data)
