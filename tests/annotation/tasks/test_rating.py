"""The kind rating: its scale, its words, and what settings it refuses."""

from dataclasses import asdict

import pytest

from annotation.domain import Answer
from annotation.errors import AnswerError, StudyError
from annotation.spec import HeadlineRule, StudySpec, Task
from annotation.store.voting import check_answer
from annotation.tasks.rating import Rating


def spec(**settings):
    return StudySpec(name="x", task=Task.RATING, **settings)


@pytest.mark.parametrize("levels", [4, 5])
def test_number_keys_give_numbers_whose_ends_have_names(levels):
    kind = spec(rating_levels=levels, rating_lowest="gone ", rating_highest="there").kind
    assert [key.code for key in kind.keys] == [f"Digit{n}" for n in range(1, levels + 1)]
    assert kind.offered(None) == tuple("12345"[:levels])
    labels = [key.label for key in kind.keys]
    assert (labels[0], labels[-1]) == ("1: gone", f"{levels}: there")
    assert labels[1:-1] == [str(n) for n in range(2, levels)]


def test_only_numbers_of_the_scale_are_answers():
    kind = spec().kind
    for said in ("0", "5", "same", "none", "1.5", ""):
        with pytest.raises(AnswerError, match="not offered"):
            check_answer(kind, None, Answer(id="v", item="i", answer=said))
    check_answer(kind, None, Answer(id="v", item="i", answer="4"))


def test_one_rating_is_recognised_from_the_threshold_on():
    kind = spec(rating_levels=5, rating_threshold=2.5).kind
    assert [kind.recognised("cat", said) for said in "12345"] == [False, False, True, True, True]


def test_known_answers_pass_by_one_but_the_highest_is_the_highest():
    kind = Rating()
    assert kind.expected("cat", differs=False) == "4"
    assert kind.expected("cat", differs=False, clear=False) is None
    assert [kind.passes("1", said) for said in "1234"] == [True, True, False, False]
    assert [kind.passes("3", said) for said in "1234"] == [False, True, True, True]
    assert [kind.passes("4", said) for said in "1234"] == [False, False, False, True]


def test_what_the_settings_mean_is_said_in_words():
    words = "; ".join(spec(rating_threshold=2.5, original_first_ms=800).kind.terms)
    assert "1 (Nothing of it) to 4 (All of it)" in words
    assert "a mean rating of 2.5 on, undecided while missing votes" in words
    assert "shown 800 ms before the reconstruction" in words
    assert "shown beside the reconstruction" in "; ".join(spec().kind.terms)


def test_the_human_score_of_ratings_is_their_mean():
    assert spec().headline is HeadlineRule.MEAN_RATING
    assert spec(headline="mean-rating").headline is HeadlineRule.MEAN_RATING
    with pytest.raises(StudyError, match="dawid-skene is none of the task rating"):
        spec(headline="dawid-skene")
    with pytest.raises(StudyError, match="mean-rating is none of the task pair"):
        StudySpec(name="x", task=Task.PAIR, headline="mean-rating")
    assert StudySpec(**asdict(spec())) == spec()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rating_levels": 3}, "from 1 to 4 or from 1 to 5; got 3"),
        ({"rating_levels": 6}, "got 6 levels"),
        ({"rating_threshold": 1.0}, "above 1 and at most 4; got 1"),
        ({"rating_threshold": 4.5}, "above 1 and at most 4; got 4.5"),
        ({"rating_threshold": float("nan")}, "above 1"),
        ({"rating_lowest": " "}, "1 to 24 letters"),
        ({"rating_highest": "x" * 25}, "1 to 24 letters"),
        ({"original_first_ms": -1}, "Original first must be at least 0"),
        ({"original_first_ms": 10_001}, "Original first must be at most 10,000"),
        ({"decoy_rate": 0.5}, "Decoys belong to the pair task"),
        ({"label_originals": True}, "leave them out of another task"),
    ],
)
def test_scales_that_are_none_are_refused(wrong, message):
    with pytest.raises(StudyError, match=message):
        spec(**wrong)


@pytest.mark.parametrize("task", [Task.RECOGNITION, Task.PAIR])
@pytest.mark.parametrize("setting", [{"rating_levels": 5}, {"original_first_ms": 500}])
def test_other_tasks_have_no_scale(task, setting):
    with pytest.raises(StudyError, match="belongs to the rating task"):
        StudySpec(name="x", task=task, **setting)
