from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from made_campaign import toy_campaign
from torch import nn

from semsim.attacks.batch_norm import batch_norm_layers
from semsim.base.errors import DataError
from semsim.base.progress import Progress
from semsim.campaign import forecast
from semsim.campaign.campaign_job import load, plan_of
from semsim.campaign.forecast import Estimate, known_estimate, measure, outlook, pace, settle
from semsim.targets import train as training
from semsim.targets.model import TargetModel
from semsim.targets.train_settings import TrainSettings


class BatchNormed:
    """An architecture of a convolution and batch norm."""

    def build(self, channels, size):
        return nn.Sequential(nn.Conv2d(channels, 4, 3), nn.BatchNorm2d(4), nn.Flatten()), 144


@pytest.fixture(scope="module")
def plan():
    return plan_of(toy_campaign(train=TrainSettings(epochs=4, until=0.65)))


def test_what_was_measured_is_known_afterwards(plan, tmp_path):
    assert known_estimate(plan, tmp_path) is None
    assert outlook(plan, tmp_path, None).seconds is None
    told = []
    estimate = measure(plan, tmp_path, load, told.append)
    assert [p.done for p in told] == [1, 2]  # one network, one attack; strategies take as long
    assert known_estimate(plan, tmp_path) == estimate

    def nothing(dataset, split):
        raise DataError("measured again")

    assert measure(plan, tmp_path, nothing) == estimate
    view = outlook(plan, tmp_path, estimate)
    assert view.seconds == pytest.approx(
        sum(estimate.trainings.values()) + 3 * sum(estimate.images.values())
    )


def test_what_several_sets_share_takes_its_time_once(tmp_path):
    attacks = ("invgrad:steps=30", "invgrad:steps=30,lr=0.1")  # one attack, written twice
    trainings = ("", "until=1.0")
    twice = plan_of(toy_campaign(attacks=attacks, trainings=trainings, strategies=("none",)))
    view = outlook(twice, tmp_path, Estimate())
    assert (view.to_train, view.cells) == (1, 3)
    assert view.seconds == 1 + 3


def test_a_training_by_dp_sgd_is_measured_as_one(tmp_path, monkeypatch):
    shields, train = set(), training.train_target

    def watched(architecture, data, defence, settings, **how):
        shields.add(type(defence).__name__)
        return train(architecture, data, defence, settings, **how)

    monkeypatch.setattr(training, "train_target", watched)
    private = ("crop-flip & dp-sgd", "dp-sgd:noise=2")
    strategies = ("none", "dp-sgd:apply_at=attack", *private)
    asked = toy_campaign(strategies=strategies, architectures=("cnn4:width=4",))
    plan = plan_of(replace(asked, train=TrainSettings(epochs=2)))
    told = []
    estimate = measure(plan, tmp_path, load, told.append)
    assert len(told) == 3  # an attack, and a training of either kind
    assert shields == {"NoDefence", "DpSgd"}
    seconds = {target.plan.label: estimate.training(target) for target in plan.targets}
    first, second, *rest = seconds.values()
    assert first == second
    assert rest[0] == rest[1] != first
    assert known_estimate(plan, tmp_path) == estimate


def test_asking_begins_no_data_folder(plan, tmp_path):
    measure(plan, tmp_path / "none", load)
    assert not (tmp_path / "none").exists()


def test_time_and_disk_follow_the_size(plan, tmp_path):
    trainings = {target.key: 10.0 for target in plan.targets}
    estimate = Estimate(trainings=trainings, images=dict.fromkeys((s.folder for s in plan.sets), 2))
    view = outlook(plan, tmp_path, estimate)
    assert (view.cells, view.cells_done, view.targets, view.to_train) == (6, 0, 2, 2)
    assert view.seconds == 2 * 10 + 6 * 2
    more = outlook(plan_of(toy_campaign(images=30)), tmp_path, None)
    assert more.cells == 60
    assert more.disk > view.disk > 6 * 6 * 32 * 32 * 3


def test_a_pace_tells_all_of_a_work_and_what_comes_before_it():
    """A work that takes 3 s before its first step, and 100 steps of half a second."""
    clock, steps = [0.0], []

    def work(report):
        clock[0] += 3
        for step in range(100):
            clock[0] += 0.5
            steps.append(step)
            report(Progress(step + 1, 100))

    assert pace(work, lambda: clock[0]) == pytest.approx(3 + 100 * 0.5)
    assert len(steps) < 10


def test_an_attack_is_paced_on_a_network_whose_answers_are_finite():
    """After one batch a deep network's running statistics are not those of what it computes."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = TargetModel(
            BatchNormed(), ["a", "b"], mean=[0.5] * 3, std=[0.25] * 3, size=(8, 8)
        ).eval()
    images = torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    norm = batch_norm_layers(model)[0]
    norm.running_mean.fill_(1e8)
    assert model(images).abs().max() > 1e6
    settle(model, images)
    assert model(images).abs().max() < 100
    assert not any(module.training for module in model.modules())
    assert norm.momentum == 0.1
    before = norm.running_var.clone()
    model(2 * images)
    assert torch.equal(norm.running_var, before)


def test_a_probe_that_fails_says_so(plan, tmp_path, monkeypatch, caplog):
    def fails(model, images, *_):
        return [
            SimpleNamespace(error="The objective became nan at step 1 of 2.") for _ in images.ids
        ]

    measure(plan, tmp_path / "well", load)
    assert "probe" not in caplog.text
    monkeypatch.setattr("semsim.campaign.work.attack_images", fails)
    measure(plan, tmp_path / "badly", load)
    (said,) = [one.getMessage() for one in caplog.records]
    assert said == "The probe of invgrad on cnn-small failed, so that its time is too short."


@pytest.mark.parametrize("count", [10, 64, 70, 500])
def test_an_epoch_of_any_number_of_images_is_paced_by_those_it_used(count, plan, monkeypatch):
    """A training that takes a second an image."""
    clock = [0.0]

    def trains(target, data, batches, defence):
        clock[0] += min(len(data), batches * target.plan.train.batch_size)

    monkeypatch.setattr(forecast, "_train_on", trains)
    monkeypatch.setattr(forecast.time, "process_time", lambda: clock[0])
    one = plan.targets[0]
    target = replace(one, plan=replace(one.plan, train=TrainSettings(batch_size=64)))
    assert forecast._epoch_seconds(target, range(count)) == pytest.approx(count)


def test_an_epoch_in_mixed_precision_is_measured_apart(plan):
    def key(**changes):
        one = plan.targets[0]
        train = replace(one.plan.train, **changes)
        return forecast._epoch_key(replace(one, plan=replace(one.plan, train=train)))

    assert key(lr=0.5, epochs=9) == key() != key(mixed_precision=True)


def test_an_epoch_on_other_files_is_measured_apart(plan):
    first, second = (replace(plan.targets[0], content=content) for content in ("", "one"))
    assert forecast._epoch_key(first) == forecast._epoch_key(plan.targets[0])
    assert forecast._epoch_key(first) != forecast._epoch_key(second)
