"""Simulated people answer plausibly, differ, and are marked wherever they appear."""

import numpy as np
import pytest

from annotation.domain import NONE, Task
from annotation.errors import NotFoundError, StudyError
from annotation.store.tables import StudyRow
from annotation.study.labelling import export_labels, export_votes, progress
from annotation.study.simulate import Person, cast, respond, simulate

CANDIDATES = ("cat", "cow", "star")


def answers(person, probabilities, n=300):
    rng = np.random.default_rng(0)
    return [respond(person, probabilities, CANDIDATES, rng) for _ in range(n)]


def person(temperature=1.0, noise=0.5, strictness=0.4):
    return Person(name="P", temperature=temperature, noise=noise, strictness=strictness)


def test_what_the_classifier_sees_clearly_is_named():
    assert answers(person(), {"cow": 0.98, "cat": 0.01, "star": 0.01}).count("cow") > 290


def test_strict_people_say_none_more_often():
    vague = {"cow": 0.4, "cat": 0.3, "star": 0.3}
    counts = [answers(person(strictness=s), vague).count(NONE) for s in (0.0, 0.5, 0.7, 1.01)]
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[1] < counts[2] < counts[3] == 300


def test_without_noise_the_answer_is_the_likeliest_candidate():
    outside = {"wolf": 0.9, "cat": 0.07, "cow": 0.03}  # the wolf is not offered
    assert set(answers(person(noise=0.0), outside)) == {"cat"}


def test_a_class_without_probability_can_be_offered():
    assert set(answers(person(noise=0.0, strictness=0.0), {"cat": 1.0})) == {"cat"}


def test_the_cast_differs():
    people = cast(5, np.random.default_rng(0))
    assert len({p.strictness for p in people}) == 5
    assert [p.name for p in people] == [f"Simulated {i}" for i in range(1, 6)]


def test_a_simulated_study_is_filled_and_marked(store, make_study, images):
    study = make_study(simulated=True)
    simulate(store, study.id, 5, seed=1)
    votes = export_votes(store, study.id)
    assert len(votes) == 8 * 5
    assert votes["simulated"].all()
    assert (votes["status"] == "counted").all()
    assert votes["rt_ms"].isna().all()
    labels = export_labels(store, study.id, images)
    assert labels["simulated"].all()
    assert labels["recognisable"].notna().all()
    assert labels["recognisable"].mean() > 0.5
    assert all(row.simulated for row in progress(store, study.id).annotators)


def test_a_second_run_adds_nothing(store, make_study):
    study = make_study(simulated=True)
    simulate(store, study.id, 5)
    simulate(store, study.id, 5)
    assert len(export_votes(store, study.id)) == 40


def test_the_seed_decides_the_answers(store, make_study):
    given = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        study = make_study(name, simulated=True)
        simulate(store, study.id, 5, seed=seed)
        votes = export_votes(store, study.id)
        given.append(votes.groupby(["annotator", "model", "image_id"])["answer"].first().to_dict())
    assert given[0] != given[2]
    assert given[0] == given[1]


def _as_earlier_versions_made_it(row):
    row.simulated, row.spec = True, {**row.spec, "simulated": True}


def test_refusals(store, make_study):
    with pytest.raises(StudyError, match="answered by people"):
        simulate(store, make_study().id)
    pairs = make_study("pairs", task=Task.PAIR).id
    store.write(lambda tx: _as_earlier_versions_made_it(tx.get(StudyRow, pairs)))
    with pytest.raises(StudyError, match="Expected a recognition study"):
        simulate(store, pairs)
    with pytest.raises(NotFoundError):
        simulate(store, "nothing")
