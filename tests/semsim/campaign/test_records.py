import json
from pathlib import Path

import pandas as pd
import pytest
import torch

from semsim.campaign.records import read_set, set_choices, write_set
from semsim.errors import DataError
from semsim.images import write_png


def row(image_id, status="ok"):
    return {
        "image_id": image_id,
        "class_id": 0,
        "class_name": "cat",
        "original": f"originals/{image_id}.png",
        "reconstruction": f"reconstructions/{image_id}.png" if status == "ok" else None,
        "status": status,
        "error": "" if status == "ok" else "diverged at step 3",
        "objective": 0.1,
        "shift_x": 1,
        "shift_y": -2,
        "flipped": True,
    }


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "sets/one"
    for kind in ("originals", "reconstructions"):
        write_png(torch.zeros(3, 4, 4), folder / kind / "a.png")
    write_set(folder, {"name": "demo/one", "model": "one"}, [row("a"), row("b", "failed")])
    return folder


def test_what_is_written_is_read(folder):
    found = read_set(folder)
    assert found.model == "one"
    assert found.manifest["image_id"].tolist() == ["a", "b"]
    assert (found.run["n_ok"], found.run["n_failed"]) == (1, 1)


def test_pairs_leave_failed_attacks_out_and_point_to_files(folder):
    pairs = read_set(folder).pairs
    assert pairs["image_id"].tolist() == ["a"]
    assert Path(pairs["reconstruction"][0]).is_file()


def test_attacked_images_are_optional(folder):
    assert read_set(folder).pairs["attacked"].tolist() == [None]
    rows = [{**row("a"), "attacked": "originals/a.png"}, {**row("b"), "attacked": None}]
    write_set(folder, {"name": "demo/one", "model": "one"}, rows)
    pairs = read_set(folder).pairs
    assert pairs["attacked"][0] == pairs["original"][0]
    assert pairs["attacked"].isna().tolist() == [False, True]


def test_sets_are_found_below_a_root(folder, tmp_path):
    assert set_choices([tmp_path, tmp_path / "nothing"]) == [("demo/one", folder)]


def test_a_broken_set_hides_no_other_and_is_offered_as_broken(folder, tmp_path):
    broken = tmp_path / "sets/broken"
    broken.mkdir()
    (broken / "run.json").write_text("{")
    assert set_choices([tmp_path]) == [
        ("broken (cannot be read)", broken),
        ("demo/one", folder),
    ]


def test_a_folder_without_manifest_is_no_set_and_says_what_is_missing(folder):
    (folder / "manifest.parquet").unlink()
    with pytest.raises(DataError, match=r"manifest\.parquet is missing"):
        read_set(folder)


def test_other_formats_and_lacking_columns_are_refused(folder):
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, "format": "other/2"}))
    with pytest.raises(DataError, match="other/2"):
        read_set(folder)
    (folder / "run.json").write_text(json.dumps(run))
    table = pd.read_parquet(folder / "manifest.parquet").drop(columns="shift_x")
    table.to_parquet(folder / "manifest.parquet")
    with pytest.raises(DataError, match="shift_x"):
        read_set(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, r"run\.json cannot be read: .*recursion"),
        ("[]", r"run\.json holds a list; expected an object"),
        ('{"format": "semsim-reconstruction-set/1"}', r"run\.json: model should be a name; got No"),
        (
            '{"format": "semsim-reconstruction-set/1", "model": {}}',
            r"run\.json: model should be a name; got a dict",
        ),
    ],
    ids=["deep", "list", "no model", "model"],
)
def test_a_run_file_that_is_none_is_named(folder, tmp_path, content, message):
    (folder / "run.json").write_text(content)
    with pytest.raises(DataError, match=message):
        read_set(folder)
    assert set_choices([tmp_path]) == [("one (cannot be read)", folder)]


@pytest.mark.parametrize("column", ["original", "reconstruction", "attacked"])
@pytest.mark.parametrize("path", ["a\0b.png", 3.5], ids=["NUL", "number"])
def test_a_path_that_is_none_is_named_by_its_row(folder, column, path):
    table = pd.read_parquet(folder / "manifest.parquet")
    table[column] = pd.Series([path] * len(table), dtype=object)
    table.to_parquet(folder / "manifest.parquet")
    with pytest.raises(DataError, match=rf"manifest\.parquet, row 1: {column} is no path: "):
        read_set(folder)


def test_no_path_is_needed_where_the_attack_failed(folder):
    table = pd.read_parquet(folder / "manifest.parquet")
    assert pd.isna(table["reconstruction"][1])
    table.loc[0, "original"] = None
    table.to_parquet(folder / "manifest.parquet")
    with pytest.raises(DataError, match=r"row 1: original is no path: (None|nan)"):
        read_set(folder)
