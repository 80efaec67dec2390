"""The jury answers by what each of it sees, and is marked wherever it appears."""

import numpy as np
import pandas as pd
import pytest
from study_factory import SURE, write_set

from annotation.errors import NotFoundError, StudyError
from annotation.spec import StudySpec, Task
from annotation.study.create import create_study
from annotation.study.exports import export_labels, export_votes
from annotation.study.labelling import progress
from annotation.study.sets import read_set
from annotation.study.simulate import simulate
from annotation.tasks.kind import NONE


def test_a_simulated_study_is_filled_and_marked(store, make_study, images):
    study = make_study(simulated=True)
    simulate(store, study.id, 5)
    votes = export_votes(store, study.id)
    assert len(votes) == 8 * 5
    assert votes["simulated"].all()
    assert (votes["status"] == "counted").all()
    assert votes["rt_ms"].isna().all()
    labels = export_labels(store, study.id, images)
    assert labels["simulated"].all()
    assert labels["recognisable"].all()
    assert all(row.simulated for row in progress(store, study.id).annotators)


def test_a_simulated_study_with_a_list_for_each_item_is_filled(store, make_study):
    study = make_study(simulated=True, lists="item", list_size=4, label_originals=True)
    simulate(store, study.id, 5)
    votes = export_votes(store, study.id)
    assert votes.groupby("annotator").size().to_list() == [8 + 4] * 5
    assert (votes["status"] == "counted").all()


def test_each_juror_has_a_threshold_of_its_own(store, make_study):
    study = make_study(simulated=True)
    simulate(store, study.id)
    named = (
        export_votes(store, study.id)
        .groupby("annotator")["answer"]
        .agg(lambda a: (a != NONE).sum())
    )
    assert named.to_dict() == {f"Simulated {n}": 8 if n <= 3 else 0 for n in range(1, 6)}


def test_a_second_run_adds_nothing(store, make_study):
    study = make_study(simulated=True)
    simulate(store, study.id, 5)
    simulate(store, study.id, 5)
    assert len(export_votes(store, study.id)) == 40


def test_refusals(store, make_study):
    with pytest.raises(StudyError, match="answered by people"):
        simulate(store, make_study().id)
    with pytest.raises(NotFoundError):
        simulate(store, "nothing")
    with pytest.raises(StudyError, match=r"6 simulated annotators are requested.* has 5"):
        simulate(store, make_study("six", simulated=True).id, 6)


def test_a_picture_that_one_of_the_jury_has_not_seen_makes_no_simulated_study(
    store, tmp_path, images
):
    folder = write_set(tmp_path / "one", probabilities=SURE)
    table = pd.read_parquet(folder / "jury.parquet")
    gone = (table["subject"] == "reconstruction") & (table["image_id"] == "image-001")
    gone &= table["juror"] == table["juror"].iloc[0]
    table[~gone].to_parquet(folder / "jury.parquet")
    spec = StudySpec(name="one", task=Task.RECOGNITION, simulated=True)
    with pytest.raises(
        StudyError, match="lacks the simulated annotators' answers for 1 reconstructions"
    ):
        create_study(store, spec, [folder], images)


def test_a_jury_that_cannot_be_is_refused(tmp_path):
    folder = write_set(tmp_path / "one", probabilities=SURE)
    table = pd.read_parquet(folder / "jury.parquet")
    table.assign(threshold=np.where(table.index == 2, 7.0, 0.5)).to_parquet(folder / "jury.parquet")
    with pytest.raises(StudyError, match="row 3: a threshold is a certainty from 0 to 1; got 7"):
        read_set(folder)
