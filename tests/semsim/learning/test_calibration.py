"""The calibrated baseline: weights of pixels and structure fitted to what people said."""

import numpy as np
import pytest
import torch

from semsim.base.metric_spec import CALIBRATED
from semsim.learning.calibration import calibrate, fit, judged_shares
from semsim.learning.triplets import ImageIndex, learnable, take_stock
from semsim.metrics.calibrated import NAMES
from semsim.metrics.network import semsim_distance
from semsim.metrics.provenance import N_PAIRS, WEIGHT_OF


@pytest.fixture
def gaps():
    """Squared distances (40, B) of pairs, of another unit in each block."""
    draw = np.random.default_rng(0)
    return draw.gamma(3, size=(40, len(NAMES))) * [1e-3, 1.0, 50.0, 7.0]


def test_the_block_that_people_go_by_gains_and_none_falls_below_nothing(gaps):
    goes_by = gaps[:, 3]
    weights, unit = fit(gaps, (goes_by < np.median(goes_by)).astype(float))
    assert weights.argmax() == 3
    assert (weights >= 0).all()
    assert unit == pytest.approx(gaps.mean(axis=0))


def test_the_unit_of_a_block_does_not_count(gaps):
    seen = (gaps[:, 1] < np.median(gaps[:, 1])).astype(float)
    other, _ = fit(gaps * [5.0, 1e4, 1e-3, 1.0], seen)
    assert other == pytest.approx(fit(gaps, seen)[0], abs=1e-4)


def test_where_no_distance_tells_anything_all_blocks_count_alike(gaps):
    """People recognise what is far: a weight below 0 would say so, and there is none."""
    far = gaps.sum(axis=1, keepdims=True) * np.ones(len(NAMES))
    weights, _ = fit(far, (far[:, 0] > np.median(far[:, 0])).astype(float))
    assert weights == pytest.approx(np.ones(len(NAMES)))


def test_it_tells_apart_what_its_votes_do_and_says_how_much_each_block_counts(labels):
    usable = learnable(take_stock(labels), "majority")
    model, weights = calibrate(usable, "majority", 32)
    named = [weights[f"{WEIGHT_OF}{name}"] for name in NAMES]
    assert (weights[N_PAIRS], model.settings.backbone) == (len(labels), CALIBRATED)
    # On the toy study pixels point the wrong way and structure does not.
    assert max(named[2:]) > max(named[:2])
    assert list(model.parameters()) == []
    images = torch.rand(4, 3, 20, 20)
    assert (semsim_distance(model, images, images) == 0).all()
    again, same = calibrate(usable, "majority", 32)
    assert torch.equal(again.body.weights, model.body.weights)
    assert same == weights


def test_targets_are_the_majority_or_the_share_of_votes(labels):
    usable = learnable(take_stock(labels), "majority")
    pairs, targets = judged_shares(ImageIndex(usable), usable, "majority")
    assert len(pairs) == len(labels)
    assert set(targets) == {0.0, 1.0}
    usable = learnable(take_stock(labels), "votes")
    pairs, targets = judged_shares(ImageIndex(usable), usable, "votes")
    assert len(pairs) == len(labels)
    assert set(targets) == {0.2, 0.8}
