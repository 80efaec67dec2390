"""Every network gives the features it promises."""

import pytest
import torch

from semsim.learning import BACKBONES


@pytest.mark.parametrize("small_stem", [True, False])
@pytest.mark.parametrize("name", BACKBONES)
def test_features_have_the_promised_width(name, small_stem):
    body, width = BACKBONES[name](small_stem)
    with torch.no_grad():
        assert body.eval()(torch.rand(2, 3, 32, 32)).shape == (2, width)


@pytest.mark.parametrize("name", BACKBONES)
def test_other_sizes_of_input_work(name):
    body, width = BACKBONES[name](False)
    with torch.no_grad():
        assert body.eval()(torch.rand(1, 3, 64, 64)).shape == (1, width)


def test_the_small_stem_keeps_the_resolution():
    for small_stem, side in ((True, 32), (False, 8)):
        body, _ = BACKBONES["resnet18"](small_stem)
        stem = torch.nn.Sequential(body.conv1, body.bn1, body.relu, body.maxpool)
        assert stem(torch.rand(1, 3, 32, 32)).shape[2:] == (side, side)


@pytest.mark.parametrize("name", ["resnet18", "lenet"])
def test_networks_start_from_scratch(name):
    made = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        made.append(torch.nn.utils.parameters_to_vector(BACKBONES[name](True)[0].parameters()))
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])
