"""A manifest becomes reconstruction sets, or every one of its rows that is wrong is named."""

import pandas as pd
import pytest
from made_tables import sheet

from annotation.errors import StudyError
from annotation.formats.plain import write_csv, write_jsonl, write_parquet
from annotation.study.create import COLUMNS, read_manifest

WRITERS = {".csv": write_csv, ".jsonl": write_jsonl, ".parquet": write_parquet}


def rows(models=("a", "b"), labels=("Cat", "=cow")):
    return [
        {
            "model": model,
            "dataset": "symbols",
            "attack": "invgrad",
            "image_id": f"00{index}",
            "class_name": label,
            "original": f"originals/{index}.png",
            "reconstruction": f"{model}/{index}.png",
        }
        for model in models
        for index, label in enumerate(labels)
    ]


def write(folder, table, ending=".csv"):
    path = folder / f"manifest{ending}"
    frame = pd.DataFrame(table)
    WRITERS[ending](frame.astype(dict.fromkeys(frame.columns, "str")), path)
    return path


@pytest.mark.parametrize("ending", WRITERS)
def test_one_set_a_model(tmp_path, ending):
    path = write(tmp_path, rows(), ending)
    manifest = read_manifest(path)
    assert (manifest.problems, manifest.unused) == ((), ())
    first, second = manifest.sets
    assert (first.model, second.model) == ("a", "b")
    assert (first.dataset, first.attack, first.n_failed) == ("symbols", "invgrad", 0)
    assert first.classes == second.classes == ("=cow", "Cat")
    image = second.images[1]
    assert (image.image_id, image.class_name) == ("001", "=cow")
    assert image.original == tmp_path / "originals/1.png"
    assert image.reconstruction == tmp_path / "b/1.png"
    assert image.attacked is None
    assert image.where == f"manifest{ending}, row 4: "


@pytest.mark.parametrize("ending", WRITERS)
def test_attacked_images_are_optional_in_each_row(tmp_path, ending):
    table = rows(models=["a"])
    table[0]["attacked"] = "attacked/0.png"
    (found,) = read_manifest(write(tmp_path, table, ending)).sets
    assert [image.attacked for image in found.images] == [tmp_path / "attacked/0.png", None]


def test_a_parquet_column_without_a_value_is_no_path(tmp_path):
    pd.DataFrame([{**row, "attacked": None} for row in rows()]).to_parquet(tmp_path / "m.parquet")
    manifest = read_manifest(tmp_path / "m.parquet")
    assert {image.attacked for one in manifest.sets for image in one.images} == {None}


def test_numbers_are_text(tmp_path):
    table = [{**row, "image_id": int(row["image_id"])} for row in rows()]
    pd.DataFrame(table).to_parquet(tmp_path / "m.parquet")
    (first, _) = read_manifest(tmp_path / "m.parquet").sets
    assert [image.image_id for image in first.images] == ["0", "1"]


def test_every_problem_is_named_with_its_row(tmp_path):
    table = rows()
    table[0] |= {"class_name": "", "model": " "}
    table[1] |= {"original": "../secret.png", "reconstruction": "/etc/secret.png"}
    table[2] |= {"dataset": "faces", "attacked": "/etc/passwd"}
    table += [
        {**table[3], "attack": "dlg", "class_name": "sun"},
        {**rows()[0], "image_id": "new"},
    ]
    manifest = read_manifest(write(tmp_path, table))
    assert manifest.problems == tuple(
        f"manifest.csv, row {row}: {problem}"
        for row, problem in (
            (1, "model, class_name must not be empty."),
            (2, "original points outside of the manifest's folder: ../secret.png."),
            (2, "reconstruction points outside of the manifest's folder: /etc/secret.png."),
            (3, "attacked points outside of the manifest's folder: /etc/passwd."),
            (3, "the dataset is 'faces', in row 2 it is 'symbols'; expected one."),
            (5, "the attack on model 'b' is 'dlg', in row 3 it is 'invgrad'; expected one."),
            (5, "the class_name of image '001' is 'sun', in row 2 it is '=cow'; expected one."),
            (5, "model 'b' has image '001' in row 4 already."),
        )
    )
    assert [[i.image_id for i in one.images] for one in manifest.sets] == [["001"], ["new"]]


def test_columns_that_mean_nothing_are_said(tmp_path):
    table = [{**row, "atacked": "x.png"} for row in rows()]
    assert read_manifest(write(tmp_path, table)).unused == ("atacked",)


def test_no_row_is_a_problem(tmp_path):
    (tmp_path / "m.csv").write_text(",".join(COLUMNS) + "\n")
    manifest = read_manifest(tmp_path / "m.csv")
    assert manifest.problems == (f"{tmp_path / 'm.csv'} has no row.",)
    assert manifest.sets == ()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.csv", "model,dataset\na,b\n", "lacks the columns attack, image_id"),
        ("m.txt", "", "should end in .csv, .tsv, .xlsx, .jsonl, .parquet"),
        ("m.jsonl", "{", "cannot be read"),
        ("gone.csv", None, "is missing"),
    ],
)
def test_what_is_no_manifest_is_explained(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(StudyError, match=message):
        read_manifest(tmp_path / name)


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_what_no_name_or_path_can_hold_is_named_by_its_row(tmp_path, ending):
    table = rows(models=["a"], labels=["Cat", "cow", "star", "sun"])
    table[0]["original"] = "originals/a\0b.png"
    table[1]["class_name"] = "c\0ow"
    table[2]["model"] = "a\x1b[31m"
    table[3]["class_name"] = "s" * 201
    manifest = read_manifest(write(tmp_path, table, ending))
    first, second, third, fourth = manifest.problems
    assert first.startswith(f"manifest{ending}, row 1: original ")
    assert second == (
        f"manifest{ending}, row 2: class_name 'c\\x00ow' holds the control character U+0000; "
        "leave it out."
    )
    assert third.startswith(f"manifest{ending}, row 3: model ")
    assert fourth == (
        f"manifest{ending}, row 4: class_name {'s' * 40!r} … has 201 letters; at most 200 can be "
        "answered."
    )


def test_rows_nested_too_deeply_are_no_table(tmp_path):
    (tmp_path / "manifest.jsonl").write_text("[" * 100_000)
    with pytest.raises(StudyError, match=r"manifest\.jsonl cannot be read: .*recursion"):
        read_manifest(tmp_path / "manifest.jsonl")


def test_letters_of_old_windows_are_read_and_it_is_said(tmp_path):
    path = write(tmp_path, rows(labels=("Bär", "Kuh")))
    path.write_bytes(path.read_text(encoding="utf-8").encode("cp1252"))
    manifest = read_manifest(path)
    assert "Bär" in manifest.sets[0].classes
    assert "is not UTF-8 and was read as Latin-1" in manifest.remarks[0]


def test_lines_of_old_windows_are_read(tmp_path, caplog):
    path = write(tmp_path, rows(labels=("Bär", "Kuh")), ".jsonl")
    path.write_bytes(path.read_text(encoding="utf-8").encode("cp1252"))
    assert "Bär" in read_manifest(path).sets[0].classes
    assert "is not UTF-8 and was read as Latin-1" in caplog.text


def test_a_manifest_may_be_a_sheet_of_excel(tmp_path):
    table = rows()
    path = sheet(tmp_path / "m.xlsx", [list(table[0]), *(list(row.values()) for row in table)])
    found, same = read_manifest(path), read_manifest(write(tmp_path, table))
    assert (found.problems, found.unused) == ((), ())
    assert [one.images[0].original for one in found.sets] == [
        one.images[0].original for one in same.sets
    ]
    assert [one.classes for one in found.sets] == [one.classes for one in same.sets]
    assert found.remarks == ("Of the 2 sheets of m.xlsx the first was read.",)
