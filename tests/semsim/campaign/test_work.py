from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made_campaign import toy_campaign
from safetensors.torch import load

from semsim.base.errors import StopRequestedError, WeightsError
from semsim.campaign import work
from semsim.campaign.campaign_job import plan_of
from semsim.targets.chance import target_facts
from semsim.targets.train_settings import TrainSettings


@pytest.fixture(scope="module")
def planned():
    return plan_of(toy_campaign(strategies=("none",))).sets[0]


@pytest.fixture(scope="module")
def trained(planned):
    # A folder of another machine: the training does without a checkpoint.
    return work.train(planned.target.plan, "cpu", checkpoint=Path("/not/here/t.part"))


def assault(planned):
    images = plan_of(toy_campaign(strategies=("none",))).images[planned.target.dataset]
    return work.Assault(
        images=images,
        defence=planned.target.plan.defence,
        attack=planned.attack,
        draws=tuple(cell.draw for cell in planned.cells),
    )


def test_a_training_goes_on_from_its_checkpoint(planned, trained, tmp_path):
    seen = []

    def stop_after_one(progress):
        seen.append(progress)
        if (tmp_path / "t.part").exists():
            raise StopRequestedError("asked")

    with pytest.raises(StopRequestedError):
        work.train(planned.target.plan, "cpu", tmp_path / "t.part", report=stop_after_one)
    again = work.train(planned.target.plan, "cpu", checkpoint=tmp_path / "t.part")
    one, two = load(again.content), load(trained.content)
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_images_that_are_tried_alone_are_told_by_their_place(planned, trained):
    asked, told = assault(planned), []
    labels = asked.images.labels.clone()
    labels[0] = 10_000  # no class of the target: what is attacked at once breaks
    spoilt = replace(asked, images=replace(asked.images, labels=labels))
    found = work.attack(trained.content, spoilt, "cpu", report=told.append)
    assert [one.crashed for one in found] == [True, False, False]
    assert {one.look.place for one in told} == {1, 2}


def test_a_training_that_may_end_early_keeps_its_course(trained, tmp_path):
    target = toy_campaign(train=TrainSettings(epochs=3, until=0.99))
    found = work.train(plan_of(target).targets[0].plan, "cpu")
    assert len(found.course) == 3
    (tmp_path / "t.safetensors").write_bytes(found.content)
    assert found.course[-1] == target_facts(tmp_path / "t.safetensors")["accuracy"]
    assert trained.course == ()


def test_a_stop_is_passed_on_and_not_recorded_as_a_crash(planned, trained):
    def stop(progress):
        raise StopRequestedError("asked")

    with pytest.raises(StopRequestedError):
        work.attack(trained.content, assault(planned), "cpu", report=stop)


def test_weights_nobody_can_read_say_nothing_of_the_images(planned):
    with pytest.raises(WeightsError):
        work.attack(b"not weights", assault(planned), "cpu")


def test_a_training_that_diverges_is_its_own_word():
    # The noise drives the weights to infinity in the first epoch.
    noisy = toy_campaign(strategies=("gradient-noise:std=1e38",), train=TrainSettings(epochs=2))
    assert "The training diverged" in work.train(plan_of(noisy).targets[0].plan, "cpu").why


def test_a_client_that_breaks_takes_its_own_pictures_along_alone():
    ways = toy_campaign(strategies=("none",), shares=("update:steps=1,batch=2",), images=4)
    plan = plan_of(ways)
    (planned,) = plan.sets
    images = plan.images[planned.target.dataset]
    labels = images.labels.clone()
    labels[2] = 10_000
    asked = work.Assault(
        images=replace(images, labels=labels),
        defence=planned.target.plan.defence,
        attack=planned.attack,
        draws=tuple(cell.draw for cell in planned.cells),
        shared=planned.shared,
        pictures=planned.pictures,
    )
    content, told = work.train(planned.target.plan, "cpu").content, []
    found = work.attack(content, asked, "cpu", report=told.append)
    assert [one.crashed for one in found] == [False, False, True, True]
    assert {one.look.place for one in told} == {0}
