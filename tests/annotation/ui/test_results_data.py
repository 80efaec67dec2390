"""What the Results page computes, and that it computes only when something has happened."""

import pickle
import threading
import uuid
from datetime import UTC, datetime

import pandas as pd
import pytest
from helpers import limit
from made_results import NO_IMPORTS
from study_factory import write_set

from annotation.domain import Answer, StudyStatus
from annotation.errors import NotFoundError
from annotation.spec import StudySpec, Task
from annotation.store.tables import EventRow
from annotation.study import results as computing
from annotation.study.create import create_study
from annotation.study.exports import export_votes
from annotation.study.labelling import (
    events_so_far,
    join,
    next_items,
    set_status,
    undo,
    vote,
)
from annotation.study.results import results_of
from annotation.tasks.kind import NONE
from annotation.ui import results_data
from annotation.ui.results_data import ResultsCache
from semsim.base.errors import StoreError


def answer_all(store, study, name, say, most=None):
    """One annotator answers; `say(number, item)` is the answer."""
    now = datetime.now(UTC)
    annotator = join(store, study.token, name).annotator
    receipts = []
    for number, item in enumerate(next_items(store, annotator, "tab", most or 100, now)):
        answer = Answer(id=str(uuid.uuid4()), item=item.item, answer=say(number, item), tab="tab")
        receipts.append(vote(store, annotator, answer, now))
    return annotator, receipts


def test_results_of_a_recognition_study(store, make_study, images):
    study = make_study(votes_per_item=2)
    answer_all(store, study, "Anna", lambda number, item: item.candidates[0])
    answer_all(store, study, "Ben", lambda number, item: NONE, most=3)
    results = ResultsCache(store, NO_IMPORTS).get(study.id)
    assert (results.n_votes, results.n_items, results.n_full, results.n_people) == (11, 8, 3, 2)
    assert sorted(results.rates["model"]) == ["convnet8", "resnet20-4"]
    assert results.agreement["coding"].unique().tolist() == ["answer", "recognised", "none"]
    assert results.annotators["none_rate"].tolist() == [0, 1]
    assert results.confusion.to_numpy().sum() == 11
    assert results.detection is None
    assert results.lists.n_lists == 4
    assert results.ceiling.undefined.startswith("no split of the annotators")
    assert results.became == {"counted": 11}
    assert {one.n_votes for one in results.seen} <= {1, 2}
    assert {(images / f"{one.original}.png").exists() for one in results.unseen} == {True}


def test_results_of_a_pair_study_take_decoys_for_detection_only(store, make_study):
    study = make_study(task=Task.PAIR, decoy_rate=0.5, votes_per_item=1)
    answer_all(store, study, "Anna", lambda number, item: "same")
    results = ResultsCache(store, NO_IMPORTS).get(study.id)
    assert (results.n_votes, results.n_items) == (8, 8)
    assert (results.rates["rate"] == 1).all()
    assert results.detection["n_decoys"].iloc[0] == 4
    assert results.confusion["same"].to_dict() == {"decoy": 4, "reconstruction": 8}
    assert results.agreement["coding"].unique().tolist() == ["recognised"]


@pytest.mark.parametrize("task", list(Task))
def test_a_study_without_votes_has_empty_results(store, make_study, task):
    study = make_study(task=task)
    results = results_of(study, export_votes(store, study.id))
    assert (results.n_votes, results.n_items, results.n_people) == (0, 0, 0)
    assert len(results.rates) == len(results.annotators) == 0
    assert results.agreement["reason"].str.contains("no votes").all()


def test_nothing_is_computed_twice_until_something_happens(store, make_study, monkeypatch):
    study = make_study(votes_per_item=2)
    computed = []
    compute = computing.results_of
    monkeypatch.setattr(
        computing, "results_of", lambda *given: computed.append(1) or compute(*given)
    )
    cache = ResultsCache(store, NO_IMPORTS)
    annotator, receipts = answer_all(store, study, "Anna", lambda *_: NONE, most=2)
    assert cache.get(study.id).n_votes == 2
    assert cache.get(study.id) is cache.get(study.id)
    assert len(computed) == 1
    undo(store, annotator, receipts[0].id, datetime.now(UTC))
    assert cache.get(study.id).n_votes == 1
    assert len(computed) == 2


def test_a_large_study_is_computed_in_another_process_and_the_same(store, make_study, monkeypatch):
    study = make_study(votes_per_item=2)
    answer_all(store, study, "Anna", lambda number, item: item.candidates[0])
    answer_all(store, study, "Ben", lambda number, item: NONE, most=3)
    here = computing.read_results(store, study.id)

    def refuse(*given):
        raise AssertionError("computed in this process")

    monkeypatch.setattr(results_data, "FEW", 0)
    monkeypatch.setattr(computing, "results_of", refuse)
    there = ResultsCache(store, NO_IMPORTS).get(study.id)
    assert pickle.dumps(there.study) == pickle.dumps(here.study)
    for name, found in vars(here).items():
        if isinstance(found, pd.DataFrame):
            pd.testing.assert_frame_equal(getattr(there, name), found)
    assert (there.n_votes, there.n_people) == (11, 2)
    with pytest.raises(NotFoundError):
        ResultsCache(store, NO_IMPORTS).get("nowhere")


def test_what_goes_wrong_in_another_process_is_said(store):
    with pytest.raises(StoreError, match="There is no study 'nowhere'"):
        computing.Apart(store.url, "nowhere").read()


def test_the_other_process_stays_for_the_next_look_and_is_begun_anew_where_it_rested(
    store, make_study
):
    study = make_study(votes_per_item=2)
    apart = computing.Apart(store.url, study.id)
    assert apart.read().n_votes == 0
    first = apart._works
    answer_all(store, study, "Anna", lambda *_: NONE, most=2)
    assert apart.read().n_votes == 2
    assert apart._works is first
    first.stdin.close()  # which ends it as its rest does
    assert first.wait(limit(10)) == 0
    assert apart.read().n_votes == 2
    assert apart._works is not first
    apart.close()
    assert apart._works.wait(limit(10)) == 0


def test_the_status_shown_is_the_one_there_is(store, make_study):
    study = make_study()
    cache = ResultsCache(store, NO_IMPORTS)
    cache.get(study.id)
    set_status(store, study.id, StudyStatus.CLOSED)
    assert cache.get(study.id).study.status is StudyStatus.CLOSED


def test_only_a_few_studies_stay_in_memory(store, tmp_path, images, monkeypatch):
    monkeypatch.setattr(results_data, "KEPT", 1)
    folder = write_set(tmp_path / "one")
    first, second = (
        create_study(store, StudySpec(name=name, task=Task.PAIR), [folder], images)
        for name in ("first", "second")
    )
    cache = ResultsCache(store, NO_IMPORTS)
    known = cache.get(first.id)
    assert cache.get(first.id) is known
    cache.get(second.id)
    assert cache.get(first.id) is not known


def test_a_page_waits_for_newer_results_no_longer_than_it_can_and_for_no_other_study(
    store, make_study, monkeypatch
):
    """While newer results of one study are computed, its known ones and another study are shown."""
    study, other = make_study(votes_per_item=2), make_study(name="other")
    go_on = threading.Event()
    monkeypatch.setattr(results_data, "PATIENCE", 0.01)
    monkeypatch.setattr(results_data, "FEW", 0)
    cache = ResultsCache(store, NO_IMPORTS)
    known = cache.get(study.id)

    def slow(apart):
        assert apart._about[1] != study.id or go_on.wait(limit(10))
        return computing.read_results(store, apart._about[1])

    monkeypatch.setattr(computing.Apart, "read", slow)
    answer_all(store, study, "Anna", lambda *_: NONE, most=2)
    assert cache.get(study.id) is known
    assert cache.get(other.id).n_votes == 0
    go_on.set()
    assert cache.get(study.id, now=True).n_votes == 2


def test_what_has_happened_grows_with_its_own_study_only(store, make_study):
    study, other = make_study(), make_study(name="other")
    before, others = events_so_far(store, study.id), events_so_far(store, other.id)
    answer_all(store, study, "Anna", lambda *_: NONE, most=1)
    assert events_so_far(store, study.id) > before
    assert events_so_far(store, other.id) == others
    assert events_so_far(store, "nowhere") == (0, 0)


def test_what_comes_late_under_a_lower_number_is_seen(store, make_study):
    study, cache = make_study(), ResultsCache(store, NO_IMPORTS)
    note = {"study_id": study.id, "kind": "noted", "at": datetime.now(UTC), "data": {}}
    for number in (1002, 1001):
        before = cache.get(study.id)
        store.write(lambda tx, number=number: tx.add(EventRow(id=number, **note)))
        assert cache.get(study.id) is not before
