"""That what is said of how often intervals hold is what `benchmarks/coverage.py` wrote."""

import json

import pytest

from benchmarks import coverage
from benchmarks.claims import RESULTS, kept
from benchmarks.measuring import MOST_ERRORS, judge_errors

FEWEST_STUDIES = 400  # of a cell, of 500 of which some have no interval


@pytest.mark.parametrize("part", coverage.PARTS)
def test_every_part_was_measured_and_says_how(part):
    whole = json.loads((RESULTS / f"coverage-{part}.json").read_text(encoding="utf-8"))
    assert whole["command"] == f"{coverage.COMMAND} --only {part}"
    found = kept(f"coverage-{part}")
    assert {int(key.split(" / ")[2]) for key in found} == set(coverage.ORIGINALS)
    assert min(int(str(one.n).split()[0]) for one in found.values()) >= FEWEST_STUDIES
    assert all(one.low <= one.value <= one.high for one in found.values())
    errs = {key: one.low for key, one in found.items() if coverage.TYPE_I in key}  # of 500 draws
    held = {key: one.value for key, one in found.items() if key not in errs}
    assert [key for key, value in held.items() if value < coverage.WANTED] == []
    assert [key for key, low in errs.items() if not judge_errors(low).endswith(": met")] == []
    mean = sum(found[key].value for key in errs) / max(1, len(errs))
    assert mean <= MOST_ERRORS


def test_swaps_err_no_more_often_than_their_intervals_allow():
    """By the rule of the AUCs, where both metrics err alike."""
    whole = json.loads((RESULTS / "swaps.json").read_text(encoding="utf-8"))
    rows = whole["values"]["swaps"]["rows"]
    errs = [cell for row in rows if row[2] == row[3] for cell in row[5 + (row[2] > 0) :]]
    assert len(errs) == 15
    assert all(low <= value <= high for _, value, low, high in errs)
    assert judge_errors(max(low for _, _, low, _ in errs)).endswith(": met")
    assert judge_errors(0.061).endswith("**missed**")


@pytest.mark.parametrize("part", coverage.PARTS)
def test_each_part_still_runs_and_mostly_holds_the_truth(part, monkeypatch):
    monkeypatch.setattr(coverage, "MANY", 2000)
    found = coverage.measure(part, 12, [*coverage.KINDS, *coverage.OF_VOTES], (12,))
    numbers = {key.split(" / ")[0] for key in kept(f"coverage-{part}")}
    assert {key.split(" / ")[0] for key in found} == numbers
    held = [one.value for key, one in found.items() if coverage.TYPE_I not in key]
    assert sum(held) / len(held) > 0.75  # numbers of one study hang together
