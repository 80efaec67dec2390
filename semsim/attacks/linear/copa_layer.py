"""COPA's solver of one convolution: equations through the activation before it, and pull-back."""

import torch

from semsim.attacks.linear.cgls import Parts
from semsim.attacks.linear.chain import Stage
from semsim.attacks.linear.equations import Equations
from semsim.attacks.linear.gauss_newton import Linearised, Search, gauss_newton
from semsim.attacks.linear.recursion import AGREE, LayerSolution, Solver, minimum_norm
from semsim.progress import silent


def through_activation(search: Search, *, pull_back: bool) -> Solver:
    """Minimise ‖U A(z) − V‖² + ‖g(z)‖² over z, the previous layer's output (Eq. 5 and 7), from 0.

    pull_back: with g, where the previous layer has fewer inputs than outputs, so that its outputs
        fill a subspace only (Appendix B); g is the distance from it. The first layer has neither
        activation nor layer before it and is plain least squares (Eq. 6). So is a layer that hides
        nothing, if its equations agree: what they decide is where both terms are 0.
    """
    plain = minimum_norm(search.steps * search.inner)

    def solve(equations: Equations, before: Stage | None) -> LayerSolution:
        if before is None:
            return plain(equations, None)
        if not equations.stage.hidden:
            decided = plain(equations, before)
            if decided.residual <= AGREE:
                return decided
        bound = pull_back and has_pull_back(before)
        place = gauss_newton(
            lambda parts: _linearised(equations, before, parts),
            _start(before, bound),
            search,
            silent,
        )
        residual = equations.residual(before.activation.value(place[0]))
        return LayerSolution(unknown=place[0], residual=residual, searched=True)

    return solve


def has_pull_back(before: Stage) -> bool:
    """Whether outputs of `before` are bound to a subspace: more outputs than inputs."""
    inputs = torch.Size(before.inputs).numel()
    return inputs < torch.Size(before.outputs).numel()


def _start(before: Stage, bound: bool) -> Parts:
    z = before.weight.new_zeros(1, *before.outputs)
    return (z, before.weight.new_zeros(1, *before.inputs)) if bound else (z,)


def _linearised(equations: Equations, before: Stage, parts: Parts) -> Linearised:
    """U A(z) − V and, where there is a second unknown w, z − bias − W w.

    Minimised over w the latter is the part of z that W cannot reach, which is g of Eq. 20; so the
    singular vectors of W in Eq. 15 to 19 are never needed.
    """
    z = parts[0]
    slope = before.activation.slope(z)
    found = equations.forward(before.activation.value(z))
    value = tuple(a - b for a, b in zip(found, equations.target, strict=True))
    if len(parts) == 1:
        return Linearised(
            value=value,
            forward=lambda move: equations.forward(slope * move[0]),
            adjoint=lambda pull: (slope * equations.adjoint((pull[0], pull[1])),),
        )

    def forward(move: Parts) -> Parts:
        return *equations.forward(slope * move[0]), move[0] - before.apply(move[1])

    def adjoint(pull: Parts) -> Parts:
        to_z = slope * equations.adjoint((pull[0], pull[1])) + pull[2]
        return to_z, -before.pull(pull[2])

    unreached = z - before.shift() - before.apply(parts[1])
    return Linearised(value=(*value, unreached), forward=forward, adjoint=adjoint)
