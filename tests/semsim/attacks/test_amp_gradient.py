"""An attack in bfloat16: the same pictures as in float32, and float32 where the slopes part."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from made_linear import seeded, target

from semsim import metrics
from semsim.attacks.descent.first_order import RoughSlope, slope_of
from semsim.attacks.gradattack import GradAttack
from semsim.attacks.invgrad import InvGrad
from semsim.attacks.observe import observe_gradient
from semsim.base.errors import SettingsError
from semsim.datasets.symbols import Symbols
from semsim.defences.none import NoDefence
from semsim.targets.convnet import SmallCNN
from semsim.targets.lenet import CNN4

DATA = Symbols(train_per_class=1, test_per_class=1)("test").pick([0, 1])


@pytest.fixture(scope="module")
def seen():
    return seen_by(CNN4(width=8, activation="silu"))


@pytest.fixture(scope="module")
def normed():
    return seen_by(SmallCNN(width=4, activation="silu"))


def seen_by(architecture):
    model = target(architecture, DATA.classes, size=(32, 32))
    rng = torch.Generator().manual_seed(0)
    pairs = zip(DATA.images, DATA.labels.tolist(), strict=True)
    return [
        observe_gradient(model, image, label, NoDefence(), rng).observation
        for image, label in pairs
    ]


def psnr(attack, seen) -> torch.Tensor:
    found = torch.stack([one.image for one in attack.many(seen, rngs=seeded(len(seen)))])
    return metrics.psnr(found, DATA.images)


@pytest.mark.parametrize("attack", [InvGrad, GradAttack])
def test_pictures_are_as_good_as_in_float32(attack, seen):
    how = {"steps": 120, "tv": 2e-3, "start": "grey"}
    exact = psnr(attack(**how), seen)
    rough = psnr(attack(**how, mixed_precision=True), seen)
    assert not torch.equal(exact, rough)  # it was really computed otherwise
    grey = metrics.psnr(torch.full_like(DATA.images, 0.5), DATA.images)
    assert (exact > grey + 1).all()  # they show something, so that there is something to lose
    assert (exact - rough).abs().max() < 0.5  # dB


def test_images_of_a_network_with_batch_norm_are_attacked_together(normed):
    attack = InvGrad(steps=60, tv=2e-3)
    exact, rough = psnr(attack, normed), psnr(replace(attack, mixed_precision=True), normed)
    assert (exact - rough).abs().max() < 0.5  # dB


def test_the_slope_is_that_of_each_image_by_its_own_value():
    def objective(x):
        return (x * torch.tensor([1.0, 3.0]).view(-1, 1, 1, 1)).flatten(1).square().sum(1)

    x = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    values, slope = RoughSlope(objective)(x)
    torch.testing.assert_close(values, objective(x))
    torch.testing.assert_close(slope, 2 * torch.tensor([1.0, 9.0]).view(-1, 1, 1, 1) * x)


def weights() -> torch.Tensor:
    return torch.randn(12, 12, generator=torch.Generator().manual_seed(0))


def test_float32_takes_over_where_the_slopes_part():
    """Linear layers that cancel: their difference is lost in bfloat16, the rest is not."""
    w, calls = weights(), []

    def objective(x):
        calls.append(torch.is_autocast_enabled("cpu"))
        flat = x.flatten(1)
        gone = (F.linear(flat, 100 * w) - F.linear(flat, 100 * w + 0.01)).square().sum(1)
        share = 1.0 if len(calls) > 45 else 0.0
        return (1 - share) * F.linear(flat, w).square().sum(1) + share * gone

    rough, x = RoughSlope(objective), torch.rand(1, 3, 2, 2)
    for _ in range(80):
        rough(x)
    assert rough.exact_from in (40, 60)
    assert calls[0]
    assert not any(calls[-10:])


def test_an_attack_whose_first_step_would_turn_is_refused():
    w = weights()

    def objective(x):
        flat = x.flatten(1)
        return (F.linear(flat, 100 * w) - F.linear(flat, 100 * w + 0.01)).square().sum(1)

    with pytest.raises(SettingsError, match=r"first step: the cosine .* Attack without"):
        RoughSlope(objective)(torch.rand(1, 3, 2, 2))


def marked(x):
    return x[:, 0, 0, 0] > 0.5


def cancels(x):
    """Of marked images what bfloat16 loses, of others what it does not."""
    w, flat = weights(), x.flatten(1)
    gone = (F.linear(flat, 100 * w) - F.linear(flat, 100 * w + 0.01)).square().sum(1)
    return torch.where(marked(x), gone, F.linear(flat, w).square().sum(1))


def breaks(x):
    whole = F.linear(x.flatten(1), weights()).square().sum(1)
    return whole * torch.where(marked(x), torch.nan, 1.0)


def slope_after(objective, places):
    """The last of 30 slopes of two images, or of one; the first is marked from the fifth on."""
    rough = RoughSlope(objective)
    images = torch.rand(2, 3, 2, 2, generator=torch.Generator().manual_seed(0))
    for step in range(30):
        images[:, 0, 0, 0] = torch.tensor([0.9 if step >= 5 else 0.1, 0.1])
        _, slope = rough(images[places])
    return slope, slope_of(objective, images[places])[1], rough.exact_from


@pytest.mark.parametrize("objective", [cancels, breaks])
def test_an_image_s_slope_does_not_depend_on_its_company(objective):
    alone = [slope_after(objective, [place]) for place in range(2)]
    slope, exact, exact_from = slope_after(objective, [0, 1])
    assert [one[2] for one in alone] == [20, None]
    assert exact_from is None
    for true in (alone[0][0], exact[:1]):  # float32; in bfloat16 the slope is about 0
        torch.testing.assert_close(slope[:1], true, rtol=0.1, atol=1e-3, equal_nan=True)
    for found, true in [(slope[1], exact[1]), (alone[1][0][0], alone[1][1][0])]:
        assert 1e-4 < (found - true).norm() / true.norm() < 0.05  # bfloat16, as it is alone
