"""That the simulations of `benchmarks/statistics.py` still run, and say what can be."""

import pytest

from benchmarks import statistics

REPEATS = 20  # what is measured takes thousands; 20 studies tell 95 % from a half


@pytest.fixture(autouse=True)
def one_size(monkeypatch):
    monkeypatch.setattr(statistics, "FEW", (8,))


def printed(capsys, name):
    """The printed columns by heading."""
    statistics.simulate(name, REPEATS)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{name}: {REPEATS} repeats"
    _, heads = statistics.SIMULATIONS[name]
    rows = [[float(cell) for cell in line.split()] for line in said[2:-1]]
    assert rows
    assert {len(row) for row in rows} == {len(heads)}
    return dict(zip(heads, zip(*rows, strict=True), strict=True))


@pytest.mark.parametrize("name", ["models", "ceiling"])
def test_intervals_over_models_mostly_hold_the_truth(capsys, name):
    found = printed(capsys, name)
    assert set(found["n"]) == {8}
    for kind in ("ρ", "τ"):
        assert all(0.8 <= one <= 1 for one in found[kind])


def test_equal_metrics_are_rarely_told_apart(capsys):
    found = printed(capsys, "difference")
    assert all(0.8 <= one <= 1 for one in found["coverage"])
    equal = [
        small
        for a, b, small in zip(found["r A"], found["r B"], found["p ≤ 0.05"], strict=True)
        if a == b
    ]
    assert len(equal) == len(statistics.EQUAL)
    assert max(equal) <= 0.2
    assert sum(equal) / len(equal) <= 0.08
