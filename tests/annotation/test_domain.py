"""A spec that no study can have is refused with every reason."""

import pytest

from annotation.errors import StudyError
from annotation.spec import HeadlineRule, StudySpec, Task


def test_defaults_are_the_papers():
    spec = StudySpec(name="s", task=Task.RECOGNITION)
    assert (spec.votes_per_item, spec.list_size) == (5, 20)
    assert spec.headline is HeadlineRule.MAJORITY


def test_a_task_may_be_given_by_name():
    assert StudySpec(name="s", task="pair").task is Task.PAIR


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": " "}, "needs a name"),
        ({"votes_per_item": 0}, "Votes per item"),
        ({"list_size": 1}, "Candidates per item must be at least 2; got 1"),
        ({"list_size": 21}, "got 21"),
        ({"decoy_rate": 0.5}, "pair task"),
        ({"decoy_rate": 1.5, "task": Task.PAIR}, "got 1.5"),
        ({"image_scale": -1}, "pixels per image pixel must be at least 0"),
        ({"lease_seconds": 0}, "Seconds of a reservation must be at least 60"),
        ({"password": ""}, "empty password"),
        ({"min_rt_ms": -1}, "Too quick must be at least 0"),
    ],
)
def test_impossible_specs(changes, message):
    with pytest.raises(StudyError, match=message):
        StudySpec(**{"name": "s", "task": Task.RECOGNITION, **changes})


def test_all_reasons_are_given_at_once():
    with pytest.raises(StudyError) as caught:
        StudySpec(name="", task=Task.RECOGNITION, votes_per_item=0, list_size=99)
    assert len(str(caught.value).splitlines()) == 3


def test_the_password_is_not_printed():
    assert "secret" not in repr(StudySpec(name="s", task=Task.PAIR, password="secret"))
