import pytest
import torch
from made_linear import target
from torch import nn

from semsim.attacks.descent import first_order
from semsim.attacks.descent.distance import (
    batch_norm_distance,
    distance_of_each,
    scaled_distance_of_each,
    total_variation_of_each,
)
from semsim.attacks.fast_gradients import parameter_gradients
from semsim.attacks.gradattack import GradAttack
from semsim.attacks.observe import observe_gradient
from semsim.defences.none import NoDefence
from semsim.targets.lenet import CNN4
from semsim.types import BatchNormStatistics

FOUND = (torch.tensor([[[3.0, 0.0]], [[1.0, 1.0]]]), torch.tensor([[4.0], [0.0]]))
TARGET = (torch.tensor([[[1.0, 2.0]], [[1.0, 1.0]]]), torch.tensor([[2.0], [0.0]]))


def test_the_joint_cosine_joins_all_tensors_of_an_image():
    by_hand = 1 - (3 * 1 + 4 * 2) / (5 * 3)
    assert distance_of_each(FOUND, TARGET, "cosine").tolist() == pytest.approx(
        [by_hand, 0], abs=1e-6
    )


def test_the_cosine_per_layer_is_the_mean_over_tensors():
    first = 1 - 3 / (3 * 5**0.5)
    found = distance_of_each(FOUND, TARGET, "cosine-per-layer").tolist()
    assert found[0] == pytest.approx((first + 0) / 2, abs=1e-6)
    assert found[1] == pytest.approx(0, abs=1e-6)  # the second tensor of the target is 0
    vanished = (FOUND[0], torch.zeros_like(FOUND[1]))
    assert distance_of_each(vanished, TARGET, "cosine-per-layer").tolist() == pytest.approx(
        [(first + 1) / 2, 0], abs=1e-6
    )


def test_the_cosine_per_layer_leaves_out_what_is_rounding_beside_the_whole():
    target = (torch.tensor([[3.0, 4.0]]), torch.tensor([[1e-7, 0.0]]), torch.tensor([[1e-4]]))
    found = (torch.tensor([[4.0, 3.0]]), torch.tensor([[0.0, 2e-7]]), torch.tensor([[-1e-4]]))
    expected = ((1 - 24 / 25) + 2) / 2
    assert distance_of_each(found, target, "cosine-per-layer").item() == pytest.approx(expected)
    nothing = [torch.zeros_like(each) for each in target]
    assert distance_of_each(found, nothing, "cosine-per-layer").item() == 1


def test_the_squared_distance_sums_over_all_entries():
    by_hand = 2**2 + 2**2 + 2**2
    assert distance_of_each(FOUND, TARGET, "l2").tolist() == pytest.approx([by_hand, 0])


@pytest.mark.parametrize("distance", ["cosine", "cosine-per-layer", "l2"])
def test_one_image_alone_has_the_distance_it_has_in_company(distance):
    rng = torch.Generator().manual_seed(0)
    found = tuple(torch.randn(3, *s, generator=rng) for s in ((4, 2), (4,)))
    target = tuple(torch.randn(3, *s, generator=rng) for s in ((4, 2), (4,)))
    together = distance_of_each(found, target, distance)
    for place in range(3):
        alone = distance_of_each(
            [f[place : place + 1] for f in found], [t[place : place + 1] for t in target], distance
        )
        assert alone.item() == pytest.approx(together[place].item(), rel=1e-5)


@pytest.mark.parametrize("distance", ["cosine", "cosine-per-layer", "l2"])
def test_a_vanished_gradient_gives_a_finite_slope(distance):
    found = torch.zeros(2, 3, requires_grad=True)
    value = distance_of_each((found * 1,), (torch.ones(2, 3),), distance)
    (slope,) = torch.autograd.grad(value.sum(), found)
    if distance != "cosine":  # there a net all of whose gradients are 0 has failed anyway
        assert torch.isfinite(slope).all()


def test_cosine_ignores_scale():
    scaled = tuple(7 * f for f in FOUND)
    assert distance_of_each(scaled, FOUND, "cosine").tolist() == pytest.approx([0, 0], abs=1e-6)


def test_scaled_distance_is_0_at_the_truth_1_at_nothing_and_lifts_small_tensors():
    target = [torch.tensor([[3.0, 4.0]]), torch.tensor([[0.05]])]
    assert scaled_distance_of_each(target, target).item() == 0
    nothing = [torch.zeros_like(one) for one in target]
    assert scaled_distance_of_each(nothing, target).item() == pytest.approx(1)
    small_wrong = [target[0], torch.zeros(1, 1)]
    by_hand = 0.05**1.5 / (5**1.5 + 0.05**1.5)
    assert scaled_distance_of_each(small_wrong, target).item() == pytest.approx(by_hand, rel=1e-5)
    assert by_hand > 0.05**2 / (5**2 + 0.05**2)


def test_scaled_distance_bears_a_tensor_that_vanished():
    target = [torch.ones(1, 3), torch.zeros(1, 2)]
    found = [torch.ones(1, 3).requires_grad_(), torch.zeros(1, 2).requires_grad_()]
    scaled_distance_of_each(found, target).sum().backward()
    assert all(torch.isfinite(one.grad).all() for one in found)


def test_total_variation_against_a_slow_loop():
    images = torch.rand(2, 2, 4, 5, generator=torch.Generator().manual_seed(0))
    for image, found in zip(images, total_variation_of_each(images).tolist(), strict=True):
        dx = [
            abs(image[0 + c, y, x + 1] - image[c, y, x])
            for c in range(2)
            for y in range(4)
            for x in range(4)
        ]
        dy = [
            abs(image[c, y + 1, x] - image[c, y, x])
            for c in range(2)
            for y in range(3)
            for x in range(5)
        ]
        expected = sum(dx) / len(dx) + sum(dy) / len(dy)
        assert found == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 1, 5), (2, 3, 5, 1), (1, 1, 1, 1)])
def test_a_picture_one_pixel_high_or_wide_varies_along_the_other_side_alone(shape):
    images = torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    images.requires_grad_(True)
    sides = [images.diff(dim=d).abs().flatten(1) for d in (-1, -2)]
    expected = sum((side.mean(1) for side in sides if side.numel()), torch.zeros(len(images)))
    found = total_variation_of_each(images)
    assert found.tolist() == pytest.approx(expected.tolist())
    (slope,) = torch.autograd.grad(found.sum(), images)
    wanted = torch.zeros_like(images)
    if any(side.numel() for side in sides):
        (wanted,) = torch.autograd.grad(expected.sum(), images)
    assert torch.allclose(slope, wanted)


def test_the_slope_of_total_variation_is_that_of_automatic_differentiation():
    images = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    images[0, 0, 1:3, 1:3] = 0.5  # flat, where the slope of an absolute value is 0
    images.requires_grad_(True)
    weights = torch.tensor([1.0, -2.0], dtype=torch.float64)
    dx, dy = images.diff(dim=-1).abs(), images.diff(dim=-2).abs()
    expected = dx.flatten(1).mean(1) + dy.flatten(1).mean(1)
    slopes = [
        torch.autograd.grad((weights * value).sum(), images)[0]
        for value in (total_variation_of_each(images), expected)
    ]
    assert torch.allclose(*slopes, rtol=1e-12)


def test_batch_norm_distance_adds_the_lengths_of_all_layers():
    known = BatchNormStatistics(
        means=(torch.zeros(2), torch.zeros(1)), variances=(torch.ones(2), torch.ones(1))
    )
    found = [
        (torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 1.0]])),
        (torch.tensor([[0.0]]), torch.tensor([[3.0]])),
    ]
    assert batch_norm_distance(found, [known]).item() == pytest.approx(5 + 2, abs=1e-4)


def test_statistics_of_a_network_without_batch_norm_add_nothing(monkeypatch):
    """Not even zeros, which would have to be made on the network's device."""
    model = target(CNN4(width=4), size=(32, 32))
    image = torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(0))
    seen = observe_gradient(model, image, 1, NoDefence(), torch.Generator()).observation

    def never(*asked):
        raise AssertionError(asked)

    monkeypatch.setattr(first_order, "batch_norm_distance", never)
    without, drawn = (
        GradAttack(steps=2, statistics=one)(seen, rng=torch.Generator().manual_seed(0))
        for one in ("none", "running")
    )
    assert torch.equal(drawn.image, without.image)
    assert drawn.objective == without.objective


def test_parameter_gradients_equal_backward():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    images, labels = torch.ones(2, 3, 2, 2), torch.tensor([0, 2])
    nn.functional.cross_entropy(model(images), labels).backward()
    found = parameter_gradients(model, images, labels)
    for gradient, parameter in zip(found, model.parameters(), strict=True):
        assert torch.allclose(gradient, parameter.grad)
