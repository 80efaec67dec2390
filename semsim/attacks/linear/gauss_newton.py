"""Sums of squares of smooth functions: linearise, solve by `cgls`, step, again."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from semsim.attacks.linear.cgls import Parts, cgls
from semsim.progress import Progress, Report

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
    """How far Gauss-Newton goes. steps: linearisations at most. inner: iterations of `cgls` each.

    gain: the share of the squared norm by which a step must lower it for another to follow.
    """

    steps: int
    inner: int
    gain: float = 1e-4


def gauss_newton(
    linearise: Callable[[Parts], Linearised], start: Parts, search: Search, report: Report
) -> Parts:
    """The place near `start` where ‖function‖² is low; steps are halved until they lower it.

    Nocedal and Wright 2006, §10.3, with an inexact inner solution that also keeps it smooth.
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
        report(Progress(search.steps if done else step, search.steps, values={"objective": size}))
        if done:
            break
    return place


def by_autograd(function: Callable[[Tensor], Parts], at: Parts) -> Linearised:
    """`function` of one tensor, with Jacobian products by automatic differentiation.

    The transpose product is a pull-back; being linear in what it pulls back, its own pull-back is
    the Jacobian product, so that no forward mode is needed.
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


def _square(parts: Parts) -> float:
    return sum(float(part.square().sum()) for part in parts)
