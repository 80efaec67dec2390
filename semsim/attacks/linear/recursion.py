"""From the last layer back to the image, one layer after the other."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from semsim.attacks.linear.cgls import Solved, cgls
from semsim.attacks.linear.chain import Chain, Stage
from semsim.attacks.linear.equations import Equations
from semsim.attacks.linear.last_layer import closed_form, last_slope, one_back
from semsim.errors import AttackFailedError
from semsim.progress import Progress, Report

# Where ‖Uᵀ(U x − V)‖ / ‖Uᵀ V‖ ends: what is decided is to be exact, a guess need not be.
_FINE, _ROUGH = 1e-15, 1e-12
AGREE = 1e-9  # equation residual up to which a layer's equations count as agreeing


@dataclass(frozen=True, kw_only=True)
class LayerSolution:
    """unknown: of the first convolution its input x, of a later one z, before the activation
    that made its input; (1, *inputs). residual: ‖U x − V‖ / ‖V‖. searched: found by steps from a
    start, which may end anywhere, rather than by least squares.
    """

    unknown: Tensor
    residual: float
    searched: bool = False


# Solves one convolution; told the stage before it, or None where there is none.
Solver = Callable[[Equations, Stage | None], LayerSolution]


@dataclass(frozen=True, kw_only=True)
class Recursion:
    """x: what the first stage sees, (1, C, H, W). residuals: of each convolution, first to last.

    searched: whether any of them was (`LayerSolution`).
    """

    x: Tensor
    residuals: tuple[float, ...]
    searched: bool


def minimum_norm(limit: int) -> Solver:
    """R-GAP's solver: the x of least norm, whose activation is then undone (Zhu, Blaschko 2021)."""

    def solve(equations: Equations, before: Stage | None) -> LayerSolution:
        x = _least_norm(equations, limit)
        unknown = x if before is None else before.activation.inverse(x)
        return LayerSolution(unknown=unknown, residual=equations.residual(x))

    return solve


def _least_norm(equations: Equations, limit: int) -> Tensor:
    """The x of least norm among those with the smallest ‖U x − V‖, (1, *inputs)."""
    if not equations.stage.hidden:
        return _solved(equations, limit, _FINE).solution[0]
    # As long as they agree, equations may be combined into such as are solved fast.
    found = _solved(equations.reachable().orthogonal(), limit, _ROUGH)
    if not found.residual <= AGREE:
        found = _solved(equations, limit, _ROUGH)
    return found.solution[0]


def _solved(equations: Equations, limit: int, tolerance: float) -> Solved:
    return cgls(
        lambda parts: equations.forward(parts[0]),
        lambda parts: (equations.adjoint(parts),),
        equations.target,
        limit=limit,
        tolerance=tolerance,
    )


def invert(chain: Chain, label: int | None, solve: Solver, report: Report) -> Recursion:
    """Go back through `chain` from its gradients alone (COPA, Algorithm 1).

    label: the class, needed only where the last layer has no bias; None reads it off the gradient.
    Raises `AttackFailedError` where a slope vanishes, so that a layer leaks nothing.
    """
    known = known_end(chain, label)
    z, slope = known.z, known.slope
    residuals: list[float] = []
    searched = False
    stages = chain.stages[: known.depth]
    agree = True  # the equations of a layer do, where all later layers were solved exactly
    for place in range(len(stages) - 1, -1, -1):
        stage = stages[place]
        before = stages[place - 1] if place else None
        equations = Equations(stage=stage, slope=slope, output=z - stage.shift())
        found = _unrecorded(solve, equations.balanced() if agree else equations, before)
        agree = agree and not stage.hidden
        residuals.insert(0, found.residual)
        searched = searched or found.searched
        report(Progress(len(residuals), len(stages)))
        if not torch.isfinite(found.unknown).all():
            raise AttackFailedError(f"The equations of layer {place + 1} have no finite solution.")
        z = found.unknown
        if before is not None:
            slope = stage.pull(slope) * before.activation.slope(z)
    if not stages:
        report(Progress(1, 1))
    return Recursion(x=z, residuals=tuple(residuals), searched=searched)


def _unrecorded(solve: Solver, equations: Equations, before: Stage | None) -> LayerSolution:
    """What `solve` finds, a fifth faster since its thousands of small steps are not recorded."""
    with torch.inference_mode():
        found = solve(equations, before)
    return replace(found, unknown=found.unknown.clone())  # so that it may be differentiated


@dataclass(frozen=True, kw_only=True)
class KnownEnd:
    """What the fully connected layers give exactly.

    depth: how many convolutions come before. z, slope: of the last one's output before its
    activation, Z and ∂J/∂Z, (1, *outputs); z is the image the first stage sees where depth is 0,
    and slope is then 0.
    """

    depth: int
    z: Tensor
    slope: Tensor


def known_end(chain: Chain, label: int | None) -> KnownEnd:
    """Undo the fully connected layers in closed form (Eq. 9 to 12, Lemma A.1)."""
    stages = chain.stages
    place = len(stages) - 1
    slope = last_slope(chain, label)
    while place:
        z, slope = one_back(chain, place, slope)
        if stages[place - 1].is_convolution:
            return KnownEnd(depth=place, z=z, slope=slope)
        place -= 1
    image = closed_form(stages[0], slope, 0).view(1, *chain.shape)
    return KnownEnd(depth=0, z=image, slope=torch.zeros_like(image))


def known_beyond(
    chain: Chain, end: KnownEnd, *, limit: int, agree: float
) -> tuple[KnownEnd, tuple[float, ...]]:
    """Go on from `end` through convolutions that hide nothing, to the first that hides something.

    limit: iterations at most for one layer. agree: residual above which a layer's equations are
    taken to contradict each other, as those of disturbed gradients do; it is then not undone.
    Returns where that ends, and the residuals of the layers undone, first to last.
    """
    residuals: tuple[float, ...] = ()
    while end.depth > 1 and not chain.stages[end.depth - 1].hidden:
        stage, before = chain.stages[end.depth - 1], chain.stages[end.depth - 2]
        equations = Equations(stage=stage, slope=end.slope, output=end.z - stage.shift())
        found = _unrecorded(minimum_norm(limit), equations.balanced(), before)
        if not found.residual <= agree:
            break
        slope = stage.pull(end.slope) * before.activation.slope(found.unknown)
        end = KnownEnd(depth=end.depth - 1, z=found.unknown, slope=slope)
        residuals = (found.residual, *residuals)
    return end, residuals
