"""Pieces of networks, as attacks need them."""

import pytest
import torch
from torch import nn

from semsim.attacks.fast_gradients import parameter_gradients
from semsim.targets.layers import HardSigmoid, overwrites_what_is_read, twice_differentiable
from semsim.targets.model import TargetModel
from semsim.targets.pretrained import Torchvision


def test_a_hard_sigmoid_is_that_of_torch():
    values = torch.linspace(-5, 5, 101, requires_grad=True)
    expected, found = nn.Hardsigmoid()(values), HardSigmoid()(values)
    assert torch.allclose(found, expected, rtol=0, atol=1e-7)
    slopes = [torch.autograd.grad(one.sum(), values)[0] for one in (expected, found)]
    assert torch.equal(*slopes)


def test_layers_are_changed_wherever_they_are():
    inner = nn.Sequential(nn.Hardsigmoid(), nn.ReLU(inplace=True))
    network = twice_differentiable(nn.Sequential(inner, nn.Hardsigmoid()))
    assert isinstance(network[0][0], HardSigmoid)
    assert isinstance(network[1], HardSigmoid)
    assert not network[0][1].inplace


class Residual(nn.Module):
    """A block that is added to what its own first layer may have overwritten."""

    def __init__(self, inplace):
        super().__init__()
        self.first, self.relu = nn.Conv2d(3, 3, 3, padding=1), nn.ReLU(inplace=inplace)
        self.second = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, images):
        features = self.first(images)
        return (self.second(self.relu(features)) + features).flatten(1)


def test_a_layer_that_overwrites_what_is_read_again_is_found():
    torch.manual_seed(0)
    images = torch.randn(1, 3, 8, 8)
    before = images.clone()
    network = Residual(inplace=True).train()
    assert overwrites_what_is_read(network, images)
    assert network.relu.inplace
    assert network.training
    assert not overwrites_what_is_read(Residual(inplace=False), images)
    harmless = nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(3, 4, 3), nn.Dropout(0.5, True))
    assert not overwrites_what_is_read(harmless, images)
    assert torch.equal(images, before)


@pytest.mark.parametrize("name", ["vit_b_32", "mobilenet_v3_small"])
def test_a_gradient_of_torchvisions_networks_has_a_gradient(name):
    torch.manual_seed(0)
    target = TargetModel(
        Torchvision(model=name), ["a", "b"], mean=[0.5] * 3, std=[0.3] * 3, size=(32, 32)
    ).eval()
    images = torch.rand(1, 3, 32, 32, requires_grad=True)
    shared = parameter_gradients(target, images, torch.tensor([1]))
    sum(one.square().sum() for one in shared).backward()
    assert images.grad.isfinite().all()
    assert images.grad.abs().sum() > 0
