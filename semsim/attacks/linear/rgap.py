"""R-GAP: recursive gradient attack on privacy (Zhu and Blaschko 2021, arXiv:2010.07733)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from semsim.attacks.linear.chain import chain_of
from semsim.attacks.linear.outcome import Inversion, LayerWise, denoised
from semsim.attacks.linear.recursion import invert, minimum_norm
from semsim.base.progress import Report, silent
from semsim.base.registry import setting
from semsim.types import GradientObservation


@dataclass(frozen=True, kw_only=True)
class RGap(LayerWise):
    """Solve each layer's equations for its input by least squares, last layer first.

    Works on convolutions followed by fully connected layers, each with Tanh, Sigmoid, LeakyReLU or
    no activation. Where the equations leave something open the solution of least norm is taken,
    and errors grow from layer to layer. Deterministic.

    Of a layer's equations those of the gradient, K x = ∂J/∂W, count more than those of the output
    by a factor that makes them about as large (`Equations.balanced`), in Eq. 4 as in COPA's Eq. 5
    and 7, as long as no later layer hides anything. Where equations agree that changes nothing.
    Those of disturbed gradients do not, and what is found is the least squares solution of the
    weighted ones: at 5% noise neither clearly better nor worse than without weights.

    Attributes:
        steps: Iterations at most for one layer; networks of the paper's size need up to about 2000,
            the hardest image that we met 3647.
        denoise: Weight of total variation denoising, 0 for none.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {},
        "code": {},
        "fast": {"steps": 500},
    }

    steps: int = setting(6000, least=1)
    denoise: float = 0.0

    def inversion(self, seen: GradientObservation, *, report: Report = silent) -> Inversion:
        chain = chain_of(seen)
        found = invert(chain, seen.label, minimum_norm(self.steps), report)
        image = chain.images(found.x)[0].cpu()
        return Inversion(
            image=denoised(image, self.denoise), residuals=found.residuals, solver="recursion"
        )
