"""Texts and values from outside are such that every database can hold them."""

import pytest

from annotation.texts import DEEPEST, agreeing, counted, duration, fit, fit_json, is_fit, sendable


@pytest.mark.parametrize("text", ["", "Zoë", "two\nlines\tand\r", "\U0001f3a8", "\u2028", "\u202e"])
def test_texts_of_all_languages_are_fit(text):
    assert is_fit(text)
    assert fit(text) == text


@pytest.mark.parametrize("text", ["\0", "a\0b", "\x08", "\x1b", "\x7f", "\ud800"])
def test_control_characters_and_half_characters_are_not(text):
    assert not is_fit(text)
    with pytest.raises(ValueError, match="control characters"):
        fit(text)


def nested(depth, inside=0):
    return inside if depth == 0 else [nested(depth - 1, inside)]


@pytest.mark.parametrize(
    "value", [None, True, 7, 0.5, "a", {"a": [1, {"b": "c"}]}, [], {}, nested(DEEPEST)]
)
def test_plain_values_are_fit(value):
    assert fit_json(value) is value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("-inf"),
        [float("nan")],
        "\0",
        {"\0": 1},
        {"a": {"b": ["\ud800"]}},
        nested(DEEPEST + 1),
        nested(900, "\0"),
    ],
    ids=["nan", "inf", "nan inside", "zero", "key", "surrogate", "deep", "very deep"],
)
def test_others_are_not(value):
    with pytest.raises(ValueError):
        fit_json(value)


def test_what_is_said_of_them_can_be_sent():
    assert sendable("a\ud800b").encode() == b"a\\ud800b"
    assert sendable("Zoë") == "Zoë"


def test_counts_have_the_right_words():
    assert [counted(n, "vote") for n in (0, 1, 1200)] == ["0 votes", "1 vote", "1,200 votes"]
    assert counted(1, "is", "are") == "1 is"
    assert [agreeing(n, "has", "have") for n in (0, 1, 2)] == ["have", "has", "have"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(3, "1 minute"), (150, "2 minutes"), (5340, "89 minutes"), (5400, "1.5 hours")],
)
def test_durations_are_said_like_people_say_them(seconds, words):
    assert duration(seconds) == words
