"""Least squares without a matrix: conjugate gradients on the normal equations."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Parts = tuple[Tensor, ...]

_PATIENCE = 500  # iterations without progress until the rest is rounding
_ROUNDING = 10.0  # a singular value this many epsilons of the largest says nothing


@dataclass(frozen=True, kw_only=True)
class Solved:
    """solution: the unknown's parts. residual: ‖A x − b‖ / ‖b‖, 0 where b is 0."""

    solution: Parts
    residual: float
    iterations: int


def cgls(
    forward: Callable[[Parts], Parts],
    adjoint: Callable[[Parts], Parts],
    rhs: Parts,
    *,
    limit: int,
    damping: float = 0.0,
    tolerance: float = 1e-15,
) -> Solved:
    """The x of least norm that minimises ‖A x − b‖² + damping · ‖x‖², from 0.

    forward, adjoint: A and its transpose on tuples of tensors. rhs: b. limit: iterations at
    most. tolerance: of ‖Aᵀr‖ beside ‖Aᵀb‖. So that rounding cannot carry the solution away, it ends
    also where A shortens the direction as much as rounding would, and where ‖Aᵀr‖ has not fallen
    for some iterations; it returns where that was lowest. Hestenes and Stiefel 1952; Björck 1996,
    §7.4.
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
        curvature = _square(image) + damping * length
        stretch = curvature / length
        longest = max(longest, stretch)
        if not stretch > noise * longest:
            break
        step = gamma / curvature
        x = _plus(x, step, direction)
        for part, change in zip(left, image, strict=True):
            part.add_(change, alpha=-step)
        pull = _plus(adjoint(left), -damping, x) if damping else adjoint(left)
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
