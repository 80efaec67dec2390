"""The loss is the triplet loss, checked against a loop and against torch's."""

import pytest
import torch

from semsim.base.errors import DataError
from semsim.learning.loss import ContrastiveLoss, PooledLoss, TripletLoss, identity_loss


def features(n=16, d=32, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return [scale * torch.randn(n, d, generator=generator) for _ in range(3)]


def slow_loss(anchors, positives, negatives, margin):
    total = 0.0
    for a, p, n in zip(anchors.double(), positives.double(), negatives.double(), strict=True):
        d_plus = sum((x - y) ** 2 for x, y in zip(a, p, strict=True)) ** 0.5
        d_minus = sum((x - y) ** 2 for x, y in zip(a, n, strict=True)) ** 0.5
        total += max(float(d_plus - d_minus) + margin, 0.0)
    return total / len(anchors)


@pytest.mark.parametrize("margin", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 16, 40])
def test_equals_the_definition(n, margin):
    parts = features(n)
    expected = slow_loss(*parts, margin)
    assert TripletLoss(margin=margin)(*parts).item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_equals_torch_in_value_and_gradient(scale):
    ours = [part.requires_grad_() for part in features(40, scale=scale)]
    theirs = [part.requires_grad_() for part in features(40, scale=scale)]
    loss = TripletLoss(margin=1.0)(*ours)
    reference = torch.nn.TripletMarginLoss(margin=1.0, p=2)(*theirs)
    loss.backward()
    reference.backward()
    # torch adds 1e-6 to each coordinate's difference; that is all that may differ.
    torch.testing.assert_close(loss, reference, atol=1e-5, rtol=1e-5)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, atol=1e-5, rtol=1e-4)


def test_satisfied_triplets_count_as_zero_and_are_not_left_out():
    anchor = torch.zeros(2, 4)
    positive = torch.zeros(2, 4)
    negative = torch.tensor([[5.0, 0, 0, 0], [0.5, 0, 0, 0]])
    assert TripletLoss(margin=1.0)(anchor, positive, negative).item() == pytest.approx(0.25)


def test_features_are_not_normalised_behind_the_back():
    anchor, positive, negative = features()
    small = TripletLoss(margin=1.0)(anchor, positive, negative)
    large = TripletLoss(margin=1.0)(10 * anchor, 10 * positive, 10 * negative)
    assert large > 3 * small


def test_another_original_is_never_a_negative():
    # Rows far apart in everything but their own triplet: a loss over other pairs would be 0 or 1.
    offsets = 1000 * torch.arange(4.0)[:, None]
    anchor = offsets + torch.zeros(4, 2)
    positive = offsets + torch.tensor([3.0, 0.0])
    negative = offsets + torch.tensor([0.0, 1.0])
    assert TripletLoss(margin=1.0)(anchor, positive, negative).item() == pytest.approx(3.0)


def test_identical_images_give_a_finite_gradient():
    anchor = torch.ones(3, 5, requires_grad=True)
    TripletLoss()(anchor, anchor.clone(), anchor.clone()).backward()
    assert anchor.grad.isfinite().all()


def test_satisfied_contrastive_pairs_cost_nothing():
    anchor, positive = torch.zeros(2, 4), torch.zeros(2, 4)
    negative = torch.tensor([[5.0, 0, 0, 0], [0.25, 0, 0, 0]])
    loss = ContrastiveLoss(margin=1.0)(anchor, positive, negative)
    assert loss.item() == pytest.approx(0.75 / 2)


@pytest.mark.parametrize("loss", [TripletLoss, ContrastiveLoss, PooledLoss])
def test_a_batch_may_hold_one_triplet(loss):
    """The last one of an epoch does where triplets modulo the batch size is 1."""
    parts = [part.requires_grad_() for part in features(1)]
    plus, minus = (float((parts[0] - other).norm()) for other in parts[1:])
    expected = max(plus - minus + 9, 0) if loss is not ContrastiveLoss else plus + max(9 - minus, 0)
    for weights in (None, torch.tensor([0.5])):
        found = loss(margin=9.0)(*parts, weights)
        assert found.item() == pytest.approx(expected, rel=1e-5)
        found.backward()
        assert parts[0].grad.isfinite().all()


def test_pooled_loss_compares_every_recognisable_with_every_unrecognisable():
    # Each triplet is satisfied; the first original's negative is nearer than the second's positive.
    anchor = torch.zeros(2, 1)
    positive, negative = torch.tensor([[0.0], [5.0]]), torch.tensor([[2.0], [9.0]])
    parts = (anchor, positive, negative)
    assert TripletLoss(margin=1.0)(*parts).item() == 0
    assert PooledLoss(margin=1.0)(*parts).item() == pytest.approx((5 - 2 + 1) / 4)


def test_pooled_loss_of_one_triplet_is_the_triplet_loss():
    parts = [part[:1] for part in features()]
    torch.testing.assert_close(PooledLoss(margin=3.0)(*parts), TripletLoss(margin=3.0)(*parts))


@pytest.mark.parametrize("margin", [0.2, 3.0])
def test_pooled_loss_equals_the_definition(margin):
    anchors, positives, negatives = features(12)
    expected = sum(
        slow_loss(
            torch.stack([anchors[i]]), torch.stack([positives[i]]), torch.stack([shift]), margin
        )
        for i in range(12)
        for shift in anchors[i] + negatives - anchors
    )
    found = PooledLoss(margin=margin)(anchors, positives, negatives)
    assert found.item() == pytest.approx(expected / 144, abs=1e-4)


def test_a_triplet_without_weight_is_in_no_pair_of_the_pooled_loss():
    anchor, positive, negative = features(3)
    weights = torch.tensor([1.0, 0.0, 1.0])
    kept = [part[[0, 2]].clone() for part in (anchor, positive, negative)]
    positive[1] += 100
    loss = PooledLoss()(anchor, positive, negative, weights)
    torch.testing.assert_close(loss, PooledLoss()(*kept))


def test_pooled_loss_refuses_features_of_different_shapes():
    with pytest.raises(DataError, match="three times the same"):
        PooledLoss()(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(1, 3))


def test_a_triplet_without_weight_does_not_count():
    anchor, positive, negative = features(3)
    weights = torch.tensor([1.0, 0.0, 1.0])
    positive[1] += 100
    loss = TripletLoss()(anchor, positive, negative, weights)
    kept = [part[[0, 2]] for part in (anchor, positive, negative)]
    assert loss.item() == pytest.approx(TripletLoss()(*kept).item())


def test_an_original_is_at_no_distance_from_itself():
    anchor = torch.ones(3, 5, requires_grad=True)
    loss = identity_loss(anchor, anchor.clone())
    loss.backward()
    assert loss.item() == 0
    assert anchor.grad.isfinite().all()
    assert identity_loss(torch.zeros(2, 2), torch.tensor([[3.0, 4], [0, 1]])).item() == 3
