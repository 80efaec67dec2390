"""Items come block by block, within the limits of one original, and originals come last."""

import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from contracts.store_invariants import START, check, make_study
from sqlalchemy import text
from study_factory import DATABASES, rank

from annotation.design.assignment import PRIME, order_of
from annotation.domain import Answer, StimulusKind
from annotation.spec import Task
from annotation.store import next_items as upcoming
from annotation.store.tables import SlotRow, StimulusRow
from annotation.study.labelling import join, next_items, progress, progress_of, vote
from annotation.study.participants import exclude
from annotation.study.protocols import amend

LATER = START + timedelta(hours=1)


in_every_database = pytest.mark.parametrize("store", DATABASES, indirect=True)


def a_study(store, n_images=4, **spec):
    """Four originals attacked on three models."""
    usual = {"task": Task.RECOGNITION, "votes_per_item": 2, "repeat_rate": 0.0, "models": "abc"}
    return make_study(store, n_images, **{**usual, **spec})


def joined(store, study, *names):
    return [join(store, study.token, name).annotator for name in names]


def shown(store, items):
    """(original, model) of each item, in their order."""
    rows = store.read(
        lambda tx: {row.id: (row.source_id, row.model) for row in tx.query(StimulusRow).all()}
    )
    return [rows[item.item] for item in items]


def answer(store, person, item, now=START):
    return vote(store, person, Answer(id=str(uuid.uuid4()), item=item, answer="none"), now)


def work(store, person, n=1, at=START):
    """Everything somebody gets, answered at once, `n` at a time."""
    done = []
    while items := next_items(store, person, "tab", n, at):
        for item in items:
            answer(store, person, item.item, at)
        done += items
    return done


def test_each_block_shows_every_original_once_and_neighbours_begin_elsewhere(store):
    study = a_study(store, 6)
    orders = [shown(store, work(store, person)) for person in joined(store, study, "A", "B")]
    for order in orders:
        assert len(set(order)) == 18
        for start in (0, 6, 12):
            block = order[start : start + 6]
            assert len({source for source, _ in block}) == 6
            assert set(Counter(model for _, model in block).values()) == {2}
    assert not set(orders[0][:6]) & set(orders[1][:6])


@in_every_database
def test_of_very_many_items_the_next_to_a_place_of_ones_own_come_in_ones_own_order(
    store, monkeypatch
):
    study = a_study(store, 12, balanced=False, models="m")
    monkeypatch.setattr(upcoming, "WINDOW", 5)
    monkeypatch.setattr(upcoming, "IN_TURN", upcoming._in_turn())
    salt = store.read(lambda tx: dict(tx.query(SlotRow.stimulus_id, SlotRow.salt).all()))
    firsts = []
    for person in joined(store, study, "Anna", "Ben"):
        own = order_of(study.spec.seed, person.name.casefold())
        circle = sorted(salt, key=lambda item, own=own: (salt[item] - own.offset) % PRIME)
        first = store.read(lambda tx, who=person: upcoming.open_items(tx, who, 4, START))
        assert first == sorted(circle[:5], key=lambda item, own=own: rank(own, salt[item]))[:4]
        firsts.append(first)
    anna, ben = joined(store, study, "Cleo", "Dan")
    assert firsts[0] != firsts[1]
    assert len(work(store, anna, 3)) == len(work(store, ben, 3)) == 12
    check(store, study)


def test_nobody_sees_more_of_an_original_than_is_allowed(store):
    study = a_study(store, max_views=1)
    people = joined(store, study, *"ABCDEF")
    for number, person in enumerate(people):
        assert progress_of(store, person).left == 4
        assert Counter(s for s, _ in shown(store, work(store, person, 3))).most_common(1)[0][1] == 1
        now = progress_of(store, person)
        assert (now.done, now.left, now.waiting) == (4, 0, False), number
    assert progress(store, study.id).coverage == [0, 0, 12]


def test_two_tabs_together_see_no_more_either(store):
    study = a_study(store, max_views=1)
    (anna,) = joined(store, study, "Anna")
    wanted = store.read(lambda tx: upcoming.open_items(tx, anna, 12, START))
    assert len(wanted) == 12  # each would do for the first view
    got = shown(store, next_items(store, anna, "one", 2, START))
    got += shown(store, next_items(store, anna, "two", 9, START))
    assert len({source for source, _ in got}) == len(got) == 4


@in_every_database
def test_what_somebody_lost_counts_as_seen_but_may_come_again(store):
    study = a_study(store, 1, max_views=1, votes_per_item=1, models="a")
    anna, ben = joined(store, study, "Anna", "Ben")
    (lost,) = next_items(store, anna, "tab", 9, START)
    (taken,) = next_items(store, ben, "tab", 9, LATER)
    assert taken.item == lost.item
    assert next_items(store, anna, "tab", 9, LATER) == []
    assert progress_of(store, anna).left == 1  # Ben's lease is of the past
    (again,) = next_items(store, anna, "tab", 9, LATER + timedelta(hours=1))
    assert again.item == lost.item


def test_the_lag_is_kept_across_requests_until_nothing_else_is_left(store):
    study = a_study(store, 6, min_lag=4, balanced=False)
    (anna,) = joined(store, study, "Anna")
    order = [source for source, _ in shown(store, work(store, anna, 2))]
    assert len(order) == 18
    near = [n for n in range(18) if order[n] in order[max(0, n - 4) : n]]
    for n in near:
        left = set(order[n:]) - set(order[max(0, n - 4) : n])
        assert left == set(), "another original was left"


def test_a_lag_longer_than_the_study_stops_nobody(store):
    study = a_study(store, 2, min_lag=50)
    (anna,) = joined(store, study, "Anna")
    order = [source for source, _ in shown(store, work(store, anna, 3))]
    assert len(order) == 6
    assert order[:2] == order[2:4] == order[4:]  # the one met longest ago comes first


@in_every_database
def test_an_original_comes_after_all_else_of_it_and_nothing_after(store):
    study = a_study(store, 3, label_originals=True)
    anna, ben, cleo = joined(store, study, "Anna", "Ben", "Cleo")
    assert study.n_items == 12
    held = next_items(store, anna, "tab", 4, START)  # somebody is at work on one or two of each
    order = shown(store, work(store, ben, 5))
    assert [model for _, model in order].index("") == 9
    assert len(order) == 12
    for item in held:
        answer(store, anna, item.item)
    assert len(work(store, anna, 1)) == 8
    assert progress_of(store, cleo).left == 0
    assert progress(store, study.id).coverage == [0, 0, 12]


def test_who_has_named_an_original_gets_nothing_of_it_that_opens_later(store):
    study = a_study(store, 1, label_originals=True, votes_per_item=1)
    anna, ben = joined(store, study, "Anna", "Ben")
    first = next_items(store, ben, "tab", 1, START)[0]
    answer(store, ben, first.item)
    (original,) = [item for item in work(store, anna, 1) if shown(store, [item])[0][1] == ""]
    assert original
    store.write(  # what excluding Ben does
        lambda tx: tx.execute(
            text("UPDATE slot SET state = 'leased', lease_until = :then WHERE annotator_id = :ben"),
            {"then": START - timedelta(seconds=1), "ben": ben.id},
        )
    )
    assert next_items(store, anna, "tab", 9, START) == []
    assert progress_of(store, anna).left == 0


@in_every_database
def test_an_original_waits_for_what_another_tab_holds_of_it(store):
    study = a_study(store, 1, models="a", label_originals=True, votes_per_item=1)
    (anna,) = joined(store, study, "Anna")
    (first,) = next_items(store, anna, "laptop", 1, START)
    (same,) = next_items(store, anna, "phone", 1, START)
    assert same.item == first.item  # there is nothing else, so it comes along
    answer(store, anna, first.item)
    (original,) = next_items(store, anna, "phone", 1, START)
    assert shown(store, [original])[0][1] == ""


@in_every_database
def test_who_lost_an_original_gets_it_again_though_a_reconstruction_has_room(store):
    study = a_study(store, 1, models="a", label_originals=True)
    anna, ben, cleo = joined(store, study, "Anna", "Ben", "Cleo")
    for person in (ben, cleo):
        (item,) = next_items(store, person, "tab", 1, START)
        answer(store, person, item.item)
    (original,) = next_items(store, anna, "tab", 1, START)
    late = START + timedelta(seconds=study.spec.lease_seconds + 1)
    for person in (cleo, ben):  # who takes over what Anna had
        (item,) = next_items(store, person, "tab", 1, late)
        answer(store, person, item.item, late)
    exclude(store, study.id, "Ben", late)
    now = late + timedelta(seconds=1)
    assert [one.item for one in next_items(store, anna, "tab", 9, now)] == [original.item]


def test_originals_are_items_that_are_no_reconstruction(store):
    study = a_study(store, 2, label_originals=True)
    rows = store.read(lambda tx: tx.query(StimulusRow).filter_by(model="").all())
    assert {row.kind for row in rows} == {StimulusKind.ORIGINAL}
    cells = store.read(lambda tx: Counter(s.cell for s in tx.query(SlotRow).all()))
    assert cells == {0: 4, 1: 4, 2: 4, 3: 4}
    assert study.models == ("a", "b", "c")


def test_somebody_is_done_after_as_many_items_as_were_asked_of_them(store):
    study = a_study(store, items_per_person=5)
    (anna,) = joined(store, study, "Anna")
    first = next_items(store, anna, "one", 3, START)
    second = next_items(store, anna, "two", 9, START)
    assert (len(first), len(second)) == (3, 2)
    assert progress_of(store, anna).left == 5
    for item in (*first, *second):
        answer(store, anna, item.item)
    assert next_items(store, anna, "one", 9, START) == []
    now = progress_of(store, anna)
    assert (now.done, now.left, now.total) == (5, 0, 5)
    amend(store, study.id, {"items_per_person": 6}, "one more")
    assert len(next_items(store, anna, "one", 9, START)) == 1


def test_who_waits_for_others_is_told_so(store):
    study = a_study(store, 1, votes_per_item=1)
    anna, ben = joined(store, study, "Anna", "Ben")
    items = next_items(store, anna, "tab", 9, datetime.now(UTC))
    now = progress_of(store, ben)
    assert (now.left, now.waiting) == (0, True)
    for item in items:
        answer(store, anna, item.item)
    assert progress_of(store, ben).waiting is False


@in_every_database
@pytest.mark.parametrize("limits", [{"max_views": 1}, {"max_views": 2, "min_lag": 3}])
def test_how_much_is_left_is_how_much_comes(store, limits):
    study = a_study(store, 5, label_originals=True, **limits)
    for person in joined(store, study, *"ABC"):
        left = progress_of(store, person).left
        assert len(work(store, person, 4)) == left > 0
