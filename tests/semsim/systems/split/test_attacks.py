import math
from dataclasses import replace

import pytest
import torch

from semsim.base.errors import SettingsError
from semsim.systems.split.attacks import Decoder, imitation, misalignment, moments
from semsim.systems.split.defences import Ensembler, Undefended
from semsim.systems.split.networks import observe
from semsim.systems.split.plan import ShadowAttack

TINY = {"epochs": 1, "decoder_epochs": 1, "batch_size": 32}


@pytest.fixture
def seen(bench, digits):
    system = Ensembler(bodies=3, selected=2)(bench)
    rng = torch.Generator().manual_seed(5)
    return observe(system, digits[1].images, bench.network, bench.data, rng)


def run(attack, seen, seed=0, report=lambda progress: None):
    return attack(seen, rng=torch.Generator().manual_seed(seed), report=report)


@pytest.mark.parametrize(
    "settings",
    [{}, {"bodies": (1,)}, {"bodies": (0, 2), "learn_selector": False}, {"align": 10.0}],
    ids=["adaptive", "one-body", "oracle", "aligned"],
)
def test_an_attack_gives_an_image_a_query_and_leaves_the_server_as_it_was(settings, seen):
    told = []
    kept = [{k: v.clone() for k, v in body.state_dict().items()} for body in seen.bodies]
    grads = [p.requires_grad for body in seen.bodies for p in body.parameters()]
    before = torch.random.get_rng_state()
    attack = ShadowAttack(**TINY, **settings)
    got = run(attack, seen, report=told.append)
    assert torch.equal(before, torch.random.get_rng_state())
    assert told[-1].done == told[-1].total
    assert len(got.found) == len(seen.features)
    for one in got.found:
        assert one.image.shape == (3, 16, 16)
        assert one.image.dtype == torch.float32
        assert 0 <= one.image.min() <= one.image.max() <= 1
        assert math.isfinite(one.residual)
        assert math.isfinite(one.grey_residual)
    assert 0 <= got.shadow_accuracy <= 1
    for body, was in zip(seen.bodies, kept, strict=True):
        assert all(torch.equal(v, was[k]) for k, v in body.state_dict().items())
    assert grads == [p.requires_grad for body in seen.bodies for p in body.parameters()]
    again = run(attack, seen)
    assert all(torch.equal(a.image, b.image) for a, b in zip(got.found, again.found, strict=True))
    other = run(attack, seen, seed=1)
    assert not torch.equal(got.found[0].image, other.found[0].image)


def test_an_attack_on_one_body_does_not_look_at_the_others(seen):
    attack = ShadowAttack(**TINY, bodies=(1,))
    first = run(attack, seen)
    others = (seen.bodies[2], seen.bodies[1], seen.bodies[2])
    second = run(attack, replace(seen, bodies=others))
    assert torch.equal(first.found[0].image, second.found[0].image)


@pytest.mark.parametrize("bodies", [(), (3,), (-1,)])
def test_a_body_the_server_does_not_have_is_refused(bodies, seen):
    with pytest.raises(SettingsError, match="3 bodies"):
        run(ShadowAttack(**TINY, bodies=bodies), seen)


@pytest.mark.parametrize(("start", "as_one_layer"), [("identity", True), ("random", False)])
def test_a_shadow_can_start_as_the_clients_head_without_noise(start, as_one_layer, seen):
    attack = ShadowAttack(**TINY, lr=0, start=start)  # trains nothing
    head = imitation(attack, seen, 0, lambda progress: None).head.eval()
    inputs = seen.public.inputs
    alike = torch.allclose(head(inputs), head[0](inputs), atol=1e-6)
    assert alike is as_one_layer


def test_a_start_that_there_is_not_is_refused():
    with pytest.raises(SettingsError, match=r"start must be random or identity; got 'zero'"):
        ShadowAttack(start="zero")


def test_moments_are_by_channel_and_position():
    features = torch.stack([torch.zeros(2, 3, 3), torch.full((2, 3, 3), 2.0)])
    features[1, 0, 0, 0] = 4.0
    mean, std = moments(features)
    assert mean.shape == (2, 3, 3)
    assert mean[0, 0, 0] == 2
    assert mean[1, 1, 1] == 1
    assert std[1, 1, 1].item() == pytest.approx(2**0.5)


def test_misalignment_is_what_one_works_out_by_hand():
    own = torch.tensor([0.0, 2.0]).view(2, 1, 1, 1)  # mean 1, deviation √2
    target = (torch.full((1, 1, 1), 4.0), torch.full((1, 1, 1), 2**0.5 + 1))
    assert misalignment(own, target, torch.tensor(2.0)).item() == pytest.approx((9 + 1) / 2)


def test_one_input_has_no_deviation_to_align():
    one = torch.tensor([3.0]).view(1, 1, 1, 1)
    target = moments(torch.tensor([0.0, 2.0]).view(2, 1, 1, 1))
    assert misalignment(one, target, torch.tensor(2.0)).item() == pytest.approx((3 - 1) ** 2 / 2)
    alone = moments(one)
    assert alone[1] is None
    many = torch.tensor([0.0, 2.0]).view(2, 1, 1, 1)
    assert misalignment(many, alone, torch.tensor(2.0)).item() == pytest.approx((1 - 3) ** 2 / 2)


def test_alignment_draws_the_shadow_to_what_was_sent(bench, digits):
    system = Undefended()(replace(bench, settings=replace(bench.settings, epochs=8)))
    rng = torch.Generator().manual_seed(5)
    seen = observe(system, digits[1].images, bench.network, bench.data, rng)
    plain, aligned = (
        run(ShadowAttack(epochs=15, decoder_epochs=8, align=align, lr=1e-2, batch_size=32), seen)
        for align in (0.0, 10.0)
    )
    mean = [sum(one.residual for one in got.found) for got in (plain, aligned)]
    assert mean[1] < mean[0] / 1.5


def test_an_undefended_digit_comes_back_better_than_a_grey_image(bench, digits):
    train, test = digits
    system = Undefended()(replace(bench, settings=replace(bench.settings, epochs=8)))
    seen = observe(system, test.images, bench.network, train, torch.Generator().manual_seed(5))
    attack = ShadowAttack(epochs=30, decoder_epochs=30, align=10.0, lr=1e-2, batch_size=32)
    images = torch.stack([one.image for one in run(attack, seen).found])
    error = (images - test.images).square().mean()
    assert error < (train.images.mean(0) - test.images).square().mean()
    assert error < (0.5 - test.images).square().mean() / 2


@pytest.mark.parametrize("size", [(16, 16), (32, 32), (20, 20)])
def test_a_decoder_makes_images_of_the_size_asked_for(size):
    images = Decoder(4, 8, size, 8)(torch.randn(2, 4, 8, 8))
    assert images.shape == (2, 3, *size)
    assert 0 <= images.min() <= images.max() <= 1
