"""Signal detection: values by hand, missing ones explained; simulation is in tests/oracles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_ballots import ballots, table, vote
from scipy import stats
from scipy.stats import norm

from annotation.votes.rates import DETECTION_COLUMNS, DETECTION_KINDS, detection_table


def pairs(hits, misses, alarms, rejections, *, person="p", model="m", **more):
    """Votes of one person, each on an original of its own."""
    counts = (
        ("reconstruction", "same", hits),
        ("reconstruction", "different", misses),
        ("decoy", "same", alarms),
        ("decoy", "different", rejections),
    )
    return [
        vote(f"{model}/{kind}-{said}-{n}", person, said, kind=kind, **more)
        for kind, said, times in counts
        for n in range(times)
    ]


def detected(rows, **more):
    return detection_table(ballots(table(rows), kinds=DETECTION_KINDS, **more))


def test_d_prime_and_criterion_by_hand():
    row = detected(pairs(15, 4, 4, 15)).iloc[0]
    hit, alarm = norm.ppf(15.5 / 20), norm.ppf(4.5 / 20)
    assert (row["hits"], row["n_matched"], row["false_alarms"], row["n_decoys"]) == (15, 19, 4, 19)
    assert row["d_prime"] == pytest.approx(hit - alarm)
    assert row["criterion"] == pytest.approx(0, abs=1e-12)
    assert row["interval"] == "jackknife"
    assert row["d_prime_low"] < row["d_prime"] < row["d_prime_high"]


def test_groups_are_everybody_annotators_and_models():
    rows = pairs(9, 1, 2, 8, person="Ada", model="a") + pairs(5, 5, 5, 5, person="Ben", model="b")
    found = detected(rows)
    assert list(found.columns) == list(DETECTION_COLUMNS)
    assert found[["of", "name"]].to_numpy().tolist() == [
        ["all votes", "all votes"],
        ["annotator", "Ada"],
        ["annotator", "Ben"],
        ["model", "a"],
        ["model", "b"],
    ]
    assert found["hits"].tolist() == [14, 9, 5, 9, 5]
    assert found["d_prime"].iloc[2] == pytest.approx(0, abs=1e-12)
    assert found["d_prime"].iloc[1] == found["d_prime"].iloc[3]


def test_strata_hold_the_votes_of_all_models_and_annotators_by_hand():
    rows = [
        *pairs(6, 1, 1, 4, person="Ada", model="a", stratum=0),
        *pairs(3, 0, 1, 4, person="Ben", model="b", stratum=0),
        *pairs(0, 5, 2, 3, person="Ada", model="c", stratum=3),
        *pairs(4, 0, 0, 4, person="Ada", model="d"),  # nobody knows of which stratum
    ]
    found = detected(rows).query("of == 'stratum'").set_index("name")
    assert list(found.index) == ["0", "3"]
    counts = found[["hits", "n_matched", "false_alarms", "n_decoys"]]
    assert counts.to_numpy().tolist() == [[9, 10, 2, 10], [0, 5, 2, 5]]
    # z of 9.5/11, 2.5/11, 0.5/6 and 2.5/6, from a table of the normal distribution.
    best, worst = (1.0968, -0.7479), (-1.3830, -0.2104)
    for name, (hit, alarm) in (("0", best), ("3", worst)):
        assert found.loc[name, "d_prime"] == pytest.approx(hit - alarm, abs=2e-4)
        assert found.loc[name, "criterion"] == pytest.approx(-(hit + alarm) / 2, abs=2e-4)
    assert found["interval"].tolist() == ["", ""]
    assert set(found["reason"]) == {"no interval: 5 originals, fewer than 6"}


def test_saying_same_to_all_is_a_lean_and_no_sensitivity():
    row = detected(pairs(20, 0, 20, 0)).iloc[0]
    assert row["d_prime"] == pytest.approx(0, abs=1e-12)
    assert row["criterion"] < -1.5


def test_a_perfect_observer_has_a_finite_value_and_an_interval_that_is_not_a_point():
    row = detected(pairs(20, 0, 0, 20)).iloc[0]
    z = norm.ppf(20.5 / 21)
    t = stats.t.ppf(0.975, 19)
    spread = np.sqrt(2 * (20.5 / 21) * (0.5 / 21) / (20 * norm.pdf(z) ** 2))
    assert row["d_prime"] == pytest.approx(2 * z)
    assert row["interval"] == "Gourevitch-Galanter"
    assert row["d_prime_high"] - row["d_prime"] == pytest.approx(t * spread)
    assert row["d_prime"] - row["d_prime_low"] == pytest.approx(t * spread)
    assert row["criterion_high"] == pytest.approx(t * spread / 2)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "no votes yet"),
        (pairs(3, 3, 0, 0), "without votes on decoys"),
        (pairs(0, 0, 3, 3), "no votes on matched"),
    ],
)
def test_what_is_undefined_is_explained(rows, words):
    row = detected(rows).iloc[0]
    assert words in row["reason"]
    assert np.isnan([row["d_prime"], row["d_prime_low"], row["criterion"]]).all()
    assert row["interval"] == ""


def test_one_original_has_a_value_but_no_interval():
    rows = [{**row, "image_id": "one"} for row in pairs(5, 5, 2, 8)]
    row = detected(rows).iloc[0]
    assert row["d_prime"] > 0
    assert np.isnan(row["d_prime_low"])
    assert row["reason"] == "no interval: 1 original, fewer than 6"


@settings(max_examples=12)
@given(*[st.integers(0, 6)] * 4)
def test_swapping_the_words_turns_the_criterion_and_swapping_the_images_d_prime(a, b, c, d):
    row, said, shown = (
        detected(pairs(*counts)).iloc[0] for counts in ((a, b, c, d), (b, a, d, c), (c, d, a, b))
    )
    if a + b and c + d:
        assert said["criterion"] == pytest.approx(-row["criterion"], abs=1e-9)
        assert said["d_prime"] == pytest.approx(-row["d_prime"], abs=1e-9)
        assert shown["d_prime"] == pytest.approx(-row["d_prime"], abs=1e-9)
        assert shown["criterion"] == pytest.approx(row["criterion"], abs=1e-9)
    else:
        assert np.isnan(row["d_prime"])
