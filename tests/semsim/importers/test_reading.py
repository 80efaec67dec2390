import json

import pytest

from semsim.errors import DataError
from semsim.importers import carry_out, list_imports, places_of, plan_import, read_import

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


def test_no_folder_holds_no_import(tmp_path):
    assert list_imports(tmp_path / "nothing") == {}
