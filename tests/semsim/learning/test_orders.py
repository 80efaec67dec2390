"""Asking for a training."""

from dataclasses import replace

import pandas as pd
import pytest

from semsim.errors import DataError, JobError, SettingsError, WeightsError
from semsim.jobs import folders as jobs
from semsim.jobs.folders import JobState
from semsim.learning.orders import (
    KIND,
    Facts,
    Order,
    checkpoint_path,
    learn_argv,
    queue_training,
    read_facts,
)


@pytest.fixture
def order(tmp_path, quick):
    return Order(
        name="mine", checkpoints=tmp_path / "checkpoints", settings=quick, study="My study"
    )


def test_a_queued_training_holds_its_labels_and_says_whose_they_are(order, labels, tmp_path):
    job = queue_training(order, labels, tmp_path / "jobs")
    assert jobs.state(job) is JobState.QUEUED
    assert jobs.list_jobs(tmp_path / "jobs", KIND) == [job]
    assert read_facts(job) == Facts(name="mine", study="My study", simulated=True)
    assert job.title == "Train mine on simulated votes"
    kept = job.argv[job.argv.index("--labels") + 1]
    pd.testing.assert_frame_equal(pd.read_parquet(kept), labels)
    assert kept.startswith(str(job.folder))


def test_votes_of_people_are_not_called_simulated(order, labels, tmp_path):
    job = queue_training(order, labels.assign(simulated=False), tmp_path / "jobs")
    assert job.title == "Train mine"
    assert not read_facts(job).simulated


def test_a_name_is_used_once(order, labels, tmp_path):
    queued = queue_training(order, labels, tmp_path / "jobs")
    with pytest.raises(SettingsError, match="being trained already"):
        queue_training(order, labels, tmp_path / "jobs")
    jobs.request_stop(queued)
    queue_training(order, labels, tmp_path / "jobs")


def test_a_name_of_a_checkpoint_is_taken(order, labels, tmp_path):
    order.checkpoint.parent.mkdir()
    order.checkpoint.touch()
    with pytest.raises(SettingsError, match="choose another name"):
        queue_training(order, labels, tmp_path / "jobs")


def test_labels_without_a_triplet_make_no_job(order, labels, tmp_path):
    with pytest.raises(DataError, match="none has both"):
        queue_training(order, labels[labels.recognisable], tmp_path / "jobs")
    assert jobs.list_jobs(tmp_path / "jobs") == []


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a b", "<b>", "x" * 81])
def test_a_name_that_is_no_file_name_is_refused(tmp_path, name):
    with pytest.raises(SettingsError, match="cannot name a checkpoint"):
        checkpoint_path(tmp_path, name)


def test_the_arguments_spell_out_every_setting(order, tmp_path):
    argv = learn_argv(order, tmp_path / "labels.parquet")
    for flag in ("--backbone", "--lr-drops", "--small-stem", "--no-normalize", "--device"):
        assert flag in argv
    assert argv[argv.index("--lr-drops") + 1] == "0.37,0.62,0.87"


def test_a_job_of_another_kind_has_no_facts(tmp_path):
    job = jobs.create(tmp_path, kind="compare", title="c", argv=[])
    with pytest.raises(JobError, match=r"training\.json"):
        read_facts(job)
    jobs.write_json(job.folder / "training.json", {"colour": "red"})
    with pytest.raises(JobError, match="colour"):
        read_facts(job)


def test_weights_that_are_not_there_make_no_job(order, labels, tmp_path):
    changed = replace(order, settings=replace(order.settings, weights=str(tmp_path / "gone.pth")))
    with pytest.raises(WeightsError, match=r"gone\.pth"):
        queue_training(changed, labels, tmp_path / "jobs")
    assert jobs.list_jobs(tmp_path / "jobs") == []


def test_votes_may_order_what_no_majority_does(order, labels, tmp_path):
    one_kind = labels[labels.recognisable].assign(n_recognised=lambda t: 3 + (t.index // 2) % 2)
    by_votes = replace(order, settings=replace(order.settings, ordering="votes"))
    assert queue_training(by_votes, one_kind, tmp_path / "jobs")
