import math
from functools import partial

import pytest
import torch

from semsim.attacks.minimise import Descent, descend, minimise_by_lbfgs, one_of
from semsim.errors import AttackFailedError
from semsim.progress import Progress, silent

TARGETS = torch.tensor([[-0.5, 0.0, 0.25], [0.1, 0.2, -0.9]])


def distances(unknown):
    return (unknown - TARGETS).square().sum(1)


def walk(objective, steps=200, bounds=(-1.0, 1.0), report=silent, signed=True, **how):
    return descend(
        objective,
        torch.full((2, 3), 0.9),
        descent=Descent(steps=steps, lr=0.1, signed=signed, **how),
        keep=None if bounds is None else partial(torch.clamp, min=bounds[0], max=bounds[1]),
        report=report,
    )


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("schedule", ["steps", "cosine", "constant"])
def test_adam_finds_every_minimum_from_a_wrong_start(signed, schedule):
    found = walk(distances, signed=signed, schedule=schedule)
    # Without a falling step size, the last step of the sign is as long as the first.
    near = 0.11 if schedule == "constant" else 0.02
    assert torch.allclose(found.unknown, TARGETS, atol=near)
    assert found.failures == (None, None)


def test_the_box_is_never_left():
    found = walk(lambda x: (x - 5).square().sum(1))
    assert torch.equal(found.unknown, torch.ones(2, 3))
    assert walk(lambda x: (x - 5).square().sum(1), bounds=None).unknown.min() > 1


def test_an_image_that_diverges_fails_alone_and_names_the_step():
    def second_breaks(unknown):
        return distances(unknown) * torch.tensor([1.0, math.nan])

    found = walk(second_breaks)
    assert found.failures == (None, "The objective became nan at step 1 of 200.")
    assert torch.equal(found.unknown[0], walk(distances).unknown[0])


def test_when_all_have_diverged_the_walk_ends():
    calls = []

    def broken(unknown):
        calls.append(1)
        return unknown.sum(1) * math.inf

    assert all(walk(broken).failures)
    assert len(calls) == 1


def test_progress_reaches_its_total():
    told = []
    walk(distances, steps=47, report=told.append)
    # Soon, since its pace tells how long all of it takes, and then every twenty steps.
    assert [p.done for p in told] == [1, 2, 5, 20, 40, 47]
    assert {p.total for p in told} == {47}


def test_parts_are_told_as_one_whole():
    told = []
    for part in range(3):
        tell = one_of(told.append, part, 3)
        tell(Progress(1, 2))
        tell(Progress(2, 2))
    assert [p.done for p in told] == [1, 2, 3, 4, 5, 6]
    assert {p.total for p in told} == {6}


def lbfgs(objective, unknown, steps=10, stop_below=0.0, report=silent):
    return minimise_by_lbfgs(
        lambda: objective(unknown),
        [unknown],
        steps=steps,
        lr=1.0,
        stop_below=stop_below,
        report=report,
    )


def test_lbfgs_finds_a_minimum_and_leaves_no_gradient_behind():
    unknown = torch.full((3,), 0.9, requires_grad=True)
    assert lbfgs(lambda x: (x - TARGETS[0]).square().sum(), unknown) < 1e-8
    assert torch.allclose(unknown, TARGETS[0], atol=1e-4)
    assert unknown.grad is None


def test_lbfgs_stops_early_when_told_to_and_says_that_it_is_done():
    told = []
    unknown = torch.full((3,), 0.9, requires_grad=True)
    lbfgs(lambda x: x.square().sum(), unknown, steps=50, stop_below=1e-3, report=told.append)
    assert len(told) < 50
    assert (told[-1].done, told[-1].total) == (50, 50)


def test_lbfgs_that_diverges_is_a_failure():
    with pytest.raises(AttackFailedError, match="step 1 of 10"):
        lbfgs(lambda x: x.sum() * math.nan, torch.ones(3, requires_grad=True))
