"""COPA's equations solved all at once for the likeliest image: our own attack, past the paper."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from semsim.attacks.linear.chain import Chain, chain_of
from semsim.attacks.linear.gauss_newton import Search, by_autograd, gauss_newton
from semsim.attacks.linear.outcome import Inversion, denoised, reconstruction
from semsim.attacks.linear.recursion import (
    Recursion,
    invert,
    known_beyond,
    known_end,
    minimum_norm,
)
from semsim.attacks.linear.whole import WholeProblem
from semsim.attacks.minimise import one_of
from semsim.attacks.prior_basis import image_basis
from semsim.errors import SettingsError
from semsim.progress import Progress, Report, silent
from semsim.types import GradientObservation, Reconstruction

_SPREAD = 0.25  # standard deviation of the mean brightness of photographs
_CHROMA = (0.3, 0.15)  # of blue-yellow and red-green beside brightness
_LADDER = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3)  # noise before the last: blurred, then ever sharper
_RECURSION = 6000  # iterations at most for one layer
_AGREE = 1e-3  # equation residual of a recursion beyond which gradients are not the model's own


@dataclass(frozen=True, kw_only=True)
class CopaPrior:
    """All layers' equations at once, with what is natural in an image deciding what they leave.

    The unknown is the coefficients of `prior_basis.ImageBasis`, and Gauss-Newton starts from the
    grey image. Last layers that hide nothing are undone exactly beforehand, and where no layer
    hides anything, so that the security index c(M) is 0, the recursion of `rgap.RGap` is used
    instead; unless equations contradict each other, as those of disturbed gradients do.
    Same networks as `rgap.RGap`; deterministic.

    solver: "auto" as said, "prior" or "recursion". steps: Gauss-Newton steps at most for each
    noise level. inner: iterations of each. noise: relative size of the gradients' errors,
    the last level; larger for disturbed gradients. decay: exponent of the fall of amplitude with
    frequency. denoise: weight of total variation denoising, 0 for none.
    """

    solver: Literal["auto", "prior", "recursion"] = "auto"
    steps: int = 2
    inner: int = 80
    noise: float = 1e-4
    decay: float = 1.2
    denoise: float = 0.0

    def __post_init__(self) -> None:
        if self.solver not in ("auto", "prior", "recursion"):
            raise SettingsError(f"solver is 'auto', 'prior' or 'recursion'; got {self.solver!r}.")
        if not self.noise > 0:
            raise SettingsError(f"noise is a number above 0; got {self.noise}.")

    def __call__(
        self, seen: GradientObservation, *, rng: torch.Generator, report: Report = silent
    ) -> Reconstruction:
        """Reconstruct the image behind `seen`; raises as `rgap.RGap`."""
        return reconstruction(seen, self.inversion(seen, report=report))

    def inversion(self, seen: GradientObservation, *, report: Report = silent) -> Inversion:
        """The solution before it is clamped to [0, 1], with the residual of every layer."""
        chain = chain_of(seen)
        exact = self._exact(chain, seen, report)
        if exact is not None:
            image, residuals, solver = chain.images(exact.x), exact.residuals, "recursion"
        else:
            problem, undone = self._problem(chain, seen)
            coefficients = self._likeliest(problem, report)
            image, solver = problem.basis.image(coefficients), "prior"
            left = [float(part.norm()) for part in problem.errors(coefficients)]
            residuals = (*reversed(left[2:]), max(left[:2]), *undone)
        plain = denoised(image[0].detach().cpu(), self.denoise)
        return Inversion(image=plain, residuals=residuals, solver=solver)

    def _exact(self, chain: Chain, seen: GradientObservation, report: Report) -> Recursion | None:
        """The recursion where it is asked for, or where it is exact; else None."""
        convolutions = [stage for stage in chain.stages if stage.is_convolution]
        asked = self.solver == "recursion" or not convolutions
        if not asked and (self.solver == "prior" or any(one.hidden for one in convolutions)):
            return None
        found = invert(chain, seen.label, minimum_norm(_RECURSION), silent)
        if not asked and max(found.residuals) > _AGREE:
            return None
        report(Progress(1, 1))
        return found

    def _problem(
        self, chain: Chain, seen: GradientObservation
    ) -> tuple[WholeProblem, tuple[float, ...]]:
        """What is left to solve, and the residuals of the layers that are solved already."""
        basis = image_basis(seen.shape, spread=_SPREAD, decay=self.decay, chroma=_CHROMA)
        end = known_end(chain, seen.label)
        undone: tuple[float, ...] = ()
        if self.solver == "auto":
            end, undone = known_beyond(chain, end, limit=_RECURSION, agree=_AGREE)
        return WholeProblem(chain=chain, end=end, basis=basis.to(end.z)), undone

    def _likeliest(self, problem: WholeProblem, report: Report) -> Tensor:
        levels = [*(level for level in _LADDER if level > self.noise), self.noise]
        search = Search(steps=self.steps, inner=self.inner)
        place = torch.zeros_like(problem.basis.amplitude)[None]
        for number, level in enumerate(levels):
            linearise = partial(by_autograd, problem.with_prior(level))
            part = one_of(report, number, len(levels))
            (place,) = gauss_newton(linearise, (place,), search, part)
        return place
