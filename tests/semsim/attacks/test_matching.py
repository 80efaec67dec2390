import math

import pytest
import torch
from torch import nn

from semsim.attacks.matching import (
    cosine_distance,
    minimise_by_signed_adam,
    parameter_gradients,
    total_variation,
)
from semsim.errors import AttackFailedError
from semsim.progress import silent


def test_cosine_distance_joins_all_tensors():
    found = (torch.tensor([[3.0, 0.0]]), torch.tensor([4.0]))
    target = (torch.tensor([[1.0, 2.0]]), torch.tensor([2.0]))
    by_hand = 1 - (3 * 1 + 4 * 2) / (5 * 3)
    assert cosine_distance(found, target).item() == pytest.approx(by_hand, abs=1e-6)


def test_cosine_distance_is_zero_at_the_truth_and_ignores_scale():
    gradients = tuple(torch.randn(n, generator=torch.Generator().manual_seed(n)) for n in (5, 9))
    scaled = tuple(7 * g for g in gradients)
    assert cosine_distance(scaled, gradients).item() == pytest.approx(0, abs=1e-6)


def test_total_variation_against_a_slow_loop():
    image = torch.rand(1, 2, 4, 5, generator=torch.Generator().manual_seed(0))
    dx = [
        abs(image[0, c, y, x + 1] - image[0, c, y, x])
        for c in range(2)
        for y in range(4)
        for x in range(4)
    ]
    dy = [
        abs(image[0, c, y + 1, x] - image[0, c, y, x])
        for c in range(2)
        for y in range(3)
        for x in range(5)
    ]
    expected = sum(dx) / len(dx) + sum(dy) / len(dy)
    assert total_variation(image).item() == pytest.approx(expected.item(), rel=1e-5)


def test_parameter_gradients_equal_backward():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    images, labels = torch.ones(2, 3, 2, 2), torch.tensor([0, 2])
    nn.functional.cross_entropy(model(images), labels).backward()
    found = parameter_gradients(model, images, labels, differentiable=False)
    for gradient, parameter in zip(found, model.parameters(), strict=True):
        assert torch.allclose(gradient, parameter.grad)


def minimise(objective, steps=200, bounds=(-1.0, 1.0), report=silent):
    low, high = (torch.full((1, 3), bound) for bound in bounds)
    return minimise_by_signed_adam(
        objective, torch.full((1, 3), 0.9), bounds=(low, high), steps=steps, lr=0.1, report=report
    )


def test_signed_adam_finds_a_minimum_from_a_wrong_start():
    target = torch.tensor([[-0.5, 0.0, 0.25]])
    found, value = minimise(lambda x: (x - target).square().sum())
    assert torch.allclose(found, target, atol=0.01)
    assert value < 1e-3


def test_the_box_is_never_left():
    found, _ = minimise(lambda x: (x - 5).square().sum())
    assert torch.equal(found, torch.ones(1, 3))


def test_divergence_is_a_failure_that_names_the_step():
    with pytest.raises(AttackFailedError, match="step 1 of 200"):
        minimise(lambda x: x.sum() * math.nan)


def test_progress_reaches_its_total():
    seen = []
    minimise(lambda x: x.square().sum(), steps=47, report=seen.append)
    assert (seen[-1].done, seen[-1].total) == (47, 47)
    assert [p.done for p in seen] == [20, 40, 47]
