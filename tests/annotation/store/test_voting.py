"""A vote and its event are one; everything the browser sent is kept."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from study_factory import answer_to, joined

from annotation.domain import Answer
from annotation.errors import AnswerError
from annotation.store import voting
from annotation.store.tables import EventRow, SlotRow, VoteRow
from annotation.study.labelling import join, next_items, undo, vote

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def anna(store, make_study):
    return join(store, make_study().token, "Anna").annotator


@pytest.fixture
def answer(store, anna):
    (item,) = next_items(store, anna, "tab", 1, NOW)
    return Answer(
        id=str(uuid.uuid4()),
        item=item.item,
        answer="none",
        reason="cannot_make_out",
        rt_ms=431.25,
        client_ts=NOW - timedelta(seconds=1),
        display={"scale": 8, "pixel_ratio": 1.5},
        tab="tab",
    )


def everything(store, table):
    return store.read(lambda tx: tx.query(table).order_by(table.id).all())


def test_everything_sent_is_kept(store, anna, answer):
    vote(store, anna, answer, NOW)
    (row,) = everything(store, VoteRow)
    for name in ("id", "answer", "reason", "rt_ms", "client_ts", "display", "tab"):
        assert getattr(row, name) == getattr(answer, name), name
    assert (row.annotator_id, row.stimulus_id, row.server_ts) == (anna.id, answer.item, NOW)


def test_the_vote_is_told_in_an_event(store, anna, answer):
    vote(store, anna, answer, NOW)
    event = everything(store, EventRow)[-1]
    assert (event.kind, event.vote_id, event.at) == ("vote", answer.id, NOW)
    assert event.data == {"answer": "none", "reason": "cannot_make_out", "status": "counted"}


def test_a_vote_that_cannot_be_committed_leaves_nothing(store, anna, answer):
    def fail(tx):
        voting.record(tx, anna, answer, NOW)
        raise KeyError

    before = len(everything(store, EventRow))
    with pytest.raises(KeyError):
        store.write(fail)
    assert everything(store, VoteRow) == []
    assert len(everything(store, EventRow)) == before
    assert [s.state for s in everything(store, SlotRow)].count("leased") == 1


def test_undo_reserves_the_slot_and_tells_what_the_vote_was(store, anna, answer):
    vote(store, anna, answer, NOW)
    back = undo(store, anna, answer.id, NOW)
    assert back.lease_until == NOW + timedelta(seconds=600)
    (slot,) = [s for s in everything(store, SlotRow) if s.annotator_id == anna.id]
    assert (slot.state, slot.lease_until, slot.tab) == ("leased", back.lease_until, "tab")
    event = everything(store, EventRow)[-1]
    assert (event.kind, event.data) == ("undo", {"status_before": "counted"})


def test_an_undone_surplus_vote_frees_nothing(store, anna, answer):
    vote(store, anna, answer, NOW)
    extra = Answer(id=str(uuid.uuid4()), item=answer.item, answer="none")
    vote(store, anna, extra, NOW)
    undo(store, anna, extra.id, NOW)
    states = {row.id: row.status for row in everything(store, VoteRow)}
    assert states == {answer.id: "counted", extra.id: "superseded"}
    assert [s.state for s in everything(store, SlotRow)].count("done") == 1


def test_an_answer_is_one_of_the_list_of_its_own_item(store, make_study):
    lists = {"lists": "item", "list_size": 4, "label_originals": True, "votes_per_item": 1}
    study = make_study(**lists, set_aside=2, catch_rate=0.5)
    (anna,) = joined(store, study, "Anna")
    while items := next_items(store, anna, "tab", 20, NOW):
        words = {word for item in items for word in item.candidates}
        for item in items:
            elsewhere = sorted(words - set(item.candidates))
            if elsewhere:
                with pytest.raises(AnswerError, match="is not offered"):
                    vote(store, anna, answer_to(item.item, elsewhere[0]), NOW)
            vote(store, anna, answer_to(item.item, item.candidates[-1]), NOW)
    given = [row.status for row in everything(store, VoteRow)]
    assert given.count("counted") == 4 + 2  # of two models, and the originals
    assert given.count("quality") > 0
    assert set(given) == {"counted", "quality"}
