"""One built-in picture attacked through the network of the page Audit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from semsim.attacks.copa_prior import CopaPrior
from semsim.attacks.linear.outcome import reconstruction
from semsim.attacks.per_sample import parameter_gradients
from semsim.attacks.rgap import RGap
from semsim.attacks.security.index import Layer, Shape, shapes_of
from semsim.attacks.security.network import network_of
from semsim.datasets.symbols import Symbols
from semsim.errors import AttackFailedError, SettingsError
from semsim.images import png_of, to_uint8
from semsim.metrics import Resources
from semsim.reporting.writing import png_address
from semsim.scores.reference import names_rightly
from semsim.targets.lenet import start_uniform
from semsim.targets.model import TargetModel
from semsim.types import GradientObservation, Reconstruction
from semsim.ui.markup import pieces

_MOST = 40_000  # values of any map: more would keep the page waiting
_ATTACKS: dict[str, RGap | CopaPrior] = {"R-GAP": RGap(), "COPA-prior": CopaPrior()}


@dataclass(frozen=True)
class _Layers:
    """An architecture made of `layers`, Tanh between them."""

    layers: tuple[Layer, ...]

    def build(self, channels: int, size: tuple[int, int]) -> tuple[nn.Module, int]:
        """All layers but the last, and the number of features."""
        inputs = (channels, *size)
        body = network_of(self.layers, inputs)[:-1]
        if not any(isinstance(part, nn.Flatten) for part in body):
            body.append(nn.Flatten())
        return body, math.prod(shapes_of(self.layers, inputs)[-2])


def attacked_example(layers: Sequence[Layer], input_shape: Shape) -> str:
    """A symbol, and what R-GAP and COPA-prior make of its gradient, as HTML.

    Raises `SettingsError` for an input that is not 3 × 32 × 32, or maps that take too long.
    """
    if input_shape != (3, 32, 32):
        raise SettingsError("The example has 3 channels and 32 × 32 pixels; set the input to that.")
    if max(math.prod(shape) for shape in shapes_of(layers, input_shape)) > _MOST:
        raise SettingsError("This network is too large to attack while you wait.")
    data = Symbols(train_per_class=1, test_per_class=1)("test").pick([0])
    model = _model(tuple(layers))
    image, label = data.images[0].double(), torch.tensor([0])
    gradients = parameter_gradients(model, image[None], label)
    seen = GradientObservation(model=model, gradients=gradients, shape=(3, 32, 32), label=0)
    pictures: list[tuple[str, Tensor]] = [("the private image", data.images[0])]
    words = []
    for name, attack in _ATTACKS.items():
        try:
            inversion = attack.inversion(seen)
            kept = reconstruction(seen, inversion)
        except AttackFailedError as failure:
            words.append(f"{name} failed: {failure}")
            continue
        error = float((inversion.image.clamp(0, 1) - image).square().mean())
        pictures.append((f"{name}: {_psnr(error)}", kept.image))
        words.append(_fit(name, kept))
    words.insert(0, _recognised(data.classes[int(data.labels[0])], pictures))
    grey = float((0.5 - image).square().mean())
    words.append(
        f"Weights drawn at random, Tanh between the layers. A grey picture has {_psnr(grey)}; an "
        "attack that does not beat it has found nothing."
    )
    shown = [(name, png_address(png_of(to_uint8(one)))) for name, one in pictures]
    return str(pieces("audit.html").example(shown, " ".join(words)))


def _recognised(shown: str, pictures: Sequence[tuple[str, Tensor]]) -> str:
    """Return which pictures a reference classifier names, also the private one and a grey one.

    shown: what the private image shows. pictures: it comes first.
    """
    private = pictures[0][1]
    names = [name.partition(":")[0] for name, _ in pictures] + ["a grey picture"]
    every = torch.stack([*(one.float() for _, one in pictures), torch.full_like(private, 0.5)])
    right = names_rightly(Resources(), shown, every)
    if right is None:
        return f"What can be recognised is not known: no classifier here knows {shown!r}."
    told = [f"{name} {'yes' if yes else 'no'}" for name, yes in zip(names, right, strict=True)]
    return f"Does a reference classifier recognise it? {', '.join(told)}."


def _model(layers: tuple[Layer, ...]) -> TargetModel:
    names = [str(number) for number in range(10)]
    with torch.random.fork_rng():
        model = TargetModel(_Layers(layers), names, mean=[0.5] * 3, std=[1.0] * 3, size=(32, 32))
    start_uniform(model, torch.Generator().manual_seed(0))
    return model.double().eval()


def _fit(name: str, found: Reconstruction) -> str:
    """How well a picture explains the gradient, which needs no look at the private image."""
    blown = " It blew up: clamped from values far outside a picture's." if found.blown_up else ""
    return (
        f"{name}: equation residual {found.objective:.1e}, gradient distance {found.residual:.1e} "
        f"(a grey picture's: {found.grey_residual:.1e}).{blown}"
    )


def _psnr(error: float) -> str:
    return "exact" if error < 1e-12 else f"PSNR {-10 * math.log10(error):.1f} dB"
