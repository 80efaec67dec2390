"""The questions on the instructions: order, completeness, what is wrong."""

import pytest

from annotation.design import flow
from annotation.spec import Task
from annotation.tasks import KINDS
from annotation.tasks.pair import Pair
from annotation.tasks.recognition import Recognition

TASKS = list(Task)


def right(task: Task) -> dict[str, str]:
    return {one.name: one.right for one in flow.questions(KINDS[task](), 0, "anna")}


@pytest.mark.parametrize("task", TASKS)
def test_there_are_four_questions_with_one_right_option_each(task):
    asked = flow.questions(KINDS[task](), 0, "anna")
    assert len({one.name for one in asked}) == len(asked) == 4
    for one in asked:
        assert [name for name, _ in one.options].count(one.right) == 1
        assert len({text for _, text in one.options}) == len(one.options) >= 3


@pytest.mark.parametrize("task", TASKS)
def test_a_reminder_does_not_give_the_answer_away(task):
    for one in flow.questions(KINDS[task](), 0, "anna"):
        answer = dict(one.options)[one.right].rstrip(".").lower()
        assert answer not in one.reminder.lower()


def test_everybody_has_an_order_of_their_own_and_keeps_it():
    orders = {
        tuple((one.name, one.options) for one in flow.questions(Recognition(), 0, f"p{i}"))
        for i in range(20)
    }
    assert len(orders) > 10
    assert flow.questions(Pair(), 3, "a") == flow.questions(Pair(), 3, "a")


def test_the_right_option_is_at_every_place():
    places = {
        [name for name, _ in one.options].index(one.right)
        for i in range(20)
        for one in flow.questions(Recognition(), 0, f"p{i}")
    }
    assert places == {0, 1, 2}


@pytest.mark.parametrize("task", TASKS)
def test_all_right_is_nothing_wrong(task):
    assert flow.wrong(KINDS[task](), right(task)) == ()
    assert flow.unanswered(KINDS[task](), right(task)) == ()


@pytest.mark.parametrize("task", TASKS)
def test_each_wrong_answer_is_found(task):
    for one in flow.questions(KINDS[task](), 0, "anna"):
        other = next(name for name, _ in one.options if name != one.right)
        answers = {**right(task), one.name: other}
        assert flow.wrong(KINDS[task](), answers) == (one.name,)


def test_what_is_not_offered_is_no_answer():
    answers = {**right(Task.PAIR), "guess": "whatever"}
    del answers["same"]
    assert set(flow.unanswered(Pair(), answers)) == {"guess", "same"}
