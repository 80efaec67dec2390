"""What leaves a study: complete, typed, without decoys among the labels."""

import uuid
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from annotation.domain import Answer, Task
from annotation.errors import AnnotationError, NotFoundError
from annotation.exports import VOTE_COLUMNS, export_labels, export_votes, write_table
from annotation.study import join, next_items, undo, vote
from annotation.votes.aggregate import LABEL_COLUMNS

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def answer_all(store, study, name, text):
    person = join(store, study.token, name).annotator
    for item in next_items(store, person, "tab", 100, NOW):
        vote(store, person, Answer(id=str(uuid.uuid4()), item=item.item, answer=text), NOW)
    return person


def test_labels_are_the_majority(store, make_study, images):
    study = make_study(votes_per_item=3)
    for name, text in (("Anna", "Cat"), ("Ben", "Cat"), ("Cleo", "none")):
        answer_all(store, study, name, text)
    table = export_labels(store, study.id, images)
    assert list(table.columns) == list(LABEL_COLUMNS)
    assert len(table) == 8
    cats = table["class_name"] == "Cat"
    assert (table["recognisable"] == cats).all()
    assert table.loc[cats, "mean_response"].tolist() == pytest.approx([2 / 3, 2 / 3])
    assert (table["n_votes"] == 3).all()
    assert not table["simulated"].any()
    for column in ("original", "reconstruction"):
        assert all(Path(path).is_absolute() and Path(path).exists() for path in table[column])


def test_decoys_are_in_the_votes_but_never_in_the_labels(store, make_study, images):
    study = make_study(task=Task.PAIR, decoy_rate=1.0, votes_per_item=1)
    answer_all(store, study, "Anna", "same")
    votes = export_votes(store, study.id)
    assert votes["kind"].value_counts().to_dict() == {"reconstruction": 8, "decoy": 8}
    assert votes["recognised"].all()
    table = export_labels(store, study.id, images)
    assert len(table) == 8
    assert (table["n_votes"] == 1).all()


def test_superseded_votes_are_exported_but_not_counted(store, make_study, images):
    study = make_study(votes_per_item=1)
    anna = answer_all(store, study, "Anna", "Cat")
    undo(store, anna, export_votes(store, study.id)["vote_id"][0], NOW)
    assert export_votes(store, study.id)["status"].value_counts()["superseded"] == 1
    assert export_labels(store, study.id, images)["n_votes"].sum() == 7


def test_types_are_the_same_without_votes(store, make_study, images):
    empty, full = make_study("empty"), make_study("full")
    answer_all(store, full, "Anna", "none")
    for export in (export_votes, lambda s, i: export_labels(s, i, images)):
        assert export(store, empty.id).dtypes.to_dict() == export(store, full.id).dtypes.to_dict()
    assert list(export_votes(store, empty.id).columns) == list(VOTE_COLUMNS)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("answered", [True, False])
def test_tables_survive_a_file(store, make_study, images, tmp_path, ending, answered):
    study = make_study(votes_per_item=1)
    if answered:
        answer_all(store, study, "Anna", "Cat")
    table = export_labels(store, study.id, images)
    write_table(table, tmp_path / f"new/labels{ending}")
    read = pd.read_csv if ending == ".csv" else pd.read_parquet
    back = read(tmp_path / f"new/labels{ending}")
    pd.testing.assert_frame_equal(
        back.astype({"recognisable": "boolean"}), table, check_dtype=ending == ".parquet"
    )


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(AnnotationError, match=r"\.xlsx"):
        write_table(pd.DataFrame(), tmp_path / "a.xlsx")


def test_votes_and_labels_carry_the_rule_that_was_fixed_with_the_study(store, make_study, images):
    study = make_study(votes_per_item=3, headline="dawid-skene")
    answer_all(store, study, "Anna", "Cat")
    votes = export_votes(store, study.id)
    assert (votes["headline"] == "dawid-skene").all()
    assert (votes["votes_per_item"] == 3).all()
    labels = export_labels(store, study.id, images)
    assert (labels["headline"] == "dawid-skene").all()


def test_an_unknown_study(store, images):
    with pytest.raises(NotFoundError):
        export_votes(store, "nothing")
    with pytest.raises(NotFoundError):
        export_labels(store, "nothing", images)
