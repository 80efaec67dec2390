"""The folder is what the builder "imagefolder" asks for: metadata and files agree."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import yaml
from PIL import Image
from study_factory import answer_all, joined

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
    got = pd.DataFrame(metadata(out)).drop(columns=["file_name", "original_file_name", "votes"])
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
    front, top = front_matter(out)
    assert top == '# a: "b" ---'
    assert front["pretty_name"] == data.study.name
    assert front["license"] == "unknown"
    assert front["task_categories"] == ["image-classification"]
    assert front["annotations_creators"] == ["crowdsourced"]
    assert front["size_categories"] == ["n<1K"]
    assert "simulated" not in front["tags"]


def test_a_name_of_any_letters_is_read_as_it_is(data, out):
    named = replace(data, study=replace(data.study, name="Größe 😀 \u2192"))
    write_hugging_face(named, out)
    assert front_matter(out)[0]["pretty_name"] == "Größe 😀 \u2192"


def test_the_card_says_the_licence_that_was_given(data, out):
    write_hugging_face(replace(data, licence="cc-by-4.0"), out)
    assert front_matter(out)[0]["license"] == "cc-by-4.0"
    text = (out / "README.md").read_text()
    assert "the front matter says `cc-by-4.0`" in text
    assert "--licence" not in text


def front_matter(folder):
    """What the card says before its text, and the first line after it."""
    _, front, text = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(front), text.splitlines()[0]


def test_every_row_carries_its_votes(data, out):
    write_hugging_face(data, out)
    for row in metadata(out):
        given = data.votes[data.votes["item"] == row["item"]]
        told = {(one["annotator"], one["answer"], one["recognised"]) for one in row["votes"]}
        assert told == set(given[["annotator", "answer", "recognised"]].itertuples(index=False))
        assert len(row["votes"]) == row["n_votes"] == 3


def test_votes_that_go_by_the_originals_names_carry_them(store, images, make_study, out):
    names = {"label_originals": True, "headline": "as-original-named"}
    study = make_study(votes_per_item=1, **names)
    (anna,) = joined(store, study, "Anna")
    while answer_all(store, anna, "cow"):
        pass
    write_hugging_face(read_study(store, study.id, images), out)
    for row in metadata(out):
        same = [one["answer"] == one["original_answer"] for one in row["votes"]]
        assert sum(same) == row["n_recognised"] == 1
    assert "`original_answer`" in (out / "README.md").read_text()


def test_models_are_listed_with_how_good_they_were_where_that_is_known(data, out):
    known = TargetTest(
        accuracy=0.03, n_classes=50, chance=0.02, at_chance=True, attacker="B, labels known"
    )
    write_hugging_face(
        replace(data, study=replace(data.study, targets={data.study.models[0]: known})), out
    )
    first, *others = data.study.models
    words = "; ".join([f"{first}: 3% right: at chance (2%), attacker B, labels known", *others])
    assert f"- Target models: {words}" in (out / "README.md").read_text().splitlines()


def test_simulated_votes_are_marked(simulated, out):
    write_hugging_face(simulated, out)
    front, top = front_matter(out)
    assert "simulated" in front["tags"]
    assert front["annotations_creators"] == ["machine-generated"]
    assert top.startswith("**Simulated votes")
    assert "five networks, the simulated annotators" in top
    assert all(row["simulated"] for row in metadata(out))
