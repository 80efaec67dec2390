"""What every database must guarantee, whatever people and networks do.

The same tests run on SQLite and PostgreSQL. An *acknowledged* vote is one whose receipt was
returned.
"""

import random
import subprocess
import sys
import threading
import uuid
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError
from study_factory import CLASSES, DATABASES, fresh_database

from annotation.domain import Answer, StudySpec, StudyStatus, Task
from annotation.errors import AnnotationError, ConflictError
from annotation.store import Store, reports, studies
from annotation.store.tables import EventRow, SlotRow, VoteRow
from annotation.study import (
    export_labels,
    export_votes,
    heartbeat,
    join,
    next_items,
    progress,
    progress_of,
    set_status,
    undo,
    vote,
)
from annotation.tasks.assignment import order_of, rank
from annotation.tasks.plan import Original, Reconstruction, plan_study

START = datetime(2026, 1, 1, tzinfo=UTC)
PEOPLE = ("Anna", "Ben", "Cleo", "Dora")


@pytest.fixture(params=DATABASES)
def store(request, tmp_path):
    with fresh_database(request.param, tmp_path) as url, Store(url) as opened:
        yield opened


def make_study(store, tmp_path, n_images=3, task=Task.PAIR, **spec):
    """A study of one model without image files, which no test here looks at."""
    labels = [CLASSES[i % len(CLASSES)] for i in range(n_images)]
    plan = plan_study(
        StudySpec(name=uuid.uuid4().hex, task=task, **spec),
        dataset="symbols",
        classes=CLASSES,
        originals=[
            Original(image_id=str(i), class_name=label, sha256="0" * 64)
            for i, label in enumerate(labels)
        ],
        reconstructions=[
            Reconstruction(
                image_id=str(i),
                class_name=label,
                model="m",
                attack="a",
                sha256="1" * 64,
                error=i / n_images,
            )
            for i, label in enumerate(labels)
        ],
        n_failed=0,
    )
    return store.write(lambda tx: studies.add_study(tx, plan, tmp_path, START))


def check(store, study, acknowledged):
    """The invariants of a study; `acknowledged` are the vote ids that people hold receipts of."""
    k = study.spec.votes_per_item
    slots, votes, events = store.read(lambda tx: rows_of(tx, study))
    counted = [v for v in votes if v.status == "counted"]
    per_item = Counter(v.stimulus_id for v in counted)
    assert all(n <= k for n in per_item.values())
    assert all(n == 1 for n in Counter((v.stimulus_id, v.annotator_id) for v in counted).values())
    assert acknowledged <= {v.id for v in votes}
    assert Counter(e.vote_id for e in events if e.kind == "vote") == Counter(v.id for v in votes)
    undone = Counter(e.vote_id for e in events if e.kind == "undo")
    assert undone == Counter(v.id for v in votes if v.status == "superseded")
    assert Counter(s.stimulus_id for s in slots) == {s.stimulus_id: k for s in slots}
    assert len(slots) == study.n_items * k
    done = {s.id: s.annotator_id for s in slots if s.state == "done"}
    assert done == {v.slot_id: v.annotator_id for v in counted}
    for item in per_item.keys() | {s.stimulus_id for s in slots}:
        states = [s.state for s in sorted(slots, key=lambda s: s.k) if s.stimulus_id == item]
        assert "free" not in states or set(states[states.index("free") :]) == {"free"}
    coverage = progress(store, study.id).coverage
    assert sum(n * items for n, items in enumerate(coverage)) == len(counted)
    assert sum(coverage) == study.n_items


def rows_of(tx, study):
    return tuple(
        tx.query(t).filter_by(study_id=study.id).all() for t in (SlotRow, VoteRow, EventRow)
    )


def check_labels(store, study, tmp_path):
    votes = export_votes(store, study.id)
    counted = votes[(votes["status"] == "counted") & (votes["kind"] == "reconstruction")]
    labels = export_labels(store, study.id, tmp_path)
    assert len(labels) == study.n_items - study.n_decoys
    assert labels["n_votes"].sum() == len(counted)
    assert labels["n_recognised"].sum() == counted["recognised"].sum()
    assert set(labels["item"]).isdisjoint(votes.loc[votes["kind"] == "decoy", "item"])


# ------------------------------------------------------------------ any interleaving


@dataclass
class World:
    """Several people at one study, with everything they remember."""

    store: Store
    study: object
    people: list
    now: datetime = START
    seen: list = field(default_factory=list)  # (person, item) ever handed out
    sent: list = field(default_factory=list)  # (person, answer) acknowledged

    def claim(self, person, number):
        got = next_items(self.store, self.people[person], f"tab{number % 2}", 2, self.now)
        assert len({item.item for item in got}) == len(got) <= 2
        self.seen += [(person, item.item) for item in got]

    def answer(self, person, number):
        mine = [item for who, item in self.seen if who == person]
        if mine:
            text = ("same", "different")[number % 2]
            self._send(
                person, Answer(id=str(uuid.uuid4()), item=mine[number % len(mine)], answer=text)
            )

    def repeat(self, person, number):
        mine = [answer for who, answer in self.sent if who == person]
        if mine:
            self._send(person, mine[number % len(mine)])

    def _send(self, person, answer):
        receipt = vote(self.store, self.people[person], answer, self.now)
        assert receipt == vote(self.store, self.people[person], answer, self.now)
        self.sent.append((person, answer))

    def take_back(self, person, number):
        mine = [answer for who, answer in self.sent if who == person]
        if mine:
            answer = mine[number % len(mine)]
            try:
                back = undo(self.store, self.people[person], answer.id, self.now)
            except ConflictError:
                return
            assert back.item == answer.item
            assert back == undo(self.store, self.people[person], answer.id, self.now)

    def wait(self, person, number):
        self.now += timedelta(seconds=40)  # two of them outlast a lease of 60 s

    def beat(self, person, number):
        items = [item for who, item in self.seen if who == person]
        heartbeat(self.store, self.people[person], "tab0", items, self.now)

    def switch(self, person, number):
        status = (StudyStatus.RUNNING, StudyStatus.RUNNING, StudyStatus.PAUSED)[number % 3]
        set_status(self.store, self.study.id, status)


ACTIONS = ("claim", "claim", "claim", "answer", "answer", "answer", "repeat", "take_back",
           "take_back", "wait", "beat", "switch")  # fmt: skip
steps = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, len(PEOPLE) - 1), st.integers(0, 11)),
    min_size=5,
    max_size=40,
)


@pytest.mark.parametrize("kind", DATABASES)
def test_no_interleaving_breaks_the_invariants(kind, tmp_path):
    with ExitStack() as stack:
        url = stack.enter_context(fresh_database(kind, tmp_path))
        store = stack.enter_context(Store(url))

        @settings(
            max_examples=20 if kind == "sqlite" else 12,
            database=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
        @given(steps, st.integers(1, 3))
        def any_interleaving(actions, k):
            play(store, tmp_path, actions, k)

        any_interleaving()


def play(store, tmp_path, actions, k):
    study = make_study(store, tmp_path, decoy_rate=0.5, votes_per_item=k, lease_seconds=60)
    people = [join(store, study.token, name).annotator for name in PEOPLE]
    world = World(store, study, people)
    for action, person, number in actions:
        getattr(world, action)(person, number)
    check(store, study, {answer.id for _, answer in world.sent})
    check_labels(store, study, tmp_path)
    finish(world, k)


def finish(world, k):
    """Whatever happened before and whoever left, newcomers can finish the study."""
    set_status(world.store, world.study.id, StudyStatus.RUNNING)
    world.now += timedelta(seconds=61)
    for number in range(k):
        world.people.append(join(world.store, world.study.token, f"new {number}").annotator)
        person = len(world.people) - 1
        while items := next_items(world.store, world.people[person], "last", 9, world.now):
            for item in items:
                world._send(person, Answer(id=str(uuid.uuid4()), item=item.item, answer="same"))
    assert progress(world.store, world.study.id).coverage == [0] * k + [world.study.n_items]
    assert all(progress_of(world.store, person).left == 0 for person in world.people)


# ------------------------------------------------------------------ real threads


def label_everything(store, annotator, seed, receipts, errors):
    """What a browser does: fetch a few, answer each, send every fifth answer twice."""
    rng = random.Random(seed)
    try:
        while items := next_items(store, annotator, "tab", 3, datetime.now(UTC)):
            for item in items:
                answer = Answer(id=str(uuid.uuid4()), item=item.item, answer="none")
                for _ in range(2 if rng.random() < 0.2 else 1):
                    receipt = vote(store, annotator, answer, datetime.now(UTC))
                    receipts.append((receipt.id, receipt.status))
    except AnnotationError as error:
        errors.append(error)


def in_threads(tasks):
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_people_who_label_at_once_give_every_item_exactly_k_votes(store, tmp_path):
    study = make_study(store, tmp_path, 30, Task.RECOGNITION, votes_per_item=3)
    receipts, errors = [], []
    in_threads(
        partial(
            label_everything,
            store,
            join(store, study.token, f"p{n}").annotator,
            n,
            receipts,
            errors,
        )
        for n in range(8)
    )
    assert errors == []
    assert progress(store, study.id).coverage == [0, 0, 0, 30]
    assert {status for _, status in receipts} == {"counted"}
    assert len({vote_id for vote_id, _ in receipts}) == 90
    check(store, study, {vote_id for vote_id, _ in receipts})


def test_one_person_in_many_tabs_votes_once_an_item(store, tmp_path):
    study = make_study(store, tmp_path, 12, Task.RECOGNITION, votes_per_item=2)
    anna = join(store, study.token, "Anna").annotator
    receipts, errors = [], []

    def tab(name):
        try:
            for item in next_items(store, anna, name, 12, START):
                answer = Answer(id=str(uuid.uuid4()), item=item.item, answer="none", tab=name)
                receipts.append(vote(store, anna, answer, START).id)
        except AnnotationError as error:
            errors.append(error)

    in_threads(partial(tab, f"tab{n}") for n in range(6))
    assert errors == []
    check(store, study, set(receipts))
    assert progress(store, study.id).coverage == [0, 12, 0]


def test_one_vote_sent_many_times_at_once_is_one_vote(store, tmp_path):
    study = make_study(store, tmp_path, 1, Task.RECOGNITION, votes_per_item=5)
    anna = join(store, study.token, "Anna").annotator
    (item,) = next_items(store, anna, "tab", 1, START)
    answer = Answer(id=str(uuid.uuid4()), item=item.item, answer="none")
    receipts = []
    in_threads([lambda: receipts.append(vote(store, anna, answer, START))] * 8)
    assert len(receipts) == 8
    assert len(set(receipts)) == 1
    check(store, study, {answer.id})


def test_one_name_joining_many_times_at_once_is_one_person(store, tmp_path):
    study = make_study(store, tmp_path, 1)
    people = []
    in_threads([lambda: people.append(join(store, study.token, "Anna").annotator)] * 8)
    assert len(people) == 8
    assert len(set(people)) == 1


def test_undo_while_others_take_over_keeps_the_invariants(store, tmp_path):
    study = make_study(store, tmp_path, 10, Task.RECOGNITION, votes_per_item=1)
    anna, ben = (join(store, study.token, name).annotator for name in PEOPLE[:2])
    answers = [
        Answer(id=str(uuid.uuid4()), item=item.item, answer="none")
        for item in next_items(store, anna, "tab", 10, START)
    ]
    for answer in answers:
        vote(store, anna, answer, START)
    receipts, later = [answer.id for answer in answers], START + timedelta(hours=1)

    def take_back():
        for answer in answers:
            undo(store, anna, answer.id, START)
            again = Answer(id=str(uuid.uuid4()), item=answer.item, answer="none")
            receipts.append(vote(store, anna, again, later).id)

    def take_over():
        for _ in range(20):
            for item in next_items(store, ben, "tab", 10, later):
                other = Answer(id=str(uuid.uuid4()), item=item.item, answer="none")
                receipts.append(vote(store, ben, other, later).id)

    in_threads([take_back, take_over])
    check(store, study, set(receipts))
    assert progress(store, study.id).coverage == [0, 10]


# ------------------------------------------------------------------ a killed server

LABEL_FOR_EVER = """
import sys, uuid
from datetime import UTC, datetime
from annotation.domain import Answer
from annotation.store import Store
from annotation.study import join, next_items, vote

store = Store(sys.argv[1])
person = join(store, sys.argv[2], "Anna").annotator
while items := next_items(store, person, "tab", 3, datetime.now(UTC)):
    for item in items:
        answer = Answer(id=str(uuid.uuid4()), item=item.item, answer="none")
        print(vote(store, person, answer, datetime.now(UTC)).id, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(store, tmp_path):
    study = make_study(store, tmp_path, 200, Task.RECOGNITION, votes_per_item=2)
    command = [sys.executable, "-c", LABEL_FOR_EVER, store.url, study.token]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as labelling:
        acknowledged = {labelling.stdout.readline().strip() for _ in range(20)}
        labelling.kill()
        acknowledged |= set(labelling.stdout.read().split())
    check(store, study, acknowledged)
    assert 20 <= len(acknowledged) < 200


# ------------------------------------------------------------------ the database itself


def test_the_database_itself_refuses_a_second_vote(store, tmp_path):
    study = make_study(store, tmp_path, 2, Task.RECOGNITION, votes_per_item=2)
    anna = join(store, study.token, "Anna").annotator
    items = next_items(store, anna, "tab", 2, START)
    answers = [Answer(id=str(uuid.uuid4()), item=i.item, answer="none") for i in items]
    for answer in answers:
        vote(store, anna, answer, START)

    def move(tx):
        row = tx.get_one(VoteRow, answers[0].id)
        tx.execute(update(VoteRow).where(VoteRow.id == answers[1].id).values(slot_id=row.slot_id))

    with pytest.raises(IntegrityError):
        store.write(move)


def test_the_database_sorts_as_the_order_says(store, tmp_path):
    study = make_study(store, tmp_path, 40, Task.RECOGNITION)
    anna = join(store, study.token, "Anna").annotator
    salts = store.read(
        lambda tx: {s.stimulus_id: s.salt for s in tx.query(SlotRow).filter_by(study_id=study.id)}
    )
    order = order_of(study.spec.seed, "anna")
    expected = sorted(salts, key=lambda item: rank(order, salts[item]))
    got = next_items(store, anna, "tab", 40, START)
    assert {item.item for item in got} == set(expected)
    assert [item.item for item in got] == expected


def test_a_restart_forgets_nothing(store, tmp_path):
    study = make_study(store, tmp_path, 3, Task.RECOGNITION)
    anna = join(store, study.token, "Anna").annotator
    held = next_items(store, anna, "tab", 2, START)
    with Store(store.url) as again:
        assert [i.item for i in next_items(again, anna, "tab", 2, START)] == [i.item for i in held]
        assert again.read(studies.all_studies) == store.read(studies.all_studies)


def test_reading_changes_nothing(store, tmp_path):
    study = make_study(store, tmp_path, 3, Task.RECOGNITION)
    anna = join(store, study.token, "Anna").annotator
    before = store.read(lambda tx: reports.vote_rows(tx, study))
    progress(store, study.id)
    progress_of(store, anna)
    assert store.read(lambda tx: reports.vote_rows(tx, study)) == before
