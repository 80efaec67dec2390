"""What leaves a study: complete, typed, without decoys among the labels."""

import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from study_factory import DATABASES, SURE, fresh_database, joined, write_run, write_set
from study_factory import answer_all as answer

from annotation.errors import NotFoundError, StudyError
from annotation.spec import StudySpec, Task
from annotation.store import Store, reports
from annotation.store.tables import EventRow
from annotation.study import labelling, participants
from annotation.study.create import create_study
from annotation.study.exports import Collected, export_labels, export_votes, read_study
from annotation.study.labelling import undo
from annotation.study.sets import read_set
from semsim.base.columns import ATTACKER, LABEL_COLUMNS, TARGET_COLUMNS, VOTE_COLUMNS
from semsim.base.stats.grouping import layout_of
from semsim.base.threat import ThreatModel
from semsim.reporting.notation import attacker_text, target_text

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def answer_all(store, study, name, text):
    (person,) = joined(store, study, name)
    answer(store, person, text)
    return person


@pytest.mark.parametrize("store", DATABASES, indirect=True)
def test_a_later_look_at_the_votes_reads_those_that_changed(store, make_study, monkeypatch):
    study = make_study(votes_per_item=2, label_originals=True)
    read, in_short = [], reports.votes_in_short
    monkeypatch.setattr(
        reports,
        "votes_in_short",
        lambda tx, of, ids=None: read.append(ids) or in_short(tx, of, ids),
    )
    collected = Collected(store=store, study_id=study.id)

    def look():
        found = collected.read()
        first, votes, lists, shown = Collected(store=store, study_id=study.id).read()
        pd.testing.assert_frame_equal(found[1], votes)
        pd.testing.assert_frame_equal(found[3], shown)
        assert (found[0], found[2]) == (first, lists)
        return read[-2]

    assert look() is None
    anna = answer_all(store, study, "Anna", "Cat")
    hers = len(export_votes(store, study.id))
    assert len(look()) == hers > 0
    assert look() == []
    answer_all(store, study, "Ben", "none")
    assert len(look()) == len(export_votes(store, study.id)) - hers > 0
    undo(store, anna, export_votes(store, study.id)["vote_id"][0], NOW)
    assert len(look()) == 1
    participants.exclude(store, study.id, "Ben", NOW)
    assert look() is None
    labelling.rename(store, study.id, "other")
    assert look() is None


def test_an_event_that_comes_late_under_a_lower_number_has_all_votes_read(store, make_study):
    study = make_study()
    note = {"study_id": study.id, "kind": "joined", "at": NOW, "data": {}}
    for number in (1002, 1001):
        seen = labelling.events_so_far(store, study.id)
        store.write(lambda tx, number=number: tx.add(EventRow(id=number, **note)))
        changed = store.read(lambda tx, seen=seen: reports.changed_votes(tx, study.id, seen))
        assert changed == ([] if number == 1002 else None)


def test_labels_are_the_majority(store, make_study, images):
    study = make_study(votes_per_item=3)
    for name, text in (("Anna", "Cat"), ("Ben", "Cat"), ("Cleo", "none")):
        answer_all(store, study, name, text)
    table = export_labels(store, study.id, images)
    assert list(table.columns) == [*LABEL_COLUMNS, *TARGET_COLUMNS, ATTACKER, "judges"]
    assert table[[*TARGET_COLUMNS, ATTACKER]].isna().all(axis=None)
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


def test_the_stratum_is_the_quality_of_what_is_shown_within_its_model(store, make_study, images):
    study = make_study(task=Task.PAIR, decoy_rate=1.0, votes_per_item=1)
    answer_all(store, study, "Anna", "same")
    data = read_study(store, study.id, images)
    shown = data.votes.merge(data.stimuli[["item", "original", "shown"]], on="item")
    matched = shown[shown["kind"] == "reconstruction"]
    errors = [mse(*paths) for paths in zip(matched["original"], matched["shown"], strict=True)]
    # Four reconstructions of each model fall into four strata.
    ranks = pd.Series(errors, index=matched.index).groupby(matched["model"]).rank() - 1
    assert matched["stratum"].tolist() == ranks.tolist()
    decoys = shown[shown["kind"] == "decoy"].merge(matched, on=["model", "shown"])
    assert len(decoys) == 8
    assert decoys["stratum_x"].tolist() == decoys["stratum_y"].tolist()


def mse(first, second):
    one, other = (np.asarray(Image.open(path), float) for path in (first, second))
    return float(((one - other) ** 2).mean())


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


def test_all_tables_of_a_study_are_read_together(store, make_study, images):
    study = make_study(task=Task.PAIR, decoy_rate=0.5, votes_per_item=1)
    answer_all(store, study, "Anna", "same")
    data = read_study(store, study.id, images)
    assert data.study == study
    pd.testing.assert_frame_equal(data.votes, export_votes(store, study.id))
    pd.testing.assert_frame_equal(data.labels, export_labels(store, study.id, images))
    assert sorted(data.stimuli["item"]) == sorted(data.votes["item"])
    assert sorted(data.stimuli["kind"]) == ["decoy"] * 4 + ["reconstruction"] * 8
    for column in ("original", "shown"):
        assert all(Path(path).exists() for path in data.stimuli[column])


@pytest.mark.parametrize("kind", DATABASES)
def test_both_databases_give_the_same_tables(kind, tmp_path, images):
    folder = write_set(tmp_path / "set")
    spec = StudySpec(name="s", task=Task.RECOGNITION, list_size=4, votes_per_item=1)
    with fresh_database(kind, tmp_path) as url, Store(url) as store:
        study = create_study(store, spec, [folder], images)
        answer_all(store, study, "Anna", "none")
        data = read_study(store, study.id, images)
    types = {name: str(type_) for name, type_ in data.votes.dtypes.items()}
    assert types == dict(VOTE_COLUMNS)
    assert data.stimuli["image_id"].tolist() == [f"image-{i:03d}" for i in range(4)]
    assert data.stimuli["candidates"].map(type).eq(list).all()
    assert data.labels["recognisable"].eq(False).all()


def test_stimuli_know_the_classes_that_were_offered(store, make_study, images):
    stimuli = read_study(store, make_study(list_size=4).id, images).stimuli
    assert all(
        len(classes) == 4 and name in classes
        for classes, name in zip(stimuli["candidates"], stimuli["class_name"], strict=True)
    )


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
    with pytest.raises(NotFoundError):
        read_study(store, "nothing", images)


def test_how_good_a_target_was_goes_with_its_labels(store, tmp_path, images):
    folder = write_set(tmp_path / "sets/one", probabilities=SURE)
    tested = {"accuracy": 0.03, "n_test": 470, "n_classes": 47, "chance": 0.04, "at_chance": True}
    write_run(folder, target=tested)
    study = create_study(store, StudySpec(name="one", task=Task.RECOGNITION), [folder], images)
    kept = study.target("resnet20-4/none")
    assert (kept.accuracy, kept.at_chance) == (0.03, True)
    assert kept.text == "3% right: at chance (4%, the commonest class)"
    (row,) = export_labels(store, study.id, images)[list(TARGET_COLUMNS)].drop_duplicates().values
    assert list(row[:3]) == [0.03, 0.04, True]
    assert pd.isna(row[3:]).all()


def test_what_the_attacker_knew_and_saw_goes_with_labels_to_tables_of_models(
    store, tmp_path, images
):
    folder = write_set(tmp_path / "sets/one", probabilities=SURE)
    known = {"threat": ThreatModel(basic=True).record(), "seen": {"parameters": 1, "of": 4}}
    write_run(folder, **known)
    study = create_study(store, StudySpec(name="one", task=Task.RECOGNITION), [folder], images)
    told = "B · 1 of 4 parameters (25%)"
    assert study.target("resnet20-4/none").attacker == told
    labels = export_labels(store, study.id, images)
    assert set(labels[ATTACKER]) == {told}
    found = layout_of(labels.astype({"model": str})).models
    assert [attacker_text(row) for _, row in found.iterrows()] == [told]


@pytest.mark.parametrize(("epsilon", "told"), [(8.126, "8.13"), (None, "∞")])
def test_what_training_gives_away_goes_with_labels(store, tmp_path, images, epsilon, told):
    folder = write_set(tmp_path / "sets/one", probabilities=SURE)
    write_run(folder, target={"accuracy": 0.5, "chance": 0.1, "epsilon": epsilon, "delta": 1e-5})
    study = create_study(store, StudySpec(name="one", task=Task.RECOGNITION), [folder], images)
    test = study.target("resnet20-4/none")
    assert test.text == f"50% right (chance 10%), ε = {told} at δ = 1e-05"
    labels = export_labels(store, study.id, images)
    (kept,) = labels["target_epsilon"].drop_duplicates()
    assert kept == epsilon or (math.isnan(kept) and epsilon is None)
    assert set(labels["target_delta"]) == {1e-5}
    assert {target_text(row) for _, row in labels.iterrows()} == {test.text}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"accuracy": 3}, "share from 0 to 1; got 3"),
        ({"accuracy": 0.5}, "target.chance should be a share from 0 to 1; got None"),
        ({"n_classes": 0}, "number of classes; got 0"),
        ({"epsilon": -1, "delta": 1e-5}, "epsilon should be a number of 0 or more and finite"),
        ({"epsilon": 1, "delta": "little"}, "target.delta should be .* below 1; got 'little'"),
    ],
)
def test_a_target_that_cannot_be_so_good_is_refused(tmp_path, target, message):
    folder = write_set(tmp_path / "one")
    write_run(folder, target=target)
    with pytest.raises(StudyError, match=message):
        read_set(folder)
