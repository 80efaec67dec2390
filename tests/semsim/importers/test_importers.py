"""What holds for every importer."""

import json
from dataclasses import FrozenInstanceError, fields

import pandas as pd
import pytest

from annotation.domain import StudySpec, Task
from annotation.store import Store
from annotation.study.labelling import create_study
from annotation.study.sets import read_set as read_for_study
from semsim.errors import DataError, SemsimError, SettingsError, UnknownNameError
from semsim.importers import IMPORTERS, carry_out, places_of, plan_import, read_import
from semsim.learning.triplets import take_stock
from semsim.scores.scoring import pair_set
from semsim.sets.reader import read_set


def all_below(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def source(tmp_path, draw, released):
    """A small source for each kind."""

    def of(kind):
        folder = tmp_path / "source"
        if kind == "train-with-ori":
            return released
        if kind == "model-folders":
            for image, label in ((1, 0), (2, 1)):
                draw(folder / f"m/{image}_{label}_ori.png", image)
                draw(folder / f"m/{image}_{label}_rec.png", image + 50)
        if kind == "variant-folders":
            for image in (1, 2):
                draw(folder / f"original/{image}.jpg", image)
                draw(folder / f"m/{image}.jpg", image + 50)
        if kind == "annotator-files":
            folder.mkdir()
            (folder / "m.json").write_text(json.dumps({"1_0": [0, -1], "2_1": [1, 1]}))
        if kind in ("table", "semsim-cifar100"):
            folder = tmp_path / "source.csv"
            table = {
                "table": "model,image_id,class_name,annotator,answer\nm,1,0,A,0\nm,2,1,A,none\n",
                "semsim-cifar100": "model,cifar100_test_index0,class_id,ann0,ann1,ann2,ann3,ann4,"
                "released_recognizable,released_label_inferred,psnr,mse_uint8\n"
                "m,1,0,0,0,0,-1,-1,1,0,9,100\nm,2,1,1,-1,-1,-1,-1,1,1,8,200\n",
            }
            folder.write_text(table[kind])
        return folder

    return of


@pytest.mark.parametrize("kind", IMPORTERS)
def test_planning_reads_and_writes_nothing(kind, source, tmp_path):
    path = source(kind)
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
def test_progress_reaches_its_total(kind, source):
    seen = []
    plan_import(kind, source(kind), "name", report=seen.append)
    assert seen
    assert seen[-1].done == seen[-1].total


@pytest.mark.parametrize("kind", IMPORTERS)
def test_settings_are_frozen_and_explain_themselves(kind):
    importer = IMPORTERS[kind]
    for setting in fields(importer):
        assert setting.metadata["help"].endswith(".")
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


def test_unknown_kinds_and_settings_are_refused(source):
    with pytest.raises(UnknownNameError, match="Known: annotator-files"):
        plan_import("zip", source("table"), "name")
    with pytest.raises(SettingsError, match=r"no setting 'colour'. It has: model"):
        plan_import("table", source("table"), "name", {"colour": 1})


def test_the_paper_s_file_has_both_labels(source):
    tables = plan_import("semsim-cifar100", source("semsim-cifar100"), "n").found.tables
    assert tables.labels["human:released"].tolist() == [True, True]
    assert tables.labels["n_recognised"].tolist() == [3, 1]
    assert tables.headline == "released"
    mse = tables.scores.loc[tables.scores["metric"] == "mse", "value"]
    assert mse.tolist() == pytest.approx([100 / 65025, 200 / 65025])


@pytest.mark.parametrize("kind", ["train-with-ori", "model-folders", "variant-folders"])
def test_imported_sets_are_scored_and_make_a_study(kind, source, tmp_path):
    plan = plan_import(kind, source(kind), "name")
    places = places_of("name", tmp_path / "data")
    carry_out(plan, places)
    folders = [places.sets / one.folder for one in plan.found.sets]
    for folder in folders:
        assert len(pair_set(read_set(folder)).pairs) == 2
        assert len(read_for_study(folder).images) == 2
    with Store(f"sqlite:///{tmp_path / 'studies.db'}") as store:
        spec = StudySpec(name="imported", task=Task.PAIR, votes_per_item=1)
        study = create_study(store, spec, folders, tmp_path / "images")
    assert study.n_items == 2 * len(folders)


def test_a_study_of_recognition_needs_classes(source, tmp_path):
    places = places_of("name", tmp_path / "data")
    carry_out(plan_import("model-folders", source("model-folders"), "name"), places)
    spec = StudySpec(name="imported", task=Task.RECOGNITION, votes_per_item=1, list_size=2)
    with Store(f"sqlite:///{tmp_path / 'studies.db'}") as store:
        study = create_study(store, spec, [places.sets / "m"], tmp_path / "images")
        assert study.n_items == 2


def test_semsim_can_learn_from_the_released_labels(source, tmp_path):
    places = places_of("name", tmp_path / "data")
    carry_out(plan_import("train-with-ori", source("train-with-ori"), "name"), places)
    stock = take_stock(read_import(places.tables).labels)
    assert [original.image_id for original in stock.usable] == ["7"]
    assert [original.image_id for original in stock.only_recognisable] == ["12"]
