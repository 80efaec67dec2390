import math

import pytest
import torch

from semsim.base.errors import SettingsError
from semsim.defences import make
from semsim.defences.accountant import epsilon
from semsim.defences.base import of_one
from semsim.defences.dp_sgd import DpSgd

RNG = torch.Generator().manual_seed(0)
EACH = (torch.randn(6, 4, 3, generator=RNG), torch.randn(6, 4, generator=RNG))


def length(gradients):
    return torch.cat([gradient.flatten() for gradient in gradients]).norm().item()


def test_each_image_is_cut_to_the_norm_over_all_parameters_and_short_ones_are_left():
    norms = [length([part[place] for part in EACH]) for place in range(6)]
    clip = sorted(norms)[3]  # two are longer
    wanted = [sum(part[place] * min(1, clip / norms[place]) for place in range(6)) for part in EACH]
    for found, one in zip(DpSgd(clip=clip).clipped_sum(EACH), wanted, strict=True):
        assert torch.allclose(found, one, atol=1e-6)


def test_one_image_more_moves_the_sum_by_the_clip_at_most():
    for private in (DpSgd(clip=0.3), DpSgd(clip=0.3, noise=0)):
        with_it, without = (private.clipped_sum([part[:n] for part in EACH]) for n in (6, 5))
        moved = [a - b for a, b in zip(with_it, without, strict=True)]
        assert length(moved) == pytest.approx(0.3, rel=1e-5)  # all are longer


def test_a_vanished_gradient_stays_one():
    (found,) = DpSgd().clipped_sum([torch.zeros(2, 3)])
    assert torch.equal(found, torch.zeros(3))


def test_noise_is_that_multiple_of_the_clip_over_the_batch():
    (found,) = DpSgd(clip=2.0, noise=0.5).noised_mean(
        [torch.zeros(200, 50)], 4, torch.Generator().manual_seed(0), "train"
    )
    assert found.std().item() == pytest.approx(0.25, rel=0.03)  # 10,000 draws: ±0.7 %


def test_what_one_image_shares_is_clipped_before_later_parts_see_it():
    gradient = (torch.tensor([3.0, 4.0]),)
    (shared,) = of_one(make("dp-sgd:clip=1,noise=0"), gradient, torch.Generator(), "attack")
    assert torch.allclose(shared, torch.tensor([0.6, 0.8]))
    for text in (
        "gradient-pruning:rate=0.5 & dp-sgd:clip=1,noise=0",
        "dp-sgd:clip=1,noise=0 & gradient-pruning:rate=0.5",
    ):
        (shared,) = of_one(make(text), gradient, torch.Generator(), "attack")
        assert torch.allclose(shared, torch.tensor([0.0, 0.8]))


def test_the_promise_counts_every_batch_of_every_epoch():
    promised = DpSgd(noise=1.1, delta=1e-4).promise(1400, 64, 7)
    assert promised == {"epsilon": epsilon(1.1, 64 / 1400, 7 * 22, 1e-4), "delta": 1e-4}
    whole = DpSgd(noise=2.0).promise(50, 64, 3)  # a batch is all images at most
    assert whole["epsilon"] == epsilon(2.0, 1.0, 3, 1e-5)


@pytest.mark.parametrize("settings", [{"noise": 0.0}, {"apply_at": "attack"}])
def test_without_noise_in_training_nothing_is_promised(settings):
    assert DpSgd(**settings).promise(100, 10, 1) == {"epsilon": None, "delta": 1e-5}


def test_a_delta_that_lets_an_image_go_is_refused():
    with pytest.raises(SettingsError, match=r"one of 100 training images .* below 0.01"):
        DpSgd(delta=0.01).promise(100, 10, 1)


@pytest.mark.parametrize(
    "settings",
    [{"clip": 0.0}, {"clip": math.inf}, {"noise": -1.0}, {"noise": math.nan}, {"delta": 0.0}],
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(SettingsError, match="got"):
        DpSgd(**settings)


def test_clipping_twice_is_refused():
    with pytest.raises(SettingsError, match="say dp-sgd once"):
        make("dp-sgd & crop-flip & dp-sgd:clip=2")
