"""A study as a file: what is written is what is read, and what cannot be read is said."""

import pytest

from annotation.errors import StudyError
from annotation.spec import HeadlineRule, StudySpec, Task
from annotation.study.study_file import (
    StudyFile,
    of_mapping,
    paths_of,
    read_text,
    texts_listed,
    written,
)
from annotation.tasks.wording import USUAL

FULL = """
name: Symbols, five people
task: rating
votes_per_item: 3
max_views: 2
consent: |
  I am 18.
  I agree.
simulated: no
repeat_rate: 0.1
headline: mean-rating
sets: [sets/a, sets/b]
people: 7
wage: 12.5
gold: |
  model,image_id,answer
  a,1,4
"""


def test_a_file_is_read() -> None:
    found = read_text(FULL)
    spec = found.spec()
    assert (spec.name, spec.task, spec.votes_per_item) == ("Symbols, five people", Task.RATING, 3)
    assert (spec.max_views, spec.consent) == (2, "I am 18.\nI agree.\n")
    assert spec.headline is HeadlineRule.MEAN_RATING
    assert (found.sets, found.people, found.wage) == (("sets/a", "sets/b"), 7, 12.5)
    assert found.answers is not None
    assert found.answers.read().endswith("a,1,4")


def test_what_is_written_is_read_again() -> None:
    found = read_text(FULL)
    again = read_text(written(found))
    assert again.spec() == found.spec()
    assert (again.sets, again.people, again.wage) == (found.sets, found.people, found.wage)
    assert again.gold == found.gold


def test_what_stands_there_is_text_and_no_number_of_yaml() -> None:
    found = read_text("name: 007\ntask: pair\npassword: 007\ncompletion_code: 0123\ntitle: 1.10")
    assert (found.settings["name"], found.settings["password"]) == ("007", "007")
    assert (found.settings["completion_code"], found.settings["title"]) == ("0123", "1.10")
    with pytest.raises(StudyError, match="name"):
        read_text("name:\ntask: pair\n").spec()


def test_a_kilobyte_does_not_become_gigabytes() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(StudyError, match="no aliases"):
        read_text("\n".join([*rows, "seed: *a9"]))


def test_only_what_is_not_as_usual_is_written_and_never_the_password() -> None:
    settings = vars(StudySpec(name="Plain", task=Task.PAIR, password="secret"))
    text = written(StudyFile(settings=settings))
    assert [line for line in text.splitlines() if line[0] != "#"] == ["name: Plain", "task: pair"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("just words", "a list of names with values"),
        ("a: [", "no YAML"),
        ("name: x\nvotes: 3", "no setting 'votes'"),
        ("name: x\nvotes_per_item: many", "must be a whole number; got 'many'"),
        ("name: x\nvotes_per_item: [3]", "votes_per_item is one value; got ['3']"),
        ("name: x\nsets: one", "sets must be a list of folders; got 'one'"),
        ("name: x\npeople: -1", "people must be a whole number; got '-1'"),
        ('name: "a\\0b"', "control characters"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, told: str) -> None:
    with pytest.raises(StudyError) as error:
        read_text(text)
    assert told in str(error.value)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(StudyError) as error:
        of_mapping({"name": "x", "seed": "one", "list_size": True})
    assert len(str(error.value).splitlines()) == 2


def test_paths_are_from_the_folder_of_the_file_on_where_something_is_there(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    here, there = paths_of(["a", "b"], tmp_path)
    assert here == tmp_path / "a"
    assert str(there) == "b"


def test_all_texts_are_listed_as_a_file_has_them():
    found = read_text("name: x\ntask: pair\n" + texts_listed())
    assert found.settings["texts"] == dict(USUAL)
    assert found.spec().wording("join.start") == "Start"


@pytest.mark.parametrize("text", ["texts: [a]", "texts: {no: x}", "class_names: [a]"])
def test_texts_that_are_none_are_refused(text):
    with pytest.raises(StudyError, match=r"by name|no texts called|by class"):
        read_text(f"name: x\ntask: pair\n{text}").spec()
