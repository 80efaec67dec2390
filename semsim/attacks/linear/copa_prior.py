"""COPA's equations solved all at once for the likeliest image: our own attack, past the paper."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from semsim.attacks.descent import one_of
from semsim.attacks.image_basis import ImageBasis, image_basis
from semsim.attacks.linear.chain import Chain, Stage, chain_of
from semsim.attacks.linear.least_squares import Parts, Search, by_autograd, gauss_newton
from semsim.attacks.linear.outcome import Inversion, LayerWise, denoised
from semsim.attacks.linear.recursion import (
    KnownEnd,
    Recursion,
    invert,
    known_beyond,
    known_end,
    minimum_norm,
)
from semsim.base.progress import Progress, Report, silent
from semsim.base.registry import setting
from semsim.types import GradientObservation


@dataclass(frozen=True, kw_only=True)
class WholeProblem:
    """Forward from the image and backward from the known end, everything known must be met.

    Z of the last convolution and ∂J/∂Z there are known exactly from the fully connected layers.
    Each block of equations is divided by the norm of what it must be, so that all count alike.
    Since the image is the unknown, every layer's output is reachable and the pull-back constraint
    of COPA holds by itself.
    """

    chain: Chain
    end: KnownEnd
    basis: ImageBasis

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The convolutions, first to last."""
        return self.chain.stages[: self.end.depth]

    def errors(self, coefficients: Tensor) -> Parts:
        """The last Z's error, then the gradient's of each convolution from the last, all relative.

        A bias's gradient, the sum of ∂J/∂Z, tells of the image too; only the last one is known.

        Args:
            coefficients: (1, C, H, W) of `basis`.
        """
        outputs, inputs = [], [self.chain.normalised(self.basis.image(coefficients))]
        for stage in self.stages:
            outputs.append(stage.apply(inputs[-1]) + stage.shift())
            inputs.append(stage.activation.value(outputs[-1]))
        found = [_relative(outputs[-1], self.end.z)]
        slope = self.end.slope
        for place in range(len(self.stages) - 1, -1, -1):
            stage = self.stages[place]
            found.append(_of_gradient(stage, inputs[place], slope))
            if place:
                before = self.stages[place - 1].activation
                slope = stage.pull(slope) * before.slope(outputs[place - 1])
        return tuple(found)

    def with_prior(self, noise: float) -> Callable[[Tensor], Parts]:
        """`errors`, and `noise` × coefficients: least squares of both is the likeliest image.

        Args:
            noise: The relative size of errors that count as large as a coefficient of unit size.

        Returns:
            A function of coefficients, (1, C, H, W), whose last part has that shape too.
        """
        return lambda coefficients: (*self.errors(coefficients), noise * coefficients)


def _of_gradient(stage: Stage, x: Tensor, slope: Tensor) -> Tensor:
    """The relative error of ∂J/∂W and, where there is a bias, ∂J/∂b, as one vector."""
    found, target = [stage.gradient(x, slope).flatten()], [stage.weight_gradient.flatten()]
    if stage.bias_gradient is not None:
        found.append(slope.sum((0, 2, 3)))
        target.append(stage.bias_gradient)
    return _relative(torch.cat(found), torch.cat(target))


def _relative(found: Tensor, target: Tensor) -> Tensor:
    size = float(target.norm())
    return (found - target) / size if size else found


_SPREAD = 0.25  # standard deviation of the mean brightness of photographs
_CHROMA = (0.3, 0.15)  # of blue-yellow and red-green beside brightness
_LADDER = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3)  # noise before the last: blurred, then ever sharper
_RECURSION = 6000  # iterations at most for one layer
_AGREE = 1e-3  # equation residual of a recursion beyond which gradients are not the model's own


@dataclass(frozen=True, kw_only=True)
class CopaPrior(LayerWise):
    """All layers' equations at once, with what is natural in an image deciding what they leave.

    The unknown is the coefficients of `image_basis.ImageBasis`, and Gauss-Newton starts from the
    grey image. Last layers that hide nothing are undone exactly beforehand, and where no layer
    hides anything, so that the security index c(M) is 0, the recursion of `rgap.RGap` is used
    instead; unless equations contradict each other, as those of disturbed gradients do.
    Same networks as `rgap.RGap`; deterministic.

    Attributes:
        solver: "auto" as said, "prior" or "recursion".
        steps: Gauss-Newton steps at most for each noise level.
        inner: Iterations of each.
        noise: Relative size of the gradients' errors, the last level; larger for disturbed
            gradients.
        decay: Exponent of the fall of amplitude with frequency.
        denoise: Weight of total variation denoising, 0 for none.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"steps": 3},
        "code": {},
        "fast": {"steps": 1, "inner": 40},
    }

    solver: Literal["auto", "prior", "recursion"] = "auto"
    steps: int = setting(2, least=1)
    inner: int = setting(80, least=1)
    noise: float = setting(1e-4, above=0)
    decay: float = 1.2
    denoise: float = 0.0

    def inversion(self, seen: GradientObservation, *, report: Report = silent) -> Inversion:
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
        """Return the problem left to solve, and the residuals of the layers already solved."""
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
            (place,) = gauss_newton(linearise, (place,), search, part, problem.basis.image)
        return place
