"""People's way from step to step in the database, on both kinds of database."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from study_factory import DATABASES, fresh_database, write_set

from annotation.design import flow
from annotation.domain import AnnotatorProgress, Step, StudyStatus
from annotation.errors import ConflictError, NotAllowedError, NotFoundError
from annotation.spec import StudySpec, Task
from annotation.store import Store, phases
from annotation.store.people import annotator_named
from annotation.store.tables import AnnotatorRow, EventRow, StudyRow
from annotation.study import participants as people
from annotation.study.create import create_study
from annotation.study.labelling import set_status
from annotation.tasks.recognition import Recognition

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOTHING_LEFT = AnnotatorProgress(done=4, left=0, total=4, median_rt_ms=None)
ONE_LEFT = replace(NOTHING_LEFT, left=1)
NOTHING_RIGHT: dict[str, str] = {}


@pytest.fixture(params=DATABASES, scope="module")
def store(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("phases")
    with fresh_database(request.param, folder) as url, Store(url) as opened:
        yield opened


@pytest.fixture
def make_study(store, tmp_path):
    def make(**spec):
        folder = write_set(tmp_path / "set", labels=("Cat", "cow"))
        made = StudySpec(name="s", task=Task.RECOGNITION, repeat_rate=0.0, **spec)
        return create_study(store, made, [folder], tmp_path / "images")

    return make


@pytest.fixture
def anna(store, make_study):
    study = make_study(consent="Voluntary.", check=True)
    return store.write(lambda tx: annotator_named(tx, study.id, "Anna", NOW))


def put(store, annotator, step):
    def work(tx):
        tx.get_one(AnnotatorRow, annotator.id).step = step

    store.write(work)


def row(store, annotator):
    return store.read(lambda tx: tx.get_one(AnnotatorRow, annotator.id))


def all_right():
    return {one.name: one.right for one in flow.questions(Recognition(), 0, "anna")}


def test_who_joins_begins_at_the_first_step_and_simulated_people_at_the_last(store, make_study):
    study = make_study(consent="Voluntary.")
    steps = [
        store.write(
            lambda tx, name=name: annotator_named(tx, study.id, name, NOW, simulated=name == "Bot")
        ).step
        for name in ("Anna", "Bot")
    ]
    assert steps == [Step.CONSENT, Step.MAIN]


def test_consent_is_kept_with_its_time(store, anna):
    told = store.write(lambda tx: phases.consent(tx, anna, NOW, agreed=True, keep_votes=True))
    assert told.step is Step.INSTRUCTIONS
    assert (row(store, anna).consented, row(store, anna).keep_votes) == (NOW, True)


def test_the_same_attempt_sent_many_times_at_once_counts_once(store, anna):
    put(store, anna, Step.CHECK)
    with ThreadPoolExecutor(4) as pool:
        sent = [
            pool.submit(
                store.write, lambda tx: phases.answer_check(tx, anna, NOTHING_RIGHT, 0, NOW)
            )
            for _ in range(4)
        ]
        assert {one.result().step for one in sent} == {Step.CHECK}
    assert store.read(lambda tx: phases.attempts_used(tx, anna)) == (
        1,
        flow.wrong(Recognition(), NOTHING_RIGHT),
    )


def test_the_last_attempt_fails_and_only_the_researcher_can_change_it(store, anna):
    put(store, anna, Step.CHECK)
    for used in range(2):
        told = store.write(
            lambda tx, used=used: phases.answer_check(tx, anna, NOTHING_RIGHT, used, NOW)
        )
    assert told.step is Step.FAILED
    told = store.write(lambda tx: phases.answer_check(tx, anna, all_right(), 2, NOW))
    assert told.step is Step.FAILED
    assert store.write(lambda tx: phases.go_on(tx, anna, Step.CHECK, NOW)).step is Step.FAILED
    let_in = store.write(lambda tx: phases.let_in(tx, anna.study_id, "ANNA", NOW))
    assert (let_in.step, let_in.id) == (Step.MAIN, anna.id)


def test_only_who_failed_can_be_let_in(store, anna):
    with pytest.raises(ConflictError, match="consent"):
        store.write(lambda tx: phases.let_in(tx, anna.study_id, "Anna", NOW))
    with pytest.raises(NotFoundError, match="Zoe"):
        store.write(lambda tx: phases.let_in(tx, anna.study_id, "Zoe", NOW))


def test_a_step_left_out_since_is_passed_over_once(store, anna):
    def leave_out(tx):
        study = tx.get_one(StudyRow, anna.study_id)
        study.spec = {**study.spec, "consent": ""}

    store.write(leave_out)
    steps = [store.write(lambda tx: phases.settle(tx, anna, NOW)).step for _ in range(2)]
    assert steps == [Step.INSTRUCTIONS] * 2
    events = store.read(
        lambda tx: tx.query(EventRow).filter_by(annotator_id=anna.id, kind="step").all()
    )
    assert [one.data["after"] for one in events] == ["instructions"]


def test_practice_without_any_item_is_over(store, anna):
    put(store, anna, Step.PRACTICE)
    assert store.read(lambda tx: phases.practice_progress(tx, anna)) == (0, 0)
    assert store.write(lambda tx: phases.settle(tx, anna, NOW, NOTHING_LEFT)).step is Step.CHECK


def test_a_code_is_told_to_who_is_done_and_stays_the_same(store, anna):
    put(store, anna, Step.MAIN)

    def told(tx):
        return phases.completion_code(tx, anna.study_id, "Anna")

    assert store.read(told) is None
    store.write(lambda tx: phases.settle(tx, anna, NOW, NOTHING_LEFT))
    code = store.read(told)
    assert store.write(lambda tx: phases.settle(tx, anna, NOW, ONE_LEFT)).step is Step.MAIN
    assert store.read(told) == code
    store.write(lambda tx: phases.settle(tx, anna, NOW, NOTHING_LEFT))
    assert store.read(told) == code


@pytest.mark.parametrize("status", [StudyStatus.PAUSED, StudyStatus.CLOSED])
def test_who_is_done_goes_on_only_where_the_study_runs(store, anna, status):
    put(store, anna, Step.DONE)
    set_status(store, anna.study_id, status)
    assert store.write(lambda tx: phases.settle(tx, anna, NOW, ONE_LEFT)).step is Step.DONE
    set_status(store, anna.study_id, StudyStatus.RUNNING)
    assert store.write(lambda tx: phases.settle(tx, anna, NOW, ONE_LEFT)).step is Step.MAIN


def test_everybody_has_another_code(store, make_study):
    study = make_study()
    codes = set()
    for number in range(5):
        name = f"P{number}"
        person = store.write(lambda tx, name=name: annotator_named(tx, study.id, name, NOW))
        store.write(lambda tx, person=person: phases.settle(tx, person, NOW, NOTHING_LEFT))
        codes.add(store.read(lambda tx, name=name: phases.completion_code(tx, study.id, name)))
    assert len(codes) == 5


def test_who_is_paused_goes_no_further(store, anna):
    people.pause(store, anna.study_id, "Anna", NOW)
    with pytest.raises(NotAllowedError, match="paused"):
        store.write(lambda tx: phases.consent(tx, anna, NOW, agreed=True, keep_votes=False))
    assert row(store, anna).step == Step.CONSENT
