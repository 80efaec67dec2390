import math
from dataclasses import replace

import pytest
import torch
from made_linear import LEAKING, Net, leak, target
from made_weights import trained_target
from torch import nn

from semsim.attacks.image_basis import cosine_waves, image_basis, opponent_colours
from semsim.attacks.prior import Prior, has_kinks
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.datasets.symbols import Symbols
from semsim.targets.convnet import SmallCNN
from semsim.targets.lenet import CNN4, LeNet

SIZE = (16, 16)


def model_of(architecture):
    return target(architecture, "abcdefgh", size=SIZE, std=0.3)


def seen_of(model, image, label=2):
    return leak(model, image, label)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def decibels(found, image):
    return -10 * math.log10((found.image - image).square().mean().item())


@pytest.fixture(scope="module")
def images():
    return Symbols(test_per_class=1, size=16)("test").images[:6]


@pytest.fixture(scope="module")
def smooth():
    return model_of(Net(LEAKING, nn.Tanh, bias=True))


@pytest.fixture(scope="module")
def kinked():
    return model_of(Net(LEAKING, nn.ReLU, bias=True))


@pytest.mark.parametrize("size", [1, 2, 7, 32])
def test_cosine_waves_are_orthonormal_and_equal_a_slow_loop(size):
    waves = cosine_waves(size)
    assert torch.allclose(waves @ waves.T, torch.eye(size, dtype=waves.dtype), atol=1e-12)
    for k in range(size):
        norm = math.sqrt((1 if k == 0 else 2) / size)
        for n in range(size):
            slow = norm * math.cos(math.pi * k * (2 * n + 1) / (2 * size))
            assert waves[k, n].item() == pytest.approx(slow, abs=1e-12)


def test_opponent_colours_are_orthonormal_and_grey_has_no_chroma():
    axes = opponent_colours(3)
    assert torch.allclose(axes @ axes.T, torch.eye(3, dtype=axes.dtype), atol=1e-12)
    assert torch.allclose(axes[1:].sum(dim=1), torch.zeros(2, dtype=axes.dtype), atol=1e-12)


@pytest.mark.parametrize("channels", [2, 4])
def test_other_than_grey_and_colour_pictures_are_refused(channels):
    with pytest.raises(SettingsError, match=f"1 or 3 channels; these have {channels}"):
        image_basis((channels, 8, 8), spread=0.25, decay=0.8, chroma=(0.3, 0.3))


@pytest.mark.parametrize("shape", [(3, 8, 12), (1, 5, 4)])
def test_coefficients_and_image_are_inverse_to_each_other(shape):
    basis = image_basis(shape, spread=0.25, decay=0.8, chroma=(0.4, 0.2))
    images = torch.rand(2, *shape, generator=rng(), dtype=torch.float64)
    assert torch.allclose(basis.image(basis.coefficients(images)), images, atol=1e-12)


def test_no_coefficients_are_the_grey_image_and_the_first_is_brightness():
    basis = image_basis((3, 8, 8), spread=0.25, decay=1.0, chroma=(0.3, 0.3))
    zero = torch.zeros(1, 3, 8, 8, dtype=torch.float64)
    assert torch.allclose(basis.image(zero), torch.full_like(zero, 0.5))
    zero[0, 0, 0, 0] = 1
    brighter = basis.image(zero)
    assert torch.allclose(brighter, brighter[0, 0, 0, 0].expand_as(brighter))
    # The grey axis is (1, 1, 1) / √3.
    assert brighter[0, 0, 0, 0].item() == pytest.approx(0.5 + 0.25 / math.sqrt(3))


def test_boxed_coefficients_are_those_of_the_nearest_image_in_the_box():
    basis = image_basis((3, 8, 12), spread=0.25, decay=0.8, chroma=(0.4, 0.2))
    images = 2 * torch.rand(2, 3, 8, 12, generator=rng(), dtype=torch.float64) - 0.5
    kept = basis.image(basis.boxed(basis.coefficients(images)))
    assert torch.allclose(kept, images.clamp(0, 1), atol=1e-12)
    assert torch.allclose(basis.image(basis.boxed(basis.coefficients(kept))), kept, atol=1e-12)


def test_amplitude_falls_with_frequency_and_with_chroma():
    amplitude = image_basis((3, 8, 8), spread=0.25, decay=1.0, chroma=(0.3, 0.2)).amplitude
    assert (amplitude[:, 0].diff() < 0).all()
    assert torch.equal(amplitude[0], amplitude[0].T)
    assert torch.allclose(amplitude[1], 0.3 * amplitude[0])
    assert torch.allclose(amplitude[2], 0.2 * amplitude[0])


def test_kinks_are_found_in_modules_and_in_functions(smooth, kinked):
    assert not has_kinks(smooth, (3, *SIZE))
    assert has_kinks(kinked, (3, *SIZE))
    pooled = model_of(SmallCNN(width=4, activation="tanh"))
    assert has_kinks(pooled, (3, *SIZE))  # by its max pooling

    class Inline(nn.Module):
        mean = torch.zeros(1, 3, 1, 1)

        def forward(self, images):
            return nn.functional.leaky_relu(images).flatten(1)

    assert has_kinks(Inline(), (3, *SIZE))


def test_recovers_images_from_a_smooth_net_beyond_what_eyes_can_tell(smooth, images):
    for image in images[:2]:
        found = Prior(steps=60)(seen_of(smooth, image), rng=rng())
        assert decibels(found, image) > 30
        assert found.residual < 1e-3 * found.grey_residual
        assert found.shift is None


def test_recovers_an_image_from_a_kinked_net_better_than_grey(kinked, images):
    seen, image = seen_of(kinked, images[4]), images[4]
    found = Prior(steps=60)(seen, rng=rng())
    grey = -10 * math.log10((image - 0.5).square().mean().item())
    assert decibels(found, image) > grey + 4
    assert found.residual < found.grey_residual


def test_a_lent_curvature_helps_where_units_are_wide_and_is_nothing_on_a_smooth_net(smooth, images):
    wide = model_of(CNN4())
    for place in (0, 3):
        seen, image = seen_of(wide, images[place]), images[place]
        plain, lent = (Prior(steps=60, curvature=c)(seen, rng=rng()) for c in (0.0, 0.1))
        assert decibels(lent, image) > decibels(plain, image) + 1
    seen = seen_of(smooth, images[0])
    plain, lent = (Prior(steps=5, curvature=c)(seen, rng=rng()).image for c in (0.0, 0.1))
    assert torch.equal(plain, lent)


def test_on_a_trained_kinked_net_the_descent_stays_in_the_range_of_pixels():
    data = Symbols(train_per_class=20, size=16)("train")
    trained = trained_target()
    for place in (0, 400):
        image = data.images[place]
        seen = seen_of(trained, image, int(data.labels[place]))
        free, boxed = (Prior(steps=60, boxed=b)(seen, rng=rng()) for b in (False, True))
        assert decibels(boxed, image) > decibels(free, image) + 3
        assert boxed.residual < free.residual / 2


def test_auto_is_what_the_model_asks_for(smooth, images):
    seen = seen_of(smooth, images[0])
    auto = Prior(steps=5)(seen, rng=rng())
    assert torch.equal(Prior(steps=5, activation="smooth")(seen, rng=rng()).image, auto.image)
    assert not torch.equal(Prior(steps=5, activation="kinked")(seen, rng=rng()).image, auto.image)


@pytest.mark.parametrize("name", ["smooth", "kinked"])
def test_divergence_is_a_failure_that_says_why(name, images, request):
    seen = seen_of(request.getfixturevalue(name), images[0])
    broken = replace(seen, gradients=tuple(g * math.inf for g in seen.gradients))
    with pytest.raises(AttackFailedError, match="objective became"):
        Prior(steps=4)(broken, rng=rng())


def test_an_unknown_label_is_refused_or_inferred(smooth, images):
    unlabelled = replace(seen_of(smooth, images[0]), label=None)
    with pytest.raises(AttackFailedError, match="label"):
        Prior(steps=2)(unlabelled, rng=rng())
    inferred = Prior(steps=2, label="inferred")(unlabelled, rng=rng())
    assert torch.equal(inferred.image, Prior(steps=2)(seen_of(smooth, images[0]), rng=rng()).image)


def test_a_sigmoid_network_is_inverted_from_its_usual_start(images):
    """As `targets.lenet.start_uniform` says."""
    usual = model_of(LeNet())
    found = Prior(steps=100)(seen_of(usual, images[0]), rng=rng())
    assert decibels(found, images[0]) > 40
