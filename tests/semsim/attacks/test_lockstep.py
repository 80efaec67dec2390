"""Walks that ask together: none waits for ever, whatever happens to another."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from helpers import limit

from semsim.attacks.descent.lbfgs import in_lockstep


def halved(places):
    return lambda unknown: 0.5 * unknown.square().sum(1)


def descending(start, steps):
    def walk(evaluate):
        point = torch.tensor([[start]])
        for _ in range(steps):
            point = point - 0.5 * evaluate(point).slope
        return point.item()

    return walk


def quiet(places, points, values):
    pass


@pytest.mark.parametrize("count", [1, 3])
def test_walks_of_several_lengths_end_where_each_ends_alone(count):
    starts, told = [8.0, -4.0, 2.0][:count], []
    walks = [descending(start, place + 1) for place, start in enumerate(starts)]
    ended = in_lockstep(walks, halved, lambda places, *_: told.append(list(places)))
    assert ended == [start / 2 ** (place + 1) for place, start in enumerate(starts)]
    assert told == [list(range(first, count)) for first in range(count)]


def test_what_one_walk_raises_is_raised_when_the_others_have_ended():
    reached = []

    def breaks(evaluate):
        evaluate(torch.ones(1, 1))
        raise ArithmeticError("of one")

    def goes_on(evaluate):
        reached.append(descending(8.0, 5)(evaluate))

    with pytest.raises(ArithmeticError, match="of one"):
        in_lockstep([breaks, goes_on, goes_on], halved, quiet)
    assert reached == [0.25, 0.25]


@pytest.mark.parametrize("where", ["objective", "told"])
def test_whoever_cancels_ends_all_walks(where):
    before, asked = threading.active_count(), []

    def cancels(*_):
        asked.append(1)
        if len(asked) == 3:
            raise KeyboardInterrupt

    def half_cancels(places):
        return lambda unknown: (cancels(), halved(places)(unknown))[1]

    walks = [descending(8.0, 100) for _ in range(4)]
    how = (half_cancels, quiet) if where == "objective" else (halved, cancels)
    with pytest.raises(KeyboardInterrupt):
        in_lockstep(walks, *how)
    assert len(asked) == 3
    assert threading.active_count() == before


def test_whoever_cancels_while_walks_begin_ends_those_that_have_begun(monkeypatch):
    before, begun = threading.active_count(), []
    submit = ThreadPoolExecutor.submit

    def cancels(pool, *work):
        if begun:
            raise KeyboardInterrupt
        begun.append(submit(pool, *work))
        return begun[0]

    def ends():
        with pytest.raises(KeyboardInterrupt):
            in_lockstep([descending(8.0, 5) for _ in range(3)], halved, quiet)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", cancels)
    waiting = threading.Thread(target=ends, daemon=True)  # so that a failure does not wait, too
    waiting.start()
    waiting.join(limit(30))
    assert not waiting.is_alive()
    assert begun[0].exception() is not None  # stopped where it asked first
    assert threading.active_count() == before


def test_an_image_with_several_rows_gets_its_own_slopes_back():
    slopes = []

    def walk(evaluate):
        slopes.append(evaluate(torch.full((2, 3), float(len(slopes) + 1))).slope)

    in_lockstep([walk], lambda places: lambda x: x.square().sum(1).sum(0, keepdim=True), quiet)
    assert torch.equal(slopes[0], torch.full((2, 3), 2.0))
