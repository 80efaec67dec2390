"""SemSim's losses against torch's, against loops, and against numerical gradients."""

from dataclasses import fields
from inspect import signature

import numpy as np
import pytest
import torch
from pytorch_metric_learning import distances, losses
from sklearn.metrics import roc_auc_score

from semsim.base.errors import DataError
from semsim.learning.diagnostics import auc
from semsim.learning.loss import LOSSES, ContrastiveLoss, TripletLoss


def features(n=40, d=512, seed=0, scale=1.0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return [scale * torch.randn(n, d, generator=generator, dtype=dtype) for _ in range(3)]


def around_a_point(norm, n=64, d=512):
    """Features of that norm which differ by about a tenth, as where a training nearly collapsed."""
    generator = torch.Generator().manual_seed(1)
    point = norm * torch.nn.functional.normalize(torch.randn(1, d, generator=generator))
    return [point + 0.005 * torch.randn(n, d, generator=generator) for _ in range(3)]


def value_and_gradients(loss, parts):
    parts = [part.clone().requires_grad_() for part in parts]
    value = loss(*parts)
    value.backward()
    return value.detach(), [part.grad for part in parts]


@pytest.mark.parametrize("norm", [1.0, 10.0, 30.0, 100.0])
def test_equals_torch_where_features_are_long_and_distances_small(norm):
    parts = around_a_point(norm)
    reference = torch.nn.TripletMarginLoss(margin=1.0, p=2, eps=0.0)
    expected, slopes = value_and_gradients(reference, [part.double() for part in parts])
    found, ours = value_and_gradients(TripletLoss(margin=1.0), parts)
    assert found.item() == pytest.approx(expected.item(), abs=1e-5)
    for mine, other in zip(ours, slopes, strict=True):
        # Differences of numbers of this size in single precision.
        torch.testing.assert_close(mine.double(), other, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_finite_differences(name):
    loss = LOSSES[name](margin=1.0)
    parts = [p.requires_grad_() for p in features(5, 3, dtype=torch.float64)]
    assert torch.autograd.gradcheck(loss, parts)


def test_weights_are_those_of_a_loop():
    parts = features(7)
    weights = torch.tensor([1.0, 0.2, 0.4, 0.0, 0.6, 1.0, 0.8])
    rows = [tuple(part[i : i + 1] for part in parts) for i in range(7)]
    each = [torch.nn.TripletMarginLoss(margin=1.0, eps=0.0)(*row).item() for row in rows]
    found = TripletLoss(margin=1.0)(*parts, weights)
    assert found.item() == pytest.approx(np.average(each, weights=weights), abs=1e-5)


@pytest.mark.parametrize("scale", [0.02, 0.2])
def test_contrastive_is_the_mean_of_both_terms(scale):
    a, p, n = features(scale=scale)
    near, far = (torch.linalg.vector_norm(a - other, dim=1) for other in (p, n))
    expected = (near + (1.0 - far).clamp_min(0)).mean()
    assert ContrastiveLoss(margin=1.0)(a, p, n).item() == pytest.approx(expected.item(), abs=1e-5)


# Ways of calling pytorch-metric-learning that give another number or none.
def wrong_ways(parts):
    a, p, n = parts
    row = torch.arange(len(a))
    pairs = {"indices_tuple": (row, row, row + len(a)), "ref_emb": torch.cat([p, n])}
    plain = distances.LpDistance(normalize_embeddings=False)
    kinds = torch.cat([2 * row, 2 * row, 2 * row + 1])
    return {
        "all defaults": losses.TripletMarginLoss()(a, **pairs),
        "default reducer": losses.TripletMarginLoss(margin=1.0, distance=plain)(a, **pairs),
        "default distance": losses.TripletMarginLoss(margin=1.0)(a, **pairs),
        "labels": losses.TripletMarginLoss(margin=1.0, distance=plain)(torch.cat(parts), kinds),
        "swap that is not done": losses.TripletMarginLoss(margin=1.0, swap=True)(a, **pairs),
        "no triplet": losses.TripletMarginLoss(margin=1.0)(
            a, indices_tuple=(row[:0],) * 3, ref_emb=pairs["ref_emb"]
        ),
    }


def test_no_wrong_way_of_calling_the_library_gives_our_number():
    parts = features(16)  # of which some triplets are satisfied
    right = TripletLoss(margin=1.0)(*parts)
    for name, value in wrong_ways(parts).items():
        assert abs(value - right) > 1e-2, name


@pytest.mark.parametrize("name", LOSSES)
def test_the_wrong_ways_cannot_be_asked_for(name):
    loss = LOSSES[name]
    assert [field.name for field in fields(loss)] == ["margin"]  # no swap, reducer or distance
    asked = [*signature(loss.__call__).parameters][1:]
    assert asked == ["anchors", "positives", "negatives", "weights"]  # no labels, no indices
    empty = [part[:0] for part in features(2, 4)]
    with pytest.raises(DataError):
        loss()(*empty)  # the library's zero would look like success
    a, p, n = features(3, 4)
    with pytest.raises(DataError):
        loss()(a, p[:2], n)
    with pytest.raises(DataError):
        loss()(a, p, n, torch.tensor([1.0, -1.0, 1.0]))


def test_half_precision_is_computed_in_single():
    halves = [part.half() for part in features(8, 64)]
    exact = TripletLoss()(*(part.float() for part in halves))
    assert TripletLoss()(*halves).item() == exact.item()


@pytest.mark.parametrize("seed", range(3))
def test_auc_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    away, recognisable = rng.integers(0, 6, 40) / 4, rng.random(40) < 0.4
    expected = roc_auc_score(recognisable, -away)
    assert auc(torch.from_numpy(away), recognisable) == pytest.approx(expected, abs=1e-12)
