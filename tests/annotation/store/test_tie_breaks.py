"""A split item gets one vote more, and only while it is split."""

import uuid

import pytest
from contracts.store_invariants import START, check, make_study
from study_factory import DATABASES, arrived

from annotation.domain import Answer, VoteStatus
from annotation.spec import Task
from annotation.store.tables import EventRow, SlotRow
from annotation.study.exports import export_labels
from annotation.study.labelling import join, next_items, progress, progress_of, undo, vote
from annotation.study.participants import exclude, include

pytestmark = pytest.mark.parametrize("store", DATABASES, indirect=True)


@pytest.fixture
def study(store):
    return make_study(store, 1, Task.PAIR, votes_per_item=3, extra_vote=True, repeat_rate=0.0)


def say(store, study, name, text):
    person = arrived(store, study, name).annotator
    (item,) = next_items(store, person, "tab", 9, START)
    answer = Answer(id=str(uuid.uuid4()), item=item.item, answer=text)
    assert vote(store, person, answer, START).status is VoteStatus.COUNTED
    return person, answer


def states(store):
    return [s.state for s in store.read(lambda tx: tx.query(SlotRow).order_by(SlotRow.k).all())]


def all_say(store, study, *texts):
    return [say(store, study, f"p{n}", text) for n, text in enumerate(texts)]


def test_all_of_one_mind_need_no_more(store, study):
    all_say(store, study, "same", "same", "same")
    assert states(store) == ["done"] * 3
    assert progress(store, study.id).extra_wanted == 0


def test_a_split_item_gets_one_more_vote_that_may_tie(store, study, tmp_path):
    all_say(store, study, "same", "different", "same")
    assert states(store) == ["done"] * 3 + ["free"]
    before = progress(store, study.id)
    assert (before.coverage, before.extra_wanted, before.extra_done) == ([0, 0, 0, 1], 1, 0)
    dora = join(store, study.token, "Dora").annotator
    assert progress_of(store, dora).left == 1
    assert export_labels(store, study.id, tmp_path)["recognisable"].tolist() == [True]
    _, answer = say(store, study, "Dora", "different")
    after = progress(store, study.id)
    assert (after.coverage, after.extra_wanted, after.extra_done) == ([0, 0, 0, 1], 1, 1)
    (label,) = export_labels(store, study.id, tmp_path).to_dict("records")
    assert (label["n_votes"], label["n_recognised"]) == (4, 2)
    assert label["recognisable"] is None
    assert next_items(store, join(store, study.token, "Eva").annotator, "tab", 9, START) == []
    check(store, study, {answer.id})


def test_the_extra_vote_settles_three_to_one(store, study, tmp_path):
    all_say(store, study, "same", "different", "same", "same")
    assert export_labels(store, study.id, tmp_path)["recognisable"].tolist() == [True]


def test_an_extra_slot_nobody_has_is_withdrawn_when_the_split_is_undone(store, study):
    *_, (person, answer) = all_say(store, study, "same", "different", "same")
    undo(store, person, answer.id, START)
    assert states(store) == ["done", "done", "leased"]
    again = Answer(id=str(uuid.uuid4()), item=answer.item, answer="same")
    vote(store, person, again, START)
    assert states(store) == ["done"] * 3 + ["free"]
    check(store, study, {answer.id, again.id})
    told = store.read(lambda tx: tx.query(EventRow).filter_by(kind="extra_vote").all())
    assert [event.data["wanted"] for event in told] == [True, False, True]


def test_an_extra_slot_somebody_has_stays(store, study):
    *_, (person, answer) = all_say(store, study, "same", "different", "same")
    dora = join(store, study.token, "Dora").annotator
    (item,) = next_items(store, dora, "tab", 1, START)
    undo(store, person, answer.id, START)
    last = Answer(id=str(uuid.uuid4()), item=item.item, answer="same")
    assert vote(store, dora, last, START).status is VoteStatus.COUNTED
    assert states(store) == ["done", "done", "leased", "done"]
    check(store, study, {answer.id, last.id})


def test_excluding_and_including_open_and_withdraw_it(store, study):
    all_say(store, study, "same", "different", "same")
    exclude(store, study.id, "p2", START)
    assert states(store) == ["done", "done", "leased"]
    include(store, study.id, "p2", START)
    assert states(store) == ["done"] * 3 + ["free"]
    check(store, study, set())
