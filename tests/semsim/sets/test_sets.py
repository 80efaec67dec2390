import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from semsim.base.errors import DataError
from semsim.base.sets.reader import read_set, set_choices
from semsim.base.sets.set_format import COLUMNS, PREDICTIONS
from semsim.sets.image import SetImage
from semsim.sets.writer import write_rows, write_set


def picture(value=0):
    return np.full((4, 4, 3), value, np.uint8)


def image(image_id, error="", **more):
    return SetImage(
        image_id=image_id,
        class_id=0,
        class_name="cat",
        original=picture(),
        reconstruction=None if error else picture(1),
        error=error,
        **more,
    )


RUN = {"name": "demo/one", "model": "one"}


@pytest.fixture
def folder(tmp_path):
    return write_set(tmp_path / "sets/one", RUN, [image("a"), image("b", "diverged at step 3")])


def test_what_is_written_is_read(folder):
    found = read_set(folder)
    assert found.model == "one"
    assert found.manifest["image_id"].tolist() == ["a", "b"]
    assert (found.run["n_ok"], found.run["n_failed"]) == (1, 1)


def test_pairs_leave_failed_attacks_out_and_point_to_files(folder):
    pairs = read_set(folder).pairs
    assert pairs["image_id"].tolist() == ["a"]
    assert Path(pairs["reconstruction"][0]).is_file()


def test_what_a_writer_does_not_know_is_null_in_columns_that_every_set_has(folder):
    assert list(pd.read_parquet(folder / "manifest.parquet").columns) == list(COLUMNS)
    found = read_set(folder)
    known = {"image_id", "class_id", "class_name", "original", "reconstruction", "status", "error"}
    first = found.manifest.iloc[0]
    assert set(first.index[first.notna()]) == known
    assert found.pairs["attacked"].tolist() == [None]


def test_an_attacked_image_has_a_file_of_its_own_only_where_it_differs(folder):
    write_set(folder, RUN, [image("a", attacked=picture()), image("b", attacked=picture(2))])
    pairs = read_set(folder).pairs
    assert pairs["attacked"][0] == pairs["original"][0]
    assert [path.name for path in (folder / "attacked").iterdir()] == ["b.png"]
    np.testing.assert_array_equal(np.asarray(Image.open(pairs["attacked"][1])), picture(2))


def test_facts_come_back_as_they_went_in(folder):
    facts = {"objective": 0.5, "shift_x": -2, "flipped": True, "blown_up": False, "solver": "rgap"}
    write_set(folder, RUN, [image("a", **facts), image("b", "no", residual=0.25)])
    first, second = read_set(folder).manifest.to_dict("records")
    assert {name: first[name] for name in facts} == facts
    assert second["residual"] == 0.25
    assert all(pd.isna(second[name]) for name in facts)


def test_a_set_appears_with_everything_in_it_or_not_at_all(folder, tmp_path):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    gone = replace(image("c"), reconstruction=tmp_path / "gone.png")
    with pytest.raises(DataError, match="gone"):
        write_set(folder, {"model": "other"}, [image("a"), gone])
    with pytest.raises(DataError, match="gone"):
        write_set(tmp_path / "sets/new", {"model": "new"}, [gone])
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert list(folder.parent.iterdir()) == [folder]


def test_a_new_set_leaves_nothing_of_the_one_whose_place_it_takes(folder):
    write_set(folder, RUN, [image("c")])
    write_rows(pd.DataFrame({"image_id": ["c"]}), folder / PREDICTIONS)  # as a judge leaves it
    write_set(folder, RUN, [image("d")])
    files = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    assert files == ["manifest.parquet", "originals/d.png", "reconstructions/d.png", "run.json"]


def test_what_a_writer_has_in_hand_is_no_set_yet(folder, tmp_path):
    half = tmp_path / "sets/.two.1.1.part"
    folder.rename(half)
    assert set_choices([tmp_path]) == []


def test_sets_are_found_below_a_root(folder, tmp_path):
    assert set_choices([tmp_path, tmp_path / "nothing"]) == [("demo/one · target not kept", folder)]


def test_a_list_of_sets_says_how_good_their_targets_are(folder, tmp_path):
    tested = {"accuracy": 0.02, "n_test": 100, "n_classes": 50, "chance": 0.02}
    tested["at_chance"] = True
    write_set(folder, {**RUN, "target": tested}, [image("c")])
    assert set_choices([tmp_path]) == [
        ("demo/one · target 2% right: at chance (2%)", folder),
    ]


def test_a_broken_set_hides_no_other_and_is_offered_as_broken(folder, tmp_path):
    broken = tmp_path / "sets/broken"
    broken.mkdir()
    (broken / "run.json").write_text("{")
    assert set_choices([tmp_path]) == [
        ("broken (cannot be read)", broken),
        ("demo/one · target not kept", folder),
    ]


def test_a_folder_without_manifest_is_no_set_and_says_what_is_missing(folder):
    (folder / "manifest.parquet").unlink()
    with pytest.raises(DataError, match=r"manifest\.parquet is missing\.$"):
        read_set(folder)


def test_a_folder_of_sets_is_no_set_and_says_what_it_holds(folder):
    above = rf"run\.json is missing\. It holds 1 of them, as {folder.name}: name one\."
    with pytest.raises(DataError, match=above):
        read_set(folder.parent)


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
