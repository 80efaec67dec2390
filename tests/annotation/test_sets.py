"""A set folder is read, or it is said what is wrong with it."""

import json

import pandas as pd
import pytest
from study_factory import CLASSES, write_run, write_set

from annotation.errors import StudyError
from annotation.sets import read_set


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
    assert got.predicted_originals["image-001"] == {"cow": 0.9}
    assert got.predicted_reconstructions["image-000"] == {"heart": 0.25}
    assert "image-001" not in got.predicted_reconstructions


def test_attacked_images_are_optional(tmp_path):
    assert [i.attacked for i in read_set(write_set(tmp_path / "old")).images] == [None] * 4
    folder = write_set(tmp_path / "new", mirrored=[1])
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
        manifest.drop(columns=["class_name"]).to_parquet(folder / "manifest.parquet")
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
        ("a list", "expected 'semsim-reconstruction-set/1'"),
        ("no attack", "lacks the entry attack.name"),
        ("no manifest", "manifest.parquet is missing"),
        ("no parquet", "manifest.parquet cannot be read"),
        ("column", "lacks the columns class_name"),
        ("outside", "points outside of its folder"),
        ("attacked outside", "points outside of its folder"),
    ],
)
def test_broken_sets(tmp_path, how, message):
    with pytest.raises(StudyError, match=message):
        read_set(broken(tmp_path / "s", how))
