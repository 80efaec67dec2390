"""From the last layer, where ∂J/∂z is read off, back to the image, one layer after the other."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import scipy
import torch
from torch import Tensor

from semsim.attacks.linear.chain import Chain, Stage
from semsim.attacks.linear.equations import Equations
from semsim.attacks.linear.least_squares import Solved, cgls
from semsim.base.errors import AttackFailedError
from semsim.base.progress import Progress, Report

_EXACT = 1e-5  # relative error up to which something counts as met, in float32 as well
_GRID, _FEW = 4000, 3  # factors tried, and refined; two 0.7% apart are told from each other
_CLEARLY = 2.0  # times less error than the next: then it is the one
_BESIDE = 1e-6  # of the logarithm: how far from the lowest misfit its root may be

Scalar = Callable[[float], float]


@dataclass(frozen=True, kw_only=True)
class _Guess:
    """A slope of the last layer, (1, classes), and how far it is from the one it predicts."""

    slope: Tensor
    misfit: float


def last_slope(chain: Chain, label: int | None) -> Tensor:
    """∂J/∂z of the last layer, (1, classes): its bias gradient (Eq. 13), or read off its weight's.

    Only the true class has a negative entry (iDLG).

    Args:
        label: The class, used where the last layer has no bias; None reads it off the gradient.
            Without a bias the weight gradient s·u vᵀ gives the slope only up to the factor s, which
            is chosen so that the prediction fits: s·u = ∂J/∂z at z = W v/s. With two classes two
            factors may, and either class; the layer before then decides.

    Raises:
        AttackFailedError: Where the gradient is zero, or where that decides nothing.
    """
    stage = chain.stages[-1]
    if stage.bias_gradient is not None:
        return stage.bias_gradient[None]
    left, values, right = torch.linalg.svd(stage.weight_gradient, full_matrices=False)
    u, v = left[:, 0], values[0] * right[0]
    if not values[0] > 0:
        raise AttackFailedError("The gradient of the last layer is zero; it leaks nothing.")
    guesses = [
        guess
        for index in (_labels(u) if label is None else [label])
        for guess in _guesses(stage, *((-u, -v) if u[index] > 0 else (u, v)), index)
    ]
    best = min(guess.misfit for guess in guesses)
    fitting = [guess.slope for guess in guesses if guess.misfit <= max(best, _EXACT)]
    return fitting[0] if len(fitting) == 1 else _agreeing(chain, fitting)


def _labels(u: Tensor) -> list[int]:
    """The classes that may be the true one: it alone has its sign, so with two it may be either."""
    if len(u) == 2:
        return [0, 1]
    odd = -1 if (u > 0).sum() > (u < 0).sum() else 1
    return [int((u * odd).argmax())]


def _guesses(stage: Stage, u: Tensor, v: Tensor, label: int) -> list[_Guess]:
    """A guess at each of the few factors s where the misfit is lowest nearby."""
    scores = stage.apply(v[None])

    def predicted(factors: Tensor) -> Tensor:
        z = scores / factors
        missed = stage.activation.value(z).softmax(1)
        missed[:, label] -= 1
        return missed * stage.activation.slope(z)

    def misfits(logs: Tensor) -> Tensor:
        factors = logs.exp()[:, None]
        expected = predicted(factors)
        return (factors * u - expected).norm(dim=1) / (expected.norm(dim=1) + factors[:, 0])

    def misfit(log: float) -> float:
        return float(misfits(scores.new_tensor([log]))[0])

    def excess(log: float) -> float:
        factors = scores.new_tensor([[math.exp(log)]])
        return float(((factors * u - predicted(factors)) @ u)[0])

    grid = torch.linspace(math.log(1e-6), math.log(2.0), _GRID).to(scores)
    logs, heights = grid.tolist(), misfits(grid).tolist()
    around = zip([math.inf, *heights], heights, [*heights[1:], math.inf], strict=False)
    low = [place for place, (left, here, right) in enumerate(around) if left >= here < right]
    found = []
    for place in sorted(low, key=heights.__getitem__)[:_FEW]:
        bounds = (logs[max(place - 1, 0)], logs[min(place + 1, _GRID - 1)])
        fine = scipy.optimize.minimize_scalar(
            misfit, bounds=bounds, method="bounded", options={"xatol": 1e-14}
        )
        log = _polished(float(fine.x), misfit, excess)
        found.append(_Guess(slope=math.exp(log) * u[None], misfit=misfit(log)))
    return found


def _polished(log: float, misfit: Scalar, excess: Scalar) -> float:
    """The root of `excess` beside `log`, where the misfit is lowest; `log` where none is better.

    A search for the lowest value stops at about the root of the machine precision, 1e-9, which the
    layers before make larger; a root is found to the last digit.
    """
    low, high = log - _BESIDE, log + _BESIDE
    if excess(low) * excess(high) >= 0:
        return log
    root = float(
        scipy.optimize.brentq(excess, low, high, xtol=1e-300, rtol=4 * sys.float_info.epsilon)
    )
    return min(log, root, key=misfit)


def _agreeing(chain: Chain, slopes: list[Tensor]) -> Tensor:
    """The one of `slopes` with which what leaks from the layer before agrees."""
    wrong = [_disagreement(chain, slope) for slope in slopes]
    least, second = sorted(wrong)[:2]
    if second <= max(_EXACT, _CLEARLY * least):
        raise AttackFailedError(
            "The gradient of the last layer is ambiguous: without a bias, and with two classes, "
            f"{len(slopes)} predictions explain it, and the layer before does not decide. Where "
            "the label is known, tell it."
        )
    return slopes[wrong.index(least)]


def _disagreement(chain: Chain, slope: Tensor) -> float:
    """Relative error of Z ∂J/∂Zᵀ = W ∂J/∂Wᵀ of the layer before the last; 0 where there is none.

    Both sides are W times the patches of that layer's input times ∂J/∂Z.
    """
    if len(chain.stages) == 1:
        return 0.0
    stage = chain.stages[-2]
    z, back = one_back(chain, len(chain.stages) - 1, slope)
    channels = len(stage.weight)
    found = (z - stage.shift()).view(channels, -1) @ back.view(channels, -1).T
    expected = stage.weight.flatten(1) @ stage.weight_gradient.flatten(1).T
    return float((found - expected).norm() / expected.norm())


def one_back(chain: Chain, place: int, slope: Tensor) -> tuple[Tensor, Tensor]:
    """Z and ∂J/∂Z of the layer before the fully connected one at `place`, both (1, *outputs).

    Args:
        slope: (1, outputs), ∂J/∂z of the layer at `place`. Raises as `closed_form`.
    """
    stage, before = chain.stages[place], chain.stages[place - 1]
    z = before.activation.inverse(closed_form(stage, slope, place).view(1, *before.outputs))
    return z, stage.pull(slope).view_as(z) * before.activation.slope(z)


def closed_form(stage: Stage, slope: Tensor, place: int) -> Tensor:
    """x of ∂J/∂W = ∂J/∂z xᵀ, all rows of Eq. 12 together by least squares; (1, inputs).

    Raises `AttackFailedError`, which names the layer by its `place`, where it is zero.

    Args:
        slope: (1, outputs), ∂J/∂z.
    """
    size = slope.square().sum()
    if not size > 0:
        raise AttackFailedError(
            f"The gradient of fully connected layer {place + 1} is zero; it leaks nothing."
        )
    return slope @ stage.weight_gradient / size


# Where ‖Uᵀ(U x − V)‖ / ‖Uᵀ V‖ ends: what is decided is to be exact, a guess need not be.
_FINE, _ROUGH = 1e-15, 1e-12
AGREE = 1e-9  # equation residual up to which a layer's equations count as agreeing


@dataclass(frozen=True, kw_only=True)
class LayerSolution:
    """Solution of one layer.

    Attributes:
        unknown: Of the first convolution its input x, of a later one z, before the activation that
            made its input; (1, *inputs).
        residual: ‖U x − V‖ / ‖V‖.
        searched: Found by steps from a start, which may end anywhere, rather than by least squares.
    """

    unknown: Tensor
    residual: float
    searched: bool = False


# Solves one convolution; told the stage before it, or None where there is none.
Solver = Callable[[Equations, Stage | None], LayerSolution]


@dataclass(frozen=True, kw_only=True)
class Recursion:
    """Result of the recursion over all layers.

    Attributes:
        x: What the first stage sees, (1, C, H, W).
        residuals: Of each convolution, first to last.
        searched: Whether any of them was (`LayerSolution`).
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

    Args:
        label: The class, needed only where the last layer has no bias; None reads it off the
            gradient.

    Raises:
        AttackFailedError: Where a slope vanishes, so that a layer leaks nothing.
    """
    end = known_end(chain, label)
    residuals: list[float] = []
    searched, depth = False, end.depth
    agree = True  # the equations of a layer do, where all later layers were solved exactly
    while end.depth:
        place = end.depth
        end, found = _one_undone(chain, end, solve, balanced=agree)
        agree = agree and not chain.stages[end.depth].hidden
        residuals.insert(0, found.residual)
        searched = searched or found.searched
        report(Progress(len(residuals), depth))
        if not torch.isfinite(found.unknown).all():
            raise AttackFailedError(f"The equations of layer {place} have no finite solution.")
    if not depth:
        report(Progress(1, 1))
    return Recursion(x=end.z, residuals=tuple(residuals), searched=searched)


@dataclass(frozen=True, kw_only=True)
class KnownEnd:
    """Values that the fully connected layers give exactly.

    Attributes:
        depth: How many convolutions come before.
        z, slope: Of the last one's output before its activation, Z and ∂J/∂Z, (1, *outputs); z is
            the image the first stage sees where depth is 0, and slope is then 0.
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

    Args:
        limit: Iterations at most for one layer.
        agree: Residual above which a layer's equations are taken to contradict each other, as those
            of disturbed gradients do; it is then not undone.

    Returns:
        Where that ends, and the residuals of the layers undone, first to last.
    """
    residuals: tuple[float, ...] = ()
    while end.depth > 1 and not chain.stages[end.depth - 1].hidden:
        further, found = _one_undone(chain, end, minimum_norm(limit), balanced=True)
        if not found.residual <= agree:
            break
        end, residuals = further, (found.residual, *residuals)
    return end, residuals


def _one_undone(
    chain: Chain, end: KnownEnd, solve: Solver, *, balanced: bool
) -> tuple[KnownEnd, LayerSolution]:
    """Return what is known one convolution before `end`, and how it was solved."""
    stage = chain.stages[end.depth - 1]
    before = chain.stages[end.depth - 2] if end.depth > 1 else None
    equations = Equations(stage=stage, slope=end.slope, output=end.z - stage.shift())
    with torch.inference_mode():  # a fifth faster: thousands of small steps are not recorded
        found = solve(equations.balanced() if balanced else equations, before)
    found = replace(found, unknown=found.unknown.clone())  # so that it may be differentiated
    slope = end.slope
    if before is not None:
        slope = stage.pull(slope) * before.activation.slope(found.unknown)
    return KnownEnd(depth=end.depth - 1, z=found.unknown, slope=slope), found
