"""Imprint: pictures alone in a bin of brightness come back exactly, others as not separated."""

import numpy as np
import pytest
import torch
from made_linear import seeded
from made_linear import target as made_target
from torch import nn

import semsim
from semsim.attacks.descent import attack_updates
from semsim.attacks.linear.imprint import Imprint, expected
from semsim.attacks.observe import BatchGradient, Update, assigned, observe_round
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.base.registry import build
from semsim.defences import DEFENCES
from semsim.targets import imprint
from semsim.targets.imprint import Imprinted
from semsim.targets.lenet import CNN4
from semsim.targets.mlp import MLP
from semsim.types import Reconstruction

SIZE = (8, 8)


def model(network="lenet", bins=32, **settings):
    made = Imprinted(network=network, bins=bins, deviation=0.6, **settings)
    return made_target(made, "abcde", size=SIZE, std=0.25)


def drawn(count, seed=0):
    """Slopes with noise whose brightness, normalised, is about normal with deviation 0.6."""
    rng = torch.Generator().manual_seed(seed)
    shades = 0.5 + 0.15 * torch.randn(count, 1, 1, 1, generator=rng)
    slopes = 0.2 * torch.randn(count, 3, 1, 1, generator=rng) * torch.linspace(-1, 1, SIZE[1])
    noise = 0.2 * (torch.rand(count, 3, *SIZE, generator=rng) - 0.5)
    return (shades + slopes + noise).clamp(0, 1)


def seen_of(target, images, *, sharing=None, defence=("none", {})):
    shared = sharing or BatchGradient(batch=len(images))
    labels = torch.arange(len(images)) % 5
    shield = build(DEFENCES, *defence)
    return observe_round(target, images, labels, shared, shield, seeded(len(images))).observation


def attacked(seen, **settings):
    found = attack_updates(Imprint(**settings), [seen], rngs=seeded(seen.pictures))
    assert len(found) == seen.pictures
    good = [one for one in found if isinstance(one, Reconstruction)]
    return good, [one for one in found if isinstance(one, AttackFailedError)]


def alone(target, images):
    """Pictures with no other between the same two thresholds, from the pictures themselves."""
    shades = ((images - 0.5) / 0.25).flatten(1).mean(1)
    bins = np.searchsorted(target.body[0].thresholds.numpy(), shades.numpy())
    return images[[int((bins == own).sum()) == 1 for own in bins]]


def matched(found, originals):
    """Largest difference of a pixel between each original and its reconstruction."""
    made = torch.stack([one.image for one in found])
    return float((made[assigned(made, originals)] - originals).abs().max())


@pytest.mark.parametrize("network", ["lenet", "cnn4", "cnn-small", "mlp"])
@pytest.mark.parametrize("seed", range(3))
def test_pictures_alone_in_a_bin_come_back_exactly_and_no_others(network, seed):
    target, images = model(network), drawn(16, seed)
    single = alone(target, images)
    assert 0 < len(single) < 16
    good, failed = attacked(seen_of(target, images))
    assert len(good) == len(single)
    assert matched(good, single) < 2e-3
    for one in good:
        assert one.residual < 1e-3 < 0.05 < one.grey_residual
    assert f"{len(single)} of 16 pictures are alone in a bin" in str(failed[0])


def test_pictures_of_one_bin_are_not_separated_and_none_is_invented():
    target = model(bins=2)
    good, failed = attacked(seen_of(target, 0.6 + 0.3 * drawn(4)))
    assert good == []
    assert "Not separated: 0 of 4 pictures" in str(failed[0])
    assert "1 bins hold several" in str(failed[0])


def test_the_expected_count_is_that_of_drawn_bins():
    rng = np.random.default_rng(0)
    bins = rng.integers(256, size=(4000, 64))
    counts = np.stack([np.bincount(one, minlength=256) for one in bins])
    single = (counts == 1).sum(1)
    error = single.std() / len(single) ** 0.5
    assert abs(single.mean() - expected(64, 256)) < 3 * error
    assert expected(1, 256) == 1


def test_a_step_of_training_gives_the_same_pictures_away():
    target, images = model(), drawn(8, 5)
    seen = seen_of(target, images, sharing=Update(steps=1, batch=8, lr=0.1))
    good, _ = attacked(seen, apart=1e-2)  # weights are rounded
    single = alone(target, images)
    assert len(good) == len(single)
    assert matched(good, single) < 0.05


def test_of_several_steps_each_picture_comes_back_once_at_most():
    images = drawn(8, 5)
    good, _ = attacked(seen_of(model(), images, sharing=Update(steps=5, batch=8, lr=0.05)))
    assert len(good) >= 4
    nearest = [(images - one.image).abs().amax((1, 2, 3)).min(0) for one in good]
    assert max(float(one.values) for one in nearest) < 5e-3
    assert len({int(one.indices) for one in nearest}) == len(good)


def test_pictures_of_one_class_mixed_alike_by_the_network_are_not_taken_for_one():
    """LeNet with sigmoids that was never trained hardly looks at a picture."""
    target = model("lenet")
    for seed in range(20):
        images = drawn(24, seed)
        good, _ = attacked(seen_of(target, images))
        assert len(good) == len(alone(target, images))
        assert matched(good, alone(target, images)) < 5e-3


@pytest.mark.parametrize("defence", ["gradient-noise", "dp-sgd"])
def test_a_noised_gradient_is_a_failure_and_no_picture(defence):
    good, failed = attacked(seen_of(model(), drawn(8), defence=(defence, {})))
    assert good == []
    assert "of 8 pictures are alone" in str(failed[0])


@pytest.mark.parametrize("network", [CNN4(), MLP(width=20, depth=3)], ids=["conv", "linear"])
def test_a_network_without_the_layer_is_refused(network):
    target = made_target(network, "abcde", size=SIZE)
    with pytest.raises(SettingsError, match="Imprint works on a network whose first layer"):
        attacked(seen_of(target, drawn(2)))


def test_one_picture_is_attacked_through_any_network_behind_the_layer():
    torch.manual_seed(0)
    net = nn.Sequential(imprint.Imprint(3, SIZE, 16), nn.Flatten(), nn.Linear(192, 4))
    image = drawn(1)[0]
    found = semsim.attack(net, image, 1, "imprint")
    assert (found.image - image).abs().max() < 1e-4
