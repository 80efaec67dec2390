from dataclasses import dataclass, replace
from functools import cache

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from semsim.base.errors import SettingsError, StopRequestedError
from semsim.datasets.symbols import Symbols
from semsim.defences import STRATEGIES, make
from semsim.defences.crop_flip import CropFlip
from semsim.defences.none import NoDefence
from semsim.targets.checkpoint import read_state, write_state
from semsim.targets.convnet import SmallCNN
from semsim.targets.degrade import degrade
from semsim.targets.lenet import CNN4
from semsim.targets.train import (
    Training,
    _fingerprint,
    accuracy,
    carry_out,
    train_target,
)
from semsim.targets.train_settings import TrainSettings, read_training
from semsim.types import LabelledImages

DATA = Symbols(train_per_class=12, test_per_class=4)


@cache
def few(split, classes=5):
    data = DATA(split)
    return data.pick([i for i, label in enumerate(data.labels.tolist()) if label < classes])


def test_learns_what_it_is_shown():
    train, test = few("train"), few("test")
    untrained = train_target(SmallCNN(width=8), train, NoDefence(), TrainSettings(epochs=0))
    trained = train_target(
        SmallCNN(width=8), train, NoDefence(), TrainSettings(epochs=12, lr=0.05, batch_size=10)
    )
    # Chance is 0.2; sixty training pictures do not make an expert.
    assert accuracy(trained, test) > 0.5 > accuracy(untrained, test) + 0.1


def test_same_seed_same_weights_and_global_randomness_is_left_alone():
    train = few("train")

    def weights(seed):
        model = train_target(
            SmallCNN(width=4), train, CropFlip(), TrainSettings(epochs=1, seed=seed)
        )
        return torch.cat([p.flatten() for p in model.parameters()])

    torch.manual_seed(7)
    before = torch.rand(3)
    torch.manual_seed(7)
    first = weights(0)
    assert torch.equal(torch.rand(3), before)
    assert torch.equal(weights(0), first)
    assert not torch.equal(weights(1), first)


def test_gradient_defence_acts_on_every_step():
    class Silence(NoDefence):
        def gradients(self, gradients, rng, phase):
            return tuple(torch.zeros_like(g) for g in gradients)

    settings = TrainSettings(epochs=2, weight_decay=0.0)
    train = few("train")
    still = train_target(SmallCNN(width=4), train, Silence(), settings)
    fresh = train_target(SmallCNN(width=4), train, NoDefence(), TrainSettings(epochs=0))
    for after, before in zip(still.parameters(), fresh.parameters(), strict=True):
        assert torch.equal(after, before)


def test_progress_tells_batches_and_epochs():
    seen = []
    train = few("train")  # 60 images
    settings = TrainSettings(epochs=3, batch_size=25)
    train_target(SmallCNN(width=4), train, NoDefence(), settings, report=seen.append)
    epochs = [p for p in seen if "loss" in p.values]
    assert [p.done for p in epochs] == [3, 6, 9]
    assert [p.values["epoch"] for p in epochs] == [1, 2, 3]
    assert all(p.values["loss"] > 0 and 0 <= p.values["accuracy"] <= 1 for p in epochs)
    assert [p.done for p in seen if p not in epochs] == [1, 2, 4, 5, 7, 8]
    assert {p.total for p in seen} == {9}


def noise(seed):
    images = torch.rand(18, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
    return LabelledImages(
        dataset="noise",
        classes=("a", "b", "c"),
        ids=tuple(str(number) for number in range(18)),
        images=images,
        labels=torch.arange(18) % 3,
    )


def training(tmp_path, **changes):
    usual = {
        "architecture": SmallCNN(width=4),
        "data": noise(0),
        "defence": CropFlip(),
        "settings": TrainSettings(epochs=8, batch_size=8, lr=0.02),  # milestones at 3, 5 and 7
        "device": "cpu",
        "checkpoint": tmp_path / "training.safetensors",
    }
    return Training(**{**usual, **changes})


def stop_after(epoch):
    def report(progress):
        if progress.values["epoch"] >= epoch:
            raise StopRequestedError("A stop was asked for.")

    return report


def same_weights(first, second):
    return all(
        torch.equal(a, b)
        for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )


# In the middle of an epoch, after one, and after two drops of the step size.
@pytest.mark.parametrize("stop", [[1.4], [2], [3, 6.5]])
def test_interrupted_and_resumed_is_the_same_as_never_stopped(tmp_path, stop):
    whole = carry_out(training(tmp_path, checkpoint=None))
    for epoch in stop:
        with pytest.raises(StopRequestedError):
            carry_out(training(tmp_path), stop_after(epoch))
    seen = []
    resumed = carry_out(training(tmp_path), seen.append)
    assert seen[0].values["epoch"] > int(stop[-1])  # finished epochs are not trained again
    assert same_weights(resumed, whole)


def test_a_cosine_ends_at_no_step_and_is_resumed_as_if_never_stopped(tmp_path):
    settings = TrainSettings(epochs=4, batch_size=8, lr=0.02, schedule="cosine")
    asked = training(tmp_path, settings=settings)
    whole = carry_out(replace(asked, checkpoint=None))
    with pytest.raises(StopRequestedError):
        carry_out(asked, stop_after(2))
    half = read_state(asked.checkpoint, _fingerprint(asked))
    assert half.lr == pytest.approx(0.01)
    assert same_weights(carry_out(asked), whole)
    assert read_state(asked.checkpoint, _fingerprint(asked)).lr == pytest.approx(0, abs=1e-9)


def test_dropout_is_seeded_and_resumes_too(tmp_path):
    class Dropping(SmallCNN):
        def build(self, channels, size):
            body, width = super().build(channels, size)
            return torch.nn.Sequential(body, torch.nn.Dropout(0.5)), width

    asked = training(tmp_path, architecture=Dropping(width=4), settings=TrainSettings(epochs=2))
    torch.manual_seed(1)
    whole = carry_out(replace(asked, checkpoint=None))
    with pytest.raises(StopRequestedError):
        carry_out(asked, stop_after(1))
    torch.manual_seed(2)
    assert same_weights(carry_out(asked), whole)


@pytest.mark.parametrize(
    "change",
    [
        {"settings": TrainSettings(epochs=9, batch_size=8, lr=0.02)},
        {"defence": NoDefence()},
        {"data": noise(1)},
        {"architecture": SmallCNN(width=5)},
        {"degrade": degrade},
    ],
    ids=lambda change: next(iter(change)),
)
def test_checkpoint_of_another_training_is_refused(tmp_path, change):
    with pytest.raises(StopRequestedError):
        carry_out(training(tmp_path), stop_after(1))
    with pytest.raises(SettingsError, match="other settings or images"):
        carry_out(training(tmp_path, **change))


@pytest.mark.parametrize("strategy", STRATEGIES["code"])
@pytest.mark.parametrize("source", STRATEGIES)
def test_every_strategy_trains_to_other_weights(tmp_path, source, strategy):
    def weights(text):
        settings = TrainSettings(epochs=1, batch_size=6, lr=0.01)
        asked = training(tmp_path, defence=make(text), settings=settings, checkpoint=None)
        return carry_out(asked)

    trained = weights(STRATEGIES[source][strategy])
    assert all(value.isfinite().all() for value in trained.state_dict().values())
    assert same_weights(trained, weights("none")) is (strategy == "none")


def test_divergence_is_an_error_and_not_a_model(tmp_path):
    wild = TrainSettings(epochs=20, batch_size=8, lr=1e12)
    with pytest.raises(SettingsError, match=r"smaller lr than 1e\+12"):
        carry_out(training(tmp_path, architecture=CNN4(width=4), settings=wild, checkpoint=None))


@pytest.mark.parametrize("batch", [8, 18])  # the loss tells of it, or only the weights do
def test_a_training_that_diverged_is_no_model_when_it_is_tried_again(tmp_path, batch):
    class Spoils(NoDefence):
        def gradients(self, gradients, rng, phase):
            return tuple(torch.full_like(each, torch.nan) for each in gradients)

    settings = TrainSettings(epochs=1, batch_size=batch)
    asked = training(tmp_path, defence=Spoils(), settings=settings)
    for _ in range(2):
        with pytest.raises(SettingsError, match="The training diverged: in epoch 1"):
            carry_out(asked)
    assert not asked.checkpoint.exists()


def test_the_checkpoint_of_a_training_that_diverged_is_no_model(tmp_path):
    asked = training(tmp_path, settings=TrainSettings(epochs=1, batch_size=8))
    carry_out(asked)
    kept = read_state(asked.checkpoint, _fingerprint(asked))
    spoilt = dict(kept.model)
    spoilt["head.weight"] = torch.full_like(spoilt["head.weight"], torch.nan)
    write_state(asked.checkpoint, replace(kept, model=spoilt), _fingerprint(asked))
    with pytest.raises(SettingsError, match="in epoch 1 a weight is no longer finite"):
        carry_out(asked)


def test_loss_scale_scales_the_step_and_not_the_report():
    class Watch(NoDefence):
        def gradients(self, gradients, rng, phase):
            seen.append(gradients[0].detach().clone())
            return super().gradients(gradients, rng, phase)

    train, losses = few("train"), []
    for scale in (1.0, 0.5):
        seen = []
        settings = TrainSettings(epochs=1, batch_size=60, loss_scale=scale)
        train_target(SmallCNN(width=4), train, Watch(), settings, report=losses.append)
        if scale == 1.0:
            first = seen[0]
    assert torch.equal(seen[0], first * 0.5)
    assert losses[0].values["loss"] == losses[1].values["loss"]


def test_degrade_keeps_range_and_leaves_some_images_clean():
    images = few("train").images
    worse = degrade(images, torch.Generator().manual_seed(0))
    change = (worse - images).abs().mean(dim=(1, 2, 3))
    assert worse.min() >= 0
    assert worse.max() <= 1
    assert 0.15 < (change < 1e-6).float().mean() < 0.55
    assert change.max() > 0.05


@pytest.mark.parametrize("text", ["batch_size=0", "epochs=-1", "lr=-0.1", "momentum=-0.5"])
def test_settings_that_nothing_can_be_trained_with_are_refused_at_once(text):
    with pytest.raises(SettingsError, match=f"{text.partition('=')[0]} must be"):
        read_training(text, TrainSettings())


@pytest.mark.parametrize("epochs", [1, 2, 4])
def test_the_first_epoch_is_walked_at_the_full_step_size(tmp_path, epochs):
    def after_one(epochs):
        settings = TrainSettings(epochs=epochs, batch_size=6, lr=0.01)
        asked = training(tmp_path, settings=settings, checkpoint=tmp_path / f"{epochs}.safetensors")
        with pytest.raises(StopRequestedError):
            carry_out(asked, stop_after(1))
        return load_file(asked.checkpoint)

    first, long = after_one(epochs), after_one(200)
    assert all(torch.equal(first[name], long[name]) for name in long if name.startswith("model/"))


UNTIL = TrainSettings(epochs=12, lr=0.05, batch_size=10, until=0.5)


def until(checkpoint=None, test=None):
    epochs = []
    training = Training(
        architecture=SmallCNN(width=8),
        data=few("train"),
        defence=NoDefence(),
        settings=UNTIL,
        test=test,
        checkpoint=checkpoint,
    )
    told = lambda p: epochs.append(int(p.values["epoch"])) if "loss" in p.values else None  # noqa: E731
    return carry_out(training, told), epochs


def test_a_training_ends_where_the_test_share_is_reached(tmp_path):
    model, epochs = until(tmp_path / "one.part", few("test"))
    assert accuracy(model, few("test")) >= 0.5
    assert 1 < len(epochs) < 12
    again, more = until(tmp_path / "one.part", few("test"))  # the checkpoint is of the last epoch
    assert more == []
    assert torch.equal(again.head.weight, model.head.weight)


def test_each_epoch_tells_the_test_share_that_may_end_the_training():
    told = []
    asked = Training(
        architecture=SmallCNN(width=8),
        data=few("train"),
        defence=NoDefence(),
        settings=UNTIL,
        test=few("test"),
    )
    model = carry_out(asked, told.append)
    shares = [p.values["test_accuracy"] for p in told if "loss" in p.values]
    assert shares[-1] == accuracy(model, few("test")) >= 0.5 > max(shares[:-1])
    assert all("test_accuracy" not in p.values for p in told if "loss" not in p.values)


def test_a_share_to_reach_needs_a_test_and_is_a_share():
    with pytest.raises(SettingsError, match="needs test images"):
        until()
    with pytest.raises(SettingsError, match="until must be at most 1; got 65"):
        TrainSettings(until=65)


@dataclass(frozen=True, kw_only=True)
class _PointMaps:
    """A network whose last batch norm sees maps of one pixel."""

    def build(self, channels, size):
        layers = nn.Conv2d(channels, 4, kernel_size=size), nn.BatchNorm2d(4), nn.ReLU()
        return nn.Sequential(*layers, nn.Flatten()), 4


@pytest.mark.parametrize("architecture", [_PointMaps(), SmallCNN(width=4)])
def test_a_last_image_that_is_alone_is_learned_from(architecture):
    """Batch norm cannot train on one map of one pixel: it goes with the images before it."""
    train = few("train").pick(range(9))
    sizes = []

    class Counted(NoDefence):
        def images(self, images, rng):
            sizes.append(len(images))
            return super().images(images, rng)

    train_target(architecture, train, Counted(), TrainSettings(epochs=1, batch_size=4))
    assert sizes == ([4, 5] if isinstance(architecture, _PointMaps) else [4, 4, 1])


def test_images_with_a_channel_that_is_always_the_same_are_learned_from():
    train = few("train")
    images = train.images.clone()
    images[:, 2] = 0.3
    settings = TrainSettings(epochs=1, lr=0.01)
    model = train_target(SmallCNN(width=4), replace(train, images=images), NoDefence(), settings)
    assert model.std.flatten()[2] == 1.0
    assert model.std.flatten()[0].item() == pytest.approx(images[:, 0].std().item(), rel=1e-6)


def test_images_that_batch_norm_only_meets_alone_are_refused():
    train = few("train")
    for count, batch in ((1, 4), (3, 1)):
        settings = TrainSettings(epochs=1, batch_size=batch)
        with pytest.raises(SettingsError, match="take 2 images or more"):
            train_target(_PointMaps(), train.pick(range(count)), NoDefence(), settings)


def test_trying_one_image_leaves_no_trace():
    train = few("train").pick(range(9))
    settings = TrainSettings(epochs=1, batch_size=4)
    model = train_target(SmallCNN(width=4), train, NoDefence(), settings)
    norms = [one for one in model.modules() if isinstance(one, nn.BatchNorm2d)]
    assert {int(one.num_batches_tracked) for one in norms} == {3}
