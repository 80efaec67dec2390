"""The signs of a training that does not work."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from semsim.base.progress import Progress
from semsim.learning.diagnostics import (
    Course,
    Distances,
    EpochRecord,
    auc,
    best_epoch,
    course_in,
    distances,
    reason_to_stop,
    triplet_distances,
    warnings_about,
)

GOOD = {"epoch": 3, "loss": 0.2, "d_plus": 1.0, "d_minus": 3.0, "violated": 0.1, "norm": 5.0}


def record(**changes):
    return EpochRecord(**(GOOD | changes))


def test_a_good_training_has_no_warnings():
    assert warnings_about([record(validation_accuracy=0.9)], 1.0) == ()
    assert warnings_about([record()], 1.0) == ()
    assert warnings_about([], 1.0) == ()


@pytest.mark.parametrize(
    "collapsed",
    [
        {"loss": 1.0, "d_plus": 1e-9, "d_minus": 1e-9, "norm": 1e-6},
        {"loss": 1.0, "d_plus": 2.0, "d_minus": 2.0},
        {"loss": 0.9, "d_plus": 1e-5, "d_minus": 1e-4, "norm": 30.0},
    ],
)
def test_a_collapse_is_reported(collapsed):
    (warning,) = warnings_about([record(), record(**collapsed)], 1.0)
    assert "collapsed" in warning
    assert "lower learning rate" in warning


def test_a_collapse_is_seen_at_any_margin():
    assert warnings_about([record(loss=0.2)], 0.2)
    assert not warnings_about([record(loss=1.0)], 0.2)


@pytest.mark.parametrize("accuracy", [0.5, 0.1])
def test_guessing_on_held_out_originals_is_reported(accuracy):
    (warning,) = warnings_about([record(validation_accuracy=accuracy)], 1.0)
    assert "held-out" in warning


def test_distances_are_euclidean():
    measured = distances(
        torch.zeros(2, 2), torch.tensor([[3.0, 4], [0, 0]]), torch.tensor([[0.0, 1], [6, 8]])
    )
    assert measured.plus.tolist() == [5, 0]
    assert measured.minus.tolist() == [1, 10]
    assert measured.norm == pytest.approx((5 + 1 + 10) / 6)
    assert measured.violated(1.0) == 0.5
    assert measured.accuracy() == 0.5


def test_ties_are_half_right():
    same = Distances(plus=torch.ones(4), minus=torch.ones(4), norm=1.0)
    assert same.accuracy() == 0.5


def test_what_is_not_known_is_left_out():
    assert "validation_accuracy" not in record().values()
    assert record(validation_accuracy=0.7).values()["validation_accuracy"] == 0.7


def test_auc_of_one_kind_is_not_known():
    assert auc(torch.ones(3), np.array([True, True, True])) is None
    assert auc(torch.tensor([0.0, 1.0, 1.0, 2.0]), np.array([True, True, False, False])) == 0.875


def stop(records, patience=0, collapse_patience=0):
    return reason_to_stop(
        records, margin=1.0, patience=patience, collapse_patience=collapse_patience
    )


def test_training_stops_once_held_out_auc_no_longer_rises():
    aucs = [0.6, 0.7, 0.7, 0.65, None]
    records = [record(epoch=i + 1, validation_auc=a) for i, a in enumerate(aucs)]
    assert best_epoch(records) == 2
    reasons = [bool(stop(records[:n], patience=2)) for n in range(6)]
    assert reasons == [False, False, False, False, True, True]
    assert "epoch 2" in stop(records, patience=3)
    assert not stop(records, patience=4)
    assert not stop(records)


def test_training_stops_after_collapsed_epochs_in_a_row():
    flat = record(loss=1.0, d_plus=1e-9, d_minus=1e-9)
    assert "collapsed for 2" in stop([record(), flat, flat], collapse_patience=2)
    assert not stop([flat, record(), flat], collapse_patience=2)
    assert not stop([flat], collapse_patience=2)
    assert not stop([flat] * 9)


def test_distances_of_many_triplets_are_those_of_all_at_once(monkeypatch):
    features = torch.rand(7, 5, generator=torch.Generator().manual_seed(0))
    triplets = np.random.default_rng(0).integers(0, 7, (10, 3))
    whole = distances(*(features[triplets[:, role]] for role in range(3)))
    monkeypatch.setattr("semsim.learning.diagnostics._AT_ONCE", 4)
    parts = triplet_distances(features, triplets)
    assert torch.equal(parts.plus, whole.plus)
    assert torch.equal(parts.minus, whole.minus)
    assert parts.norm == whole.norm


def training(epochs, batches, first=0):
    """The reports of a training, each with its number of steps as its loss."""
    for epoch in range(first, epochs):
        for batch in range(1, batches + 1):
            step = epoch * batches + batch
            values = {"epoch": epoch + batch / batches, "loss": float(step)}
            yield Progress(step, epochs * batches, f"epoch {epoch + 1}", values)
        yield Progress(step, epochs * batches, "ends", {**GOOD, "epoch": epoch + 1})


def test_a_long_training_keeps_a_short_course_from_its_first_step_to_its_last(tmp_path):
    passed_on = []
    tell = Course(tmp_path, passed_on.append)
    for report in training(40, 500):
        tell(report)
    tell.write()
    kept = course_in(tmp_path)
    steps = [row["loss"] for row in kept["batches"]]
    assert len(passed_on) == 40 * 501
    assert [row["epoch"] for row in kept["ends"]] == list(range(1, 41))
    assert steps[0] == 1
    assert 20_000 - steps[-1] < 20_000 / 150
    assert max(b - a for a, b in pairwise(steps)) < 20_000 / 150
    assert 300 < len(steps) < 3_000
    assert (tmp_path / "course.json").stat().st_size < 300_000


def test_many_epochs_are_kept_by_their_logarithm(tmp_path):
    tell = Course(tmp_path, lambda report: None)
    for report in training(20_000, 1):
        tell(report)
    tell.write()
    kept = course_in(tmp_path)
    assert all(300 < len(rows) < 3_000 for rows in kept.values())
    assert all(rows[-1]["epoch"] > 19_900 for rows in kept.values())


def test_what_a_resume_does_again_is_in_a_course_once(tmp_path):
    stopped = Course(tmp_path, lambda report: None)
    for report in [*training(9, 10)][:27]:  # in the third epoch
        stopped(report)
    stopped.write()
    resumed = Course(tmp_path, lambda report: None)
    for report in training(9, 10, first=2):
        resumed(replace(report, values={**report.values, "norm": 7.0}))
    resumed.write()
    kept = course_in(tmp_path)
    assert [row["loss"] for row in kept["batches"]] == list(range(1, 91))
    assert [row["epoch"] for row in kept["ends"]] == list(range(1, 10))
    again = [row["loss"] for row in kept["batches"] if row.get("norm") == 7.0]
    assert again == list(range(21, 91))


def test_an_epoch_that_is_done_again_counts_as_it_ended(tmp_path):
    tell = Course(tmp_path, lambda report: None)
    for d_plus in (2.0, 3.0):
        tell(Progress(1, 2, values={"epoch": 1, "loss": 1.0, "d_plus": d_plus}))
    tell.write()
    assert [row["d_plus"] for row in course_in(tmp_path)["ends"]] == [3.0]


def test_a_course_is_json_also_of_what_is_no_number(tmp_path):
    tell = Course(tmp_path, lambda report: None)
    tell(Progress(1, 2, values={"epoch": 0.5, "loss": 1.0, "norm": float("nan")}))
    tell(Progress(2, 2, values={"epoch": 1.0, "loss": float("inf")}))
    tell.write()
    text = (tmp_path / "course.json").read_text()
    kept = json.loads(text, parse_constant=pytest.fail)
    assert kept == {"batches": [{"epoch": 0.5, "loss": 1.0}], "ends": []}
