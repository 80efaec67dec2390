"""COPA, the combined optimisation attack (Chen and Campbell 2021, arXiv:2111.10178)."""

from dataclasses import dataclass, replace

import torch

from semsim.attacks.linear.chain import chain_of
from semsim.attacks.linear.copa_layer import through_activation
from semsim.attacks.linear.gauss_newton import Search
from semsim.attacks.linear.outcome import (
    Inversion,
    denoised,
    gradient_distance,
    reconstruction,
)
from semsim.attacks.linear.recursion import invert
from semsim.attacks.rgap import RGap
from semsim.errors import AttackFailedError
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

    What a search from 0 finds need not be the best there is, above all where equations contradict
    each other a little, as those of rounded gradients do. So where the gradient of R-GAP's image is
    nearer to the leaked one, that image is the result, and `Inversion.solver` says "rgap".

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
        own = Inversion(
            image=chain.images(found.x)[0].cpu(), residuals=found.residuals, solver="recursion"
        )
        best = _or_rgap(own, seen) if found.searched else own
        return replace(best, image=denoised(best.image, self.denoise))


def _or_rgap(own: Inversion, seen: GradientObservation) -> Inversion:
    """R-GAP's inversion where it explains the gradient better than `own`, else `own`."""
    try:
        plain = RGap().inversion(seen)
    except AttackFailedError:
        return own
    apart = [_apart(seen, inversion) for inversion in (plain, own)]
    return replace(plain, solver="rgap") if apart[0] < apart[1] else own


def _apart(seen: GradientObservation, found: Inversion) -> float:
    return gradient_distance(seen, found.image.clamp(0, 1).to(seen.model.mean))
