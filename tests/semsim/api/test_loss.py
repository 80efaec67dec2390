"""SemSim as a loss: reductions, gradients, and pictures that come nearer."""

import pytest
import torch
from helpers import ROOT

import semsim
from semsim.base.errors import DataError, SettingsError

DEMO = str(ROOT / "checkpoints" / "demo")


def images(n=3, seed=0):
    return torch.rand(n, 3, 32, 32, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("reduction", "expected"), [("mean", torch.mean), ("sum", torch.sum)])
def test_reductions_are_of_the_distances(reduction, expected):
    metric = semsim.SemSim.from_pretrained(DEMO)
    x, y = images(), images(seed=1)
    distances = semsim.SemSimLoss(metric, "none")(y, x)
    assert torch.equal(distances, metric(x, y))
    assert torch.equal(semsim.SemSimLoss(metric, reduction)(y, x), expected(distances))


def test_another_reduction_is_refused():
    with pytest.raises(SettingsError, match="reduction"):
        semsim.SemSimLoss(DEMO, "median")


def test_a_training_loop_makes_it_smaller_and_leaves_the_metric_alone():
    loss = semsim.SemSimLoss(DEMO)
    before = [value.clone() for value in loss.state_dict().values()]
    pixels = torch.nn.Parameter(torch.zeros(1, 3, 32, 32))
    optimiser = torch.optim.Adam([pixels, *loss.parameters()], lr=0.05)
    target, seen = images(1), []
    for _ in range(15):
        found = loss(pixels.sigmoid(), target)
        optimiser.zero_grad()
        found.backward()
        optimiser.step()
        seen.append(found.item())
    assert seen[-1] < 0.8 * seen[0]
    assert all(map(torch.equal, before, loss.state_dict().values()))


def test_pictures_out_of_range_are_refused():
    with pytest.raises(DataError, match=r"\[0, 1\]"):
        semsim.SemSimLoss(DEMO)(images() * 3, images())
