import pandas as pd
import pytest

from semsim.base.errors import DataError
from semsim.base.stats.vote_rows import Sieve, counted_votes, named, with_names

CLASSES = ("cat", "dog", "cow")
SILENT = "does not say if it was recognised: no answer, or no true class to compare it with"


def votes(*rows, **everywhere):
    """Rows of (annotator, answer) on image a of class cat; a dict changes one."""
    usual = {"dataset": "d", "attack": "x", "model": "m", "image_id": "a", "class_name": "cat"}
    table = [
        {**usual, "where": f"row {i}", "annotator": who, "answer": said, **everywhere, **changes}
        for i, (who, said, changes) in enumerate((*row, {})[:3] for row in rows)
    ]
    return Sieve(rows=pd.DataFrame(table, dtype=object))


def left_out(sieve):
    return {one.where: one.why for one in sieve.unread}


def test_an_answer_recognises_when_it_is_the_true_class_or_same():
    said = counted_votes(
        votes(("A", "cat"), ("B", "dog"), ("C", "none"), ("D", "same"), ("E", "different"))
    )
    assert said.rows["recognised"].tolist() == [True, False, False, True, False]
    assert said.unread == ()


@pytest.mark.parametrize(
    ("word", "expected"), [("True", True), ("1", True), ("no", False), ("FALSE", False)]
)
def test_what_the_source_says_comes_before_the_answer(word, expected):
    said = counted_votes(votes(("A", "cat", {"recognised": word})))
    assert said.rows["recognised"].tolist() == [expected]


@pytest.mark.parametrize("classes", [[3, 3, 3], [3.0, None, 3.0], ["3", "3.0", "3"]])
def test_numbers_and_text_are_the_same_class(classes):
    rows = votes(("A", "3"), ("B", "3.0"), ("C", "none")).rows
    rows["class_name"] = pd.Series(classes)
    rows["image_id"] = list("abc")
    kept = counted_votes(Sieve(rows=rows)).rows
    right = dict(zip(kept["image_id"], kept["recognised"], strict=True))
    assert (right["a"], right["c"], right.get("b", True)) == (True, False, True)
    assert set(kept["class_name"]) == {"3"}


def test_two_classes_that_are_numbers_are_told_as_two():
    rows = votes(("A", "3"), ("B", "4"), ("C", "4", {"image_id": "b"})).rows
    rows["class_name"] = [3, 4, 4]
    found = counted_votes(Sieve(rows=rows))
    assert set(left_out(found).values()) == {"image a has classes 3, 4"}


def test_rows_that_say_nothing_are_left_out():
    said = counted_votes(
        votes(
            ("A", "cat"),
            ("B", None),
            ("C", "cat", {"class_name": None}),
            ("D", "cat", {"recognised": "perhaps"}),
            (None, "cat"),
            ("E", "cat", {"model": None}),
        )
    )
    assert said.rows["annotator"].tolist() == ["A"]
    assert left_out(said) == {
        "row 1": SILENT,
        "row 2": SILENT,
        "row 3": "recognised is 'perhaps', neither true nor false",
        "row 4": "has no annotator",
        "row 5": "has no model",
    }


def test_of_two_votes_of_one_annotator_neither_counts():
    said = counted_votes(
        votes(("A", "cat"), ("A", "dog"), ("B", "cat"), ("A", "cat", {"model": "n"}))
    )
    assert said.rows["where"].tolist() == ["row 2", "row 3"]
    assert left_out(said).keys() == {"row 0", "row 1"}


def test_superseded_votes_and_decoys_are_kept_and_are_no_second_votes():
    said = counted_votes(
        votes(
            ("A", "cat", {"status": "superseded"}),
            ("A", "dog", {"status": "counted"}),
            ("A", "same", {"kind": "decoy"}),
        )
    )
    assert said.unread == ()
    assert len(said.rows) == 3


def test_an_original_with_two_classes_is_left_out():
    said = counted_votes(
        votes(("A", "cat"), ("B", "cat", {"class_name": "dog"}), ("C", "cat", {"image_id": "b"}))
    )
    assert said.rows["image_id"].tolist() == ["b"]
    assert set(left_out(said).values()) == {"image a has classes cat, dog"}


def test_no_vote_is_an_error_that_names_the_first_problem():
    with pytest.raises(DataError, match=r"No vote can be read. First problem: row 0: has no annot"):
        counted_votes(votes((None, "cat")))


@pytest.mark.parametrize(
    ("cell", "expected"), [("1", "dog"), ("cow", "cow"), ("3", None), ("-1", None), ("x", None)]
)
def test_classes_go_by_number_or_name(cell, expected):
    assert named(cell, CLASSES) == expected
    assert named(cell, ()) == cell


def test_classes_that_are_not_in_the_list_are_left_out():
    sieve = with_names(votes(("A", "0"), ("B", "7"), ("C", "none")), "answer", CLASSES, ("none",))
    assert sieve.rows["answer"].tolist() == ["cat", "none"]
    assert left_out(sieve) == {"row 1": "answer 7 is not in the list of classes"}


def test_a_row_that_was_sent_twice_is_one_vote():
    found = counted_votes(votes(("A", "cat"), ("B", "dog"), ("A", "Cat ")))
    assert found.rows["annotator"].tolist() == ["A", "B"]
    assert found.unread == ()
    assert found.notes == (
        "1 row repeats a vote of the same person on the same picture, which counts once.",
    )


def test_two_answers_of_one_person_are_named_with_both_rows():
    found = counted_votes(votes(("A", "cat"), ("B", "cat"), ("A", "dog")))
    assert found.rows["annotator"].tolist() == ["B"]
    why = "A gave this image different answers: row 0 says 'cat'; row 2 says 'dog'"
    assert left_out(found) == {"row 0": why, "row 2": why}


def test_an_answer_is_right_however_it_is_written():
    found = counted_votes(votes(("A", "CAT"), ("B", "cat\u00a0"), ("C", "cats")))
    assert found.rows["recognised"].tolist() == [True, True, False]


@pytest.mark.parametrize("name", ["none", "None", " NONE"])
def test_a_class_called_none_is_refused(name):
    with pytest.raises(DataError, match="as the answer that means none of these: rename the class"):
        counted_votes(votes(("A", "cat", {"class_name": name})))
