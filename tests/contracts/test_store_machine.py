"""People, networks and servers doing anything in any order, against the invariants of the store.

To try one more thing, add a rule. If it changes the status of votes, tell `BECOMES` in
`store_invariants` which event says so and change `self.votes` in the same way.
"""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta

import pandas as pd
import pytest
from contracts.store_invariants import check, check_labels, make_plan, rows_of
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
from study_factory import CLASSES, DATABASES, START, answer_to, fresh_database

from annotation.design.workload import load_of, workload
from annotation.domain import AnnotatorStatus, Answer, StudyStatus, VoteStatus
from annotation.errors import ConflictError, NotAllowedError
from annotation.spec import Task
from annotation.store import Store, studies
from annotation.store.tables import StimulusRow, TrialRow
from annotation.study.exports import export_labels
from annotation.study.labelling import (
    heartbeat,
    join,
    next_items,
    progress,
    progress_of,
    set_status,
    undo,
    vote,
)
from annotation.study.participants import exclude, include, pause, resume
from annotation.study.protocols import amend
from annotation.tasks.kind import NONE

NAMES = ("Anna", "Ben", "Cleo", "Dora")
LEASE = 60  # seconds
MOMENT = timedelta(milliseconds=1)  # no two things happen at once
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
    shown: originals of what a person answered, by name and vote id, without what was taken back.
    named: (name, original) of which the original itself has been handed out.
    """

    handed, sent = Bundle("handed"), Bundle("sent")

    def __init__(self, url, folder):
        super().__init__()
        self.url, self.folder = url, folder
        self.now, self.status = START, StudyStatus.RUNNING
        self.votes, self.given, self.reserved, self.seen = {}, {}, {}, {}
        self.undone = {}  # vote id → how many votes there were when it was taken back
        self.restarts = 0
        self.out = {}  # name → status of those who may not go on
        self.shown, self.named = {name: {} for name in NAMES}, set()
        self.trials = {}  # vote id → (name, answer), status: of items that never count
        self.store = Store(url)

    @initialize(
        target=handed,
        k=st.integers(1, 3),
        extra=st.booleans(),
        views=st.sampled_from((None, None, 1, 2)),
        lag=st.sampled_from((0, 0, 1, 2)),
        naming=st.booleans(),
        rate=st.sampled_from((0.0, 0.5)),
    )
    def open_study(self, k, extra, views, lag, naming, rate):
        """Three pairs, two decoys and a gold item, or three images and their originals to name."""
        kind = {"task": Task.RECOGNITION, "label_originals": True} if naming else {}
        self.plan = make_plan(
            **(kind or {"task": Task.PAIR, "decoy_rate": 0.5}),
            models=("m", "n") if rate else ("m",),
            gold=[("n", "0"), ("n", "1"), ("n", "2")] if rate else (),
            gold_rate=rate,
            votes_per_item=k,
            extra_vote=extra and k % 2 == 1,
            max_views=views,
            min_lag=lag,
            lease_seconds=LEASE,
            set_aside=2 if rate else 0,
            catch_rate=rate,
            repeat_rate=rate,
            repeat_lag=1,
        )
        self.words = {"same": CLASSES[0], "different": NONE} if naming else {}
        self.study = self.store.write(lambda tx: studies.add_study(tx, self.plan, START))
        rows = self.store.read(
            lambda tx: tx.query(StimulusRow).filter_by(study_id=self.study.id).all()
        )
        self.stimuli = {row.id: row for row in rows}
        self.people = {name: join(self.store, self.study.token, name).annotator for name in NAMES}
        # Or many a run would end before anybody has anything to answer.
        return multiple(*(held for name in NAMES[:2] for held in self.taken(name, "left", 2)))

    @rule(target=handed, name=people, tab=tabs, n=st.integers(1, 3))
    def claim(self, name, tab, n):
        return multiple(*self.taken(name, tab, n))

    def taken(self, name, tab, n):
        self.now += MOMENT
        got = next_items(self.store, self.people[name], tab, n, self.now)
        assert len({item.item for item in got}) == len(got) <= n
        assert not got or (self.status is StudyStatus.RUNNING and name not in self.out)
        self.check_order(name, [item.item for item in got])
        got = [item for item in got if not self.answered_as_trial(name, item.item)]
        leases = {(name, item.item): item.lease_until for item in got}
        self.reserved, self.seen = self.reserved | leases, self.seen | leases
        return [(name, item.item) for item in got]

    def check_order(self, name, got):
        """What is new among trials keeps the lag, and nothing comes after the original itself."""
        rows = self.store.read(lambda tx: tx.query(TrialRow).where(TrialRow.id.in_(got)).all())
        trials = {row.id: row for row in rows}
        stimulus = {item: item for item in got} | {row.id: row.stimulus_id for row in rows}
        of = {item: self.stimuli[stimulus[item]] for item in got}
        self.named |= {(name, one.source_id) for one in of.values() if one.kind == "original"}
        order = [*self.shown[name].values(), *(of[item].source_id for item in got)]
        lag, n_before = self.study.spec.min_lag, len(self.shown[name])
        for place, item in enumerate(got, n_before):
            trial, source = trials.get(item), of[item].source_id
            if trial is None or trial.kind == "catch":
                continue
            assert (name, source) not in self.named
            if trial.created == self.now:
                near = order[max(0, place - lag) : place] + order[place + 1 : place + 1 + lag]
                assert source not in near

    def answered_as_trial(self, name, item):
        """Answer `item` at once if it is a trial; whoever answers is not told that it was one."""
        trial = self.store.read(lambda tx: tx.get(TrialRow, item))
        if trial is None:
            return False
        answer = self.answer_of(item, "same")
        for _ in ("once", "sent again"):
            receipt = vote(self.store, self.people[name], answer, self.now)
            assert receipt.status is VoteStatus.COUNTED
        self.trials[answer.id] = (name, answer), VoteStatus.QUALITY
        self.shown[name][answer.id] = self.stimuli[trial.stimulus_id].source_id
        return True

    def answer_of(self, item, text):
        """An answer that nobody has given before, a moment after the last one."""
        self.now += MOMENT
        return answer_to(item, self.words.get(text, text))

    @rule(name=people)
    def take_a_trial_back(self, name):
        mine = [i for i, ((who, _), s) in self.trials.items() if who == name and s == "quality"]
        if not mine or name in self.out or self.status is StudyStatus.CLOSED:
            return
        (_, answer), _ = self.trials[mine[-1]]
        assert undo(self.store, self.people[name], answer.id, self.now).item == answer.item
        self.trials[answer.id] = (name, answer), VoteStatus.SUPERSEDED
        del self.shown[name][answer.id]
        if self.status is StudyStatus.RUNNING:
            assert self.answered_as_trial(name, answer.item)

    @rule(target=sent, held=handed, text=answers)
    def answer(self, held, text):
        """Whoever was ever given an item may answer it: in time, late, or for a second time."""
        name, item = held
        given = Given(name, self.answer_of(item, text))
        if name in self.out:
            with pytest.raises(NotAllowedError):
                vote(self.store, self.people[name], given.answer, self.now)
            return multiple()
        receipt = vote(self.store, self.people[name], given.answer, self.now)
        expected = self.expected(name, item)
        assert expected in (None, receipt.status)
        self.votes[receipt.id], self.given[receipt.id] = receipt.status, given
        self.shown[name][receipt.id] = self.stimuli[item].source_id
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
        if given.name in self.out:
            with pytest.raises(NotAllowedError):
                undo(self.store, annotator, answer.id, self.now)
            return
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
        self.shown[given.name].pop(answer.id, None)
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
        if name in self.out:
            with pytest.raises(NotAllowedError):
                heartbeat(self.store, self.people[name], tab, mine, self.now)
            return
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

    @rule(name=people, whole=st.booleans())
    def stop(self, name, whole):
        """Pause somebody, or exclude them as a whole."""
        if self.out.get(name) is AnnotatorStatus.EXCLUDED:
            whole = True
        stopped = (exclude if whole else pause)(self.store, self.study.id, name, self.now)
        self.out[name] = stopped.status
        self.reserved = {key: until for key, until in self.reserved.items() if key[0] != name}
        for vote_id in self.with_status(name, VoteStatus.COUNTED) if whole else ():
            self.votes[vote_id] = VoteStatus.EXCLUDED

    @rule(name=people)
    def let_go_on(self, name):
        """Which votes find room again depends on who else was there; the rest is surplus."""
        before = self.with_status(name, VoteStatus.EXCLUDED)
        excluded = self.out.pop(name, None) is AnnotatorStatus.EXCLUDED
        (include if excluded else resume)(self.store, self.study.id, name, self.now)
        _, votes, _ = self.store.read(lambda tx: rows_of(tx, self.study))
        now = {v.id: VoteStatus(v.status) for v in votes}
        for vote_id in before:
            assert now[vote_id] in (VoteStatus.COUNTED, VoteStatus.SURPLUS)
            self.votes[vote_id] = now[vote_id]

    def with_status(self, name, status):
        return [i for i, g in self.given.items() if g.name == name and self.votes[i] is status]

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
        trials = {i: status for i, (_, status) in self.trials.items()}
        assert {v.id: v.status for v in votes} == self.votes | trials
        assert all(v.slot_id is None for v in votes if v.id in trials)
        assert {v.id: v.answer for v in votes if v.id not in trials} == {
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
            room = self.study.spec.votes_per_item + self.study.spec.extra_vote
            assert len(holders) <= room

    def teardown(self):
        """Whatever happened before and whoever left, newcomers can finish the study."""
        with self.store:
            if hasattr(self, "study"):
                check_labels(self.store, self.study, self.folder)
                self.exclude_and_include()
                self.finish()

    def exclude_and_include(self):
        """Excluding somebody and including them at once leaves the labels as they were."""
        before = export_labels(self.store, self.study.id, self.folder)
        for name in [name for name in NAMES if name not in self.out]:
            exclude(self.store, self.study.id, name, self.now)
            include(self.store, self.study.id, name, self.now)
        after = export_labels(self.store, self.study.id, self.folder)
        pd.testing.assert_frame_equal(after, before)

    def finish(self):
        set_status(self.store, self.study.id, StudyStatus.RUNNING)
        self.now += timedelta(seconds=LEASE + 1)
        k, load = self.study.spec.votes_per_item, load_of(self.plan)
        if self.study.spec.gold_rate:  # else no number of people would be sure to be enough
            amend(self.store, self.study.id, {"gold_rate": 0.0}, "to be done with it")
            load = replace(load, gold=0)
        enough = workload(self.study.spec, load).annotators_enough
        newcomers = [
            join(self.store, self.study.token, f"new {n}").annotator for n in range(enough)
        ]
        for person in newcomers:
            while items := next_items(self.store, person, "tab", 9, self.now):
                for item in items:
                    last = self.answer_of(item.item, "same")
                    receipt = vote(self.store, person, last, self.now)
                    assert receipt.status is VoteStatus.COUNTED
        now = progress(self.store, self.study.id)
        assert now.coverage == [0] * k + [self.study.n_items]
        assert now.extra_wanted == now.extra_done
        for person in (*self.people.values(), *newcomers):
            assert progress_of(self.store, person).left == 0


@pytest.mark.parametrize(("kind", "examples"), list(zip(DATABASES, (6, 3), strict=True)))
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
