import numpy as np
import pytest
from made_measures import measure
from made_votes import evidence
from scipy import stats

from semsim.analysis.differences import difference_table, holm
from semsim.analysis.layout import layout_of
from semsim.analysis.resampling import resample
from semsim.analysis.result import DIFFERENCE_COLUMNS

DRAWN = resample(layout_of(evidence(n_models=12).images), 400, 9, 0)
X = np.arange(12.0)
NOISE = np.random.default_rng(0).normal(size=(2, 12))
PEOPLE = measure("people", X)
GOOD, BAD = measure("good", X + NOISE[0]), measure("bad", 5 * NOISE[1], sign=-1.0)


def test_a_difference_is_of_oriented_correlations():
    table = difference_table(PEOPLE, [GOOD, BAD], DRAWN)
    assert tuple(table.columns) == DIFFERENCE_COLUMNS
    row = table.iloc[0]
    first = stats.spearmanr(X, GOOD.means).statistic
    second = -stats.spearmanr(X, BAD.means).statistic
    assert row["difference"] == pytest.approx(first - second)
    assert row["low"] < row["difference"] < row["high"]


def test_what_the_interval_leaves_out_is_unlikely():
    row = difference_table(PEOPLE, [measure("best", X), measure("worst", -X)], DRAWN).iloc[0]
    assert (row["low"], row["high"]) == pytest.approx((2, 2))
    assert row["p"] == pytest.approx(2 / 401)


def test_a_metric_does_not_differ_from_itself():
    row = difference_table(PEOPLE, [GOOD, GOOD], DRAWN).iloc[0]
    assert (row["difference"], row["low"], row["high"], row["p"]) == (0, 0, 0, 1)


def test_the_bootstrap_is_paired():
    """Two metrics with nearly the same ranking differ little, however wide each interval is."""
    swapped = X.copy()
    swapped[[5, 6]] = swapped[[6, 5]]
    noisy = measure("a", swapped + 4 * NOISE[0]), measure("b", swapped + 4.1 * NOISE[0])
    row = difference_table(PEOPLE, list(noisy), DRAWN).iloc[0]
    assert row["high"] - row["low"] < 0.3


def test_undefined_with_a_reason_and_outside_the_correction():
    flat = measure("flat", np.ones(12))
    table = difference_table(PEOPLE, [GOOD, flat, BAD], DRAWN)
    assert (table.loc[[0, 2], "undefined"] == "metric: the same value for every model").all()
    assert table["undefined"].isna().tolist() == [False, True, False]
    assert table["p_holm"].isna().tolist() == [True, False, True]
    assert table.loc[1, "p_holm"] == table.loc[1, "p"]


def test_one_metric_has_nothing_to_differ_from():
    table = difference_table(PEOPLE, [GOOD], DRAWN)
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
