"""Optimisers that go each its own way, while what they ask for is computed for all at once.

L-BFGS decides for every unknown alone: what it remembers, how far it steps, when it ends. So each
image has torch's own optimiser, in a thread of its own, and all that wait for their objective get
it from one pass over a batch, as every attack that works on many images takes it.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from semsim.attacks.descent.slopes import Objective, slope_of

T = TypeVar("T")


class Evaluated(NamedTuple):
    """An objective at a point, and its slope there, of the point's shape."""

    value: float
    slope: Tensor


Evaluate = Callable[[Tensor], Evaluated]
Walk = Callable[[Evaluate], T]
# Of which walks it is the objective: then of their points, (n, …) joined, to one value a walk.
ObjectiveOf = Callable[[tuple[int, ...]], Objective]


class _StoppedError(Exception):
    """The others of a lockstep have ended by an error."""


def in_lockstep(
    walks: Sequence[Walk[T]],
    objective_of: ObjectiveOf,
    told: Callable[[Sequence[int], Sequence[Tensor], Sequence[float]], None],
) -> list[T]:
    """Return the result of each walk; each goes as it would alone, up to the rounding of batches.

    walks: each evaluates points, (n, …), as often as it likes; n is one, or its number of images.
    objective_of: of some walks; the value of each depends on its own points only. Asked for again
    when one of them has ended. told: after each evaluation, in the caller's thread: which walks,
    their points and values. What an objective or `told` raises ends all walks, each by a
    `_StoppedError` that only it sees.
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
