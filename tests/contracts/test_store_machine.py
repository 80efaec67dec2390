"""People, networks and servers doing anything in any order, against the invariants of the store.

To try one more thing, add a rule. If it changes the status of votes, tell `BECOMES` in
`store_invariants` which event says so and change `self.votes` in the same way.
"""

import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from contracts.store_invariants import START, check, check_labels, make_study, rows_of
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from study_factory import DATABASES, fresh_database

from annotation.domain import Answer, StudyStatus, VoteStatus
from annotation.errors import ConflictError
from annotation.store import Store
from annotation.study import (
    heartbeat,
    join,
    next_items,
    progress,
    progress_of,
    set_status,
    undo,
    vote,
)

NAMES = ("Anna", "Ben", "Cleo", "Dora")
LEASE = 60  # seconds
people = st.sampled_from(NAMES)
tabs = st.sampled_from(("left", "right"))
answers = st.sampled_from(("same", "different"))


@dataclass(frozen=True)
class Given:
    """An answer somebody holds a receipt of."""

    name: str
    answer: Answer


class Labelling(RuleBasedStateMachine):
    """One study at a time in a database that others used before.

    votes: status by vote id, as the receipts and the rules have it.
    reserved: (name, item) → until when the store has promised to count that person's vote.
    """

    handed, sent = Bundle("handed"), Bundle("sent")

    def __init__(self, url, folder):
        super().__init__()
        self.url, self.folder = url, folder
        self.now, self.status = START, StudyStatus.RUNNING
        self.votes, self.given, self.reserved, self.seen = {}, {}, {}, {}
        self.undone = {}  # vote id → how many votes there were when it was taken back
        self.restarts = 0
        self.store = Store(url)

    @initialize(k=st.integers(1, 3))
    def open_study(self, k):
        self.study = make_study(
            self.store, self.folder, decoy_rate=0.5, votes_per_item=k, lease_seconds=LEASE
        )
        self.people = {name: join(self.store, self.study.token, name).annotator for name in NAMES}

    @rule(target=handed, name=people, tab=tabs, n=st.integers(1, 3))
    def claim(self, name, tab, n):
        got = next_items(self.store, self.people[name], tab, n, self.now)
        assert len({item.item for item in got}) == len(got) <= n
        assert not got or self.status is StudyStatus.RUNNING
        leases = {(name, item.item): item.lease_until for item in got}
        self.reserved, self.seen = self.reserved | leases, self.seen | leases
        return multiple(*((name, item.item) for item in got))

    @rule(target=sent, held=handed, text=answers)
    def answer(self, held, text):
        """Whoever was ever given an item may answer it: in time, late, or for a second time."""
        name, item = held
        given = Given(name, Answer(id=str(uuid.uuid4()), item=item, answer=text))
        receipt = vote(self.store, self.people[name], given.answer, self.now)
        expected = self.expected(name, item)
        assert expected in (None, receipt.status)
        self.votes[receipt.id], self.given[receipt.id] = receipt.status, given
        if receipt.status is VoteStatus.COUNTED:
            self.reserved.pop((name, item), None)
        return given

    def expected(self, name, item):
        """The status of a vote given now; None where it depends on who else was there."""
        if self.status is StudyStatus.CLOSED or self.has_counted(name, item):
            return VoteStatus.SURPLUS
        until = self.reserved.get((name, item))
        return VoteStatus.COUNTED if until is not None and until >= self.now else None

    def has_counted(self, name, item):
        return any(
            status is VoteStatus.COUNTED and (given.name, given.answer.item) == (name, item)
            for status, given in ((self.votes[i], given) for i, given in self.given.items())
        )

    @rule(given=sent)
    def send_again(self, given):
        receipt = vote(self.store, self.people[given.name], given.answer, self.now)
        assert receipt.status is self.votes[given.answer.id]

    @rule(given=sent)
    def send_another_answer_under_the_same_id(self, given):
        other = replace(given.answer, answer="same" if given.answer.answer != "same" else "none")
        with pytest.raises(ConflictError):
            vote(self.store, self.people[given.name], other, self.now)

    @rule(given=sent)
    def take_back(self, given):
        annotator, answer = self.people[given.name], given.answer
        was = self.votes[answer.id]
        if self.status is StudyStatus.CLOSED or (
            was is VoteStatus.SUPERSEDED and self.answered_since(given)
        ):
            with pytest.raises(ConflictError):
                undo(self.store, annotator, answer.id, self.now)
            return
        back = undo(self.store, annotator, answer.id, self.now)
        assert back == undo(self.store, annotator, answer.id, self.now)
        assert back.item == answer.item
        self.votes[answer.id] = VoteStatus.SUPERSEDED
        self.undone.setdefault(answer.id, len(self.votes))
        if was is VoteStatus.COUNTED:
            self.reserved[given.name, answer.item] = back.lease_until

    def answered_since(self, given):
        later = list(self.given.items())[self.undone[given.answer.id] :]
        same = [i for i, g in later if (g.name, g.answer.item) == (given.name, given.answer.item)]
        return any(self.votes[i] is VoteStatus.COUNTED for i in same)

    @rule(held=handed, tab=tabs)
    def stay(self, held, tab):
        """A page names all it ever had: what is answered or lost must stay so."""
        name = held[0]
        mine = [item for who, item in self.seen if who == name]
        heartbeat(self.store, self.people[name], tab, mine, self.now)
        for (who, item), until in self.reserved.items():
            if who == name and until >= self.now:  # else somebody may have it now
                self.reserved[name, item] = self.now + timedelta(seconds=LEASE)

    @rule(seconds=st.sampled_from((20, 40, LEASE, LEASE + 1)))
    def wait(self, seconds):
        self.now += timedelta(seconds=seconds)

    # Mostly running: in a study that hands nothing out little can happen.
    @rule(status=st.sampled_from((*(StudyStatus.RUNNING,) * 4, *StudyStatus)))
    def switch(self, status):
        self.status = set_status(self.store, self.study.id, status).status

    @precondition(lambda self: self.restarts < 2)  # else it is what is tried most
    @rule()
    def restart(self):
        self.restarts += 1
        self.store.close()
        self.store = Store(self.url)

    @invariant()
    def nothing_is_broken(self):
        check(self.store, self.study, set(self.votes))
        _, votes, _ = self.store.read(lambda tx: rows_of(tx, self.study))
        assert {v.id: v.status for v in votes} == self.votes
        assert {v.id: v.answer for v in votes} == {
            i: g.answer.answer for i, g in self.given.items()
        }

    @invariant()
    def no_room_is_promised_twice(self):
        live = {key for key, until in self.reserved.items() if until >= self.now}
        counted = {
            (given.name, given.answer.item)
            for i, given in self.given.items()
            if self.votes[i] is VoteStatus.COUNTED
        }
        for wanted in {item for _, item in live}:
            holders = {name for name, item in live | counted if item == wanted}
            assert len(holders) <= self.study.spec.votes_per_item

    def teardown(self):
        """Whatever happened before and whoever left, newcomers can finish the study."""
        with self.store:
            if hasattr(self, "study"):
                check_labels(self.store, self.study, self.folder)
                self.finish()

    def finish(self):
        set_status(self.store, self.study.id, StudyStatus.RUNNING)
        self.now += timedelta(seconds=LEASE + 1)
        k = self.study.spec.votes_per_item
        newcomers = [join(self.store, self.study.token, f"new {n}").annotator for n in range(k)]
        for person in newcomers:
            while items := next_items(self.store, person, "tab", 9, self.now):
                for item in items:
                    last = Answer(id=str(uuid.uuid4()), item=item.item, answer="same")
                    receipt = vote(self.store, person, last, self.now)
                    assert receipt.status is VoteStatus.COUNTED
        assert progress(self.store, self.study.id).coverage == [0] * k + [self.study.n_items]
        for person in (*self.people.values(), *newcomers):
            assert progress_of(self.store, person).left == 0


@pytest.mark.parametrize(("kind", "examples"), list(zip(DATABASES, (40, 12), strict=True)))
def test_no_order_of_events_breaks_the_invariants(kind, examples, tmp_path):
    with ExitStack() as stack:
        url = stack.enter_context(fresh_database(kind, tmp_path))
        run_state_machine_as_test(
            lambda: Labelling(url, tmp_path),
            # No shrinking: a failure is shown at once, as it came, with all its steps.
            settings=settings(
                max_examples=examples,
                stateful_step_count=30,
                database=None,
                phases=[Phase.generate],
            ),
        )
