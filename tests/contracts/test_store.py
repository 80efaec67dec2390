"""What every database must guarantee, whatever people and networks do.

The same tests run on SQLite and PostgreSQL. An *acknowledged* vote is one whose receipt was
returned.
"""

import re
import sqlite3
from contextlib import ExitStack, closing
from datetime import timedelta
from functools import partial

import pandas as pd
import pytest
from contracts.labelling_process import labelling
from contracts.store_invariants import check, make_study
from helpers import at_once
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError
from study_factory import START, answer_all, answer_to, joined

from annotation.design.assignment import PRIME, order_of
from annotation.errors import NameTakenError
from annotation.formats.plain import write_parquet
from annotation.spec import Task
from annotation.store import Store, reports, studies
from annotation.store.tables import AnnotatorRow, SlotRow, VoteRow
from annotation.study.exports import export_votes
from annotation.study.labelling import join, next_items, progress, progress_of, undo, vote
from annotation.study.participants import list_people

PEOPLE = ("Anna", "Ben", "Cleo", "Dora")
RECEIPT = re.compile(r"[0-9a-f-]{36} [a-z]+\n")  # as a process tells it


# ------------------------------------------------------------------ real threads


def test_one_person_in_many_tabs_votes_once_an_item(store):
    study = make_study(store, 12, Task.RECOGNITION, votes_per_item=2)
    (anna,) = joined(store, study, "Anna")

    def tab(name):
        items = next_items(store, anna, name, 12, START)
        return [vote(store, anna, answer_to(item.item, tab=name), START).id for item in items]

    receipts = at_once(*[partial(tab, f"tab{n}") for n in range(6)])
    check(store, study, {one for of_tab in receipts for one in of_tab})
    assert progress(store, study.id).coverage == [0, 12, 0]


def test_one_vote_sent_many_times_at_once_is_one_vote(store):
    study = make_study(store, 1, Task.RECOGNITION, votes_per_item=5)
    (anna,) = joined(store, study, "Anna")
    (item,) = next_items(store, anna, "tab", 1, START)
    answer = answer_to(item.item)
    receipts = at_once(*[lambda: vote(store, anna, answer, START)] * 8)
    assert len(receipts) == 8
    assert len(set(receipts)) == 1
    check(store, study, {answer.id})


def test_who_joins_at_the_same_moment_gets_a_seat_each_and_none_is_left_out(store):
    study = make_study(store)
    names = [f"person {n}" for n in range(12)]
    told = at_once(*(lambda name=name: join(store, study.token, name) for name in names))
    assert sorted(one.annotator.seat for one in told) == list(range(12))
    seats = store.read(lambda tx: dict(tx.query(AnnotatorRow.name, AnnotatorRow.seat).all()))
    assert seats == {one.annotator.name: one.annotator.seat for one in told}
    assert join(store, study.token, "one more").annotator.seat == 12


def test_one_name_joining_many_times_at_once_is_one_person(store):
    study = make_study(store, 1)
    together = [lambda: join(store, study.token, "Anna")] * 8
    people = at_once(*together, refused=NameTakenError)
    taken = [one for one in people if isinstance(one, NameTakenError)]
    assert len(taken) == 7
    assert [row.name for row in list_people(store, study.id)] == ["Anna"]


def test_undo_while_others_take_over_keeps_the_invariants(store):
    study = make_study(store, 10, Task.RECOGNITION, votes_per_item=1)
    anna, ben = joined(store, study, *PEOPLE[:2])
    answers = [answer_to(item.item) for item in next_items(store, anna, "tab", 10, START)]
    for answer in answers:
        vote(store, anna, answer, START)
    receipts, later = [answer.id for answer in answers], START + timedelta(hours=1)

    def take_back():
        for answer in answers:
            undo(store, anna, answer.id, START)
            receipts.append(vote(store, anna, answer_to(answer.item), later).id)

    def take_over():
        for _ in range(20):
            receipts.extend(one.id for one in answer_all(store, ben, n=10, now=later))

    at_once(take_back, take_over)
    check(store, study, set(receipts))
    assert progress(store, study.id).coverage == [0, 10]


def test_an_export_while_people_vote_is_of_one_moment(store, tmp_path):
    study = make_study(store, 6, Task.RECOGNITION, votes_per_item=2)
    # One after the other: what another person is claiming at that moment is skipped.
    people = joined(store, study, *PEOPLE[:2])
    held = [[item.item for item in next_items(store, p, "tab", 6, START)] for p in people]
    acknowledged, going_on, exports = [], list(people), []

    def say(person, item):
        receipt = vote(store, person, answer_to(item), START)
        acknowledged.append(receipt.id)
        return receipt.id

    def change_their_mind(person, items):
        """Every item answered, taken back and answered again, over and over."""
        try:
            for item in items * 4:
                undo(store, person, say(person, item), START)
            for item in items:
                say(person, item)
        finally:
            going_on.remove(person)

    def take_out():
        last = False
        while not last:
            last, before = not going_on, set(acknowledged)
            exports.append(export_votes(store, study.id))
            assert before <= set(exports[-1]["vote_id"])

    at_once(take_out, *map(partial, [change_their_mind] * 2, people, held))
    for table in exports:
        assert table["vote_id"].is_unique
        counted = table[table["status"] == "counted"]
        assert not counted.duplicated(["item", "annotator"]).any()
    assert exports[-1]["status"].value_counts().to_dict() == {"superseded": 48, "counted": 12}
    write_parquet(exports[-1], tmp_path / "votes.parquet")
    assert pd.read_parquet(tmp_path / "votes.parquet").equals(exports[-1])


# ------------------------------------------------------------------ real processes


def test_twenty_people_in_two_processes_give_every_item_exactly_k_votes(store):
    seed = int(store.url.startswith("sqlite"))
    study = make_study(store, 20, Task.RECOGNITION, votes_per_item=5, seed=seed)
    teams = [[f"{team}{n}" for n in range(10)] for team in "ab"]
    with ExitStack() as stack:
        running = [
            stack.enter_context(labelling(store.url, study.token, seed, team)) for team in teams
        ]
        lines = [line for _, told in running for line in told]
    assert [line for line in lines if not RECEIPT.fullmatch(line)] == []
    receipts = [line.split() for line in lines]
    assert {status for _, status in receipts} == {"counted"}
    assert len({vote_id for vote_id, _ in receipts}) == 100 < len(receipts)
    assert progress(store, study.id).coverage == [0] * 5 + [20]
    check(store, study, {vote_id for vote_id, _ in receipts})


def test_what_was_acknowledged_survives_kill_after_kill(store, tmp_path):
    study = make_study(store, 200, Task.RECOGNITION, votes_per_item=2)
    acknowledged = set()
    for kill in range(4):
        with labelling(store.url, study.token, kill, PEOPLE) as (process, told):
            lines = [told.readline() for _ in range(20)]
            process.kill()
            lines += told.readlines()
        assert [line for line in lines if not RECEIPT.fullmatch(line)] == []
        acknowledged |= {line.split()[0] for line in lines}
        check(store, study, acknowledged)
    assert 50 < len(acknowledged) < 400  # it was killed while there was something to do
    if store.url.startswith("sqlite"):
        with closing(sqlite3.connect(tmp_path / "studies.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# ------------------------------------------------------------------ the database itself


def test_the_database_itself_refuses_a_second_vote(store):
    study = make_study(store, 2, Task.RECOGNITION, votes_per_item=2)
    (anna,) = joined(store, study, "Anna")
    items = next_items(store, anna, "tab", 2, START)
    answers = [answer_to(one.item) for one in items]
    for answer in answers:
        vote(store, anna, answer, START)

    def move(tx):
        row = tx.get_one(VoteRow, answers[0].id)
        tx.execute(update(VoteRow).where(VoteRow.id == answers[1].id).values(slot_id=row.slot_id))

    with pytest.raises(IntegrityError):
        store.write(move)


def test_the_database_sorts_as_the_order_says(store):
    study = make_study(store, 40, Task.RECOGNITION)
    (anna,) = joined(store, study, "Anna")
    salts = store.read(
        lambda tx: {s.stimulus_id: s.salt for s in tx.query(SlotRow).filter_by(study_id=study.id)}
    )
    order = order_of(study.spec.seed, "anna")
    places = {item: (order.factor * s + order.offset) % PRIME for item, s in salts.items()}
    expected = sorted(salts, key=places.__getitem__)
    got = next_items(store, anna, "tab", 40, START)
    assert {item.item for item in got} == set(expected)
    assert [item.item for item in got] == expected


def test_a_restart_forgets_nothing(store):
    study = make_study(store, 3, Task.RECOGNITION)
    (anna,) = joined(store, study, "Anna")
    held = next_items(store, anna, "tab", 2, START)
    with Store(store.url) as again:
        assert [i.item for i in next_items(again, anna, "tab", 2, START)] == [i.item for i in held]
        assert again.read(studies.all_studies) == store.read(studies.all_studies)


def test_reading_changes_nothing(store):
    study = make_study(store, 3, Task.RECOGNITION)
    (anna,) = joined(store, study, "Anna")
    before = store.read(lambda tx: reports.vote_rows(tx, study))
    progress(store, study.id)
    progress_of(store, anna)
    assert store.read(lambda tx: reports.vote_rows(tx, study)) == before


# ------------------------------------------------------------------ clocks


def test_what_was_reserved_by_a_clock_that_ran_ahead_is_not_kept_from_others(store):
    study = make_study(store, 6, Task.RECOGNITION, votes_per_item=1)
    anna, ben = joined(store, study, "Anna", "Ben")
    held = next_items(store, anna, "tab", 6, START + timedelta(days=1))
    assert len(held) == 6
    assert {one.item for one in next_items(store, ben, "tab", 6, START)} == {
        one.item for one in held
    }
    kept = vote(store, ben, answer_to(held[0].item), START)
    check(store, study, {kept.id})


def test_a_reservation_is_kept_through_the_seconds_by_which_two_servers_differ(store):
    study = make_study(store, 6, Task.RECOGNITION, votes_per_item=1)
    anna, ben = joined(store, study, "Anna", "Ben")
    held = next_items(store, anna, "tab", 6, START + timedelta(seconds=30))
    assert next_items(store, ben, "tab", 6, START) == []
    assert {one.item for one in next_items(store, anna, "tab", 6, START)} == {
        one.item for one in held
    }
