"""COPA, the combined optimisation attack (Chen and Campbell 2021, arXiv:2111.10178)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from semsim.attacks.linear.chain import Stage, chain_of
from semsim.attacks.linear.equations import Equations
from semsim.attacks.linear.least_squares import Linearised, Parts, Search, gauss_newton
from semsim.attacks.linear.outcome import Inversion, LayerWise, denoised, gradient_distance
from semsim.attacks.linear.rank import has_full_rank
from semsim.attacks.linear.recursion import AGREE, LayerSolution, Solver, invert, minimum_norm
from semsim.attacks.linear.rgap import RGap
from semsim.base.errors import AttackFailedError
from semsim.base.progress import Report, silent
from semsim.base.registry import setting
from semsim.types import GradientObservation


@dataclass(frozen=True, kw_only=True)
class Copa(LayerWise):
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

    Attributes:
        steps: Gauss-Newton steps of one layer at most.
        inner: Iterations of each.
        pull_back: With the constraint of Appendix B.
        full_rank: Only where, as the paper asks, the weight before has more outputs than inputs and
            full column rank; without it wherever outputs outnumber inputs, since a search for the
            inputs needs no inverse. (The line of Algorithm 1 asks for the opposite of the
            appendix.)
        denoise: Weight of total variation denoising, 0 for none; the paper's is 0.15.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"denoise": 0.15},
        "code": {},
        "fast": {"steps": 8, "inner": 100},
    }

    steps: int = setting(20, least=1)
    inner: int = setting(200, least=1)
    pull_back: bool = True
    full_rank: bool = False
    denoise: float = 0.0

    def inversion(self, seen: GradientObservation, *, report: Report = silent) -> Inversion:
        chain = chain_of(seen)
        search = Search(steps=self.steps, inner=self.inner)
        solve = through_activation(search, pull_back=self.pull_back, full_rank=self.full_rank)
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


def through_activation(search: Search, *, pull_back: bool, full_rank: bool = False) -> Solver:
    """Minimise ‖U A(z) − V‖² + ‖g(z)‖² over z, the previous layer's output (Eq. 5 and 7), from 0.

    Args:
        pull_back: With g, where the previous layer has fewer inputs than outputs, so that its
            outputs fill a subspace only (Appendix B); g is the distance from it.
        full_rank: Only where its weight has full column rank, too. The first layer has neither
            activation nor layer before it and is plain least squares (Eq. 6). So is a layer that
            hides nothing, if its equations agree: what they decide is where both terms are 0.
    """
    plain = minimum_norm(search.steps * search.inner)

    def solve(equations: Equations, before: Stage | None) -> LayerSolution:
        if before is None:
            return plain(equations, None)
        if not equations.stage.hidden:
            decided = plain(equations, before)
            if decided.residual <= AGREE:
                return decided
        bound = pull_back and has_pull_back(before) and not (full_rank and folds(before))
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
    """Check whether outputs of `before` are bound to a subspace: more outputs than inputs."""
    inputs = torch.Size(before.inputs).numel()
    return inputs < torch.Size(before.outputs).numel()


def folds(before: Stage) -> bool:
    """Check whether some inputs of a convolution with a pull-back give the same outputs."""
    return not has_full_rank(before.convolution, before.inputs, before.outputs, before.weight)


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
