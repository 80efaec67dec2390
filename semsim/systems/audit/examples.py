"""Built-in pictures attacked through the network of the page Audit."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from semsim.attacks.fast_gradients import parameter_gradients
from semsim.attacks.linear.copa_prior import CopaPrior
from semsim.attacks.linear.rank import Shape
from semsim.attacks.linear.rgap import RGap
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.datasets.symbols import Symbols
from semsim.images import png_of, to_uint8
from semsim.lab.markup import pieces
from semsim.metrics import Resources
from semsim.metrics.reference_classifier import Looked, recognition_in
from semsim.reporting.writing import png_address
from semsim.sets.recognition import recognised_words
from semsim.systems.audit.network import network_of
from semsim.systems.audit.security_index import Layer, shapes_of
from semsim.targets.lenet import start_uniform
from semsim.targets.model import TargetModel
from semsim.types import GradientObservation, LabelledImages, Reconstruction

EXAMPLES = 4
_MOST = 40_000  # values of any map: more would keep the page waiting
_EXACT = 1e-12  # mean squared error that is rounding
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


def attacked_examples(layers: Sequence[Layer], input_shape: Shape) -> tuple[str, str]:
    """Attack symbols with R-GAP and COPA-prior; return what is recognised, then pictures, as HTML.

    Raises `SettingsError` for an input that is not 3 × 32 × 32, or maps that take too long.
    """
    if input_shape != (3, 32, 32):
        raise SettingsError("Examples have 3 channels and 32 × 32 pixels; set the input to that.")
    if max(math.prod(shape) for shape in shapes_of(layers, input_shape)) > _MOST:
        raise SettingsError("This network is too large to attack while you wait.")
    data = Symbols(train_per_class=1, test_per_class=1)("test").pick(range(EXAMPLES))
    model = _model(tuple(layers))
    tried = [_tried(name, attack, model, data) for name, attack in _ATTACKS.items()]
    found = recognition_in([one.looked(data) for one in tried], Resources())
    rows: list[tuple[str, list[tuple[str, str]], list[str]]] = [
        ("Originals", _addresses("original", data.images), [])
    ]
    for one in tried:
        pictures = [one.came[n].image if n in one.came else None for n in range(EXAMPLES)]
        counts = found["sets"].get(one.name)
        said = [f"{counts['recognised']} of {counts['over']} recognised"] if counts else []
        rows.append((one.name, _addresses(one.name, pictures), said + one.figures(data)))
    grey = _psnr([(original, torch.full_like(original, 0.5)) for original in data.images])
    page = pieces("page.html", "semsim.systems.audit")
    shown = pieces("lab.html").line_up(rows)
    best = max(found["sets"], key=lambda name: found["sets"][name]["recognised"], default="")
    lead = recognised_words(found, [best], f" from {best}")
    return str(page.lead(lead)), str(page.example(shown, grey))


class _Tried(NamedTuple):
    """Pictures of an attack, by the number of the example, and why the others did not come."""

    name: str
    came: dict[int, Reconstruction]
    why: dict[str, None]

    def looked(self, data: LabelledImages) -> Looked:
        """Return the same beside what it shows."""
        names = [data.classes[label] for label in data.labels.tolist()]
        return Looked(
            name=self.name,
            over=len(names),
            classes=names,
            originals=data.images,
            done_classes=[names[n] for n in self.came],
            pictures=torch.cat([data.images[:0], *(one.image[None] for one in self.came.values())]),
        )

    def figures(self, data: LabelledImages) -> list[str]:
        """Return how near the pictures are, and how well they explain the gradients.

        The latter needs no look at the private images.
        """
        why = [f"failed: {words}" for words in self.why]
        if not self.came:
            return why
        came = list(self.came.values())
        worst = max(came, key=lambda one: one.residual)
        if blown := sum(one.blown_up for one in came):
            why.insert(0, f"{blown} blew up: clamped from far outside a picture's values")
        return [
            _psnr([(data.images[n], one.image) for n, one in self.came.items()]),
            f"equation residual up to {max(one.objective for one in came):.1e}",
            f"gradient distance up to {worst.residual:.1e} (a grey picture's: "
            f"{worst.grey_residual:.1e})",
            *why,
        ]


def _tried(name: str, attack: RGap | CopaPrior, model: TargetModel, data: LabelledImages) -> _Tried:
    found = _Tried(name, {}, {})
    for n, (image, label) in enumerate(zip(data.images.double(), data.labels, strict=True)):
        seen = GradientObservation(
            model=model,
            gradients=parameter_gradients(model, image[None], label[None]),
            shape=(3, 32, 32),
            label=int(label),
        )
        try:
            found.came[n] = attack(seen, rng=torch.Generator())
        except AttackFailedError as failure:
            found.why[str(failure)] = None
    return found


def _addresses(name: str, pictures: Iterable[Tensor | None]) -> list[tuple[str, str]]:
    """Return what each picture is called, and its address, "" where there is none."""
    return [
        (f"{name}, picture {n}", "" if one is None else png_address(png_of(to_uint8(one))))
        for n, one in enumerate(pictures, start=1)
    ]


def _model(layers: tuple[Layer, ...]) -> TargetModel:
    names = [str(number) for number in range(10)]
    with torch.random.fork_rng():
        model = TargetModel(_Layers(layers), names, mean=[0.5] * 3, std=[1.0] * 3, size=(32, 32))
    start_uniform(model, torch.Generator().manual_seed(0))
    return model.double().eval()


def _psnr(pairs: Sequence[tuple[Tensor, Tensor]]) -> str:
    """Return PSNR of originals and pictures, from the least to the most."""
    errors = [float((one.double() - two.double()).square().mean()) for one, two in pairs]
    if max(errors) < _EXACT:
        return "exact"
    ends = (f"{-10 * math.log10(max(one, _EXACT)):.1f}" for one in (max(errors), min(errors)))
    return f"PSNR {' to '.join(dict.fromkeys(ends))} dB"
