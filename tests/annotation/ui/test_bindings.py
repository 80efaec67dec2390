"""Keys that a person has changed, over studies of different kinds."""

import page_scripts
import pytest

from annotation.tasks import KINDS

RECOGNITION = ["Digit1", "KeyQ", "KeyF", "Space", "KeyN", "KeyH"]
VIEW = "KeyH"
HELD = """
const held = new Map(value.kept ? [["semsim:bindings", JSON.stringify(value.kept)]] : []);
const storage = {
  getItem: (key) => held.get(key) ?? null,
  setItem: (key, text) => held.set(key, text),
};
const changed = new Bindings(storage);
for (const [usual, pressed] of value.changes) changed.assign(usual, pressed);
const opened = new Bindings(storage); // in another study
const meaning = (key) => opened.meaningOf(key, value.usuals);
return value.usuals.map(opened.keyOf, opened).map((key) => [key, meaning(key)]);
"""


def keys_of(usuals, changes, kept=None):
    """What each of `usuals` is pressed by after `changes`, and what pressing that means."""
    value = {"usuals": usuals, "changes": changes, "kept": kept}
    return page_scripts.evaluate("bindings.js", "Bindings", f"(() => {{{HELD}}})()", value)


@pytest.mark.parametrize(
    "changes",
    [
        [("KeyF", "KeyQ")],
        [("KeyF", "KeyQ"), ("KeyJ", "Digit1")],
        [("KeyJ", "KeyN"), ("KeyF", "KeyJ"), ("KeyF", "KeyN")],
        [("KeyF", "KeyP"), ("KeyF", "KeyF")],
    ],
)
def test_a_key_changed_in_one_study_means_one_answer_in_every_other(changes):
    pair = [*(key.code for key in KINDS["pair"]().keys), VIEW]
    for usuals in (pair, RECOGNITION):
        found = keys_of(usuals, changes)
        assert [meant for _, meant in found] == usuals  # every answer has a key of its own


def test_keys_that_an_earlier_version_kept_twice_are_told_apart():
    found = keys_of(RECOGNITION, [], kept={"KeyF": "KeyQ"})
    assert [meant for _, meant in found] == RECOGNITION
    assert found[2] == ["KeyQ", "KeyF"]


def test_keys_go_round_as_they_were_kept():
    kept = {"Digit1": "KeyQ", "KeyQ": "KeyF", "KeyF": "Digit1"}
    found = keys_of(RECOGNITION, [], kept=kept)
    assert {usual: key for usual, (key, _) in zip(RECOGNITION[:3], found[:3], strict=True)} == kept


FRENCH = {"KeyQ": "A", "KeyA": "Q", "KeyW": "Z", "KeyZ": "W", "Digit1": "&"}


@pytest.mark.parametrize(
    ("known", "code", "key", "meant"),
    [
        ({}, "KeyA", "q", "KeyQ"),  # a French keyboard of which the browser tells nothing
        ({}, "KeyQ", "a", "KeyA"),
        ({}, "Digit1", "&", "Digit1"),
        ({}, "Numpad1", "1", "Numpad1"),
        ({}, "KeyQ", "й", "KeyQ"),  # letters that no button bears
        ({}, "", "q", "KeyQ"),  # some keyboards of tablets and remote desktops tell letters only
        ({}, "Space", " ", "Space"),
        (FRENCH, "KeyA", "q", "KeyA"),
        (FRENCH, "Digit1", "&", "Digit1"),
        (FRENCH, "KeyQ", "q", "KeyA"),  # changed to another keyboard since
    ],
)
def test_what_stands_on_a_button_is_what_its_key_means(known, code, key, meant):
    letter = "(code) => value.known[code] ?? usualLetter(code)"
    value = {"known": known, "code": code, "key": key}
    script = f"codeOf(value, {letter})"
    assert page_scripts.evaluate("keys.js", "codeOf, usualLetter", script, value) == meant
