import json
import os

import pandas as pd
import pytest

from semsim.base.errors import DataError, SettingsError
from semsim.base.progress import Progress
from semsim.base.sets.imports import (
    import_names,
    imported_votes,
    list_imports,
    places_of,
    read_import,
)
from semsim.base.sets.reader import read_set
from semsim.importers import plan_import
from semsim.importers.import_folder import carry_out


def everything_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.fixture
def plan(released):
    return plan_import("train-with-ori", released, "paper")


def test_sets_and_tables_get_their_places(plan, tmp_path):
    made = carry_out(plan, places_of("paper", tmp_path / "data"))
    assert made == (tmp_path / "data/runs/paper", tmp_path / "data/imports/paper")
    assert everything_below(tmp_path / "data/imports") == [
        "paper",
        "paper/import.json",
        "paper/labels.parquet",
        "paper/votes.parquet",
    ]
    sets = [read_set(tmp_path / "data/runs/paper" / name) for name in ("model-01", "model-02")]
    assert [one.run["name"] for one in sets] == ["paper/model-01", "paper/model-02"]
    labels = pd.read_parquet(tmp_path / "data/imports/paper/labels.parquet")
    for column in ("original", "reconstruction"):
        assert all(os.path.isfile(path) for path in labels[column])
    assert labels["attacked"].isna().all()


def test_where_the_data_folder_has_moved_the_pictures_are_found(plan, tmp_path):
    carry_out(plan, places_of("paper", tmp_path / "data"))
    before = read_import(tmp_path / "data/imports/paper").labels
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    labels = read_import(tmp_path / "elsewhere/imports/paper").labels
    for column in ("original", "reconstruction"):
        assert all(os.path.isfile(path) for path in labels[column])
    pd.testing.assert_frame_equal(
        labels.replace("elsewhere", "data", regex=True), before, check_dtype=False
    )


def test_a_folder_of_ones_own_holds_both(plan, tmp_path):
    out = tmp_path / "here"
    assert carry_out(plan, places_of("paper", tmp_path / "data", out)) == (out,)
    assert (out / "votes.parquet").is_file()
    assert read_set(out / "model-01").model == "model-01"
    assert not (tmp_path / "data").exists()


def test_the_record_says_what_came_from_where_and_no_place_of_this_machine(
    released, tmp_path, draw
):
    draw(released / "7/strange.png")
    (released / "12/12_0_rec_1_1.png").write_bytes(b"broken")
    names = tmp_path / "names.txt"
    names.write_text("one\ntwo\n")
    plan = plan_import("train-with-ori", released, "paper", {"folder_names": names})
    carry_out(plan, places_of("paper", tmp_path / "data"))
    text = (tmp_path / "data/imports/paper/import.json").read_text()
    record = json.loads(text)
    assert record["format"] == "semsim-import/1"
    assert (record["name"], record["kind"]) == ("paper", "train-with-ori")
    assert (record["source"], record["headline"]) == ("train_with_ori", "released")
    assert record["simulated"] is False
    assert record["settings"]["folder_names"] == "names.txt"
    places = [one["where"] for one in record["unread"]]
    assert places == ["7/strange.png", "image 12 of one"]
    assert record["unread"][1]["why"].startswith("12/12_0_rec_1_1.png is not a readable image")
    assert record["counts"]["reconstructions"] == 3
    assert str(tmp_path) not in text
    run = read_set(tmp_path / "data/runs/paper/one").run
    assert run["import"]["kind"] == "train-with-ori"
    assert str(tmp_path) not in json.dumps(run["import"])


def test_nothing_is_overwritten(plan, tmp_path):
    places = places_of("paper", tmp_path / "data")
    places.tables.mkdir(parents=True)
    with pytest.raises(SettingsError, match="is there already"):
        carry_out(plan, places)
    assert everything_below(tmp_path / "data") == ["imports", "imports/paper"]


def test_an_image_that_goes_away_leaves_nothing_behind(plan, released, tmp_path):
    (released / "12/12_0_rec_2_2.png").unlink()
    with pytest.raises(DataError):
        carry_out(plan, places_of("paper", tmp_path / "data"))
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert not list((tmp_path / "data").glob("*/*"))


def test_an_interrupt_leaves_nothing_behind(plan, tmp_path):
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(plan, places_of("paper", tmp_path / "data"), stop)
    assert not list((tmp_path / "data").glob("*/*"))


def test_when_the_second_folder_cannot_be_named_the_first_goes_again(plan, tmp_path):
    places = places_of("paper", tmp_path / "data")

    def take_its_place(progress):
        if progress.done == progress.total:  # all is written, nothing has its name yet
            (places.tables / "something").mkdir(parents=True)

    with pytest.raises(DataError, match="Nothing was imported"):
        carry_out(plan, places, take_its_place)
    assert everything_below(tmp_path / "data") == [
        "imports",
        "imports/paper",
        "imports/paper/something",
        "runs",
    ]


def test_a_place_that_cannot_be_written_is_an_error(plan, tmp_path):
    (tmp_path / "data").write_text("a file where a folder should be")
    with pytest.raises(DataError, match="Nothing was imported"):
        carry_out(plan, places_of("paper", tmp_path / "data"))


def test_progress_reaches_its_total(plan, tmp_path):
    seen = []
    carry_out(plan, places_of("paper", tmp_path), seen.append)
    assert seen[-1] == Progress(3, 3, "writing tables")


VOTES = "model,image_id,class_name,annotator,answer,p\nm,1,cat,A,cat,9\nm,2,cat,A,none,8\n"


@pytest.fixture
def root(tmp_path):
    """A folder with the import `good`."""
    (tmp_path / "votes.csv").write_text(VOTES)
    plan = plan_import("table", tmp_path / "votes.csv", "good", {"scores": "psnr=p"})
    carry_out(plan, places_of("good", tmp_path / "data"))
    return tmp_path / "data/imports"


def test_what_was_written_is_read(root):
    found = read_import(root / "good")
    assert found.name == "good"
    assert found.votes["recognised"].tolist() == [True, False]
    assert found.labels["recognisable"].tolist() == [True, False]
    assert found.scores["value"].tolist() == [9, 8]
    assert found.record["sha256"]
    assert "original" not in found.labels


def test_scores_are_not_always_there(root):
    (root / "good/scores.parquet").unlink()
    assert read_import(root / "good").scores is None


def test_broken_imports_are_listed_with_the_reason(root):
    for name, text in {
        "empty": None,
        "halved": "{",
        "nested": "[" * 100_000,
        "other": json.dumps({"format": "something"}),
        "poor": json.dumps({"format": "semsim-import/1", "name": "poor"}),
        ".under-way.12": None,
    }.items():
        (root / name).mkdir()
        for table in ("votes", "labels"):
            (root / name / f"{table}.parquet").touch()
        if text is not None:
            (root / name / "import.json").write_text(text)
    found = {folder.name: listed for folder, listed in list_imports(root).items()}
    assert list(found) == ["empty", "good", "halved", "nested", "other", "poor"]
    assert found["good"].name == "good"
    assert found["good"].problem is None
    assert found["good"].record["headline"] == "majority"
    expected = {
        "empty": "import.json is missing",
        "halved": "cannot be read",
        "nested": "cannot be read",
        "other": "has format 'something'; expected 'semsim-import/1'",
        "poor": "lacks the entries kind, source, headline",
    }
    for name, words in expected.items():
        assert words in found[name].problem
        assert found[name].name == f"{name} (cannot be read)"
        assert found[name].record["headline"] == "majority"
        with pytest.raises(DataError, match=words):
            read_import(root / name)


def test_a_broken_table_is_an_error_that_names_it(root):
    (root / "good/votes.parquet").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"votes\.parquet is not a readable table"):
        read_import(root / "good")


def test_the_votes_of_an_import_by_its_folder(tmp_path, plan):
    carry_out(plan, places_of("paper", tmp_path))
    root = tmp_path / "imports"
    (root / "broken").mkdir()
    assert import_names(root) == {"paper": ("paper", "labels")}  # the released ones
    name, votes, state = imported_votes("paper", root)
    assert (name, len(votes)) == ("paper", len(read_import(root / "paper").votes))
    assert imported_votes("paper", root)[2] == state
    for folder in ("broken", "../imports/paper", "", "nowhere"):
        with pytest.raises(DataError, match="There is no import"):
            imported_votes(folder, root)


def test_no_folder_holds_no_import(tmp_path):
    assert list_imports(tmp_path / "nothing") == {}
