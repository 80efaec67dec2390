from dataclasses import replace

import pytest
import torch
from made_linear import CLOSED, FIRST_OPEN, SECOND_OPEN, leak, net, picture
from torch import nn

from semsim.attacks.linear.rgap import RGap
from semsim.papers.copa import attempt, cnn3_model


def error(found, image):
    return float((found.image - image).square().mean())


@pytest.mark.parametrize("activation", ["tanh", "leaky-relu"])
def test_variant_3_gives_its_image_away_exactly(activation):
    image = picture((32, 32))
    found = RGap().inversion(attempt(cnn3_model(3, activation, 1), image, 7).seen)
    assert error(found, image) <= 1e-12
    assert found.residual < 1e-6
    assert not found.blew_up


@pytest.mark.parametrize("activation", [nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.Identity])
def test_gradients_in_single_precision_are_enough_where_nothing_is_hidden(activation):
    model, image = net(CLOSED, activation, seed=2, std=0.25).float(), picture().float()
    found = RGap()(leak(model, image), rng=torch.Generator())
    assert error(found, image) < 1e-6
    assert found.residual < 1e-4 * found.grey_residual


class OnApple(torch.Tensor):
    """As Apple's GPUs have it: no float64, and any other device may be gone to."""

    device = torch.device("mps")

    def to(self, where):
        if where == torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype.")
        return self.as_subclass(torch.Tensor)

    def double(self):
        return self.to(torch.float64)


def test_gradients_on_a_device_without_float64_are_solved_elsewhere():
    seen = leak(net(CLOSED, std=0.25).float(), picture().float())
    found = RGap().inversion(seen)
    apple = tuple(gradient.as_subclass(OnApple) for gradient in seen.gradients)
    again = RGap().inversion(replace(seen, gradients=apple))
    assert torch.equal(again.image, found.image)


def test_a_hidden_image_is_explained_but_not_found():
    image = picture()
    seen = leak(net(FIRST_OPEN), image)
    found = RGap().inversion(seen)
    assert found.residual < 1e-9
    assert error(found, image) > 0.01
    # The solution of least norm is no farther from grey than the image.
    assert (found.image - 0.5).norm() < (image - 0.5).norm()


def test_a_guess_that_leaky_relu_blows_up_is_flagged():
    found = RGap().inversion(leak(net(SECOND_OPEN, nn.LeakyReLU), picture()))
    assert found.blew_up


def test_no_label_is_needed_and_denoising_is_an_option():
    seen = leak(net(CLOSED), picture())
    plain = RGap().inversion(seen).image
    assert torch.equal(RGap().inversion(replace(seen, label=None)).image, plain)
    assert RGap(denoise=0.15).inversion(seen).image.std() < 0.7 * plain.std()
