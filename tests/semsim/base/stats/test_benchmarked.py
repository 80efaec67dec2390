"""That what `benchmarks/statistics.py` simulates and replays still runs, and says what can be."""

import numpy as np
import pytest

from benchmarks import replays, statistics
from benchmarks.keeping import Finds

REPEATS = 20  # what is measured takes thousands; 20 studies tell 95% from a half


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


@pytest.fixture(scope="module")
def votes():
    """Five people of other leniency, four models, thirty originals."""
    draw, shape = np.random.default_rng(0), (120, 5)
    model = np.arange(120) % 4
    chance = np.clip(np.linspace(0.2, 0.8, 4)[model, None] + np.linspace(-0.2, 0.2, 5), 0, 1)
    said = (draw.random(shape) < chance).astype(float)
    return replays.Votes(said=said, model=model, original=np.arange(120) // 4)


def test_few_votes_are_held_against_all_of_them(votes, capsys):
    finds = Finds("")
    replays.of_leniency(votes, 4, finds)
    lines = finds.claims["leniency"].value
    assert len(lines) == 2 + 2 * len(replays.LENIENCY)
    assert all("control" in line for line in lines[3::2])
    assert all(-1 <= finds.claims[f"leniency.{k}.raw"].value <= 1 for k in replays.LENIENCY)


def test_an_earlier_end_is_held_against_the_last_look(votes, capsys):
    finds = Finds("")
    replays.of_stopping(votes, 4, finds)
    rule, search = (finds.claims[f"stopping.{name}"].value for name in ("rule", "search"))
    assert len(rule) == 2 + len(replays.QUIET)
    assert len(search) == 2 + len(replays.LEVELS) + 3
    assert 0 <= finds.claims["stopping.well"].value <= 1


def test_a_rule_ends_at_its_quiet_looks_and_is_judged_by_the_last_one():
    state = np.array([[1], [2], [2], [2], [1]])
    assert replays._end(state, 1, 1) == 2
    assert replays._end(state, 1, 2) == 3
    assert replays._end(state, 1, 3) == replays._end(state, 2, 2) == 4
    looks = np.arange(1, 6) / 5
    two = np.stack([state, np.full((5, 1), 1)])
    final = two[:, -1]
    # The first order ends at 0.6 with another state, the second at 0.4 with the final one.
    assert replays._outcome(two, final, looks, 1, 1) == (0.5, 0.5, 0.5)


def test_pairs_are_contrary_where_the_end_turns_them():
    assert replays._contrary(np.array([1, 2, 2]), np.array([0.9, 0.5, 0.1])) == 0
    assert replays._contrary(np.array([1, 2, 2]), np.array([0.4, 0.5, 0.1])) == 0.5
    assert replays._contrary(np.array([1, 1]), np.array([0.4, 0.5])) == 0
