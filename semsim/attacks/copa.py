"""COPA, the combined optimisation attack (Chen and Campbell 2021, arXiv:2111.10178)."""

from dataclasses import dataclass

import torch

from semsim.attacks.linear.chain import chain_of
from semsim.attacks.linear.copa_layer import through_activation
from semsim.attacks.linear.gauss_newton import Search
from semsim.attacks.linear.outcome import Inversion, denoised, reconstruction
from semsim.attacks.linear.recursion import invert
from semsim.progress import Report, silent
from semsim.types import GradientObservation, Reconstruction


@dataclass(frozen=True, kw_only=True)
class Copa:
    """Solve each layer for what came out of the layer before, so that it can be undone.

    As `rgap.RGap`, but the unknown of a convolution is its input before the activation (Eq. 5),
    which keeps solutions where the activation can make them, and which a wider layer before it
    binds to a subspace (Eq. 7). Deterministic: it starts from 0.

    A layer that hides nothing, and the first, are solved as in `rgap.RGap`, since what their
    equations decide is where the objective is 0. So on CNN3 variants 3 and 4 both attacks find the
    same; in the paper they differ there. Equations are weighted as in `rgap.RGap`.

    steps: Gauss-Newton steps of one layer at most. inner: iterations of each. pull_back: with the
    constraint of Appendix B. denoise: weight of total variation denoising, 0 for none; the paper's
    is 0.15.
    """

    steps: int = 20
    inner: int = 200
    pull_back: bool = True
    denoise: float = 0.0

    def __call__(
        self, seen: GradientObservation, *, rng: torch.Generator, report: Report = silent
    ) -> Reconstruction:
        """Reconstruct the image behind `seen`; raises as `rgap.RGap`."""
        return reconstruction(seen, self.inversion(seen, report=report))

    def inversion(self, seen: GradientObservation, *, report: Report = silent) -> Inversion:
        """The solution before it is clamped to [0, 1], with the residual of every layer."""
        chain = chain_of(seen)
        search = Search(steps=self.steps, inner=self.inner)
        solve = through_activation(search, pull_back=self.pull_back)
        found = invert(chain, seen.label, solve, report)
        image = chain.images(found.x)[0].cpu()
        return Inversion(
            image=denoised(image, self.denoise), residuals=found.residuals, solver="recursion"
        )
