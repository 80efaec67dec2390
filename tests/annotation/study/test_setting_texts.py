"""Settings of a study given as text."""

from dataclasses import MISSING, fields

import pytest

from annotation.errors import StudyError
from annotation.spec import Background, StudySpec, Task
from annotation.study import setting_texts


def test_every_setting_is_explained():
    assert set(setting_texts.HELP) == {one.name for one in fields(StudySpec)} - {"name"}


def test_values_have_the_types_of_the_settings():
    given = ["max_views=2", "repeat_rate=0.1", "check=yes", "background=black", "consent=a = b"]
    assert setting_texts.parse(given) == {
        "max_views": 2,
        "repeat_rate": 0.1,
        "check": True,
        "background": Background.BLACK,
        "consent": "a = b",
    }
    assert setting_texts.parse(["max_views="]) == {"max_views": None}
    assert StudySpec(name="x", task=Task.PAIR, **setting_texts.parse(given)).max_views == 2


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
        setting_texts.parse([text])


def test_the_table_lists_settings_with_their_defaults():
    table = setting_texts.table()
    assert "repeat_lag: Votes between an item and its repeat, at least. (default 50)" in table
    assert "balanced" in table
    assert "password: Asked for when people join." in table


@pytest.mark.parametrize("one", fields(StudySpec))
def test_a_value_written_out_is_read_as_it_was(one):
    if one.name in setting_texts.HELP and one.default is not MISSING and one.name != "password":
        text = setting_texts.as_text(one.default)
        assert setting_texts.value_of(one.name, text) == one.default
