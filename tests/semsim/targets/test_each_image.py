from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from semsim.base.errors import SettingsError
from semsim.datasets.symbols import Symbols
from semsim.defences import make
from semsim.defences.dp_sgd import DpSgd
from semsim.targets import each_image
from semsim.targets.convnet import SmallCNN
from semsim.targets.each_image import clipped_sum, poisson_batches
from semsim.targets.lenet import CNN4
from semsim.targets.train import Training, carry_out
from semsim.targets.train_settings import TrainSettings

ALL = Symbols(train_per_class=6, test_per_class=1)


def few(classes=5):
    data = ALL("train")
    return data.pick([i for i, label in enumerate(data.labels.tolist()) if label < classes])


ONE_STEP = TrainSettings(epochs=1, batch_size=30, lr=0.5, momentum=0.0, weight_decay=0.0)


def training(defence, **changes):
    usual = {
        "architecture": CNN4(width=4, activation="tanh"),
        "data": few(),
        "defence": make(defence),
        "settings": ONE_STEP,
        "device": "cpu",
    }
    return Training(**{**usual, **changes})


def start(asked):
    return carry_out(replace(asked, settings=replace(asked.settings, epochs=0)))


def slow_step(model, data, clip):
    """The mean of each image's gradient, cut to `clip`, by a loop."""
    total = [torch.zeros_like(parameter) for parameter in model.parameters()]
    for image, label in zip(data.images, data.labels, strict=True):
        loss = F.cross_entropy(model(image[None]), label[None])
        gradient = torch.autograd.grad(loss, tuple(model.parameters()))
        norm = torch.cat([one.flatten() for one in gradient]).norm()
        total = [a + b * min(1, clip / norm) for a, b in zip(total, gradient, strict=True)]
    return [one / len(data) for one in total]


@pytest.mark.parametrize("numbers", [1, 32_000_000])  # one image at a time, all at once
def test_a_step_is_the_mean_of_clipped_gradients(monkeypatch, numbers):
    monkeypatch.setattr(each_image, "_NUMBERS", numbers)
    asked = training("dp-sgd:clip=0.8,noise=0")  # a batch is all 30 images
    before, after = start(asked), carry_out(asked)
    wanted = slow_step(before, asked.data, 0.8)
    for old, new, step in zip(before.parameters(), after.parameters(), wanted, strict=True):
        assert torch.allclose(old - new, 0.5 * step, atol=1e-6)


def test_noise_moves_weights_as_far_as_it_says():
    still, noisy = (carry_out(training(f"dp-sgd:clip=2,noise={noise}")) for noise in (0, 3))
    pairs = zip(still.parameters(), noisy.parameters(), strict=True)
    moved = torch.cat([(a - b).flatten() for a, b in pairs])
    assert moved.std().item() == pytest.approx(0.5 * 3 * 2 / 30, rel=0.05)  # 12,600 weights: ±0.6%


def test_the_loss_falls_where_noise_is_small():
    told = []
    settings = TrainSettings(epochs=6, batch_size=30, lr=0.3)
    carry_out(training("dp-sgd:noise=0.01", settings=settings), told.append)
    losses = [one.values["loss"] for one in told if "loss" in one.values]
    assert losses[-1] < 0.9 * losses[0]


def test_nothing_but_clipped_gradients_tells_of_the_images():
    model = start(training("dp-sgd"))
    assert model.mean.flatten().tolist() == [0.5] * 3
    assert model.std.flatten().tolist() == [0.25] * 3
    own = few().images.mean(dim=(0, 2, 3))
    for other in ("none", "dp-sgd:apply_at=attack"):
        assert torch.equal(start(training(other)).mean.flatten(), own)


def test_each_image_is_in_each_batch_by_itself():
    rng = torch.Generator().manual_seed(0)
    drawn = torch.zeros(2000, 100)
    for epoch in range(200):
        batches = poisson_batches(100, 10, rng)
        assert len(batches) == 10
        for number, batch in enumerate(batches):
            drawn[10 * epoch + number, batch] = 1
    sizes = drawn.sum(1)
    assert sizes.mean().item() == pytest.approx(10, rel=0.03)
    assert sizes.var().item() == pytest.approx(9, rel=0.15)  # of a binomial; 0 for a shuffle
    assert [len(batch) for batch in poisson_batches(5, 9, rng)] == [5]


def test_an_empty_batch_is_noise_alone():
    model, private = start(training("dp-sgd")), DpSgd()
    nobody = few().pick([])
    total = clipped_sum(model, private, nobody.images, nobody.labels, 1.0)
    assert [one.shape for one in total] == [one.shape for one in model.parameters()]
    assert not any(one.any() for one in total)
    # 30 images in 30 batches of 1: a third of them are empty.
    told = []
    asked = training("dp-sgd:noise=0.1", settings=replace(ONE_STEP, batch_size=1, lr=0.01))
    carry_out(asked, told.append)
    assert 0 < told[-1].values["loss"] < 10


@pytest.mark.parametrize("defence", ["crop-flip", "resized-crop-flip", "ats:3-1-7"])
def test_an_empty_batch_has_nothing_to_augment(defence):
    told = []
    settings = replace(ONE_STEP, batch_size=1, lr=0.01)
    asked = training(f"{defence} & dp-sgd:noise=0.1", settings=settings, degrade=as_it_comes)
    carry_out(asked, told.append)
    assert 0 < told[-1].values["loss"] < 10


def as_it_comes(images, rng):
    assert len(images)
    return images


def test_batch_norm_mixes_images_and_is_refused_in_training_only():
    asked = training("crop-flip & dp-sgd", architecture=SmallCNN(width=4))
    with pytest.raises(SettingsError, match="Take an architecture without it: cnn4"):
        carry_out(asked)
    carry_out(replace(asked, defence=make("dp-sgd:apply_at=attack"), data=few(2)))


def test_a_delta_that_promises_nothing_is_refused_before_training():
    with pytest.raises(SettingsError, match=r"take one below 0\.03"):
        carry_out(training("dp-sgd:delta=0.5"))
