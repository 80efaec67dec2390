"""Claiming, as the database sees it; `tests/contracts/test_store.py` has the races."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from contracts import store_invariants as invariants
from helpers import limit, until
from sqlalchemy import event, select, text, update
from study_factory import fresh_database, write_set

from annotation.domain import StudyStatus
from annotation.errors import NotFoundError
from annotation.spec import StudySpec, Task
from annotation.store import Store, leases, people, slots, studies
from annotation.store import next_items as upcoming
from annotation.store.tables import EventRow, SlotRow
from annotation.study.create import create_study
from annotation.study.labelling import join, next_items

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


@pytest.fixture
def study(make_study):
    """One without blocks of models, which `test_next_items.py` is about."""
    return make_study(votes_per_item=2, balanced=False)


def open_items(store, person, now=NOW, n=100):
    return store.read(lambda tx: upcoming.open_items(tx, person, n, now))


def test_interrupted_items_come_before_started_and_fresh_ones(store, anna, ben):
    started = {i.item for i in next_items(store, anna, "tab", 2, LATER)}
    expired = {i.item for i in next_items(store, anna, "other", 2, NOW)}
    order = open_items(store, ben, LATER)
    assert set(order[:2]) == expired
    assert set(order[2:4]) == started
    assert len(order) == len(set(order)) == 8
    assert open_items(store, ben, LATER, n=3) == order[:3]


def test_own_expired_items_can_be_continued(store, anna):
    mine = {i.item for i in next_items(store, anna, "tab", 8, NOW)}
    assert open_items(store, anna) == []
    assert set(open_items(store, anna, LATER)) == mine


def test_nothing_is_open_unless_the_study_runs(store, study, anna):
    store.write(lambda tx: studies.put_status(tx, study.id, StudyStatus.PAUSED, NOW))
    assert open_items(store, anna) == []


def test_items_gone_since_they_were_read_are_not_given_out(store, study, anna, ben):
    cleo = join(store, study.token, "Cleo").annotator
    stale = open_items(store, cleo)
    for person in (anna, ben):
        next_items(store, person, "tab", 7, NOW)

    def claim(tx):
        return leases.lease(tx, leases.claimer(tx, cleo, NOW), "tab", stale, 8, last_try=False)

    got = store.write(claim)
    assert len(got) == 1


def test_a_claim_looks_at_few_more_items_than_it_takes(store):
    study = invariants.make_study(store, 40, Task.RECOGNITION, votes_per_item=1)
    anna = join(store, study.token, "Anna").annotator
    next_items(store, anna, "tab", 20, NOW)
    items = set(store.read(lambda tx: tx.scalars(select(SlotRow.stimulus_id)).all()))
    looked = []

    def note(*said):
        if said[2].startswith("SELECT slot.stimulus_id, slot.id, slot.k"):
            looked.append(sum(one in items for one in said[3]))

    event.listen(store._engine, "before_cursor_execute", note)
    assert len(next_items(store, anna, "tab", 22, NOW)) == 22
    assert looked == [2 + leases.IN_CASE]


def test_reservations_are_written_anew_only_after_a_while(store, anna):
    lasts, moment = timedelta(seconds=600), timedelta(seconds=10)
    next_items(store, anna, "tab", 4, NOW)

    def ends(n, now):
        """What is told, and what the items that are held end at."""
        told = {item.lease_until for item in next_items(store, anna, "tab", n, now)}
        rows = store.read(lambda tx: tx.query(SlotRow).filter_by(state="leased").all())
        return told, sorted({row.lease_until for row in rows})

    soon, late = NOW + moment, NOW + 4 * moment
    assert ends(6, soon) == ({NOW + lasts}, [NOW + lasts, soon + lasts])
    assert ends(6, late) == ({soon + lasts}, [soon + lasts, late + lasts])
    before = NOW - timedelta(hours=1)  # a clock that was set back
    assert ends(6, before) == ({before + lasts}, [before + lasts])


def test_heartbeats_write_reservations_anew_only_after_a_while_too(store, anna):
    lasts, moment = timedelta(seconds=600), timedelta(seconds=10)
    mine = [item.item for item in next_items(store, anna, "tab", 2, NOW)]

    def ends(now, tab="tab"):
        """What the items that are held end at after a heartbeat."""
        store.write(lambda tx: slots.heartbeat(tx, anna, tab, mine, now))
        rows = store.read(lambda tx: tx.query(SlotRow).filter_by(state="leased", tab=tab).all())
        return [row.lease_until for row in rows]

    assert ends(NOW + moment) == [NOW + lasts] * 2
    assert ends(NOW + moment, "other") == [NOW + moment + lasts] * 2
    late = NOW + 5 * moment
    assert ends(late, "other") == [late + lasts] * 2
    before = NOW - timedelta(hours=1)  # a clock that was set back
    assert ends(before, "other") == [before + lasts] * 2


def test_a_takeover_is_on_record(store, study, anna, ben):
    for person in (anna, ben):
        next_items(store, person, "tab", 8, NOW)
    cleo = join(store, study.token, "Cleo").annotator
    next_items(store, cleo, "tab", 1, LATER)
    (event,) = store.read(lambda tx: tx.query(EventRow).filter_by(kind="lease_lost").all())
    assert event.annotator_id in (anna.id, ben.id)
    assert event.data == {"taken_by": cleo.id}


def test_a_heartbeat_brings_items_along_to_its_tab(store, anna):
    (item,) = next_items(store, anna, "old", 1, NOW)
    store.write(lambda tx: slots.heartbeat(tx, anna, "new", [item.item, "nothing"], LATER))
    (row,) = store.read(lambda tx: tx.query(SlotRow).filter_by(state="leased").all())
    assert (row.tab, row.lease_until) == ("new", LATER + timedelta(seconds=600))


def test_somebody_who_is_gone_is_told_so(store, study):
    stranger = store.write(lambda tx: people.annotator_named(tx, study.id, "Dora", NOW))
    store.write(lambda tx: tx.execute(text("DROP TRIGGER event_no_delete")))
    store.write(lambda tx: tx.execute(text("DELETE FROM event WHERE annotator_id IS NOT NULL")))
    store.write(lambda tx: tx.execute(text("DELETE FROM annotator")))
    with pytest.raises(NotFoundError, match="Open its link again"):
        next_items(store, stranger, "tab", 1, NOW)


def test_large_numbers_of_slots_use_the_partial_index(store, study, anna):
    """A study has 100,000 slots; choosing the next must not look at all of them."""
    same = {"study": study.id, "cell": 0, "me": anna.id, "now": NOW}
    query = upcoming.IN_TURN.params({**same, "factor": 1, "offset": 0, "n": 5})
    sql = str(query.compile(store._engine, compile_kwargs={"literal_binds": True}))
    plan = str(store.read(lambda tx: tx.execute(text(f"EXPLAIN QUERY PLAN {sql}")).all()))
    assert "INDEX ix_slot_leased" in plan
    assert "COVERING INDEX ix_slot_begun (study_id=? AND cell=?)" in plan
    for side in "<>":
        assert f"COVERING INDEX ix_slot_fresh (study_id=? AND cell=? AND salt{side}?)" in plan
    assert "SCAN slot" not in plan


def test_who_finds_all_items_being_claimed_waits_for_the_outcome(tmp_path):
    """PostgreSQL only: on SQLite writers always take turns."""
    spec = StudySpec(name="s", task=Task.RECOGNITION, votes_per_item=1)
    folder = write_set(tmp_path / "set", labels=["Cat"])
    with fresh_database("postgresql", tmp_path) as url, Store(url) as store:
        study = create_study(store, spec, [folder], tmp_path / "images")
        anna = join(store, study.token, "Anna").annotator
        got = []

        def hold(tx):
            (slot,) = tx.query(SlotRow).all()
            slots.lock_slots(tx, [slot.stimulus_id])
            waiting.start()
            until(lambda: got or somebody_waits(tx))
            tx.execute(update(SlotRow).values(tab="kept"))

        waiting = threading.Thread(
            target=lambda: got.append(next_items(store, anna, "tab", 1, NOW))
        )
        store.write(hold)
        waiting.join(timeout=limit(30))
        assert [len(items) for items in got] == [1]


def somebody_waits(tx):
    """Whether another transaction waits for the end of this one."""
    return tx.scalar(
        text(
            "SELECT count(*) FROM pg_locks"
            " WHERE NOT granted AND transactionid = pg_current_xact_id()::xid"
        )
    )
