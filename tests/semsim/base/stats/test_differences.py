import numpy as np
import pytest
from made_measures import measure
from scipy import stats

from semsim.base.stats.differences import difference_table, holm
from semsim.base.stats.model_intervals import difference_interval, difference_p
from semsim.base.stats.result import DIFFERENCE_COLUMNS

X = np.arange(12.0)
NOISE = np.random.default_rng(0).normal(size=(2, 12))
PEOPLE = measure("people", X)
GOOD, BAD = measure("good", X + NOISE[0]), measure("bad", 5 * NOISE[1], sign=-1.0)


def test_a_difference_is_of_oriented_correlations():
    table = difference_table(PEOPLE, [GOOD, BAD])
    assert tuple(table.columns) == DIFFERENCE_COLUMNS
    row = table.iloc[0]
    first = stats.spearmanr(X, GOOD.means).statistic
    second = -stats.spearmanr(X, BAD.means).statistic
    assert row["difference"] == pytest.approx(first - second)
    assert row["low"] < row["difference"] < row["high"]


def test_the_interval_and_p_are_those_of_the_three_correlations():
    row = difference_table(PEOPLE, [GOOD, BAD]).iloc[0]
    sides = X, GOOD.oriented, BAD.oriented
    pairs = ((0, 1), (0, 2), (1, 2))
    rhos = [stats.spearmanr(sides[i], sides[j]).statistic for i, j in pairs]
    assert (row["low"], row["high"]) == pytest.approx(difference_interval(*rhos, 12))
    assert row["p"] == pytest.approx(difference_p(*rhos, 12))
    assert row["interval_undefined"] is None


def test_perfectly_apart_is_beyond_chance_from_six_models_on():
    for n in (12, 6):
        sides = [measure("best", X[:n]), measure("worst", -X[:n])]
        row = difference_table(measure("people", X[:n]), sides).iloc[0]
        assert (row["difference"], row["high"]) == pytest.approx((2, 2))
        assert row["low"] > 0
        assert row["p"] < 0.05


def test_a_metric_does_not_differ_from_one_that_ranks_alike():
    row = difference_table(PEOPLE, [GOOD, measure("again", np.exp(GOOD.means))]).iloc[0]
    assert (row["difference"], row["p"]) == (0, 1)
    assert row["low"] < 0 < row["high"]  # on other models they might


def test_metrics_alike_are_told_apart_more_sharply():
    """What both share with each other counts for neither."""
    swapped = X.copy()
    swapped[[5, 6]] = swapped[[6, 5]]
    close = measure("a", swapped + 4 * NOISE[0]), measure("b", swapped + 4.1 * NOISE[0])
    row = difference_table(PEOPLE, list(close)).iloc[0]
    apart = difference_interval(*[stats.spearmanr(X, one.means).statistic for one in close], 0, 12)
    assert row["high"] - row["low"] < apart[1] - apart[0]


@pytest.mark.parametrize("n", [3, 5])
def test_few_models_have_a_difference_and_no_test_of_it(n):
    sides = [measure(one.name, one.means[:n]) for one in (GOOD, BAD)]
    row = difference_table(measure("people", X[:n]), sides).iloc[0]
    assert np.isfinite(row["difference"])
    assert np.isnan([row["low"], row["high"], row["p"], row["p_holm"]]).all()
    assert row["interval_undefined"] == f"no interval: {n} models, fewer than 6"


@pytest.mark.parametrize("r", [0.0, 0.7])
def test_of_six_models_metrics_that_are_alike_rarely_differ(r):
    """Normal scores, two metrics that follow people equally well: 5 % of p below 0.05 at most.

    200 studies: where the truth is 5 %, more than 20 of them come up once in 1,000 times.
    """
    draw = np.random.default_rng(0)
    small = 0
    for _ in range(200):
        people, *noise = draw.normal(size=(3, 6))
        sides = [measure(name, r * people + e) for name, e in zip("ab", noise, strict=True)]
        small += difference_table(measure("people", people), sides).loc[0, "p"] <= 0.05
    assert small <= 20


def test_undefined_with_a_reason_and_outside_the_correction():
    flat = measure("flat", np.ones(12))
    table = difference_table(PEOPLE, [GOOD, flat, BAD])
    assert (table.loc[[0, 2], "undefined"] == "metric: the same value for every model").all()
    assert table["undefined"].isna().tolist() == [False, True, False]
    assert table["p_holm"].isna().tolist() == [True, False, True]
    assert table.loc[1, "p_holm"] == table.loc[1, "p"]


def test_one_metric_has_nothing_to_differ_from():
    table = difference_table(PEOPLE, [GOOD])
    assert table.empty
    assert tuple(table.columns) == DIFFERENCE_COLUMNS


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),  # Holm's own steps: ×3, ×1 raised, ×2
        ([0.5, 0.9], [1.0, 1.0]),
        ([0.02, np.nan, 0.02], [0.04, np.nan, 0.04]),
        ([], []),
    ],
)
def test_holm_by_hand(p, expected):
    np.testing.assert_allclose(holm(np.array(p)), expected)
