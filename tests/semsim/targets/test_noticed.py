"""Signs of a changed model: they show on one, and on ordinary networks they do not."""

import math

import pytest
import torch
import torch.nn.functional as F
from made_linear import target as made_target
from torch import nn

from semsim.base.registry import build
from semsim.datasets.symbols import Symbols
from semsim.defences.none import NoDefence
from semsim.targets import TARGETS
from semsim.targets.imprint import Imprinted
from semsim.targets.lenet import CNN4
from semsim.targets.noticed import d_snr, signs
from semsim.targets.train import train_target
from semsim.targets.train_settings import TrainSettings

ORDINARY = ["lenet", "cnn4", "cnn-small", "mlp", "resnet20-4", "cnn3"]


def pictures(count=8, size=32):
    found = Symbols(test_per_class=1, size=size)("test").pick(range(count))
    return found.images, torch.arange(count) % 5


def warned(model, **how):
    return [one.what.partition(",")[0] for one in signs(model, *pictures(**how)) if one.warns]


@pytest.mark.parametrize("name", ORDINARY)
def test_an_untrained_network_has_no_sign(name):
    assert warned(made_target(build(TARGETS, name), "abcde", size=(32, 32))) == []


def test_a_trained_network_has_no_sign():
    data = Symbols(train_per_class=20, size=16)("train")
    model = train_target(CNN4(width=8), data, NoDefence(), TrainSettings(epochs=6, lr=0.02))
    assert warned(model, size=16) == []


@pytest.mark.parametrize("network", ["cnn4", "mlp"])
def test_an_imprint_layer_is_noticed(network):
    model = made_target(Imprinted(network=network, bins=64), "abcde", size=(32, 32))
    found = signs(model, *pictures())
    assert [one.warns for one in found[:2]] == [True, True]
    assert found[0].value == "128 of 128 in body.0.rows"


def test_equal_rows_are_noticed_among_others_and_at_any_length():
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 100), nn.ReLU(), nn.Linear(100, 5))
    layer = model[1]
    with torch.no_grad():
        lengths = torch.linspace(0.5, 2, 20)
        layer.weight[10:90:4] = lengths[:, None] * layer.weight[0]
        layer.bias[10:90:4] = lengths * torch.linspace(-1, 1, 20)
        layer.weight[95:] = 0  # dead, not equal
    equal, steps, _ = signs(model, *pictures())
    assert equal.value == "21 of 95 in 1"  # with the one that they repeat
    assert equal.warns
    assert steps.warns


def test_biases_drawn_at_random_are_not_called_even():
    torch.manual_seed(0)
    layer = nn.Linear(3 * 32 * 32, 400)
    with torch.no_grad():
        layer.weight[:] = layer.weight[0]
        layer.bias.uniform_(-1, 1)
    model = nn.Sequential(nn.Flatten(), layer, nn.ReLU(), nn.Linear(400, 5))
    equal, steps, _ = signs(model, *pictures())
    assert equal.warns
    assert not steps.warns
    assert 2.5 < float(steps.value) < 3.5  # 3 for exponential steps


def test_d_snr_is_the_largest_ratio_over_pictures_and_weights():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=4), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 8 * 8, 5)
    )
    images, labels = pictures(5)
    each = [
        torch.autograd.grad(F.cross_entropy(model(image[None]), label[None]), model.parameters())
        for image, label in zip(images, labels, strict=True)
    ]
    ratios = {
        name: max(
            float(own[place].norm() / sum(o[place] for o in each if o is not own).norm())
            for own in each
        )
        for name, place in (("0.weight", 0), ("3.weight", 2))
    }
    best = max(ratios, key=ratios.get)
    ratio, where = d_snr(model, images, labels)
    assert ratio == pytest.approx(ratios[best], rel=1e-4)
    assert f"{where}.weight" == best


def test_a_model_that_switches_all_but_one_picture_off_stands_out():
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 8), nn.ReLU(), nn.Linear(8, 5))
    images, labels = pictures()
    shades = images.flatten(1).mean(1).sort().values
    with torch.no_grad():
        model[1].weight.fill_(1 / 3072)
        model[1].bias.fill_(-float(shades[-2:].mean()))
    assert d_snr(model, images, labels)[0] == math.inf
    *_, one = signs(model, images, labels)
    assert one.warns


def test_a_layer_without_a_gradient_has_no_d_snr():
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 5))
    with torch.no_grad():
        model[1].weight.zero_()
        model[1].bias.copy_(torch.tensor([1e9, 0, 0, 0, 0]))
    images, _ = pictures(2)
    assert d_snr(model, images, torch.zeros(2, dtype=torch.long)) == (0.0, "")
