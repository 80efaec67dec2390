"""The letters are those of the SoK's table, limits hold, and words say what was seen."""

from dataclasses import replace

import pytest

from semsim.base.errors import SettingsError
from semsim.base.threat import LETTERS, ThreatModel, attacker_words, check_threat

# Columns of the table "Threat Models" (Carletti et al. 2025), from "Basic Knowledge" on, as ticked.
COLUMNS = (
    *("basic", "local_steps", "auxiliary_data", "statistics", "changes_model", "chooses_clients"),
)
TICKED = {
    "A": "......",
    "B": "x.....",
    "C": "xx....",
    "D": "xxx...",
    "E": "xxxx..",
    "F": "xx..x.",
    "G": "xxx.x.",
    "H": "xxx.xx",
}


@pytest.mark.parametrize("letter", TICKED)
def test_each_letter_is_a_row_of_the_table(letter):
    known = LETTERS[letter][1]
    assert [*LETTERS] == [*TICKED]
    assert "".join(".x"[known.has(name)] for name in COLUMNS) == TICKED[letter]
    assert known.letter == replace(known, labels=True).letter == letter
    assert not known.labels


@pytest.mark.parametrize(
    ("needed", "letter", "words"),
    [
        ({"local_steps": True}, "C", "C"),
        ({"statistics": True, "labels": True}, "E", "E, labels known"),
        ({"changes_model": True}, "F", "F"),
        ({"chooses_clients": True}, "H", "H"),
        ({"statistics": True, "changes_model": True}, "", "horizontal"),
        ({"basic": True, "system": "vertical"}, "", "vertical"),
    ],
)
def test_the_letter_is_the_first_whose_attacker_has_all_of_it(needed, letter, words):
    found = ThreatModel(**needed)
    assert (found.letter, found.words) == (letter, words)
    assert found.record() | needed == found.record()


def test_an_attacker_who_lacks_something_is_refused_with_what_that_is():
    needed = ThreatModel(basic=True, labels=True)
    for enough in ("", "B+labels", "H+labels"):
        check_threat(needed, enough, "invgrad")
    with pytest.raises(SettingsError) as refused:
        check_threat(needed, "A", "invgrad")
    assert str(refused.value) == (
        "invgrad needs basic knowledge of pictures and the labels, which attacker A (Eavesdropper) "
        "lacks. Take threat=B+labels, or another attack."
    )
    with pytest.raises(SettingsError, match="needs the labels, which attacker H "):
        check_threat(needed, "H", "invgrad")
    with pytest.raises(SettingsError, match=r"vertical learning.*Take no threat"):
        check_threat(replace(needed, system="vertical"), "H+labels", "cafe")


@pytest.mark.parametrize("limit", ["I", "b", "B+label", "+labels", "B+labels+labels", "AB"])
def test_a_limit_that_is_no_letter_is_refused(limit):
    with pytest.raises(SettingsError, match="threat must be a letter from A to H"):
        check_threat(ThreatModel(), limit, "dlg")


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({}, ""),
        ({"threat": "B", "seen": [1, 2]}, ""),
        ({"seen": {"parameters": "1", "of": 2}}, ""),
        ({"seen": {"parameters": 1, "of": 0}}, ""),
        ({"threat": ThreatModel().record()}, "A"),
        ({"seen": {"parameters": 650, "of": 81280}}, "650 of 81,280 parameters (1%)"),
        ({"noticed": "equal rows"}, ""),
        ({"noticed": [{"what": "equal rows", "warns": False}]}, "no sign warns a client"),
        (
            {
                "threat": ThreatModel(changes_model=True).record(),
                "noticed": [
                    {"what": "equal rows in a layer", "warns": True},
                    {"what": "steps between biases, factor (median)", "warns": True},
                    {"what": "D-SNR", "warns": False},
                ],
            },
            "F · a client could notice equal rows in a layer and steps between biases",
        ),
        (
            {"threat": ThreatModel(labels=True).record(), "seen": {"parameters": 7, "of": 7}},
            "A, labels known · 7 of 7 parameters (100%)",
        ),
    ],
)
def test_a_run_says_who_attacked_and_what_was_seen_as_far_as_it_is_known(run, words):
    assert attacker_words(run) == words
