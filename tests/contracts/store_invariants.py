"""What must hold in every database at every moment, and studies to try it on."""

import uuid
from collections import Counter

from study_factory import CLASSES, START

from annotation.design.quality import Gold, Material, counted, quality_items
from annotation.design.study_plan import Original, Reconstruction, plan_study
from annotation.spec import StudySpec, Task
from annotation.store import reports, studies
from annotation.store.tables import (
    AnnotatorRow,
    EventRow,
    SlotRow,
    StimulusRow,
    TrialRow,
    VoteRow,
)
from annotation.study.exports import export_labels, export_votes

# What an event makes of the vote it names; the event of a vote itself says so in its data.
BECOMES = {"undo": "superseded"}


def make_study(store, *wanted, **settings):
    """A study without image files, which no test here looks at; asked for as of `make_plan`."""
    plan = make_plan(*wanted, **settings)
    return store.write(lambda tx: studies.add_study(tx, plan, START))


def make_plan(n_images=3, task=Task.PAIR, models=("m",), gold=(), **settings):
    """A study of all `models` with some `gold` items, given as (model, image id).

    As many originals as `set_aside` says are kept out of it, besides the `n_images`.
    """
    spec = StudySpec(name=uuid.uuid4().hex, task=task, **settings)
    aside = [str(n_images + i) for i in range(spec.set_aside)]
    labels = [CLASSES[i % len(CLASSES)] for i in range(n_images + len(aside))]
    originals = [
        Original(image_id=str(i), class_name=label, sha256="0" * 64)
        for i, label in enumerate(labels)
    ]
    made = [
        Reconstruction(
            image_id=str(i),
            class_name=label,
            model=model,
            attack="a",
            sha256="1" * 64,
            error=i / n_images,
        )
        for model in models
        for i, label in enumerate(labels)
    ]
    noise = dict.fromkeys(aside, "2" * 64)
    known = [Gold(model=model, image_id=i, answer=spec.kind.nothing) for model, i in gold]
    material = Material(
        originals=originals, reconstructions=made, aside=aside, noise=noise, gold=known
    )
    return plan_study(
        spec,
        dataset="symbols",
        classes=CLASSES,
        originals=originals,
        reconstructions=counted(material),
        n_failed=0,
        quality=quality_items(spec, material),
    )


def check(store, study, acknowledged=frozenset()):
    """The invariants of a study; `acknowledged` are the vote ids that people hold receipts of."""
    # All of one moment: the database may still be at what a process that was killed has sent.
    (slots, votes, events), trials, people, now = store.read(
        lambda tx: (
            rows_of(tx, study),
            trials_of(tx, study),
            tx.query(AnnotatorRow).filter_by(study_id=study.id).all(),
            reports.study_progress(tx, study.id),
        )
    )
    check_votes(study, votes)
    out = {one.id for one in people if one.status == "excluded"}
    assert out.isdisjoint(v.annotator_id for v in votes if is_counted(v))
    assert out >= {v.annotator_id for v in votes if v.status == "excluded"}
    assert acknowledged <= {v.id for v in votes}
    check_slots(study, slots, votes)
    check_log(votes, events)
    check_views(study, slots, events, trials)
    check_trials(trials)
    in_coverage = sum(n * items for n, items in enumerate(now.coverage))
    assert in_coverage + now.extra_done == sum(is_counted(v) for v in votes)
    assert sum(now.coverage) == study.n_items
    assert now.extra_wanted == len(slots) - study.n_items * study.spec.votes_per_item


def rows_of(tx, study):
    return tuple(
        tx.query(t).filter_by(study_id=study.id).all() for t in (SlotRow, VoteRow, EventRow)
    )


def trials_of(tx, study):
    """(kind, annotator, item, original) of each trial."""
    return (
        tx.query(TrialRow.kind, TrialRow.annotator_id, StimulusRow.id, StimulusRow.source_id)
        .join(StimulusRow, StimulusRow.id == TrialRow.stimulus_id)
        .where(TrialRow.study_id == study.id)
        .all()
    )


def is_counted(vote):
    return vote.status == "counted"


def check_votes(study, votes):
    counted = [v for v in votes if is_counted(v)]
    per_item = Counter(v.stimulus_id for v in counted)
    assert all(n <= study.spec.votes_per_item + study.spec.extra_vote for n in per_item.values())
    assert all(n == 1 for n in Counter((v.stimulus_id, v.annotator_id) for v in counted).values())


def check_slots(study, slots, votes):
    k = study.spec.votes_per_item
    usual = [s for s in slots if s.k < k]
    assert Counter(s.stimulus_id for s in usual) == {s.stimulus_id: k for s in slots}
    assert len(usual) == study.n_items * k
    check_extra(study, slots, votes)
    done = {s.id: s.annotator_id for s in slots if s.state == "done"}
    assert done == {v.slot_id: v.annotator_id for v in votes if is_counted(v)}
    for item in {s.stimulus_id for s in slots}:
        states = [s.state for s in sorted(slots, key=lambda s: s.k) if s.stimulus_id == item]
        assert "free" not in states or set(states[states.index("free") :]) == {"free"}
        begun = [s.k for s in slots if s.stimulus_id == item and s.state == "free" and s.begun]
        half = states[0] != "free" and states[-1] == "free"
        assert begun == ([len(states) - 1] if half else [])


def check_extra(study, slots, votes):
    """An item has one slot more exactly while its K votes are split; one taken meanwhile stays."""
    k = study.spec.votes_per_item
    extra = {s.stimulus_id: s.state for s in slots if s.k >= k}
    assert len(extra) == sum(s.k >= k for s in slots)
    for item in {s.stimulus_id for s in slots}:
        said = [v.recognised for v in votes if is_counted(v) and v.stimulus_id == item]
        split = len(said) == k > 1 and abs(2 * sum(said) - k) == 1 and study.spec.extra_vote
        assert item in extra if split else extra.get(item) != "free"


def check_views(study, slots, events, trials):
    """Nobody was ever given more items of one original than is allowed, gold items included."""
    of = {s.stimulus_id: s.source_id for s in slots}
    given = {(s.annotator_id, s.stimulus_id) for s in slots if s.annotator_id}
    given |= {(e.annotator_id, e.stimulus_id) for e in events if e.kind == "lease_lost"}
    views = Counter((who, of[item]) for who, item in given)
    views += Counter((who, source) for kind, who, _, source in trials if kind == "gold")
    most = study.spec.max_views
    assert most is None or all(n <= most for n in views.values())


def check_trials(trials):
    """Nobody is shown a gold item twice, or the same item as a repeat twice."""
    once = [(who, item) for kind, who, item, _ in trials if kind in ("gold", "repeat")]
    assert len(set(once)) == len(once)


def check_log(votes, events):
    """The log alone tells what the tables tell."""
    assert Counter(e.vote_id for e in events if e.kind == "vote") == Counter(v.id for v in votes)
    told = {}
    for event in sorted(events, key=lambda e: e.id):
        if event.kind == "vote":
            told[event.vote_id] = event.data["status"], event.data["answer"]
        elif event.kind in BECOMES:
            told[event.vote_id] = BECOMES[event.kind], told[event.vote_id][1]
        elif event.kind == "annotator_status":
            for vote_id, status in moved(event.data):
                told[vote_id] = status, told[vote_id][1]
    assert told == {v.id: (v.status, v.answer) for v in votes}


def moved(data):
    """What becomes of votes when somebody is excluded or included again."""
    yield from ((vote_id, "excluded") for vote_id in data.get("votes", ()))
    for status in ("counted", "surplus"):
        yield from ((vote_id, status) for vote_id in data.get(status, ()))


def check_labels(store, study, tmp_path):
    votes = export_votes(store, study.id)
    counted = votes[(votes["status"] == "counted") & (votes["kind"] == "reconstruction")]
    labels = export_labels(store, study.id, tmp_path)
    assert len(labels) == study.n_reconstructions
    assert labels["n_votes"].sum() == len(counted)
    assert labels["n_recognised"].sum() == counted["recognised"].sum()
    others = votes["kind"].isin(["decoy", "original"])
    assert set(labels["item"]).isdisjoint(votes.loc[others, "item"])
