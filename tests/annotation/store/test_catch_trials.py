"""Catch trials that people fail: the researcher is warned, and may have them paused."""

import uuid
from datetime import UTC, datetime

import pytest
from sqlalchemy import event
from study_factory import DATABASES, kept, write_set

from annotation.domain import Answer
from annotation.errors import NotAllowedError
from annotation.spec import StudySpec, Task
from annotation.store.tables import EventRow, SlotRow, StimulusRow, TrialRow
from annotation.study import participants as people
from annotation.study.exports import export_votes
from annotation.study.labelling import join, next_items, undo, vote
from annotation.study.participant_flow import spec_of
from annotation.study.protocols import amend

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LABELS = ("Cat", "Cat", "cow", "cow", "star", "star", "sun", "sun")
WRONG = {"none": "Cat", "same": "different", "different": "same"}
BOTH = pytest.mark.parametrize("store", DATABASES, indirect=True)


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    return [write_set(folder / model, model=model, labels=LABELS) for model in ("a", "b")]


@pytest.fixture
def make(store, sets, images):
    """A study in which every second item is a catch trial, at first."""

    def make(task=Task.RECOGNITION, **settings):
        given = {"votes_per_item": 2, "set_aside": 4, "catch_rate": 0.5, "repeat_rate": 0.0}
        spec = StudySpec(name="s", task=task, **{**given, **settings})
        return kept(store, spec, sets, images)

    return make


def say(store, person, item, text):
    given = Answer(id=str(uuid.uuid4()), item=item, answer=text, tab="t")
    return vote(store, person, given, NOW)


def known_answers(store):
    """The expected answer of every catch trial, by the name it is shown under."""
    expected = store.read(lambda tx: {s.id: s.expected for s in tx.query(StimulusRow)})
    trials = store.read(lambda tx: tx.query(TrialRow).filter_by(kind="catch").all())
    return {trial.id: expected[trial.stimulus_id] for trial in trials}


def answer(store, person, *, wrong):
    """Everything there is, one at a time, the first `wrong` catch trials wrongly."""
    failed, kind = 0, spec_of(store, person).kind
    while items := next_items(store, person, "t", 1, NOW):
        (item,) = items
        right = known_answers(store).get(item.item)
        if right is not None and failed < wrong:
            failed += 1
            offered = kind.offered(item.candidates)
            mistakes = [one for one in offered if not kind.passes(right, one)]
            say(store, person, item.item, mistakes[-1])
        else:
            say(store, person, item.item, right or kind.nothing)
    return failed


def row_of(store, study, name="Anna"):
    return next(one for one in people.list_people(store, study.id) if one.name == name)


def status_events(store):
    return store.read(
        lambda tx: [
            e.data for e in tx.query(EventRow).filter_by(kind="annotator_status").order_by("id")
        ]
    )


@pytest.mark.parametrize("task", Task)
def test_at_first_the_researcher_is_warned_and_nobody_is_paused(store, make, task):
    study = make(task)
    anna, ben = (join(store, study.token, name).annotator for name in ("Anna", "Ben"))
    assert answer(store, anna, wrong=2) == 2
    answer(store, ben, wrong=1)
    rows = [row_of(store, study, name) for name in ("Anna", "Ben")]
    assert [(row.catch_answered, row.catch_failed, row.warned) for row in rows] == [
        (4, 2, True),
        (4, 1, False),
    ]
    assert {row.status for row in rows} == {"active"}
    assert status_events(store) == []


@BOTH
def test_zero_never_warns_and_the_number_may_change_while_people_answer(store, make):
    study = make(catch_warn_after=0)
    answer(store, join(store, study.token, "Anna").annotator, wrong=3)
    assert not row_of(store, study).warned
    amend(store, study.id, {"catch_warn_after": 4}, "why")
    assert not row_of(store, study).warned
    amend(store, study.id, {"catch_warn_after": 3}, "why")
    assert row_of(store, study).warned


@BOTH
def test_too_many_failed_pause_somebody_as_if_by_hand(store, make):
    study = make(catch_pause_after=2)
    anna = join(store, study.token, "Anna").annotator
    held = next_items(store, anna, "t", 9, NOW)
    known = known_answers(store)
    first, second = [item.item for item in held if item.item in known][:2]
    (counted, *_) = [item.item for item in held if item.item not in known]
    say(store, anna, first, WRONG.get(known[first], "none"))
    assert row_of(store, study).status == "active"
    receipt = say(store, anna, second, WRONG.get(known[second], "none"))
    assert (receipt.status, receipt.feedback) == ("counted", None)  # tells nothing
    row = row_of(store, study)
    assert (row.status, row.paused_by_itself, row.catch_failed) == ("paused", True, 2)
    with pytest.raises(NotAllowedError, match="researcher has paused your part"):
        say(store, anna, counted, "none")
    assert next_items(store, anna, "t", 9, NOW) == []
    leases = store.read(lambda tx: tx.query(SlotRow).filter_by(state="leased").all())
    assert leases
    assert all(slot.lease_until < NOW for slot in leases)
    assert status_events(store) == [
        {"before": "active", "after": "paused", "automatic": True, "catch_failed": 2}
    ]
    assert export_votes(store, study.id)["status"].tolist() == ["quality"] * 2


@BOTH
def test_who_is_let_go_on_may_fail_as_many_again(store, make):
    study = make(catch_pause_after=1)
    anna = join(store, study.token, "Anna").annotator
    for _ in range(2):
        assert answer(store, anna, wrong=9) == 1
        assert row_of(store, study).paused_by_itself
        people.resume(store.by("eva"), study.id, "Anna", NOW)
        assert row_of(store, study).status == "active"
    people.pause(store.by("eva"), study.id, "Anna", NOW)
    row = row_of(store, study)
    assert (row.status, row.paused_by_itself, row.catch_failed) == ("paused", False, 2)


def test_a_wrong_answer_taken_back_is_none(store, make):
    study = make(catch_pause_after=2)
    anna = join(store, study.token, "Anna").annotator
    held = next_items(store, anna, "t", 9, NOW)
    known = known_answers(store)
    first, second = [item.item for item in held if item.item in known][:2]
    receipt = say(store, anna, first, WRONG.get(known[first], "none"))
    undo(store, anna, receipt.id, NOW)
    say(store, anna, first, known[first])
    say(store, anna, second, WRONG.get(known[second], "none"))
    row = row_of(store, study)
    assert (row.status, row.catch_answered, row.catch_failed) == ("active", 2, 1)


def test_pausing_may_begin_in_a_running_study(store, make):
    study = make()
    anna = join(store, study.token, "Anna").annotator
    held = [item.item for item in next_items(store, anna, "t", 9, NOW)]
    known = known_answers(store)
    one, two, three = [item for item in held if item in known]
    say(store, anna, one, WRONG.get(known[one], "none"))
    amend(store, study.id, {"catch_pause_after": 2}, "many guess")
    say(store, anna, two, known[two])
    assert row_of(store, study).status == "active"  # a right answer pauses nobody
    say(store, anna, three, WRONG.get(known[three], "none"))
    assert row_of(store, study).paused_by_itself


@BOTH
def test_only_a_failed_catch_trial_takes_more_of_the_database(store, make):
    study = make(catch_pause_after=9)
    anna = join(store, study.token, "Anna").annotator
    held = [item.item for item in next_items(store, anna, "t", 9, NOW)]
    known = known_answers(store)
    trials = [item for item in held if item in known]

    def statements(item, text):
        said = []
        keep = lambda *given: said.append(given[2])  # noqa: E731
        event.listen(store._engine, "before_cursor_execute", keep)
        say(store, anna, item, text)
        event.remove(store._engine, "before_cursor_execute", keep)
        return len(said)

    right = statements(trials[0], known[trials[0]])
    assert statements(trials[1], WRONG.get(known[trials[1]], "none")) == right + 2
