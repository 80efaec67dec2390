"""The use cases of the way through a study: what a form must hold to finish a step."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from study_factory import questions_for

from annotation.domain import AnnotatorProgress, Step
from annotation.errors import AnswerError, NotAllowedError
from annotation.store.tables import AnnotatorRow, Table
from annotation.study import participant_flow as phases
from annotation.study.labelling import join
from annotation.study.participants import pause


@pytest.fixture
def anna(store, make_study):
    study = make_study(consent="Voluntary.", check=True)
    return join(store, study.token, "Anna").annotator


def go_to_check(store, annotator):
    phases.advance(store, annotator, Step.CONSENT, {"agree": "yes"})
    return phases.advance(store, annotator, Step.INSTRUCTIONS, {})


def form(store, annotator, **changes):
    asked = questions_for(store, annotator)
    return {"attempt": "0", **{one.name: one.right for one in asked}, **changes}


def test_each_step_leads_to_the_next(store, anna):
    at_check = go_to_check(store, anna)
    assert at_check.step is Step.CHECK
    assert phases.advance(store, at_check, Step.CHECK, form(store, anna)).step is Step.MAIN


@pytest.mark.parametrize("data", [{}, {"agree": ""}, {"agree": "maybe"}])
def test_consent_needs_a_choice(store, anna, data):
    with pytest.raises(AnswerError, match="choose one"):
        phases.advance(store, anna, Step.CONSENT, data)


def test_declining_and_thinking_again(store, anna):
    assert phases.advance(store, anna, Step.CONSENT, {"agree": "no"}).step is Step.DECLINED
    assert phases.advance(store, anna, Step.DECLINED, {}).step is Step.CONSENT


@pytest.mark.parametrize("attempt", ["", "1", "-1", "zero", "9" * 30])
def test_answers_to_questions_of_another_attempt_change_nothing(store, anna, attempt):
    go_to_check(store, anna)
    data = form(store, anna, attempt=attempt, guess="first")
    assert phases.advance(store, anna, Step.CHECK, data).step is Step.CHECK
    assert phases.attempts_used(store, anna) == (0, ())


@pytest.mark.parametrize("step", [Step.PRACTICE, Step.MAIN, Step.DONE, Step.FAILED])
def test_some_steps_are_finished_by_no_form(store, anna, step):
    with pytest.raises(AnswerError, match=step.value):
        phases.advance(store, anna, step, {})


def dump(store):
    """Every row of every table."""
    tables = Table.metadata.sorted_tables
    return store.read(lambda tx: {one.name: tx.execute(one.select()).all() for one in tables})


NOTHING_LEFT = AnnotatorProgress(done=4, left=0, total=4, median_rt_ms=None)


@pytest.mark.parametrize(
    ("step", "progress", "then"),
    [
        (Step.MAIN, NOTHING_LEFT, Step.DONE),
        (Step.MAIN, replace(NOTHING_LEFT, waiting=True), Step.MAIN),
        (Step.MAIN, replace(NOTHING_LEFT, left=1), Step.MAIN),
        (Step.MAIN, None, Step.MAIN),
        (Step.DONE, replace(NOTHING_LEFT, left=1), Step.MAIN),
        (Step.DONE, NOTHING_LEFT, Step.DONE),
        (Step.DONE, None, Step.DONE),
        (Step.PRACTICE, NOTHING_LEFT, Step.CHECK),  # a study without practice items
        (Step.INSTRUCTIONS, NOTHING_LEFT, Step.INSTRUCTIONS),
    ],
)
def test_asking_where_somebody_belongs_changes_nothing_and_settling_moves_them(
    store, anna, step, progress, then
):
    store.write(lambda tx: setattr(tx.get_one(AnnotatorRow, anna.id), "step", step))
    before = dump(store)
    assert phases.belongs(store, anna, progress) is then
    assert dump(store) == before
    assert phases.settle(store, anna, progress).step is then
    assert (dump(store) == before) == (then is step)


def test_somebody_paused_is_not_moved_by_asking_for_items(store, anna):
    store.write(lambda tx: setattr(tx.get_one(AnnotatorRow, anna.id), "step", Step.MAIN))
    pause(store, anna.study_id, "Anna", datetime.now(UTC))
    with pytest.raises(NotAllowedError):
        phases.settle(store, anna, NOTHING_LEFT)
    assert phases.belongs(store, anna) is Step.MAIN
