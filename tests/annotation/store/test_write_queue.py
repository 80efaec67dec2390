"""Who writes to SQLite next: in the order they came, answers before claims, and nobody never."""

import threading
from datetime import UTC, datetime

import pytest
from helpers import until
from sqlalchemy import event, text
from study_factory import answer_to

from annotation.store import engine
from annotation.study.labelling import next_items, vote
from semsim.base.errors import StoreError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Queue:
    """Threads that wait for their turn, each there before the next is started."""

    def __init__(self, of):
        self.of, self.order, self.threads = of, [], []

    def join(self, name, work):
        n = self.n_waiting()
        thread = threading.Thread(target=work)
        self.threads.append(thread)
        thread.start()
        until(lambda: self.n_waiting() > n or not thread.is_alive())
        assert self.n_waiting() > n, f"{name} did not wait"

    def n_waiting(self):
        return sum(map(len, self.of._waiting.values()))

    def take(self, name, *, yields=False):
        def work():
            with self.of.turn(yields=yields):
                self.order.append(name)

        self.join(name, work)

    def done(self):
        for thread in self.threads:
            thread.join()
        return self.order


@pytest.fixture
def queue():
    return Queue(engine.Turns())


def test_in_the_order_they_came_and_who_yields_last(queue):
    with queue.of.turn():
        for name in ("claim 1", "vote 1", "claim 2", "vote 2"):
            queue.take(name, yields=name.startswith("claim"))
    assert queue.done() == ["vote 1", "vote 2", "claim 1", "claim 2"]


def test_who_yields_is_passed_by_only_so_many(queue, monkeypatch):
    monkeypatch.setattr(engine, "MOST_PASSED", 2)
    with queue.of.turn():
        queue.take("claim 1", yields=True)
        for n in range(5):
            queue.take(n)
        queue.take("claim 2", yields=True)
    assert queue.done() == [0, 1, "claim 1", 2, 3, "claim 2", 4]


def test_an_error_passes_the_turn_on(queue):
    def fail():
        with queue.of.turn():
            queue.take("next")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert queue.done() == ["next"]


def test_who_waits_too_long_is_told_and_stands_in_nobodys_way(queue, monkeypatch):
    with queue.of.turn():
        monkeypatch.setattr(engine, "LONGEST", 0.01)
        with pytest.raises(StoreError, match="do the same again"), queue.of.turn():
            pytest.fail("let in")
        monkeypatch.undo()
        queue.take("next")
    assert queue.done() == ["next"]


def test_an_answer_is_written_before_a_claim_that_asked_first(store, anna, ben):
    (held,) = next_items(store, anna, "tab", 1, NOW)
    queue = Queue(store._turns)

    def note(*said):
        claim = "UPDATE slot SET state=?, annotator_id"
        for name, what in (("INSERT INTO vote", "answer"), (claim, "claim")):
            if said[2].startswith(name) and what not in queue.order:
                queue.order.append(what)

    event.listen(store._engine, "before_cursor_execute", note)

    def both_wait(tx):
        tx.execute(text("SELECT 1"))
        queue.join("claim", lambda: next_items(store, ben, "tab", 1, NOW))
        queue.join("answer", lambda: vote(store, anna, answer_to(held.item), NOW))

    store.write(both_wait)
    assert queue.done() == ["answer", "claim"]
