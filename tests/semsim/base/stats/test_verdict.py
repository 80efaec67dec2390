from dataclasses import replace

import numpy as np
import pytest
from made_votes import scores_of, votes_of

from semsim.base.errors import DataError, UnknownNameError
from semsim.base.stats.evidence import gather
from semsim.base.stats.verdict import RULES, human_score, judged, rules_of

NAN = np.nan
MARKS = ("11100", "11---", "110--", "nnn00", "n1n1n", "-----", "nnnnn", "11000")


def evidence(*marks, k=5):
    """One image a string: recognised, not, no vote, "none"."""
    votes = votes_of({("m", str(i)): said for i, said in enumerate(marks)})
    labels = votes_of({("m", str(i)): "1" for i in range(len(marks))})
    return gather(votes, scores_of({}), (), labels=labels.assign(votes_per_item=k))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("majority", [1, NAN, NAN, 0, 0, NAN, 0, 0]),
        ("mean-response", [0.6, 1, 2 / 3, 0, 0.4, NAN, 0, 0.4]),
        ("ignoring-none", [0.6, 1, 2 / 3, 0, 1, NAN, NAN, 0.4]),
    ],
)
def test_rules_by_hand(rule, expected):
    np.testing.assert_allclose(human_score(evidence(*MARKS), rule), expected)


def test_an_even_number_of_votes_can_tie():
    np.testing.assert_equal(human_score(evidence("1100", "1110", k=4), "majority"), [NAN, 1])


def test_an_extra_vote_can_tie_and_can_decide():
    found = evidence("111000", "110000", "11100-", "00110-")
    np.testing.assert_equal(human_score(found, "majority"), [NAN, 0, 1, 0])


def test_dawid_skene_is_sure_of_what_all_say():
    scores = human_score(evidence("111", "111", "000", "000", "110", "---", k=3), "dawid-skene")
    assert (scores[:2] > 0.99).all()
    assert (scores[2:4] < 0.01).all()
    assert np.isnan(scores[5])


def test_labels_that_came_with_the_data_are_human_scores_too():
    found = replace(evidence("1", "0"), given={"folder": np.array([0.0, 1.0])})
    assert rules_of(found) == (*RULES, "folder")
    assert human_score(found, "folder").tolist() == [0, 1]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("majority", "no image has 3 votes that agree"),
        ("mean-response", "there are no votes"),
        ("ignoring-none", "no vote names a class"),
        ("dawid-skene", "Dawid-Skene: there are no votes"),
        ("folder", "no image has this label"),
    ],
)
def test_what_is_undefined_says_why(rule, why):
    found = replace(evidence("--", "--"), given={"folder": np.full(2, NAN)})
    score = judged(found, rule)
    assert score.undefined == why
    assert np.isnan(score.values).all()


def test_unknown_rules_and_rules_with_two_meanings_are_refused():
    with pytest.raises(UnknownNameError, match=r"'best'\. Known: majority, mean-response"):
        human_score(evidence("1"), "best")
    with pytest.raises(DataError, match="called 'majority', as a rule is"):
        rules_of(replace(evidence("1"), given={"majority": np.ones(1)}))
