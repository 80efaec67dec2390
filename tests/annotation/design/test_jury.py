"""A juror answers by its own best word among those offered, or none below its own threshold."""

import math

import pytest

from annotation.design.jury import Sight, answers, said

OFFERED = ("cat", "cow", "star")


def sight(threshold=0.5, **seen):
    return Sight(juror="J", logs={k: math.log(v) for k, v in seen.items()}, threshold=threshold)


def test_the_likeliest_of_the_offered_words_is_said():
    assert said(sight(cow=0.6, cat=0.3, star=0.1), OFFERED) == "cow"
    outside = sight(wolf=0.9, cat=0.07, cow=0.03)  # the wolf is not offered
    assert said(outside, OFFERED) == "cat"


@pytest.mark.parametrize(("threshold", "answer"), [(0.59, "cow"), (0.61, "none")])
def test_below_its_own_threshold_a_juror_says_none(threshold, answer):
    assert said(sight(threshold, cow=0.6, cat=0.3, star=0.1), OFFERED) == answer


def test_who_sees_two_words_alike_names_neither_in_whatever_order_they_stand():
    torn = sight(0.3, cat=0.4, cow=0.4, star=0.2)
    assert said(torn, OFFERED) == said(torn, OFFERED[::-1]) == "none"
    assert said(sight(0.3, cat=0.4, cow=0.39, star=0.2), OFFERED) == "cat"


def test_what_is_left_of_the_probability_is_that_there_is_nothing():
    certain_of_nothing = sight(0.5, cow=0.01, cat=0.001, star=0.001)  # 0.988: nothing
    assert said(certain_of_nothing, OFFERED) == "none"
    assert said(sight(0.5, cow=0.01, cat=0.001, star=0.001, wolf=0.988), OFFERED) == "cow"


def test_a_word_nobody_rated_can_be_offered():
    assert said(sight(0.5, wolf=1.0), OFFERED) == "none"


def test_each_juror_answers_for_itself():
    jury = [
        Sight(juror="A", logs={"cat": 0.0}, threshold=0.5),
        Sight(juror="B", logs={"cow": 0.0}, threshold=0.5),
    ]
    assert answers(jury, OFFERED) == {"A": "cat", "B": "cow"}
