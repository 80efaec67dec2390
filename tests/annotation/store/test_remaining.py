"""What is left for somebody is counted in indices; here each item is looked at instead."""

import random
import uuid
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median

import pytest
from contracts.store_invariants import make_study
from study_factory import DATABASES

from annotation.domain import Answer
from annotation.spec import Task
from annotation.store import progress
from annotation.store.tables import SlotRow
from annotation.study.labelling import join, next_items, progress_of, undo, vote

START = datetime(2026, 1, 1, tzinfo=UTC)


pytestmark = pytest.mark.parametrize("store", DATABASES, indirect=True)


def left_looked_at(tx, study, annotator, now):
    """Items that are theirs to answer, or have a free slot or a lease that has run out."""
    items = {}
    for slot in tx.query(SlotRow).filter_by(study_id=study.id):
        items.setdefault(slot.stimulus_id, []).append(slot)
    left = 0
    for slots in items.values():
        own = [slot for slot in slots if slot.annotator_id == annotator.id]
        over = [slot for slot in slots if slot.state == "leased" and slot.lease_until < now]
        free = [slot for slot in slots if slot.state == "free"]
        left += own[0].state == "leased" if own else bool(free or over)
    return left


def both_ways(tx, study, annotator, now):
    told = progress.so_far(tx, annotator, now).progress
    return told.left, left_looked_at(tx, study, annotator, now)


@pytest.mark.parametrize("extra_vote", [False, True])
def test_what_is_left_is_what_looking_at_each_item_finds(store, extra_vote):
    spec = {"votes_per_item": 3, "extra_vote": extra_vote, "lease_seconds": 60}
    study = make_study(store, 6, Task.RECOGNITION, "ab", **spec)
    people = [join(store, study.token, name).annotator for name in "vwxyz"]
    rng, now, receipts = random.Random(0), START, []

    def one_step():
        who = rng.choice(people)
        items = next_items(store, who, "t", rng.randint(1, 4), now)
        for item in items[: rng.randint(0, 4)]:
            answer = rng.choice(item.candidates)
            sent = Answer(
                id=str(uuid.UUID(int=rng.getrandbits(128))), item=item.item, answer=answer
            )
            receipts.append((who, vote(store, who, sent, now).id))
        if receipts and rng.random() < 0.2:
            undo(store, *receipts.pop(), now)

    for _ in range(25):
        one_step()
        now += timedelta(seconds=rng.choice([1, 30, 90]))
        for who in people:
            told, looked = store.read(partial(both_ways, study=study, annotator=who, now=now))
            assert told == looked


def test_of_very_many_items_the_count_is_good_for_a_moment_and_of_few_exact(store, monkeypatch):
    monkeypatch.setattr(progress, "EXACT_BELOW", 8)
    study = make_study(store, 10, Task.RECOGNITION, votes_per_item=1, repeat_rate=0.0)
    anna, ben = (join(store, study.token, name).annotator for name in ("Anna", "Ben"))

    def left(who, now):
        return store.read(lambda tx: progress.so_far(tx, who, now).progress.left)

    assert left(anna, START) == 10
    next_items(store, ben, "t", 2, START)
    soon, later = (START + timedelta(seconds=seconds) for seconds in (5, 6))
    assert (left(anna, soon), left(anna, later)) == (10, 8)
    next_items(store, ben, "t", 5, later)
    assert left(anna, later) == 8  # not below
    then = later + timedelta(seconds=6)
    assert left(anna, then) == 5
    next_items(store, ben, "t", 6, then)
    assert left(anna, then) == 4


def test_the_more_there_are_the_longer_a_count_is_good_and_one_counts_at_a_time(store, monkeypatch):
    monkeypatch.setattr(progress, "EXACT_BELOW", 8)
    monkeypatch.setattr(progress, "GOOD_FOR_AN_ITEM", timedelta(seconds=1))
    study = make_study(store, 20, Task.RECOGNITION, votes_per_item=1, repeat_rate=0.0)
    anna, ben = (join(store, study.token, name).annotator for name in ("Anna", "Ben"))

    def left(seconds):
        now = START + timedelta(seconds=seconds)
        return store.read(lambda tx: progress.so_far(tx, anna, now).progress.left)

    assert left(0) == 20
    next_items(store, ben, "t", 2, START)
    assert left(20) == 20  # twenty seconds for twenty items
    with progress._counting:  # another request of this server is at it
        assert left(21) == 20
        assert left(41) == 18  # but not for ever
    next_items(store, ben, "t", 5, START)
    assert left(59) == 18
    assert left(60) == 15
    assert progress._counting.acquire(blocking=False)
    progress._counting.release()


def test_the_median_time_is_that_of_all_answers(store):
    study = make_study(store, 6, Task.RECOGNITION, votes_per_item=1, repeat_rate=0.0)
    anna = join(store, study.token, "Anna").annotator
    assert progress_of(store, anna).median_rt_ms is None
    times = []
    for item, rt_ms in zip(
        next_items(store, anna, "t", 6, START),
        (900.0, None, 300.0, 500.0, 400.0, None),
        strict=True,
    ):
        sent = Answer(id=str(uuid.uuid4()), item=item.item, answer="none", rt_ms=rt_ms)
        vote(store, anna, sent, START)
        times += [] if rt_ms is None else [rt_ms]
        assert progress_of(store, anna).median_rt_ms == median(times)
