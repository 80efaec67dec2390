"""Attacks that solve the gradient of a linear first layer with ReLU for all pictures of a batch."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from semsim.attacks.descent import Found, Rngs, Updates, only
from semsim.attacks.linear.outcome import BLOW_UP
from semsim.base.errors import SettingsError
from semsim.base.progress import Report, silent
from semsim.base.registry import Checked
from semsim.device import in_float64
from semsim.types import AttackedModel, GradientObservation, Reconstruction, UpdateObservation


@dataclass(frozen=True, kw_only=True)
class SeenLayer:
    """A first layer of n inputs and its mean gradient over a batch, in float64.

    Attributes:
        weight: (units, n).
        bias: (units,).
        of_weight, of_bias: Their gradients.
        mean, std: (1, C, 1, 1), by which pictures are normalised.
        shape: (C, H, W) of a picture.
    """

    weight: Tensor
    bias: Tensor
    of_weight: Tensor
    of_bias: Tensor
    mean: Tensor
    std: Tensor
    shape: tuple[int, int, int]

    def images(self, inputs: Tensor) -> Tensor:
        """Pictures, (N, C, H, W) in [0, 1], of inputs of the layer, (N, n)."""
        return inputs.view(-1, *self.shape) * self.std + self.mean


class FromFirstLayer(Checked):
    """Such an attack: it takes an update for one gradient and needs no labels.

    An update of several steps of SGD is a sum of such gradients, and works while the steps leave
    the first layer's ReLUs as they were.
    """

    # As `Simulates`.
    updates: ClassVar[Updates] = "one-gradient"
    label: ClassVar = None
    batch_norm: ClassVar = "eval"
    called: ClassVar[str]

    @abstractmethod
    def pictures(
        self, layer: SeenLayer, count: int, rng: torch.Generator, report: Report
    ) -> list[Found]:
        """One result for each of `count` pictures, in no order."""

    def __call__(
        self, seen: GradientObservation, *, rng: torch.Generator, report: Report = silent
    ) -> Reconstruction:
        """Reconstruct the image behind `seen`.

        Raises:
            SettingsError: Where the first layer is no linear layer with bias and ReLU.
            AttackFailedError: Where the gradient is zero, not finite or disturbed.
        """
        layer = self._layer(seen.model, seen.gradients, seen.shape)
        return only(self.pictures(layer, 1, rng, report))

    def solve(
        self, seen: UpdateObservation, labels: Sequence[int], rngs: Rngs, report: Report
    ) -> list[Found]:
        """All pictures of a client; errors as `__call__`, for single pictures among the results."""
        layer = self._layer(seen.model, seen.mean_gradient(), seen.shape)
        return self.pictures(layer, seen.pictures, rngs[0], report)

    def _layer(
        self, model: AttackedModel, gradients: Sequence[Tensor], shape: tuple[int, int, int]
    ) -> SeenLayer:
        layer = first_layer(model, shape, self.called)
        places = {id(one): place for place, one in enumerate(model.parameters())}
        both = (layer.weight, layer.bias)
        if not {*map(id, both)} <= {*places}:
            raise SettingsError(
                f"{self.called} needs the gradient of the first layer, which is not shared."
            )
        weight, bias, mean, std = map(
            in_float64, (*(one.detach() for one in both), model.mean, model.std)
        )
        of_weight, of_bias = (in_float64(gradients[places[id(one)]]) for one in both)
        return SeenLayer(
            weight=weight,
            bias=bias,
            of_weight=of_weight,
            of_bias=of_bias,
            mean=mean,
            std=std,
            shape=shape,
        )


def solved(images: Tensor, apart: Tensor, grey: Tensor) -> list[Found]:
    """Pictures, (N, C, H, W), as results; the residual of each and of a grey picture, (N,)."""
    return [
        Reconstruction(
            image=image.clamp(0, 1).to("cpu", torch.float32),
            objective=float(own),
            residual=float(own),
            grey_residual=float(greys),
            blown_up=float((image - 0.5).square().mean()) > BLOW_UP,
        )
        for image, own, greys in zip(images, apart, grey, strict=True)
    ]


def first_layer(
    model: AttackedModel, shape: tuple[int, int, int], attack: str = "SPEAR"
) -> nn.Linear:
    """Return the linear layer that a model applies to a whole image, with ReLU behind it.

    Args:
        shape: (C, H, W) of an image.
        attack: Name of the attack that needs it.

    Raises:
        SettingsError: Where there is none.
    """
    ran: list[tuple[nn.Module, Tensor, Tensor]] = []
    assert isinstance(model, nn.Module)
    leaves = [one for one in model.modules() if not list(one.children())]
    hooks = [
        one.register_forward_hook(lambda layer, given, out: ran.append((layer, given[0], out)))
        for one in leaves
    ]
    probe = torch.rand(2, *shape, generator=torch.Generator().manual_seed(0))
    probe = probe.to(next(model.parameters()))
    try:
        with torch.no_grad():
            model(probe)
    finally:
        for hook in hooks:
            hook.remove()
    places = [place for place, one in enumerate(ran) if one[0].state_dict()]  # frozen ones too
    name = type(ran[places[0]][0]).__name__ if places else "nothing with weights"
    refusal = SettingsError(
        f"{attack} works on a network whose first layer is a linear layer with bias and with ReLU "
        f"behind it; the first of this one is {name}. Take invgrad or prior."
    )
    if not places or not isinstance(ran[places[0]][0], nn.Linear):
        raise refusal
    layer, given, out = ran[places[0]]
    assert isinstance(layer, nn.Linear)
    whole = ((probe - model.mean) / model.std).flatten(1)
    behind = ran[places[0] + 1 :]
    relu = bool(behind) and (
        isinstance(behind[0][0], nn.ReLU)
        or (behind[0][1].shape == out.shape and torch.equal(behind[0][1], out.relu()))
    )
    if layer.bias is None or not relu or given.shape != whole.shape:
        raise refusal
    if not torch.allclose(given, whole, rtol=1e-4, atol=1e-5):
        raise refusal
    return layer
