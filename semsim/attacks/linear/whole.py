"""All equations of a chain at once, as one function of the image."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from semsim.attacks.linear.cgls import Parts
from semsim.attacks.linear.chain import Chain, Stage
from semsim.attacks.linear.recursion import KnownEnd
from semsim.attacks.prior_basis import ImageBasis


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
        """The last Z's error, then ∂J/∂W's of each convolution from the last, all relative.

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
            found.append(_relative(stage.gradient(inputs[place], slope), stage.weight_gradient))
            if place:
                before = self.stages[place - 1].activation
                slope = stage.pull(slope) * before.slope(outputs[place - 1])
        return tuple(found)

    def with_prior(self, noise: float) -> Callable[[Tensor], Parts]:
        """`errors`, and `noise` × coefficients: least squares of both is the likeliest image.

        noise: the relative size of errors that count as large as a coefficient of unit size.
        """
        return lambda coefficients: (*self.errors(coefficients), noise * coefficients)


def _relative(found: Tensor, target: Tensor) -> Tensor:
    size = float(target.norm())
    return (found - target) / size if size else found
