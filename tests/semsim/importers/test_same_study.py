"""A study that is exported and imported again is the same study."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from hypothesis import example, given, settings
from hypothesis import strategies as st
from study_factory import START, answer_to, fresh_database, joined, write_set

from annotation.domain import Step
from annotation.formats import What, export
from annotation.spec import StudySpec, Task
from annotation.store import Store
from annotation.store.people import exclude
from annotation.store.tables import AnnotatorRow
from annotation.study import imported
from annotation.study.create import create_study
from annotation.study.exports import read_study
from annotation.study.labelling import next_items, undo, vote
from annotation.votes.aggregate import ballots_of
from annotation.votes.agreement import agreement_table, codings_of, pairs_of
from annotation.votes.annotators import check_table
from semsim.importers.table import Table

LABELS = ("Cat", "Cat", "cow", "star", "sun", "sun")
TRIALS = {"set_aside": 2, "practice": 2, "catch_rate": 0.5, "repeat_rate": 0.5, "repeat_lag": 1}
NAMED = {"label_originals": True, "headline": "as-original-named"}
ONLY = {Task.RECOGNITION: NAMED, Task.PAIR: {"decoy_rate": 0.5}, Task.RATING: {}}


def put(person, tx):
    tx.get_one(AnnotatorRow, person.id).step = person.step


def collected(folder, spec, rng, n_people):
    """Draw answers of people, some of whom take one back; the last is excluded."""
    sets = [write_set(folder / name, model=name, labels=LABELS) for name in ("a", "b")]
    with fresh_database("sqlite", folder) as url:
        store = Store(url)
        study, now = create_study(store, spec, sets, folder / "images"), START
        others = [key.answer for key in study.kind.keys]
        people = joined(store, study, *[f"P{number}" for number in range(n_people)])
        for person, step in product(people, (Step.PRACTICE, Step.MAIN)):
            at = replace(person, step=step)
            store.write(partial(put, at))
            for _ in range(6):
                for item in next_items(store, at, "tab", 6, now):
                    now += timedelta(seconds=1)
                    said = rng.choice([*item.candidates[:2], *others])
                    answer = answer_to(item.item, str(said), rt_ms=float(rng.integers(300, 900)))
                    vote(store, at, answer, now)
                    if rng.random() < 0.1:
                        undo(store, at, answer.id, now)
        if n_people > 2:
            store.write(lambda tx: exclude(tx, study.id, people[-1].name, now))
        return read_study(store, study.id, folder / "images")


def agreement(study, votes):
    ballots = ballots_of(votes, np.random.default_rng(0), bootstraps=2)
    pairs = [pairs_of(ballots, coding) for coding in codings_of(study.kind)]
    return agreement_table(ballots, pairs)


@settings(max_examples=5)
@given(
    st.sampled_from(Task),
    st.integers(1, 3),
    st.sampled_from([{}, TRIALS]),
    st.booleans(),
    st.integers(2, 4),
    st.integers(0, 99),
    st.sampled_from(["csv", "parquet"]),
)
@example(Task.RECOGNITION, 2, TRIALS, True, 3, 0, "csv")
def test_it_has_the_same_votes_labels_and_agreement(task, k, trials, more, n_people, seed, form):
    asked = {"repeat_rate": 0.0, **trials, **(ONLY[task] if more else {})}
    with TemporaryDirectory() as name:
        spec = StudySpec(name="s", task=task, votes_per_item=k, **asked)
        data = collected(Path(name), spec, np.random.default_rng(seed), n_people)
        path = Path(name, f"votes.{form}")
        export(data, path, form, What.VOTES)
        found = Table()(path, "s")
    assert found.unread == ()
    votes, labels = found.tables.votes, found.tables.labels
    assert ({"practice", "catch"} if trials else set()) <= set(votes["kind"])
    pd.testing.assert_frame_equal(
        votes[list(data.votes)].fillna({"reason": "", "expected": ""}),
        data.votes.fillna({"reason": "", "expected": ""}),
    )
    shared = ["item", "n_votes", "n_recognised", "mean_response", "recognisable", "headline"]
    voted = data.labels[data.labels["n_votes"] > 0]
    pd.testing.assert_frame_equal(
        labels[shared].sort_values("item", ignore_index=True),
        voted[shared].sort_values("item", ignore_index=True),
        check_dtype=False,
    )
    brought = imported.study_of("import:s", imported.Brought(name="s", votes=votes, state=0))
    assert (brought.task, brought.models, brought.dataset) == (task, data.study.models, "symbols")
    for of in (agreement, lambda study, votes: check_table(votes, study.kind)):
        pd.testing.assert_frame_equal(of(brought, votes), of(data.study, data.votes))
