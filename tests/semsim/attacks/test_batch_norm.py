"""Statistics of batch norm layers, of networks where not every layer has them."""

import pytest
import torch
from torch import nn

from semsim.attacks import run_many
from semsim.attacks.batch_norm import (
    batch_norm_mode,
    moments_of_each,
    running_statistics,
    statistics_of,
)
from semsim.attacks.gradattack import GradAttack
from semsim.attacks.observe import assumptions, observe_gradient
from semsim.base.errors import SettingsError
from semsim.defences.none import NoDefence

IMAGES = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(1))


class Normalised(nn.Module):
    """Two batch norms of 4 channels, of which the first keeps no running statistics, and one more
    in a head that is not used in eval mode.
    """

    def __init__(self):
        super().__init__()
        self.first = nn.BatchNorm2d(4, track_running_stats=False)
        self.aside = nn.BatchNorm2d(4, affine=False)
        self.last = nn.BatchNorm2d(4)
        self.conv1, self.conv2 = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, stride=2)
        self.head = nn.Linear(36, 4)
        self.register_buffer("mean", torch.full((1, 3, 1, 1), 0.5))
        self.register_buffer("std", torch.full((1, 3, 1, 1), 0.25))
        self.last.running_mean.fill_(3.0)

    def forward(self, images):
        x = self.first(self.conv1((images - self.mean) / self.std)).tanh()
        if self.training:
            return self.aside(x)
        return self.head(self.last(self.conv2(x)).tanh().flatten(1))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Normalised().eval()


def test_an_images_statistics_stand_beside_the_running_ones_of_the_same_layers(model):
    known, own = running_statistics(model), statistics_of(model, IMAGES[:1], "eval")
    layers = (model.aside, model.last)
    for layer, mean, variance in zip(layers, known.means, known.variances, strict=True):
        assert torch.equal(mean, layer.running_mean)
        assert torch.equal(variance, layer.running_var)
    assert torch.equal(own.means[0], known.means[0])  # of what never runs nothing is told
    inputs = []
    model.last.register_forward_hook(lambda layer, given, made: inputs.append(given[0]))
    model(IMAGES[:1])
    assert torch.allclose(own.means[1], inputs[0].mean((0, 2, 3)))
    assert not torch.allclose(own.means[1], known.means[1])


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_no_images_moments_depend_on_its_company(mode, model):
    together = moments_of_each(model, IMAGES, mode)
    for place, image in enumerate(IMAGES.split(1)):
        for all_of_them, alone in zip(together, moments_of_each(model, image, mode), strict=True):
            for found, expected in zip(all_of_them, alone, strict=True):
                assert torch.allclose(found[place], expected[0], atol=1e-6)


@pytest.mark.parametrize("statistics", ["running", "leaked"])
def test_an_attack_on_many_is_that_on_each(statistics, model):
    attack = GradAttack(steps=10, signed=False, statistics=statistics, statistics_weight=0.1)
    seen = [
        observe_gradient(
            model, image, 1, NoDefence(), torch.Generator(), **assumptions(attack)
        ).observation
        for image in IMAGES
    ]
    found = run_many(attack, seen, rngs=[torch.Generator().manual_seed(n) for n in range(3)])
    for place, one in enumerate(seen):
        alone = attack(one, rng=torch.Generator().manual_seed(place))
        assert torch.allclose(found[place].image, alone.image, atol=1e-4)


class Flat(nn.Module):
    """Maps, and a vector of each image, both normalised."""

    def __init__(self):
        super().__init__()
        self.conv, self.maps = nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4)
        self.vectors, self.head = nn.BatchNorm1d(36), nn.Linear(36, 4)

    def forward(self, images):
        return self.head(self.vectors(self.maps(self.conv(images)).tanh().flatten(1)))


def test_in_a_batch_every_kind_of_batch_norm_is_as_in_training():
    torch.manual_seed(0)
    model = Flat().train()
    expected = model(IMAGES).detach()
    model.eval()
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad(), batch_norm_mode(model, "train", alone=False):
        assert torch.allclose(model(IMAGES), expected, atol=1e-6)
    assert not torch.allclose(model(IMAGES), expected, atol=1e-3)
    assert all(torch.equal(value, kept[name]) for name, value in model.state_dict().items())


def test_vectors_of_an_image_that_is_alone_have_no_statistics_of_their_own():
    model = Flat().eval()
    told = "BatchNorm1d, which has no statistics of one image"
    with pytest.raises(SettingsError, match=told), batch_norm_mode(model, "train"):
        pass
    with batch_norm_mode(model, "eval"):
        assert model(IMAGES[:1]).shape == (1, 4)
