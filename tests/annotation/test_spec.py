"""Settings of a study as they are stored, which is what a protocol's hash is made of."""

from dataclasses import asdict

import pytest

from annotation.spec import StudySpec, Task, stored

# What is stored of each setting; a setting may join these, none may change.
KEPT = {
    "title": "",
    "votes_per_item": 5,
    "extra_vote": False,
    "list_size": 20,
    "decoy_rate": 0.0,
    "headline": "majority",
    "seed": 0,
    "simulated": False,
    "lease_seconds": 600,
    "password": None,
    "min_rt_ms": 150,
    "balanced": True,
    "max_views": None,
    "min_lag": 0,
    "label_originals": False,
    "items_per_person": None,
    "set_aside": 0,
    "practice": 0,
    "catch_rate": 0.0,
    "catch_warn_after": 2,
    "catch_pause_after": 0,
    "gold_rate": 0.0,
    "repeat_rate": 0.05,
    "repeat_lag": 50,
    "consent": "",
    "instructions": "",
    "check": False,
    "check_attempts": 2,
    "completion_code": "",
    "completion_url": "",
    "image_scale": 8,
    "interpolation": "nearest",
    "background": "grey",
}


@pytest.mark.parametrize("task", ["recognition", "pair"])
def test_the_usual_settings_are_stored_as_ever(task):
    kept = asdict(StudySpec(name="x", task=Task(task)))
    assert {name: kept[name] for name in ("name", "task", *KEPT)} == {
        "name": "x",
        "task": task,
        **KEPT,
    }
    assert stored(kept) == StudySpec(name="x", task=Task(task))


def test_studies_from_before_there_was_a_shortest_time_take_any_answer():
    assert stored({"name": "x", "task": "pair"}).min_rt_ms == 0
