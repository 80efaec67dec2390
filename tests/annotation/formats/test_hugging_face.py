"""The folder is what the builder "imagefolder" asks for: metadata and files agree."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
from PIL import Image

from annotation.domain import TargetTest
from annotation.formats.hugging_face import write_hugging_face
from annotation.study.exports import read_study


def metadata(folder):
    text = (folder / "train/metadata.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_every_row_has_its_files_and_every_file_a_row(data, out):
    assert write_hugging_face(data, out) == "8 reconstructions"
    rows = metadata(out)
    named = {row[name] for row in rows for name in ("file_name", "original_file_name")}
    files = {p.relative_to(out / "train").as_posix() for p in out.rglob("*.png")}
    assert named == files
    known = data.labels.set_index("item")
    for row in rows:
        label = known.loc[row["item"]]
        for name, column in (("file_name", "reconstruction"), ("original_file_name", "original")):
            file = out / "train" / row[name]
            assert file.read_bytes() == Path(label[column]).read_bytes()
            with Image.open(file) as image:
                assert image.size == (6, 6)
        assert row["recognisable"] == (row["model"] == "convnet8")


def test_the_rest_of_the_metadata_are_the_labels(data, out):
    write_hugging_face(data, out)
    got = pd.DataFrame(metadata(out)).drop(columns=["file_name", "original_file_name"])
    expected = data.labels.drop(columns=["reconstruction", "original", "attacked"])
    got = got[list(expected)].astype(expected.dtypes)  # a column of nulls has no type in JSON
    pd.testing.assert_frame_equal(got, expected)


def test_no_majority_is_null(store, make_study, images, out):
    write_hugging_face(read_study(store, make_study().id, images), out)
    assert {row["recognisable"] for row in metadata(out)} == {None}
    assert {row["mean_response"] for row in metadata(out)} == {None}


def test_the_card_starts_with_front_matter(make_study, answer, out):
    data = answer(make_study(name='a: "b"\n---'), lambda s: "none", names=["Anna"])
    write_hugging_face(data, out)
    head, pretty, tags, end, top = (out / "README.md").read_text().splitlines()[:5]
    assert (head, end, top) == ("---", "---", '# a: "b" ---')
    assert json.loads(pretty.removeprefix("pretty_name: ")) == data.study.name
    assert "simulated" not in tags


def test_models_are_listed_with_how_good_they_were_where_that_is_known(data, out):
    known = TargetTest(accuracy=0.03, n_classes=50, at_chance=True)
    write_hugging_face(
        replace(data, study=replace(data.study, targets={data.study.models[0]: known})), out
    )
    first, *others = data.study.models
    words = "; ".join([f"{first}: 3% right: at chance (2%)", *others])
    assert f"- Target models: {words}" in (out / "README.md").read_text().splitlines()


def test_simulated_votes_are_marked(simulated, out):
    write_hugging_face(simulated, out)
    lines = (out / "README.md").read_text().splitlines()
    assert "simulated" in lines[2]
    assert lines[4].startswith("**Simulated votes")
    assert "jury of five networks" in lines[4]
    assert all(row["simulated"] for row in metadata(out))
