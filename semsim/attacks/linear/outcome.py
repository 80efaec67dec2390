"""Result of a layer-wise attack: the image before it is clamped, and how well it fits."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import skimage
import torch
from torch import Tensor

from semsim.attacks.descent.distance import scaled_distance_of_each
from semsim.attacks.fast_gradients import parameter_gradients
from semsim.attacks.linear.chain import chain_of
from semsim.attacks.linear.recursion import last_slope
from semsim.base.errors import AttackFailedError
from semsim.base.progress import Report, silent
from semsim.base.registry import Checked
from semsim.types import GradientObservation, Reconstruction

BLOW_UP = 0.25  # mean squared distance from grey, in [0, 1]²; no picture of this range is farther


@dataclass(frozen=True, kw_only=True)
class Inversion:
    """The solution of a chain's equations.

    Attributes:
        image: (C, H, W) float64, in units of the image but not clamped.
        residuals: ‖U x − V‖ / ‖V‖ of each convolution, first to last, as it was solved.
        solver: "recursion" or "prior"; "rgap" where COPA's own end was worse than R-GAP's.
    """

    image: Tensor
    residuals: tuple[float, ...]
    solver: str

    @property
    def residual(self) -> float:
        """The worst of `residuals`; 0 where the network has no convolution."""
        return max(self.residuals, default=0.0)

    @property
    def blew_up(self) -> bool:
        """True where the solution is farther from grey than any picture: it is then worthless."""
        return not float((self.image - 0.5).square().mean()) <= BLOW_UP


class LayerWise(Checked):
    """An attack that solves a network's layers for their inputs; deterministic."""

    @abstractmethod
    def inversion(self, seen: GradientObservation, *, report: Report = silent) -> Inversion:
        """The solution before it is clamped to [0, 1], with the residual of every layer."""

    def __call__(
        self, seen: GradientObservation, *, rng: torch.Generator, report: Report = silent
    ) -> Reconstruction:
        """Reconstruct the image behind `seen`.

        Raises `SettingsError` naming a layer that it cannot undo, `AttackFailedError` where a
        gradient is zero or not finite.
        """
        return reconstruction(seen, self.inversion(seen, report=report))


def denoised(image: Tensor, weight: float) -> Tensor:
    """(C, H, W) after total variation denoising (Chambolle 2004); weight 0 leaves it as it is."""
    if not weight:
        return image
    smooth: Any = skimage.restoration.denoise_tv_chambolle(
        image.numpy(), weight=weight, channel_axis=0
    )
    return torch.from_numpy(smooth).to(image)


def reconstruction(seen: GradientObservation, found: Inversion) -> Reconstruction:
    """`found` as the result of an attack: clamped, its gradient beside the leaked one and grey's.

    objective: the worst equation residual of `found`, as it was before clamping.
    residual, grey_residual: `scaled_distance_of_each`, 0 where the gradients are equal.
    Raises `AttackFailedError` where the image is not finite.
    """
    if not torch.isfinite(found.image).all() or not math.isfinite(found.residual):
        raise AttackFailedError("The equations have no finite solution.")
    image = found.image.clamp(0, 1).to(seen.model.mean)
    return Reconstruction(
        image=image.to("cpu", torch.float32),
        objective=found.residual,
        residual=gradient_distance(seen, image),
        grey_residual=gradient_distance(seen, torch.full_like(image, 0.5)),
        blown_up=found.blew_up,
        solver=found.solver,
    )


def gradient_distance(seen: GradientObservation, image: Tensor) -> float:
    """Return the distance of the gradient of `image`, (C, H, W) in [0, 1], from the one seen."""
    label = torch.tensor([label_of_seen(seen)], device=image.device)
    found = parameter_gradients(seen.model, image[None], label)
    distance = scaled_distance_of_each(
        [gradient[None] for gradient in found], [gradient[None] for gradient in seen.gradients]
    )
    return float(distance)


def label_of_seen(seen: GradientObservation) -> int:
    """The class index told with the observation, or else that of the slope solved for (iDLG)."""
    return int(last_slope(chain_of(seen), None).argmin()) if seen.label is None else seen.label
