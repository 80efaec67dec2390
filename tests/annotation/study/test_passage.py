"""The use cases of the way through a study: what a form must hold to finish a step."""

import pytest

from annotation.domain import Step
from annotation.errors import AnswerError
from annotation.study import passage as phases
from annotation.study.labelling import advance, join


@pytest.fixture
def anna(store, make_study):
    study = make_study(consent="Voluntary.", check=True)
    return join(store, study.token, "Anna").annotator


def go_to_check(store, annotator):
    advance(store, annotator, Step.CONSENT, {"agree": "yes"})
    return advance(store, annotator, Step.INSTRUCTIONS, {})


def form(store, annotator, **changes):
    asked = phases.questions_for(store, annotator)
    return {"attempt": "0", **{one.name: one.right for one in asked}, **changes}


def test_each_step_leads_to_the_next(store, anna):
    at_check = go_to_check(store, anna)
    assert at_check.step is Step.CHECK
    assert advance(store, at_check, Step.CHECK, form(store, anna)).step is Step.MAIN


@pytest.mark.parametrize("data", [{}, {"agree": ""}, {"agree": "maybe"}])
def test_consent_needs_a_choice(store, anna, data):
    with pytest.raises(AnswerError, match="choose one"):
        advance(store, anna, Step.CONSENT, data)


def test_declining_and_thinking_again(store, anna):
    assert advance(store, anna, Step.CONSENT, {"agree": "no"}).step is Step.DECLINED
    assert advance(store, anna, Step.DECLINED, {}).step is Step.CONSENT


@pytest.mark.parametrize("attempt", ["", "1", "-1", "zero", "9" * 30])
def test_answers_to_questions_of_another_attempt_change_nothing(store, anna, attempt):
    go_to_check(store, anna)
    data = form(store, anna, attempt=attempt, guess="first")
    assert advance(store, anna, Step.CHECK, data).step is Step.CHECK
    assert phases.attempts_used(store, anna) == (0, ())


@pytest.mark.parametrize("step", [Step.MAIN, Step.DONE, Step.FAILED])
def test_some_steps_are_finished_by_no_form(store, anna, step):
    with pytest.raises(AnswerError, match=step.value):
        advance(store, anna, step, {})
