"""What must hold in every database at every moment, and studies to try it on."""

import uuid
from collections import Counter
from datetime import UTC, datetime

from study_factory import CLASSES

from annotation.domain import StudySpec, Task
from annotation.store import studies
from annotation.store.tables import EventRow, SlotRow, VoteRow
from annotation.study import export_labels, export_votes, progress
from annotation.tasks.plan import Original, Reconstruction, plan_study

START = datetime(2026, 1, 1, tzinfo=UTC)
# What an event makes of the vote it names; the event of a vote itself says so in its data.
BECOMES = {"undo": "superseded"}


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
    slots, votes, events = store.read(lambda tx: rows_of(tx, study))
    check_votes(study, votes)
    assert acknowledged <= {v.id for v in votes}
    check_slots(study, slots, votes)
    check_log(votes, events)
    coverage = progress(store, study.id).coverage
    assert sum(n * items for n, items in enumerate(coverage)) == sum(is_counted(v) for v in votes)
    assert sum(coverage) == study.n_items


def rows_of(tx, study):
    return tuple(
        tx.query(t).filter_by(study_id=study.id).all() for t in (SlotRow, VoteRow, EventRow)
    )


def is_counted(vote):
    return vote.status == "counted"


def check_votes(study, votes):
    counted = [v for v in votes if is_counted(v)]
    per_item = Counter(v.stimulus_id for v in counted)
    assert all(n <= study.spec.votes_per_item for n in per_item.values())
    assert all(n == 1 for n in Counter((v.stimulus_id, v.annotator_id) for v in counted).values())


def check_slots(study, slots, votes):
    k = study.spec.votes_per_item
    assert Counter(s.stimulus_id for s in slots) == {s.stimulus_id: k for s in slots}
    assert len(slots) == study.n_items * k
    done = {s.id: s.annotator_id for s in slots if s.state == "done"}
    assert done == {v.slot_id: v.annotator_id for v in votes if is_counted(v)}
    for item in {s.stimulus_id for s in slots}:
        states = [s.state for s in sorted(slots, key=lambda s: s.k) if s.stimulus_id == item]
        assert "free" not in states or set(states[states.index("free") :]) == {"free"}


def check_log(votes, events):
    """The log alone tells what the tables tell."""
    assert Counter(e.vote_id for e in events if e.kind == "vote") == Counter(v.id for v in votes)
    told = {}
    for event in sorted(events, key=lambda e: e.id):
        if event.kind == "vote":
            told[event.vote_id] = event.data["status"], event.data["answer"]
        elif event.kind in BECOMES:
            told[event.vote_id] = BECOMES[event.kind], told[event.vote_id][1]
    assert told == {v.id: (v.status, v.answer) for v in votes}


def check_labels(store, study, tmp_path):
    votes = export_votes(store, study.id)
    counted = votes[(votes["status"] == "counted") & (votes["kind"] == "reconstruction")]
    labels = export_labels(store, study.id, tmp_path)
    assert len(labels) == study.n_items - study.n_decoys
    assert labels["n_votes"].sum() == len(counted)
    assert labels["n_recognised"].sum() == counted["recognised"].sum()
    assert set(labels["item"]).isdisjoint(votes.loc[votes["kind"] == "decoy", "item"])
