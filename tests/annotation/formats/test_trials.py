"""Answers to trials are in the table of votes, and in no form of data about labels."""

import json
import uuid
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest
from made_tables import read_typed
from study_factory import write_set

from annotation.domain import Answer
from annotation.formats import What, export
from annotation.spec import StudySpec, Task
from annotation.study.create import create_study
from annotation.study.exports import read_study
from annotation.study.labelling import join, next_items, vote
from semsim.base.columns import VOTE_COLUMNS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRIALS = {"catch", "gold", "repeat"}


@pytest.fixture
def data(store, tmp_path, images):
    """One person's answers to everything, two at a time as repeats are of what came before."""
    labels = ("Cat", "Cat", "cow", "cow", "star", "sun")
    sets = [write_set(tmp_path / m, model=m, labels=labels) for m in ("a", "b")]
    gold = tmp_path / "gold.csv"
    gold.write_text("model,image_id,answer\na,image-005,sun\n")
    rates = {"catch_rate": 0.5, "gold_rate": 0.5, "repeat_rate": 0.5, "repeat_lag": 1}
    spec = StudySpec(name="s", task=Task.RECOGNITION, votes_per_item=1, set_aside=2, **rates)
    study = create_study(store, spec, sets, images, gold=gold)
    person, now = join(store, study.token, "Anna").annotator, NOW
    while items := next_items(store, person, "tab", 2, now):
        for item in items:
            # Models a and b are recognised in turns, so that there is something to sort.
            now += timedelta(seconds=1)
            said = item.candidates[0] if now.second % 2 else "none"
            new = Answer(id=str(uuid.uuid4()), item=item.item, answer=said, tab="tab")
            vote(store, person, new, now)
    return read_study(store, study.id, images)


def test_votes_say_which_are_trials(data):
    assert set(data.votes["kind"]) == {"reconstruction", *TRIALS}
    quality = data.votes["status"] == "quality"
    assert (data.votes["kind"].isin(TRIALS) == quality).all()
    known = data.votes["expected"].notna()
    assert (known == data.votes["kind"].isin({"catch", "gold"})).all()
    assert len(data.counted) == len(data.labels) == 7


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_trials_come_back_from_a_table(data, tmp_path, form):
    path = tmp_path / f"votes.{form}"
    export(data, path, form, What.VOTES)
    read = read_typed(path, VOTE_COLUMNS)[list(VOTE_COLUMNS)]
    pd.testing.assert_frame_equal(read, data.votes[list(VOTE_COLUMNS)])


def test_crowd_kit_gets_what_counts(data, tmp_path):
    export(data, tmp_path / "crowd.csv", "crowd-kit")
    table = pd.read_csv(tmp_path / "crowd.csv")
    assert len(table) == 7
    assert set(table["kind"]) == {"reconstruction"}


def test_label_studio_gets_what_counts(data, tmp_path):
    export(data, tmp_path / "tasks", "label-studio")
    tasks = json.loads((tmp_path / "tasks/tasks.json").read_text(encoding="utf-8"))
    assert {task["data"]["kind"] for task in tasks} == {"reconstruction"}
    assert [len(task["annotations"]) for task in tasks] == [1] * 7
    shown = {one.name for one in (tmp_path / "tasks/images").iterdir()}
    assert len(shown) == 7


def test_a_data_set_of_labels_has_what_counts(data, tmp_path):
    export(data, tmp_path / "hf", "hf")
    lines = (tmp_path / "hf/train/metadata.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["n_votes"] for line in lines] == [1] * 7
    export(data, tmp_path / "tree", "train-with-ori")
    assert len(list((tmp_path / "tree").rglob("*_rec_*.png"))) == 7
