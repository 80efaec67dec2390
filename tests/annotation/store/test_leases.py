"""Two servers on one PostgreSQL at the same moment; SQLite has one writer at a time."""

import re
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from helpers import limit, until
from sqlalchemy import event, text
from study_factory import START, answer_to, fresh_database, joined, small_study

from annotation.domain import StudyStatus, VoteStatus
from annotation.store import Store
from annotation.study.exports import export_votes
from annotation.study.labelling import next_items, set_status, vote

LATE = START + timedelta(days=1)
BLOCKED = """SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database()"""


@pytest.fixture
def stores(tmp_path):
    """Two servers' doors to one database."""
    with fresh_database("postgresql", tmp_path) as url, Store(url) as one, Store(url) as other:
        yield one, other


@contextmanager
def before(store, statement, do):
    """Call `do` once, before `store` sends the first statement that looks so."""
    waiting = [do]

    def look(connection, cursor, sent, *rest):
        if re.match(statement, sent) and waiting:
            waiting.pop()()

    event.listen(store._engine, "before_cursor_execute", look)
    try:
        yield
    finally:
        event.remove(store._engine, "before_cursor_execute", look)
    assert not waiting


@pytest.mark.parametrize("by", ["next items", "late answer"])
def test_a_lease_that_its_owner_extends_is_nobody_elses(stores, tmp_path, by):
    study = small_study(stores[0], tmp_path, votes_per_item=1)
    anna, ben = joined(stores[0], study, "Anna", "Ben")
    tab, held = "t", {item.item for item in next_items(stores[0], anna, "t", 50, START)}
    if by == "late answer":
        item = next_items(stores[0], ben, "t", 1, LATE)[0].item
        assert next_items(stores[0], anna, "u", 50, LATE + timedelta(days=1))
        tab, held = "u", {item}
    at, kept = LATE + timedelta(days=2), []

    def owner():
        kept.extend(one.item for one in next_items(stores[1], anna, tab, 50, at))

    asking = threading.Thread(target=owner)

    def meanwhile():
        asking.start()
        until(lambda: not asking.is_alive() or blocked(stores[1]), 20)

    with before(stores[0], "UPDATE slot SET .*annotator_id=.* WHERE", meanwhile):
        if by == "late answer":
            taken = {item} if vote(stores[0], ben, answer_to(item), at).status == "counted" else ()
        else:
            taken = {one.item for one in next_items(stores[0], ben, "t", 50, at)}
    asking.join(limit(30))
    assert taken
    assert not taken & set(kept)
    assert held <= {*taken, *kept}


def blocked(store):
    return store.read(lambda tx: tx.scalar(text(BLOCKED)))


def test_a_vote_on_its_way_when_the_study_is_closed_counts(stores, tmp_path):
    study = small_study(stores[0], tmp_path, votes_per_item=1)
    (anna,) = joined(stores[0], study, "Anna")
    first, second = next_items(stores[0], anna, "t", 2, START)
    with before(stores[0], "INSERT INTO vote", lambda: set_status(stores[1], study.id, "closed")):
        assert vote(stores[0], anna, answer_to(first.item), START).status is VoteStatus.COUNTED
    assert vote(stores[0], anna, answer_to(second.item), START).status is VoteStatus.SURPLUS
    assert export_votes(stores[0], study.id)["status"].tolist() == ["counted", "surplus"]
    assert set_status(stores[0], study.id, StudyStatus.CLOSED).status is StudyStatus.CLOSED
