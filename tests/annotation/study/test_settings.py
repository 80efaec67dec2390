"""Settings of a study given as text."""

from dataclasses import MISSING, fields

import pytest

from annotation.errors import StudyError
from annotation.spec import Background, StudySpec, Task
from annotation.study import settings


def test_every_setting_is_explained():
    assert set(settings.HELP) == {one.name for one in fields(StudySpec)} - {"name"}


def test_values_have_the_types_of_the_settings():
    given = ["max_views=2", "repeat_rate=0.1", "check=yes", "background=black", "consent=a = b"]
    assert settings.parse(given) == {
        "max_views": 2,
        "repeat_rate": 0.1,
        "check": True,
        "background": Background.BLACK,
        "consent": "a = b",
    }
    assert settings.parse(["max_views="]) == {"max_views": None}
    assert StudySpec(name="x", task=Task.PAIR, **settings.parse(given)).max_views == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("check", "NAME=VALUE"),
        ("nmae=x", "no setting 'nmae'"),
        ("name=x", "no setting 'name'"),
        ("seed=", "a whole number; got ''"),
        ("seed=1.5", "a whole number"),
        ("repeat_rate=often", "a number"),
        ("check=maybe", "yes or no"),
        ("background=pink", "one of grey, black, white"),
    ],
)
def test_what_is_wrong_is_said(text, words):
    with pytest.raises(StudyError, match=words):
        settings.parse([text])


def test_the_table_lists_settings_with_their_defaults():
    table = settings.table()
    assert "repeat_lag: Votes between an item and its repeat, at least. (default 50)" in table
    assert "balanced" in table
    assert "password: Asked for when people join." in table


@pytest.mark.parametrize("one", fields(StudySpec))
def test_a_value_written_out_is_read_as_it_was(one):
    if one.name in settings.HELP and one.default is not MISSING and one.name != "password":
        text = settings.as_text(one.default)
        assert settings.value_of(one.name, text) == one.default
