"""What every format promises, and what writing one does to the disk."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from study_factory import of_convnet8

from annotation.errors import AnnotationError, NotFoundError
from annotation.formats import FORMATS, What, export

EVERY = [(name, what) for name, one in FORMATS.items() for what in one.writers]


def place(folder, name):
    return folder / "new" / f"study{FORMATS[name].ending}"


def content(path):
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {p.name if p == path else p.relative_to(path).as_posix(): p.read_bytes() for p in files}


@pytest.mark.parametrize(("name", "what"), EVERY)
def test_a_file_or_a_folder_and_nothing_beside_it(data, out, name, what):
    target = place(out, name)
    words = export(data, target, name, what)
    assert words.split()[0].isdigit()
    assert target.is_file() == bool(FORMATS[name].ending)
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize(("name", "what"), EVERY)
def test_the_same_study_gives_the_same_bytes(data, out, name, what):
    for folder in ("a", "b"):
        export(data, place(out / folder, name), name, what)
    assert content(place(out / "a", name)) == content(place(out / "b", name))


def said_to_be(data, *, simulated):
    """The same study and votes, of programs or of people."""
    study = replace(data.study, spec=replace(data.study.spec, simulated=simulated))
    votes, labels = (one.assign(simulated=simulated) for one in (data.votes, data.labels))
    return replace(data, study=study, votes=votes, labels=labels)


@pytest.mark.parametrize(("name", "what"), EVERY)
def test_every_format_tells_votes_of_programs_from_those_of_people(data, out, name, what):
    told = []
    for simulated in (True, False):
        path = place(out / str(simulated), name)
        export(said_to_be(data, simulated=simulated), path, name, what)
        told.append(content(path))
    assert told[0] != told[1]


@pytest.mark.parametrize(("name", "what"), EVERY)
def test_no_secret_leaves(data, out, name, what):
    export(data, place(out, name), name, what)
    for file in content(place(out, name)).values():
        assert data.study.token.encode() not in file


@pytest.mark.parametrize("name", [name for name, one in FORMATS.items() if not one.ending])
def test_a_folder_that_is_there_is_left_alone(data, out, name):
    (out / "mine.txt").touch()
    with pytest.raises(AnnotationError, match="is there already"):
        export(data, out, name)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("name", [name for name, one in FORMATS.items() if not one.ending])
def test_a_missing_image_leaves_nothing_behind(make_study, answer, out, name):
    data = answer(make_study(votes_per_item=3), of_convnet8)
    Path(data.labels["reconstruction"].iloc[-1]).unlink()
    with pytest.raises(NotFoundError, match="is gone"):
        export(data, out / "new", name)
    assert list(out.iterdir()) == []


def test_the_ending_chooses_the_format(data, out):
    for ending in (".csv", ".jsonl", ".parquet"):
        export(data, out / f"a{ending}")
        export(data, out / f"b{ending}", ending[1:], What.VOTES)
        assert (out / f"a{ending}").read_bytes() == (out / f"b{ending}").read_bytes()


def test_a_file_that_is_there_is_replaced(data, out):
    (out / "a.csv").write_text("earlier content")
    export(data, out / "a.csv")
    assert "earlier content" not in (out / "a.csv").read_text()


@pytest.mark.parametrize(
    ("file", "name", "what", "message"),
    [
        ("a.xlsx", None, None, r"should end in .*\.csv.*; got '.xlsx'"),
        ("a", None, None, "Or name a format: csv, jsonl"),
        ("a.csv", "excel", None, "No format is called 'excel'; expected csv, jsonl"),
        ("a.csv", "parquet", None, r"parquet is a file \*.parquet; got 'a.csv'"),
        ("a.csv", "crowd-kit", What.LABELS, "crowd-kit holds votes; not labels"),
        ("a", "hf", What.VOTES, "hf holds labels; not votes"),
    ],
)
def test_what_does_not_go_together_is_explained(data, out, file, name, what, message):
    with pytest.raises(AnnotationError, match=message):
        export(data, out / file, name, what)
    assert list(out.iterdir()) == []


def test_a_place_that_cannot_be_written_is_explained(data, out):
    (out / "file").touch()
    with pytest.raises(AnnotationError, match="could not be written"):
        export(data, out / "file" / "a.csv")


@pytest.mark.parametrize("form", ["hf", "triplets", "label-studio", "train-with-ori"])
def test_names_in_a_card_are_no_markup(data, out, form):
    name = "<img src=x onerror=alert(1)> [a](javascript:b) \n# c"
    export(replace(data, study=replace(data.study, name=name, dataset=name)), out / "new", form)
    card = (out / "new/README.md").read_text()
    shown = card.partition("\n---\n")[2] or card  # the front matter is no Markdown
    assert re.search(r"(?<!\\)<img|(?<!\\)\[a", shown) is None
    assert shown.count(r"\<img src=x onerror=alert(1)\> \[a\](javascript:b) \# c") == 2


def test_the_card_tells_the_facts(data, out):
    named = replace(data, study=replace(data.study, name="one\ntwo"))
    export(named, out / "new", "hf")
    card = (out / "new/README.md").read_text()
    for fact in (
        "# one two",
        "- Reconstructions: 8 of 4 originals",
        "- Votes that count: 24 by 3",
        "- Recognisable by majority: 4",
        "- Unrecognisable by majority: 4",
        "- No majority (yet): 0",
        f"- Protocol (SHA-256): {data.study.protocol}",
    ):
        assert fact in card.splitlines()
