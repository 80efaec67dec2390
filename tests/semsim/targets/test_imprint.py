"""The target imprint: thresholds come from auxiliary pictures, and training leaves them alone."""

from statistics import NormalDist

import pytest
import torch

from semsim.base.registry import build
from semsim.datasets.symbols import Symbols
from semsim.defences import DEFENCES
from semsim.targets.imprint import Imprinted
from semsim.targets.train import train_target
from semsim.targets.train_settings import TrainSettings


def trained(defence="none", **settings):
    data = Symbols(train_per_class=2, size=16)("train")
    how = TrainSettings(epochs=1, weight_decay=0.01)
    made = Imprinted(network="lenet", bins=8, **settings)
    return data, train_target(made, data, build(DEFENCES, defence), how)


def test_each_bin_holds_as_many_of_the_training_pictures():
    data, model = trained()
    normal = (data.images - model.mean) / model.std
    places = torch.bucketize(normal.flatten(1).mean(1), model.body[0].thresholds)
    counts = torch.bincount(places, minlength=9)
    assert counts[0] == 0
    assert counts[1:].max() - counts[1:].min() <= 2


@pytest.mark.parametrize(
    ("defence", "settings"), [("none", {"auxiliary": "normal"}), ("dp-sgd", {})]
)
def test_a_normal_distribution_stands_in_where_asked_and_in_private_training(defence, settings):
    _, model = trained(defence, deviation=0.4, **settings)
    quarters = [NormalDist(0, 0.4).inv_cdf(share) for share in (0.25, 0.5, 0.75)]
    assert model.body[0].thresholds[[2, 4, 6]].tolist() == pytest.approx(quarters, abs=1e-6)


@pytest.mark.parametrize("defence", ["none", "noise", "dp-sgd"])
def test_training_leaves_the_rows_as_they_were_planted(defence):
    name = {"noise": "gradient-noise"}.get(defence, defence)
    _, model = trained(name)
    layer = model.body[0]
    rows = layer.rows.weight
    assert torch.equal(rows, rows[:1, :1].expand_as(rows))
    thresholds = -layer.rows.bias / (rows[0, 0] * rows.shape[1])
    assert torch.allclose(thresholds, layer.thresholds.repeat(2), rtol=1e-4, atol=1e-5)
