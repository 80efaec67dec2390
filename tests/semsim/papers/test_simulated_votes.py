"""Programs that vote: what they say of pictures that no attack made, and when they are no use."""

import pandas as pd
import pytest
from made_judged import judged_labels, judged_votes
from made_pictures import blocky

from semsim.base.registry import Plugin
from semsim.learning.ablations_run import Material
from semsim.papers.semsim import blind_spots
from semsim.papers.simulated_votes import Jury, _jury_paths, jury_of

SEES = Jury(originals=0.8, grey=0.0, mean=0.1)


def votes(*rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["kind", "answer", "recognised"])


def test_a_wrong_word_for_nothing_is_a_false_alarm_and_for_an_original_is_none():
    found = jury_of(
        votes(
            ("reconstruction", "cat", True),
            ("original", "cat", True),
            ("original", "dog", False),
            ("original", "none", False),
            ("original", "cat", True),
            ("grey", "dog", False),
            ("grey", "none", False),
            ("mean", "none", False),
            ("mean", "none", False),
        )
    )
    assert found == (0.5, 0.5, 0.0)
    assert "recognise 50% of the originals; they see something in 50% of grey" in found.words


def test_same_said_of_nothing_is_a_false_alarm_too():
    found = jury_of(
        votes(
            ("original", "same", True),
            ("grey", "different", False),
            ("mean", "same", True),
            ("mean", "different", False),
        )
    )
    assert found == (1.0, 0.0, 0.5)


def test_people_are_no_jury():
    assert jury_of(None) is None
    assert jury_of(votes(("reconstruction", "cat", True), ("original", "cat", True))) is None
    assert jury_of(votes(("grey", "cat", True)).drop(columns="kind")) is None


@pytest.mark.parametrize(
    ("jury", "blind"),
    [
        (SEES, False),
        (Jury(originals=0.0, grey=0.0, mean=0.0), True),
        (Jury(originals=0.2, grey=0.0, mean=0.2), True),
    ],
)
def test_who_recognises_no_more_than_by_false_alarm_recognises_nothing(jury, blind):
    assert jury.blind is blind


def test_programs_that_see_nothing_are_told_of_with_what_to_do(tmp_path):
    labels = judged_labels(tmp_path)
    study = Material(labels=labels, votes=judged_votes(labels))
    nothing = Material(labels=labels.assign(recognisable=False), votes=None)
    assert blind_spots({"a": study}, {"a": SEES}) == []
    assert blind_spots({"a": nothing}, {"a": None}) == []  # of people
    (line,) = blind_spots({"a": study}, {"a": Jury(originals=0.1, grey=0.1, mean=0.0)})
    assert line.startswith("a: the simulated annotators recognise nothing")
    assert "--jury-epochs" in line
    (line,) = blind_spots({"a": nothing}, {"a": SEES})
    assert "originals and not one reconstruction" in line
    assert "--preset" in line


def test_a_jury_is_of_what_is_in_the_folder_that_it_learned(tmp_path):
    asked = Plugin(name="folder", settings={"root": str(tmp_path / "data")})
    blocky(tmp_path / "data/cat/a.png", 0)
    before = _jury_paths(asked, 5, tmp_path)
    assert _jury_paths(asked, 5, tmp_path) == before
    blocky(tmp_path / "data/cat/b.png", 1)
    assert not set(_jury_paths(asked, 5, tmp_path)) & set(before)
    built_in = _jury_paths(Plugin(name="symbols"), 5, tmp_path)
    assert built_in[0].stem == "be05159da07fe152"  # another key is another training
