import math
from dataclasses import fields
from functools import partial

import pytest
import torch

from semsim.attacks import ATTACKS, VERTICAL_ATTACKS
from semsim.attacks.descent import one_of, reconstructions
from semsim.attacks.descent.first_order import Descent, descend, slope_of
from semsim.attacks.descent.lbfgs import Pace, minimise_by_lbfgs
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.progress import Progress, silent
from semsim.base.registry import build
from semsim.types import Reconstruction

TARGETS = torch.tensor([[-0.5, 0.0, 0.25], [0.1, 0.2, -0.9]])


def distances(unknown):
    return (unknown - TARGETS).square().sum(1)


def walk(objective, steps=200, bounds=(-1.0, 1.0), report=silent, signed=True, **how):
    return descend(
        partial(slope_of, objective),
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


def test_an_image_that_diverges_between_two_reports_names_its_own_step():
    steps, told = [], []

    def breaks(unknown):  # the eighth evaluation of the first image, the tenth of the second
        steps.append(len(steps) + 1)
        gone = torch.tensor([steps[-1] >= 8, steps[-1] >= 10])
        return torch.where(gone, torch.inf, distances(unknown))

    found = walk(breaks, steps=47, report=told.append)
    assert found.failures == tuple(f"The objective became inf at step {n} of 47." for n in (8, 10))
    assert [p.done for p in told] == [1, 2, 5]
    assert len(steps) == 20


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


VALLEYS = torch.tensor([[1.0, 100.0], [1.0, 10.0], [2.0, 1.0]])  # of Rosenbrock's function


def rosenbrock(unknown, places):  # (unknown, places) to values, as `lbfgs` below takes it
    low, steep = VALLEYS[list(places)].T.to(unknown)
    x, y = unknown.T
    return (low - x).square() + steep * (y - x.square()).square()


def lbfgs(objective, start, steps=10, stop_below=0.0, lr=1.0, report=silent):
    return minimise_by_lbfgs(
        lambda places: lambda unknown: objective(unknown, places),
        start,
        Pace(steps, lr, stop_below),
        report=report,
    )


def torchs_own(place, start, steps, lr, stop_below=0.0):
    """Torch's optimiser on one unknown alone, and how often it asked."""
    unknown, asked = start[place : place + 1].clone().requires_grad_(True), []
    optimiser = torch.optim.LBFGS([unknown], lr=lr, max_iter=20, history_size=100)

    def closure():
        asked.append(1)
        optimiser.zero_grad()
        value = rosenbrock(unknown, [place])[0]
        value.backward()
        return value

    for _ in range(steps):
        optimiser.step(closure)
        if rosenbrock(unknown, [place])[0] < stop_below:
            break
    return unknown.detach(), len(asked)


@pytest.mark.parametrize("stop_below", [0.0, 1e-3])
def test_lbfgs_on_many_goes_for_each_as_torchs_own_and_asks_for_all_at_once(stop_below):
    start = torch.tensor([[-1.2, 1.0], [0.5, 2.0], [3.0, -1.0]], dtype=torch.float64)
    sizes = []

    def objective(unknown, places):
        sizes.append(len(unknown))
        return rosenbrock(unknown, places)

    found = lbfgs(objective, start, steps=6, lr=0.3, stop_below=stop_below)
    own = [torchs_own(place, start, 6, 0.3, stop_below) for place in range(3)]
    assert torch.equal(found.unknown, torch.cat([unknown for unknown, _ in own]))
    assert found.objective.tolist() == rosenbrock(found.unknown, range(3)).tolist()
    assert found.failures == (None, None, None)
    # Where a step begins is where the last one ended, so that each asks no more than alone.
    assert sizes[0] == 3
    assert len(sizes) <= max(asked for _, asked in own) + 1
    assert stop_below == 0.0 or sizes[-1] < 3


def test_lbfgs_stops_early_when_told_to_and_says_that_it_is_done():
    told, start = [], torch.full((1, 3), 0.9)
    found = lbfgs(
        lambda x, _: x.square().sum(1), start, steps=50, stop_below=1e-3, report=told.append
    )
    assert found.objective.item() < 1e-3
    assert len(told) < 50
    assert (told[-1].done, told[-1].total) == (50, 50)


def test_lbfgs_tells_of_its_first_evaluation_so_that_a_try_needs_no_whole_step():
    asked, told = [], []

    def objective(unknown, places):
        asked.append(len(places))
        return rosenbrock(unknown, places)

    start = torch.tensor([[-1.2, 1.0]] * 3)
    lbfgs(objective, start, lr=0.3, report=lambda one: told.append((one.done, len(asked))))
    assert told[:2] == [(0, 1), (1, 20)]


def test_one_that_diverges_under_lbfgs_fails_alone():
    def second_breaks(unknown, places):
        broken = torch.tensor([math.nan if place == 1 else 1.0 for place in places])
        return (unknown - 0.25).square().sum(1) * broken

    found = lbfgs(second_breaks, torch.full((3, 3), 0.9))
    assert found.failures == (None, "The objective became nan at step 1 of 10.", None)
    assert torch.allclose(found.unknown[[0, 2]], torch.full((2, 3), 0.25), atol=1e-4)
    assert not found.unknown.requires_grad


def test_what_is_not_finite_in_the_end_is_no_reconstruction():
    """A finite value whose last slope is none leaves an image that nobody can see."""

    def slope_breaks(unknown):  # of the second image: the root of exactly 0
        return distances(unknown) + (unknown[:, 0] * torch.tensor([1.0, 0.0])).square().sqrt()

    ended = walk(slope_breaks, steps=1, signed=False)
    assert ended.failures == (None, None)
    assert ended.objective.isfinite().all()
    images = torch.stack([ended.unknown, ended.unknown, ended.unknown], dim=1)[:, :, None]
    first, second = reconstructions(images, ended, torch.ones(2), torch.ones(2))
    assert isinstance(first, Reconstruction)
    assert isinstance(second, AttackFailedError)
    assert "not finite after the last step" in str(second)


def test_an_untouched_start_is_no_reconstruction():
    ended = walk(distances, steps=0)
    found = reconstructions(torch.rand(2, 3, 1, 1), ended, torch.ones(2), torch.ones(2))
    assert all("The objective ended at nan" in str(one) for one in found)


STEPS = [
    (kinds, name, field.name)
    for kinds in (ATTACKS, VERTICAL_ATTACKS)
    for name in kinds
    for field in fields(kinds[name])
    if field.name in ("steps", "inner")
]


@pytest.mark.parametrize(("kinds", "name", "setting"), STEPS)
@pytest.mark.parametrize("value", [0, -1])
def test_an_attack_that_takes_no_step_cannot_be_asked_for(kinds, name, setting, value):
    with pytest.raises(SettingsError, match=f"{setting} must be at least 1; got {value}"):
        build(kinds, name, {setting: value})
