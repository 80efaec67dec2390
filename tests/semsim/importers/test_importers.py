"""What holds for every importer."""

from dataclasses import FrozenInstanceError, fields

import pandas as pd
import pytest

from annotation.spec import StudySpec, Task
from annotation.store import Store
from annotation.study.create import create_study
from annotation.study.sets import read_set as read_for_study
from semsim.base.errors import DataError, SemsimError, SettingsError, UnknownNameError
from semsim.base.sets.imports import places_of, read_import
from semsim.importers import IMPORTERS, plan_import
from semsim.importers.import_folder import carry_out
from semsim.learning.triplets import take_stock
from semsim.metrics.scoring import pair_sets_of_folders


def all_below(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", IMPORTERS)
def test_planning_reads_and_writes_nothing(kind, example, tmp_path):
    path = example(kind)
    before = all_below(tmp_path)
    first, second = (plan_import(kind, path, "name") for _ in range(2))
    assert all_below(tmp_path) == before
    assert first.complete
    assert first.text() == second.text()
    assert first.found.sets == second.found.sets
    if first.found.tables is not None:
        pd.testing.assert_frame_equal(first.found.tables.votes, second.found.tables.votes)
        pd.testing.assert_frame_equal(first.found.tables.labels, second.found.tables.labels)


@pytest.mark.parametrize("kind", IMPORTERS)
def test_progress_reaches_its_total(kind, example):
    seen = []
    plan_import(kind, example(kind), "name", report=seen.append)
    assert seen
    assert seen[-1].done == seen[-1].total


@pytest.mark.parametrize("kind", IMPORTERS)
def test_settings_are_frozen_and_explain_themselves(kind):
    importer = IMPORTERS[kind]
    for setting in fields(importer):
        assert setting.metadata["text"].endswith(".")
        with pytest.raises(FrozenInstanceError):
            setattr(importer, setting.name, None)


@pytest.mark.parametrize("kind", IMPORTERS)
def test_a_source_of_another_kind_is_refused(kind, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SemsimError):
        plan_import(kind, tmp_path / "empty", "name")
    with pytest.raises(DataError, match="nothing at"):
        plan_import(kind, tmp_path / "gone", "name")
    with pytest.raises(DataError, match="cannot be read"):
        plan_import(kind, tmp_path / ("x" * 300), "name")


def test_unknown_kinds_and_settings_are_refused(example):
    with pytest.raises(UnknownNameError, match="Known: annotator-files"):
        plan_import("zip", example("table"), "name")
    with pytest.raises(SettingsError, match=r"no setting 'colour'. It has: model"):
        plan_import("table", example("table"), "name", {"colour": 1})


@pytest.mark.parametrize("kind", IMPORTERS)
def test_imported_sets_are_scored_and_make_a_study(kind, example, tmp_path):
    plan = plan_import(kind, example(kind), "name")
    if not plan.found.sets:
        return
    places = places_of("name", tmp_path / "data")
    carry_out(plan, places)
    counts = {
        places.sets / one.folder: sum(not pair.error for pair in one.pairs)
        for one in plan.found.sets
    }
    for folder, count in counts.items():
        assert len(pair_sets_of_folders([folder])[0].pairs) == count > 0
        assert len(read_for_study(folder).images) == count
    with Store(f"sqlite:///{tmp_path / 'studies.db'}") as store:
        for task in (Task.PAIR, Task.RATING):
            spec = StudySpec(name=f"as {task}", task=task, votes_per_item=1)
            study = create_study(store, spec, list(counts), tmp_path / "images")
            assert study.n_items == sum(counts.values())


def test_a_study_of_recognition_needs_classes(example, tmp_path):
    places = places_of("name", tmp_path / "data")
    carry_out(plan_import("model-folders", example("model-folders"), "name"), places)
    spec = StudySpec(name="imported", task=Task.RECOGNITION, votes_per_item=1, list_size=2)
    with Store(f"sqlite:///{tmp_path / 'studies.db'}") as store:
        study = create_study(store, spec, [places.sets / "m"], tmp_path / "images")
        assert study.n_items == 2


def test_semsim_can_learn_from_the_released_labels(example, tmp_path):
    places = places_of("name", tmp_path / "data")
    carry_out(plan_import("train-with-ori", example("train-with-ori"), "name"), places)
    stock = take_stock(read_import(places.tables).labels)
    assert [original.image_id for original in stock.usable] == ["7"]
    assert [original.image_id for original in stock.only_recognisable] == ["12"]
