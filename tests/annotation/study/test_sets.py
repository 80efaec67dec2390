"""A set folder is read, or it is said what is wrong with it."""

import json
import math

import pandas as pd
import pytest
from study_factory import CLASSES, SURE, write_run, write_set

from annotation.errors import StudyError
from annotation.study.sets import read_set


def test_a_set(tmp_path):
    folder = write_set(
        tmp_path / "s",
        failed=[1],
        probabilities={"original": {"TRUE": 0.9}, "reconstruction": {"heart": 0.25}},
    )
    got = read_set(folder)
    assert (got.model, got.attack, got.dataset) == ("resnet20-4/none", "invgrad", "symbols")
    assert got.classes == CLASSES
    assert [image.image_id for image in got.images] == ["image-000", "image-002", "image-003"]
    assert got.n_failed == 1
    assert got.images[0].original == folder / "originals/image-000.png"
    assert got.predicted_originals["image-001"] == {"cow": math.log(0.9)}
    assert [sight.juror for sight in got.jury["reconstruction", "image-000"]] == [
        f"Simulated {number}" for number in range(1, 6)
    ]
    assert got.jury["reconstruction", "image-000"][0].logs == {"heart": math.log(0.25)}
    assert ("reconstruction", "image-001") not in got.jury


def test_what_was_attacked_may_not_be_known(tmp_path):
    assert [i.attacked for i in read_set(write_set(tmp_path / "unknown")).images] == [None] * 4
    folder = write_set(tmp_path / "known", mirrored=[1])
    manifest = pd.read_parquet(folder / "manifest.parquet")
    manifest.loc[2, "attacked"] = None
    manifest.to_parquet(folder / "manifest.parquet")
    assert [image.attacked for image in read_set(folder).images] == [
        folder / "originals/image-000.png",
        folder / "attacked/image-001.png",
        None,
        folder / "originals/image-003.png",
    ]


def test_predictions_are_optional(tmp_path):
    assert read_set(write_set(tmp_path / "s")).predicted_originals == {}


def test_log_probabilities_tell_apart_what_rounds_to_zero(tmp_path):
    chances = {"original": {"TRUE": 0.0, "heart": 0.0}}
    path = write_set(tmp_path / "s", probabilities=chances) / "predictions.parquet"
    table = pd.read_parquet(path).drop(columns="log_probability")
    table.assign(log_probability=-1000.0 - table.index).to_parquet(path)
    logs = read_set(tmp_path / "s").predicted_originals
    assert logs["image-000"] == {"Cat": -1000.0, "heart": -1001.0}

    table.assign(log_probability=0.5).to_parquet(path)
    with pytest.raises(
        StudyError, match=r"row 1: a log-probability is a number at most 0; got 0.5"
    ):
        read_set(tmp_path / "s")
    table.to_parquet(path)
    with pytest.raises(StudyError, match="lacks the columns log_probability"):
        read_set(tmp_path / "s")


def broken(folder, how):
    write_set(folder)
    manifest = pd.read_parquet(folder / "manifest.parquet")
    if how == "no run":
        (folder / "run.json").unlink()
    elif how == "no json":
        (folder / "run.json").write_text("{")
    elif how == "other format":
        write_run(folder, format="something/2")
    elif how == "a list":
        (folder / "run.json").write_text("[]")
    elif how == "no attack":
        run = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({k: run[k] for k in run if k != "attack"}))
    elif how == "no manifest":
        (folder / "manifest.parquet").unlink()
    elif how == "no parquet":
        (folder / "manifest.parquet").write_text("image_id")
    elif how == "column":
        manifest.drop(columns=["class_name", "attacked"]).to_parquet(folder / "manifest.parquet")
    elif how in ("outside", "attacked outside"):
        manifest["attacked" if "attacked" in how else "original"] = "../../secret.png"
        manifest.to_parquet(folder / "manifest.parquet")
    return folder


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("no run", "run.json is missing"),
        ("no json", "run.json cannot be read"),
        ("other format", "format 'something/2'; expected 'semsim-reconstruction-set/1'"),
        ("a list", "holds a list; expected an object"),
        ("no attack", "lacks the entry attack.name"),
        ("no manifest", "manifest.parquet is missing"),
        ("no parquet", "manifest.parquet cannot be read"),
        ("column", "lacks the columns class_name, attacked"),
        ("outside", "points outside of the manifest's folder"),
        ("attacked outside", "points outside of the manifest's folder"),
    ],
)
def test_broken_sets(tmp_path, how, message):
    with pytest.raises(StudyError, match=message):
        read_set(broken(tmp_path / "s", how))


@pytest.mark.parametrize("column", ["image_id", "class_name"])
def test_a_missing_name_is_none_and_not_the_word_for_it(tmp_path, column):
    folder = write_set(tmp_path / "s")
    manifest = pd.read_parquet(folder / "manifest.parquet")
    manifest.loc[2, column] = None
    manifest.to_parquet(folder / "manifest.parquet")
    with pytest.raises(StudyError, match=r"manifest\.parquet, row 3: image_id and class_name must"):
        read_set(folder)


def with_entry(folder, entry, value):
    """The set in `folder` with another value of an entry, such as dataset.classes, in run.json."""
    run = json.loads((folder / "run.json").read_text())
    *outer, last = entry.split(".")
    place = run
    for key in outer:
        place = place[key]
    place[last] = value
    (folder / "run.json").write_text(json.dumps(run))
    return folder


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("dataset.classes", 5, "should be a list of names; got 5"),
        ("dataset.classes", "Cat", "should be a list of names; got 'Cat'"),
        ("dataset.classes", [["Cat"]], "should be a list of names; got a list as one of them"),
        ("dataset.classes", ["Cat", None], "should be a list of names; got None as one of them"),
        ("model", {"name": "x"}, "should be a name; got a dict"),
        ("model", "a\0b", r"'a\\x00b' holds the control character U\+0000"),
        ("attack.name", None, "should be a name; got None"),
        ("dataset.name", " ", "' ' is empty"),
    ],
)
def test_an_entry_that_is_no_name_is_named(tmp_path, entry, value, message):
    folder = with_entry(write_set(tmp_path / "s"), entry, value)
    with pytest.raises(StudyError, match=rf"run\.json: {entry} {message}"):
        read_set(folder)


@pytest.mark.parametrize("column", ["original", "reconstruction", "attacked"])
@pytest.mark.parametrize(
    ("path", "message"),
    [("a\0b.png", "is no path"), ("loop/b.png", "loop"), (3.5, "is no path: 3.5")],
    ids=["NUL", "loop", "number"],
)
def test_a_path_that_is_none_is_named_by_its_row(tmp_path, column, path, message):
    folder = write_set(tmp_path / "s", mirrored=[1])
    (folder / "loop").symlink_to("loop")
    manifest = pd.read_parquet(folder / "manifest.parquet")
    manifest[column] = path
    manifest.loc[0, "status"] = "failed"
    manifest.to_parquet(folder / "manifest.parquet")
    with pytest.raises(StudyError, match=rf"manifest\.parquet, row 2: {column} .*{message}"):
        read_set(folder)


@pytest.mark.parametrize("value", ["abc", "nan", "0.5"])
def test_a_probability_that_is_none_is_named_by_its_row(tmp_path, value):
    folder = write_set(tmp_path / "s", probabilities=SURE)
    table = pd.read_parquet(folder / "predictions.parquet").astype({"log_probability": str})
    table.loc[2, "log_probability"] = value
    table.to_parquet(folder / "predictions.parquet")
    with pytest.raises(
        StudyError, match=rf"predictions\.parquet, row 3: .* at most 0; got .*{value}"
    ):
        read_set(folder)


def test_names_of_classes_may_be_numbers(tmp_path):
    folder = with_entry(write_set(tmp_path / "s"), "dataset.classes", [0, 1.5, "Cat"])
    assert read_set(folder).classes == ("0", "1.5", "Cat")
