import math
from dataclasses import replace

import pytest
import torch
from made_linear import CLOSED, FIRST_OPEN, SECOND_OPEN, leak, net, picture
from torch import nn

from semsim.attacks.linear.copa_prior import CopaPrior
from semsim.attacks.linear.rgap import RGap
from semsim.base.errors import SettingsError
from semsim.datasets.symbols import Symbols

SIZE = (16, 16)
OPEN = {"first": FIRST_OPEN, "second": SECOND_OPEN}


@pytest.fixture(scope="module")
def image():
    return Symbols(test_per_class=1, size=16)("test").images[4].double()


def decibels(found, image):
    return -10 * math.log10((found.image.clamp(0, 1) - image).square().mean().item())


@pytest.mark.parametrize("hidden", OPEN)
def test_it_sees_more_than_least_norm_and_grey_where_layers_hide(hidden, image):
    seen = leak(net(OPEN[hidden], size=SIZE, seed=2), image)
    found = CopaPrior().inversion(seen)
    assert found.solver == "prior"
    grey = replace(found, image=torch.full_like(image, 0.5))
    assert decibels(found, image) > decibels(RGap().inversion(seen), image) + 3
    assert decibels(found, image) > decibels(grey, image) + 3
    assert found.residual < 1e-2
    assert len(found.residuals) == 2


def test_leaky_relu_does_not_blow_up(image):
    seen = leak(net(SECOND_OPEN, nn.LeakyReLU, size=SIZE), image)
    found = CopaPrior().inversion(seen)
    assert not found.blew_up
    assert RGap().inversion(seen).blew_up


def test_what_nothing_hides_is_found_by_the_recursion():
    seen = leak(net(CLOSED, seed=2), picture())
    found = CopaPrior().inversion(seen)
    assert found.solver == "recursion"
    assert torch.equal(found.image, RGap().inversion(seen).image)


def test_disturbed_gradients_are_left_to_the_prior():
    image = picture()
    seen = leak(net(CLOSED, seed=2), image)
    rng = torch.Generator().manual_seed(0)
    noisy = tuple(
        g + 0.05 * g.std() * torch.randn(g.shape, generator=rng, dtype=g.dtype)
        for g in seen.gradients
    )
    found = CopaPrior(noise=0.05).inversion(replace(seen, gradients=noisy))
    assert found.solver == "prior"
    assert not found.blew_up


def test_wrong_settings_are_refused():
    with pytest.raises(SettingsError, match="solver"):
        CopaPrior(solver="exact")
    with pytest.raises(SettingsError, match="noise"):
        CopaPrior(noise=0.0)
