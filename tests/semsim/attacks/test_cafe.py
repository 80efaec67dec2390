import math
from dataclasses import replace

import pytest
import torch

from semsim.attacks.cafe import (
    Cafe,
    QuarteredNet,
    drawn_batches,
    gradients_behind_joint,
    inputs_of_joint,
    observe_vertical,
)
from semsim.base.errors import AttackFailedError, SettingsError
from semsim.datasets.symbols import Symbols

COUNT = 6


@pytest.fixture(scope="module")
def private():
    data = Symbols(test_per_class=1, size=16)("test")
    images = data.images[:COUNT]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = QuarteredNet(4, size=(16, 16)).eval()
    labels = torch.arange(COUNT) % 4
    batches = drawn_batches(COUNT, size=3, rounds=12, rng=torch.Generator().manual_seed(1))
    return observe_vertical(model, images, labels, batches), images


def test_the_first_step_separates_the_gradients_of_the_images(private):
    seen, images = private
    inputs = seen.model.joint(seen.model.joint_inputs(images)).detach().requires_grad_(True)
    logits = seen.model.head(torch.tanh(inputs))
    loss = torch.nn.functional.cross_entropy(logits, seen.labels, reduction="sum")
    (expected,) = torch.autograd.grad(loss, inputs)
    found = gradients_behind_joint(seen)
    assert torch.allclose(found, expected, atol=1e-5)


def test_the_second_step_finds_what_the_first_linear_layer_saw(private):
    seen, images = private
    found = inputs_of_joint(seen, gradients_behind_joint(seen))
    assert torch.allclose(found, seen.model.joint_inputs(images), atol=1e-2)


def test_a_small_batch_is_recovered(private):
    seen, images = private
    told = []
    found = Cafe(steps=300)(seen, rng=torch.Generator().manual_seed(0), report=told.append)
    assert len(found) == COUNT
    for one, image in zip(found, images, strict=True):
        # 20 dB: the symbols are plain to see; a grey image has about 8 dB.
        assert (one.image - image).square().mean() < 0.01
        assert one.residual < one.grey_residual
    assert (told[-1].done, told[-1].total) == (300, 300)
    assert all(p.grad is None for p in seen.model.parameters())


def test_the_same_seed_gives_the_same_images(private):
    seen, _ = private

    def run(seed):
        return Cafe(steps=3)(seen, rng=torch.Generator().manual_seed(seed))[0].image

    assert torch.equal(run(0), run(0))
    assert not torch.equal(run(0), run(1))


def test_too_few_rounds_are_refused(private):
    seen, _ = private
    with pytest.raises(AttackFailedError, match="5 rounds do not tell 6 images apart"):
        Cafe(steps=1)(replace(seen, rounds=seen.rounds[:5]), rng=torch.Generator())


def test_a_gradient_that_is_not_a_number_is_a_failure(private):
    seen, _ = private
    rounds = tuple(
        replace(each, gradients=tuple(g * math.nan for g in each.gradients)) for each in seen.rounds
    )
    with pytest.raises(AttackFailedError):
        Cafe(steps=1)(replace(seen, rounds=rounds), rng=torch.Generator())


def test_odd_sides_cannot_be_quartered():
    with pytest.raises(SettingsError, match="even"):
        QuarteredNet(2, size=(15, 16))
