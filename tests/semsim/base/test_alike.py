"""Words that are the same, and words that are not."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsim.base.alike import alike, called, firsts, partners, written


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("\u00e9t\u00e9", "e\u0301te\u0301"),
        ("Cat", "CAT"),
        ("Straße", "STRASSE"),
        (" chess  knight", "chess\u00a0knight\t"),
        ("dog\u200b", "\ufeffdog"),
        ("\uac00", "\u1100\u1161"),
        *(("İNEK", "inek"), ("cat\u200e", "\u202acat\u202c"), ("☀\ufe0f", "☀")),
    ],
)
def test_people_read_them_as_one_word(one, two):
    assert alike(one) == alike(two)


@pytest.mark.parametrize(("one", "two"), [("cat", "cats"), ("ab", "a b"), ("模", "型"), ("e", "é")])
def test_people_tell_them_apart(one, two):
    assert alike(one) != alike(two)


@given(st.text())
def test_forms_of_unicode_are_no_matter_and_once_is_enough(text):
    for form in ("NFC", "NFD"):
        assert alike(unicodedata.normalize(form, text)) == alike(text)
    assert alike(written(text)) == alike(text)
    assert written(written(text)) == written(text)


def test_the_first_form_stands_for_all():
    assert firsts(["Cat", "cat ", "dog"]) == {"Cat": "Cat", "cat ": "Cat", "dog": "dog"}
    assert called(["none"], ["dog", " NONE"]) == " NONE"
    assert called(["none"], ["dog"]) == ""


def test_partners_are_the_same_letters_before_the_same_word():
    assert partners(["a", "B"], {"A", "a", "b"}) == {"a": "a", "B": "b"}
    assert partners(["X"], {"x", " x"}) == {}
    assert partners(["X", "x "], {"x"}) == {}
    assert partners(["y"], {"x"}) == {}
