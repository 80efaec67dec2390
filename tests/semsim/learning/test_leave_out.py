"""Each data set left out in turn, over the tables of several studies."""

import shutil
from dataclasses import replace

import pandas as pd
import pytest
from PIL import Image, ImageOps

from semsim.base.errors import DataError, SettingsError, WeightsError
from semsim.cli.learn import left_out_rows, left_out_text
from semsim.learning.ablations_run import Material, Workplace
from semsim.learning.baselines import ALL
from semsim.learning.leave_out import LeaveOut, leave_each_out, queue_leave_out, read_materials
from semsim.papers.semsim import learned_text


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr("semsim.learning.shuffles.OF_NETWORKS", 2)
    return Workplace(
        checkpoints=tmp_path / "checkpoints",
        scores=tmp_path / "scores",
        device="cpu",
        metrics=("mse",),
    )


@pytest.fixture
def two(material, tmp_path):
    """Two studies as files, labels and votes, of two data sets."""
    files = []
    for name, one in (("a", material), ("b", material)):
        own = Material(
            labels=one.labels.assign(dataset=name, study=name),
            votes=one.votes.assign(dataset=name, study=name),
        )
        if name == "b":  # what is one picture is one original, so it has pictures of its own
            own = _mirrored(own, tmp_path / "b")
        own.labels.to_parquet(tmp_path / f"{name}-labels.parquet")
        own.votes.to_parquet(tmp_path / f"{name}.parquet")
        files.append((tmp_path / f"{name}-labels.parquet", tmp_path / f"{name}.parquet"))
    return files


def _mirrored(one: Material, folder) -> Material:
    folder.mkdir()
    moved = {}
    for number, path in enumerate(sorted(set(one.labels["original"]))):
        moved[path] = str(folder / f"{number}.png")
        with Image.open(path) as picture:
            ImageOps.mirror(picture).save(moved[path])
    return replace(one, labels=one.labels.assign(original=one.labels["original"].map(moved)))


def test_every_data_set_is_judged_by_a_semsim_that_never_saw_it(two, place, quick, tmp_path):
    material = read_materials([one for one, _ in two], [votes for _, votes in two])
    assert set(material.labels["dataset"]) == {"a", "b"}
    people = material.votes.groupby("dataset")["annotator"].unique()
    assert not set(people["a"]) & set(people["b"])  # a name in two studies is not one person
    settings = replace(quick, epochs=1)
    plan = LeaveOut(controls=ALL)
    found = leave_each_out(plan, settings, material, place, tmp_path / "out")
    assert [row["left_out"] for row in found["rows"]] == ["a", "b"]
    assert found["simulated"]
    assert (tmp_path / "out/a/semsim.safetensors").exists()
    for row in found["rows"]:
        assert row["n_originals"] == 6  # of the other one's eight; two are for its curves
        assert row["held_out"]["n_originals"] == 8
        named = {one["metric"] for one in row["held_out"]["metrics"]}
        own = "semsim:semsim"
        assert {"mse", own, f"{own}.start", "shuffled"} <= named
    kept = (tmp_path / "out/a/arm.json").stat().st_mtime_ns
    assert leave_each_out(plan, settings, material, place, tmp_path / "out") == found
    assert (tmp_path / "out/a/arm.json").stat().st_mtime_ns == kept


def test_one_that_leaves_nothing_to_learn_from_stops_no_other(two, place, quick, tmp_path):
    material = read_materials([one for one, _ in two], ())
    assert material.votes is None
    none = material.labels["dataset"].eq("b")
    labels = material.labels.assign(
        recognisable=material.labels["recognisable"].mask(none, False).astype("boolean")
    )
    settings = replace(quick, epochs=1)
    found = leave_each_out(LeaveOut(), settings, Material(labels=labels), place, tmp_path / "out")
    rows = {row["left_out"]: row for row in found["rows"]}
    assert "of 8 originals none has both" in rows["a"]["why"].lower()
    assert "why" not in rows["b"]


def test_a_training_that_diverges_stops_no_other(two, place, quick, tmp_path):
    material = read_materials([one for one, _ in two], ())
    settings = replace(quick, epochs=1)
    leave_each_out(LeaveOut(), settings, material, place, tmp_path)
    shutil.rmtree(tmp_path / "a")
    wild = replace(settings, lr=1e30)
    found = leave_each_out(LeaveOut(), wild, material, place, tmp_path)  # b is there already
    first, second = found["rows"]
    assert first["left_out"] == "a"
    assert "The loss became" in first["why"]
    assert "checkpoint" not in first
    assert (second["left_out"], "why" in second) == ("b", False)
    text = left_out_text(found)
    assert f"Without a: {first['why']}" in text
    assert "Of 2 trainings 1 is judged here." in text
    assert {"left_out": "a", "why": first["why"]} in left_out_rows(found)
    learned = learned_text(found["rows"])
    assert f"a: {first['why']}" in learned
    assert "Of 2 trainings 1 is judged here." in learned


def test_names_that_files_cannot_have_are_not_taken_for_one(two, place, quick, tmp_path):
    found = read_materials([one for one, _ in two], ())
    called = {"a": "数据", "b": "图像"}
    labels = found.labels.assign(dataset=found.labels["dataset"].map(called))
    settings = replace(quick, epochs=1)
    rows = leave_each_out(LeaveOut(), settings, Material(labels=labels), place, tmp_path)["rows"]
    assert [row["left_out"] for row in rows] == sorted(called.values())
    assert len({row["checkpoint"] for row in rows}) == 2


def test_one_that_leaves_nothing_to_judge_by_stops_no_other(material, place, quick, tmp_path):
    labels = material.labels
    first = labels["image_id"] == labels["image_id"].iloc[0]
    rare = labels[first].assign(attack="dlg")  # of one original, which has to be learned from
    both = Material(labels=pd.concat([labels, rare], ignore_index=True))
    settings = replace(quick, epochs=1)
    found = leave_each_out(LeaveOut(kind="attack"), settings, both, place, tmp_path)
    rows = {row["left_out"]: row for row in found["rows"]}
    assert "leaves nothing to judge by" in rows["dlg"]["why"]
    assert "of 1 original none has both" not in rows["invgrad"].get("why", "")


def test_a_folder_that_was_moved_says_where_its_checkpoints_are_now(two, place, quick, tmp_path):
    material = read_materials([one for one, _ in two], ())
    settings = replace(quick, epochs=1)
    leave_each_out(LeaveOut(), settings, material, place, tmp_path / "out")
    shutil.move(tmp_path / "out", tmp_path / "elsewhere")
    found = leave_each_out(LeaveOut(), settings, material, place, tmp_path / "elsewhere")
    for row in found["rows"]:
        assert row["checkpoint"] == str(
            tmp_path / "elsewhere" / row["left_out"] / "semsim.safetensors"
        )


def test_what_cannot_be_is_told(two, place, quick, tmp_path):
    (labels, votes), _ = two
    alone = read_materials([labels], [votes])
    with pytest.raises(DataError, match="only one dataset"):
        leave_each_out(LeaveOut(), quick, alone, place, tmp_path)
    with pytest.raises(DataError, match="1 tables of labels and 2 of votes"):
        read_materials([labels], [votes, votes])
    with pytest.raises(DataError, match=r"No votes at .*gone\.parquet"):
        read_materials([labels], [votes.with_name("gone.parquet")])
    with pytest.raises(DataError, match="the same reconstructions"):
        read_materials([labels, labels], ())
    with pytest.raises(SettingsError, match="Leave out each dataset"):
        LeaveOut(kind="original")


def test_weights_that_are_not_there_make_no_job(two, place, quick, tmp_path):
    material = read_materials([one for one, _ in two], [])
    settings = replace(quick, weights=str(tmp_path / "gone.pth"))
    with pytest.raises(WeightsError, match=r"gone\.pth"):
        queue_leave_out(LeaveOut(), settings, material, place, tmp_path / "jobs")
