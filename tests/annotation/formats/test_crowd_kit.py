"""One row a counted vote, in the columns that crowd-kit asks for."""

import csv

from study_factory import arrived

from annotation.formats.plain import write_crowd_kit
from annotation.spec import Task
from annotation.study.labelling import undo


def rows_of(data, out):
    words = write_crowd_kit(data, out / "a.csv")
    with (out / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert words == f"{len(rows)} answers"
    return rows


def test_the_long_table(data, out):
    rows = rows_of(data, out)
    assert list(rows[0]) == ["worker", "task", "label", "kind", "simulated", "voter"]
    assert len(rows) == 3 * 8
    expected = {(v.annotator, v.item, v.answer) for v in data.votes.itertuples()}
    assert {(row["worker"], row["task"], row["label"]) for row in rows} == expected
    assert {row["simulated"] for row in rows} == {"False"}


def test_only_votes_that_count_are_in_it(store, make_study, answer, out, images):
    study = make_study(votes_per_item=1)
    first = answer(study, lambda stimulus: "none", names=["Anna"]).votes["vote_id"][0]
    anna = arrived(store, study, "Anna").annotator
    undo(store, anna, first, answer(study, str, names=[]).votes["server_ts"][0])
    data = answer(study, str, names=[])
    assert set(data.votes["status"]) == {"counted", "superseded"}
    assert len(rows_of(data, out)) == 7


def test_decoys_can_be_told_apart(make_study, answer, out):
    study = make_study(task=Task.PAIR, decoy_rate=0.5, votes_per_item=1)
    rows = rows_of(answer(study, lambda stimulus: "same", names=["Anna"]), out)
    assert sorted(row["kind"] for row in rows) == ["decoy"] * 4 + ["reconstruction"] * 8


def test_simulated_votes_are_marked(simulated, out):
    rows = rows_of(simulated, out)
    assert {(row["simulated"], row["voter"]) for row in rows} == {("True", "jury")}
