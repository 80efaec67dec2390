"""A training from labels to a checkpoint, interrupted on the way."""

import shutil
from dataclasses import replace

import pytest
import torch
from PIL import Image

from semsim.base.errors import SettingsError, StopRequestedError, WeightsError
from semsim.base.metric_spec import START
from semsim.base.progress import silent
from semsim.learning.settings import STATE_FILE, Order, control_path
from semsim.learning.train import learn
from semsim.metrics.calibrated import NAMES
from semsim.metrics.learned import learned_by
from semsim.metrics.network import load_semsim
from semsim.metrics.provenance import WEIGHT_OF, read_training


@pytest.fixture
def order(tmp_path, quick):
    return Order(name="mine", checkpoints=tmp_path / "checkpoints", settings=quick, study="Toy")


def stop_after(reports):
    left = [reports]

    def report(progress):
        left[0] -= 1
        if left[0] == 0:
            raise StopRequestedError("enough")

    return report


@pytest.fixture
def begun(order, labels, tmp_path):
    with pytest.raises(StopRequestedError):
        learn(order, labels, tmp_path, stop_after(6))
    return tmp_path / STATE_FILE


def test_the_outcome_and_the_checkpoint_tell_the_same_story(order, labels, tmp_path):
    outcome = learn(order, labels, tmp_path, silent)
    training = read_training(order.checkpoint)
    keys = labels["dataset"] + "/" + labels["image_id"].astype(str)
    assert list(training.pixels) == sorted(set(keys))
    found = learned_by(training).among(labels)
    assert (found.seen, found.by_name) == (set(keys), frozenset())  # by their pixels
    start = read_training(control_path(order.checkpoint, START))
    assert learned_by(start).among(labels).unseen == set(keys)
    assert outcome["checkpoint"] == str(order.checkpoint)
    assert (training.n_originals, training.n_triplets, training.simulated) == (8, 32, True)
    assert training.settings == order.settings.result_settings()
    assert training.study == "Toy"
    assert training.stopped == outcome["stopped"] == ""
    assert training.versions["initial weights"] == "scratch"
    assert training.results["n_held_out"] == 2
    assert 0 <= training.results["validation_accuracy"] <= 1
    assert training.versions["torch"]
    for name in ("n_originals", "n_triplets", "simulated", "created", "results", "warnings"):
        assert outcome[name] == getattr(training, name)
    assert load_semsim(order.checkpoint).settings.backbone == "lenet"


def test_it_tells_what_counts_in_the_baseline_beside_it(order, labels, tmp_path):
    results = learn(order, labels, tmp_path, silent)["results"]
    weights = {name: results[name] for name in results if name.startswith(WEIGHT_OF)}
    assert [name.removeprefix(WEIGHT_OF) for name in weights] == list(NAMES)
    assert min(weights.values()) >= 0
    assert max(weights.values()) != 1


def test_a_resumed_training_writes_the_same_checkpoint(order, labels, tmp_path, begun):
    learn(order, labels, tmp_path, silent)
    whole = replace(order, checkpoints=tmp_path / "whole")
    (tmp_path / "other").mkdir()
    learn(whole, labels, tmp_path / "other", silent)
    resumed, straight = (load_semsim(o.checkpoint).state_dict() for o in (order, whole))
    assert all(torch.equal(resumed[name], straight[name]) for name in straight)


def test_what_is_kept_needs_no_pickle(begun):
    content = torch.load(begun, weights_only=True)
    assert len(content["records"]) == 1
    assert [path.name for path in begun.parent.glob(f".{STATE_FILE}*")] == []


def test_other_settings_cannot_go_on(order, labels, tmp_path, begun):
    changed = replace(order, settings=replace(order.settings, lr=0.5))
    with pytest.raises(SettingsError, match=r"began with lr=0.005, not 0.5"):
        learn(changed, labels, tmp_path, silent)


def test_other_labels_cannot_go_on(order, labels, tmp_path, begun):
    with pytest.raises(SettingsError, match="other labels"):
        learn(order, labels[labels.image_id != "0"], tmp_path, silent)


def test_other_pictures_cannot_go_on_and_the_same_elsewhere_can(order, labels, tmp_path, begun):
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("original", "reconstruction"):
        for number, path in enumerate(labels[name]):
            shutil.copy(path, moved / f"{name}{number}.png")
    there = labels.assign(
        original=[str(moved / f"original{n}.png") for n in range(len(labels))],
        reconstruction=[str(moved / f"reconstruction{n}.png") for n in range(len(labels))],
    )
    Image.new("RGB", (32, 32), "gray").save(moved / "original0.png")
    with pytest.raises(SettingsError, match="other pictures"):
        learn(order, there, tmp_path, silent)
    shutil.copy(labels["original"].iloc[0], moved / "original0.png")
    assert learn(order, there, tmp_path, silent)["checkpoint"] == str(order.checkpoint)


def test_pictures_that_are_replaced_meanwhile_are_said(order, labels, tmp_path):
    def replaced(progress):
        Image.new("RGB", (8, 8), "red").save(labels["reconstruction"].iloc[0])

    before = learn(order, labels, tmp_path, silent)["warnings"]
    assert not any(said.startswith("Pictures changed") for said in before)
    other = replace(order, name="other")
    said = learn(other, labels, tmp_path / "job", replaced)["warnings"][-1]
    assert said.startswith("Pictures changed while the training ran")
    assert read_training(other.checkpoint).warnings[-1] == said


@pytest.mark.parametrize("damage", [lambda b: b[:-200], lambda b: b"", lambda b: b"text"])
def test_a_broken_state_is_named(order, labels, tmp_path, begun, damage):
    begun.write_bytes(damage(begun.read_bytes()))
    with pytest.raises(WeightsError, match=r"training\.pt"):
        learn(order, labels, tmp_path, silent)


def test_a_finished_name_is_not_overwritten(order, labels, tmp_path):
    learn(order, labels, tmp_path, silent)
    (tmp_path / "second").mkdir()
    with pytest.raises(SettingsError, match="another name"):
        learn(order, labels, tmp_path / "second", silent)


def test_another_of_the_same_name_is_not_overwritten_by_one_that_goes_on(
    order, labels, tmp_path, begun
):
    """It was begun and finished while the first one was stopped."""
    other = replace(order, settings=replace(order.settings, lr=0.01))
    (tmp_path / "second").mkdir()
    learn(other, labels, tmp_path / "second", silent)
    kept = order.checkpoint.read_bytes()
    with pytest.raises(SettingsError, match="another name"):
        learn(order, labels, tmp_path, silent)
    assert order.checkpoint.read_bytes() == kept
    again = learn(other, labels, tmp_path / "second", silent)  # its own it may write again
    assert again["settings"]["lr"] == 0.01


def test_the_results_are_those_of_the_weights_that_are_kept(order, labels, tmp_path):
    patient = replace(order, settings=replace(order.settings, patience=2, epochs=20))
    outcome = learn(patient, labels, tmp_path, silent)
    assert "not risen for 2 epochs" in outcome["stopped"]
    assert outcome["results"]["epoch"] == outcome["epochs"] - 2
    assert read_training(order.checkpoint).stopped == outcome["stopped"]


def test_other_votes_cannot_go_on_where_votes_order(order, labels, tmp_path):
    voted = replace(order, settings=replace(order.settings, ordering="votes"))
    with pytest.raises(StopRequestedError):
        learn(voted, labels, tmp_path, stop_after(6))
    with pytest.raises(SettingsError, match="other labels"):
        learn(voted, labels.assign(n_recognised=labels.n_recognised + 1), tmp_path, silent)
    with pytest.raises(SettingsError, match="other labels"):  # by which fewer have a majority
        learn(voted, labels.assign(votes_per_item=9), tmp_path, silent)
    assert learn(order, labels.assign(votes_per_item=9), tmp_path / "majority", silent)
