"""L-BFGS that goes for each image its own way, while what it asks for is computed for all at once.

It decides for every unknown alone: what it remembers, how far it steps, when it ends. So each
image has torch's own optimiser, in a thread of its own, and all that wait for their objective get
it from one pass over a batch, as every attack that works on many images takes it.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from semsim.attacks.descent import Descended, finite_mean, look_at
from semsim.attacks.descent.first_order import Objective, slope_of
from semsim.base.progress import Progress, Report

_INNER, _HISTORY = 20, 100  # iterations a step, and what it remembers
T = TypeVar("T")


class Evaluated(NamedTuple):
    """An objective at a point, and its slope there, of the point's shape."""

    value: float
    slope: Tensor


Evaluate = Callable[[Tensor], Evaluated]
Walk = Callable[[Evaluate], T]
# Of which walks it is the objective: then of their points, (n, …) joined, to one value a walk.
ObjectiveOf = Callable[[tuple[int, ...]], Objective]


class Pace(NamedTuple):
    """Steps and step size of L-BFGS; an image ends early once its objective is `stop_below`."""

    steps: int
    lr: float
    stop_below: float


def minimise_by_lbfgs(
    objective_of: ObjectiveOf,
    start: Tensor,
    pace: Pace,
    *,
    report: Report,
    shown: Callable[[Tensor], Tensor] | None = None,
) -> Descended:
    """Torch's L-BFGS without line search, 20 inner iterations a step, as DLG and iDLG use it.

    Args:
        objective_of: Of `in_lockstep`, of unknowns (M, D).
        start: (N, D). An image fails where its objective is no longer finite.
        shown: Of `descend`.
    """
    walks = [partial(_one_by_lbfgs, one, pace) for one in start.split(1)]
    how = {"steps": pace.steps, "each": _INNER}
    return walk_together(walks, objective_of, **how, report=report, shown=shown)


def walk_together(
    walks: Sequence[Walk[Descended]],
    objective_of: ObjectiveOf,
    *,
    steps: int,
    each: int,
    report: Report,
    shown: Callable[[Tensor], Tensor] | None,
) -> Descended:
    """`in_lockstep` of walks that take `each` evaluations a step, told of after the first
    evaluation, which an attack of a large network takes seconds for, and after every step.

    Args:
        walks: In the order of their images.
        objective_of: Of `in_lockstep`, of points (M, …).
        shown: Of `descend`, of a walk's points.
    """
    rounds = 0

    def tell(done: int, values: Tensor, unknown: Tensor | None) -> None:
        look = None if unknown is None else look_at(unknown, shown, done / max(1, steps))
        report(Progress(done, steps, values={"objective": finite_mean(values)}, look=look))

    def told(places: Sequence[int], points: Sequence[Tensor], values: Sequence[float]) -> None:
        nonlocal rounds
        rounds += 1
        done = min(rounds // each, steps - 1)
        if rounds == 1 or (done > 0 and not rounds % each):
            tell(done, torch.tensor(values), None if places[0] else points[0])

    ended = in_lockstep(walks, objective_of, told)
    found = Descended(
        unknown=torch.cat([one.unknown for one in ended]),
        objective=torch.cat([one.objective for one in ended]),
        failures=tuple(failure for one in ended for failure in one.failures),
    )
    tell(steps, found.objective, found.unknown)
    return found


def _one_by_lbfgs(start: Tensor, pace: Pace, evaluate: Evaluate) -> Descended:
    steps, lr, stop_below = pace
    unknown = start.clone().requires_grad_(True)
    optimiser = torch.optim.LBFGS([unknown], lr=lr, max_iter=_INNER, history_size=_HISTORY)
    here = Evaluated(math.nan, unknown)
    reached, failure = torch.full_like(unknown, math.nan), None

    def closure() -> float:
        nonlocal here, reached
        if not torch.equal(unknown, reached):  # a step begins where the last one ended
            here, reached = evaluate(unknown), unknown.detach().clone()
        unknown.grad = here.slope
        return here.value

    for step in range(1, steps + 1):
        optimiser.step(closure)
        closure()
        if not math.isfinite(here.value):
            failure = f"The objective became {here.value} at step {step} of {steps}."
        if failure or here.value < stop_below:
            break
    value = torch.tensor([here.value], dtype=torch.float64)
    return Descended(unknown=unknown.detach(), objective=value, failures=(failure,))


class _StoppedError(Exception):
    """The others of a lockstep have ended by an error."""


def in_lockstep(
    walks: Sequence[Walk[T]],
    objective_of: ObjectiveOf,
    told: Callable[[Sequence[int], Sequence[Tensor], Sequence[float]], None],
) -> list[T]:
    """Return the result of each walk; each goes as it would alone, up to the rounding of batches.

    Args:
        walks: Each evaluates points, (n, …), as often as it likes; n is one, or its number of
            images.
        objective_of: Of some walks; the value of each depends on its own points only. Asked for
            again when one of them has ended.
        told: After each evaluation, in the caller's thread: which walks, their points and values.
            What an objective or `told` raises ends all walks, each by a `_StoppedError` that only
            it sees.
    """
    sloped = lru_cache(maxsize=1)(lambda places: partial(slope_of, objective_of(places)))

    def answer(places: Sequence[int], points: Sequence[Tensor]) -> list[Evaluated]:
        values, slopes = sloped(tuple(places))(torch.cat(list(points)))
        found: list[float] = values.tolist()
        told(places, points, found)
        return list(map(Evaluated, found, slopes.split([len(point) for point in points])))

    if len(walks) == 1:
        return [walks[0](lambda point: answer([0], [point.detach()])[0])]
    return _threaded(walks, answer)


def _threaded(
    walks: Sequence[Walk[T]],
    answer: Callable[[Sequence[int], Sequence[Tensor]], list[Evaluated]],
) -> list[T]:
    asked: SimpleQueue[tuple[int, Tensor | None]] = SimpleQueue()  # None: this walk has ended
    replies: list[SimpleQueue[Evaluated | None]] = [SimpleQueue() for _ in walks]

    def walked(place: int) -> T:
        def evaluate(point: Tensor) -> Evaluated:
            asked.put((place, point.detach()))
            reply = replies[place].get()
            if reply is None:
                raise _StoppedError
            return reply

        try:
            return walks[place](evaluate)
        finally:
            asked.put((place, None))

    with ThreadPoolExecutor(len(walks)) as pool:
        try:
            running = [pool.submit(walked, place) for place in range(len(walks))]
            going = len(walks)
            while going:
                waiting: dict[int, Tensor] = {}
                while len(waiting) < going:
                    place, point = asked.get()
                    if point is None:
                        going -= 1
                    else:
                        waiting[place] = point
                places = sorted(waiting)
                if places:
                    found = answer(places, [waiting[place] for place in places])
                    for place, one in zip(places, found, strict=True):
                        replies[place].put(one)
        finally:  # after an error nobody may wait for ever
            for reply in replies:
                reply.put(None)
    return [one.result() for one in running]
