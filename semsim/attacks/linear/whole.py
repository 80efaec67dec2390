"""All equations of a chain at once, as one function of the image."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
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
        """The last Z's error, then the gradient's of each convolution from the last, all relative.

        A bias's gradient, the sum of ∂J/∂Z, tells of the image too; only the last one is known.
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

        noise: the relative size of errors that count as large as a coefficient of unit size.
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
