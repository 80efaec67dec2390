"""The slope of a last layer without a bias: which factor, and which class."""

from dataclasses import replace

import pytest
import torch
from made_linear import CLOSED, leak, net, picture
from torch import nn

from semsim.attacks.linear.chain import chain_of
from semsim.attacks.linear.outcome import label_of_seen
from semsim.attacks.linear.recursion import last_slope
from semsim.attacks.linear.rgap import RGap
from semsim.base.errors import AttackFailedError


def without_head_bias(activation=nn.Tanh, *, classes=5, bias=False, seed=0):
    model = net(CLOSED, activation, bias=bias, seed=seed)
    model.head = nn.Linear(model.head.in_features, classes, bias=False).double()
    rng = torch.Generator().manual_seed(seed)
    nn.init.uniform_(model.head.weight, -0.5, 0.5, generator=rng)
    return model


def true_slope(model, image, label):
    return model(image[None]).softmax(1) - torch.eye(model.head.out_features)[label]


@pytest.mark.parametrize("seed", range(4))
def test_a_class_not_told_is_the_solved_one_where_features_change_sign(seed):
    seen = replace(leak(without_head_bias(seed=seed), picture(), label=seed), label=None)
    assert label_of_seen(seen) == seed
    found = RGap()(seen, rng=torch.Generator())
    assert found.residual < 1e-12 < 0.5 < found.grey_residual


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("activation", [nn.Tanh, nn.Sigmoid, nn.LeakyReLU])
def test_the_factor_is_found_to_the_last_digits(activation, seed):
    model = without_head_bias(activation, classes=10, seed=seed)
    found = last_slope(chain_of(leak(model, picture(seed=seed), label=seed)), seed)
    true = true_slope(model, picture(seed=seed), seed).detach()
    assert float((found - true).norm() / true.norm()) < 1e-13


CASES = [(nn.Tanh, False), (nn.Tanh, True), (nn.Sigmoid, False), (nn.LeakyReLU, True)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("activation", "bias"), CASES)
def test_with_two_classes_the_layer_before_decides_between_factors(activation, bias, seed):
    model = without_head_bias(activation, classes=2, bias=bias, seed=seed)
    seen = leak(model, picture(seed=seed), label=seed % 2)
    found = last_slope(chain_of(seen), seen.label)
    assert torch.allclose(found, true_slope(model, picture(seed=seed), seed % 2), rtol=1e-5)
    if bias or activation is nn.Sigmoid:  # else the negative is as good, with the other class
        assert torch.equal(last_slope(chain_of(seen), None), found)


def test_two_factors_close_together_are_told_apart_in_float32_too():
    model = without_head_bias(nn.Sigmoid, classes=2, seed=244)  # the other is 2.5% off
    seen = leak(model.float(), picture().float(), label=1)
    found = last_slope(chain_of(seen), 1)
    assert torch.allclose(found, true_slope(model, picture().float(), 1).double(), rtol=1e-3)


def test_what_nothing_decides_is_said_to_be_ambiguous():
    odd = without_head_bias(nn.Tanh, classes=2)
    with pytest.raises(AttackFailedError, match="ambiguous"):
        RGap().inversion(replace(leak(odd, picture()), label=None))
    alone = net([], size=(4, 4))
    alone.head = nn.Linear(48, 2, bias=False).double()
    sure = int(alone(picture((4, 4))[None]).argmax())
    with pytest.raises(AttackFailedError, match="ambiguous"):
        RGap().inversion(leak(alone, picture((4, 4)), label=sure))
