"""Least squares without a matrix: conjugate gradients on the normal equations, and Gauss-Newton."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from semsim.attacks.descent import look_at
from semsim.base.progress import Progress, Report

Parts = tuple[Tensor, ...]

_PATIENCE = 500  # iterations without progress until the rest is rounding
_ROUNDING = 10.0  # a singular value this many epsilons of the largest says nothing


@dataclass(frozen=True, kw_only=True)
class Solved:
    """Solution of a least-squares problem.

    Attributes:
        solution: The unknown's parts.
        residual: ‖A x − b‖ / ‖b‖, 0 where b is 0.
    """

    solution: Parts
    residual: float
    iterations: int


def cgls(
    forward: Callable[[Parts], Parts],
    adjoint: Callable[[Parts], Parts],
    rhs: Parts,
    *,
    limit: int,
    tolerance: float = 1e-15,
) -> Solved:
    """The x of least norm that minimises ‖A x − b‖², from 0.

    Args:
        forward, adjoint: A and its transpose on tuples of tensors.
        rhs: B.
        limit: Iterations at most.
        tolerance: Of ‖Aᵀr‖ beside ‖Aᵀb‖. So that rounding cannot carry the solution away, it ends
            also where A shortens the direction as much as rounding would, and where ‖Aᵀr‖ has not
            fallen for some iterations; it returns where that was lowest. Hestenes and Stiefel 1952;
            Björck 1996, §7.4.
    """
    left = tuple(part.clone() for part in rhs)
    pull = adjoint(left)
    direction = tuple(part.clone() for part in pull)
    x = tuple(torch.zeros_like(part) for part in pull)
    best, best_x = _square(pull), x
    start = gamma = length = best
    iteration = since = 0
    longest, noise = 0.0, (_ROUNDING * torch.finfo(rhs[0].dtype).eps) ** 2
    while iteration < limit and since < _PATIENCE and gamma > tolerance**2 * start:
        iteration += 1
        image = forward(direction)
        curvature = _square(image)
        stretch = curvature / length
        longest = max(longest, stretch)
        if not stretch > noise * longest:
            break
        step = gamma / curvature
        x = _plus(x, step, direction)
        for part, change in zip(left, image, strict=True):
            part.add_(change, alpha=-step)
        pull = adjoint(left)
        before, gamma = gamma, _square(pull)
        direction = _plus(pull, gamma / before, direction)
        # ‖direction‖²: in conjugate gradients each Aᵀr is orthogonal to the direction before it.
        length = gamma + (gamma / before) ** 2 * length
        since += 1
        if gamma < best:
            best, best_x, since = gamma, x, 0
    if best_x is not x:
        left = _plus(rhs, -1.0, forward(best_x))
    size = _square(rhs)
    residual = math.sqrt(_square(left) / size) if size else 0.0
    return Solved(solution=best_x, residual=residual, iterations=iteration)


def _square(parts: Parts) -> float:
    flat = [part.flatten() for part in parts]
    return sum([float(torch.dot(part, part)) for part in flat])


def _plus(parts: Parts, factor: float, others: Parts) -> Parts:
    pairs = zip(parts, others, strict=True)
    return tuple([torch.add(part, other, alpha=factor) for part, other in pairs])


# A leaky ReLU's slope at 0 is 100 times less than beyond it, so that a step from there is so much
# too long: 8 halvings left some nets at their start.
_HALVINGS = 16


@dataclass(frozen=True, kw_only=True)
class Linearised:
    """A function at one place: its value, its Jacobian as a map, and the transpose of that."""

    value: Parts
    forward: Callable[[Parts], Parts]
    adjoint: Callable[[Parts], Parts]


@dataclass(frozen=True, kw_only=True)
class Search:
    """Limits of Gauss-Newton.

    Attributes:
        steps: Linearisations at most.
        inner: Iterations of `cgls` each.
        gain: The share of the squared norm by which a step must lower it for another to follow.
    """

    steps: int
    inner: int
    gain: float = 1e-4


def gauss_newton(
    linearise: Callable[[Parts], Linearised],
    start: Parts,
    search: Search,
    report: Report,
    shown: Callable[[Tensor], Tensor] | None = None,
) -> Parts:
    """The place near `start`, of its shapes, where ‖function‖² is low; steps are halved until so.

    Nocedal and Wright 2006, §10.3, with an inexact inner solution that also keeps it smooth.

    Args:
        shown: Of `descent.first_order.descend`, for the first part.
    """
    place = start
    here = linearise(place)
    size = _square(here.value)
    for step in range(1, search.steps + 1):
        target = tuple(-part for part in here.value)
        move = cgls(here.forward, here.adjoint, target, limit=search.inner).solution
        before, moved = size, False
        for halving in range(_HALVINGS):
            other = tuple(x + 0.5**halving * d for x, d in zip(place, move, strict=True))
            there = linearise(other)
            size = _square(there.value)
            if size < before:
                place, here, moved = other, there, True
                break
        done = not moved or size > (1 - search.gain) * before
        reached = search.steps if done else step
        look = look_at(place[0], shown, reached / search.steps)
        report(Progress(reached, search.steps, values={"objective": size}, look=look))
        if done:
            break
    return place


def by_autograd(function: Callable[[Tensor], Parts], at: Parts) -> Linearised:
    """`function` of one tensor, with Jacobian products by automatic differentiation.

    The transpose product is a pull-back; being linear in what it pulls back, its own pull-back is
    the Jacobian product, so that no forward mode is needed.

    Args:
        at: The place, one tensor of any shape; `forward` takes that shape and `adjoint` returns it.
    """
    unknown = at[0].detach().requires_grad_(True)
    with torch.enable_grad():
        value = function(unknown)
        pulled = tuple(torch.zeros_like(part, requires_grad=True) for part in value)
        (pull,) = torch.autograd.grad(value, unknown, pulled, create_graph=True)

    def forward(parts: Parts) -> Parts:
        return torch.autograd.grad(pull, pulled, parts[0], retain_graph=True)

    def adjoint(parts: Parts) -> Parts:
        return torch.autograd.grad(value, unknown, parts, retain_graph=True)

    return Linearised(
        value=tuple(part.detach() for part in value), forward=forward, adjoint=adjoint
    )
