import numpy as np
import pandas as pd
import pytest
from made_measures import measure
from made_votes import evidence
from scipy import stats

from semsim.base.stats.agreement import (
    agreement_row,
    agreement_table,
    leave_one_out,
    permutation_p,
)
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.resampling import resample
from semsim.base.stats.result import AGREEMENT_COLUMNS

N, B = 9, 300
LAYOUT = layout_of(evidence(n_models=N).images)
DRAWN = resample(LAYOUT, B, 199, 0)
SIX = np.array([1.0, 2, 3, 4, 5, 6])
SPOILT = np.array([1.0, 2, 3, 4, 6, -9])
LABELS = [f"m{i}" for i in range(N)]
DRAW = np.random.default_rng(0)
X = np.arange(float(N))
Y = X + 2 * DRAW.normal(size=N)


def cloud(means, spread):
    return means + DRAW.normal(0, spread, (B, N))


PEOPLE = measure("people", X, cloud(X, 0.3))
METRIC = measure("psnr", Y, cloud(Y, 0.5))


def test_the_numbers_are_scipys_and_oriented():
    turned = measure("mse", -Y, -METRIC.resampled, sign=-1)
    table = agreement_table(PEOPLE, [METRIC, turned], LABELS, DRAWN)
    assert tuple(table.columns) == AGREEMENT_COLUMNS
    assert table["rho"].tolist() == pytest.approx([stats.spearmanr(X, Y).statistic] * 2)
    assert table["tau"].tolist() == pytest.approx([stats.kendalltau(X, Y).statistic] * 2)
    row = table.iloc[0]
    assert (row["n"], row["p_kind"], row["left_out_models"]) == (N, "Monte Carlo", 0)
    for name in ("rho_bw", "tau_score", "rho_models", "rho_images", "loo_rho"):
        low, high = ("min", "max") if name == "loo_rho" else ("low", "high")
        assert (
            row[f"{name}_{low}"] <= row[name.split("_")[name == "loo_rho"]] <= row[f"{name}_{high}"]
        )
    why = ["interval_undefined", "models_undefined", "images_undefined", "undefined"]
    assert row[why].isna().all()


def test_the_cluster_interval_is_of_the_resampled_means_by_a_loop():
    row = agreement_row(PEOPLE, METRIC, LABELS, DRAWN)
    for name, function in (("rho", stats.spearmanr), ("tau", stats.kendalltau)):
        draws = [
            function(x, y).statistic
            for x, y in zip(PEOPLE.resampled, METRIC.resampled, strict=True)
        ]
        expected = np.percentile(draws, [2.5, 97.5])
        found = row[f"{name}_images_low"], row[f"{name}_images_high"]
        assert found == pytest.approx(tuple(expected))


def test_the_interval_over_models_is_of_drawn_models_by_a_loop():
    row = agreement_row(PEOPLE, METRIC, LABELS, DRAWN)
    draws = [stats.spearmanr(X[pick], Y[pick]).statistic for pick in DRAWN.picks(N)]
    expected = np.percentile(draws, [2.5, 97.5])
    assert (row["rho_models_low"], row["rho_models_high"]) == pytest.approx(tuple(expected))


def test_resamples_without_a_ranking_are_left_out_and_counted():
    resampled = PEOPLE.resampled.copy()
    resampled[:10] = 1.0
    tied = np.array([0.0] * 7 + [1.0, 2.0])  # often one value alone is drawn
    drawn = resample(layout_of(evidence(n_models=N).images), B, 9, 0)
    row = agreement_row(
        measure("people", tied, resampled), measure("psnr", Y, METRIC.resampled), LABELS, drawn
    )
    assert row["left_out_images"] == 10
    alike = sum(len(set(tied[pick])) == 1 for pick in drawn.picks(N))
    assert row["left_out_models"] == alike > 0


@pytest.mark.parametrize(("n", "defined"), [(7, False), (8, True)])
def test_a_bootstrap_over_too_few_models_is_not_given(n, defined):
    few = slice(0, n)
    people, metric = (
        measure(one.name, one.means[few], one.resampled[:, few]) for one in (PEOPLE, METRIC)
    )
    row = agreement_table(people, [metric], LABELS, DRAWN).iloc[0]
    assert pd.notna(row["rho_models_low"]) == pd.notna(row["tau_models_low"]) == defined
    assert pd.notna(row["left_out_models"]) == defined
    assert row["p_kind"] == "exact"
    if not defined:
        assert row["models_undefined"] == "7 models; a bootstrap over models needs at least 8"
    assert pd.notna([row["rho_bw_low"], row["tau_score_low"]]).all()


def test_resamples_that_all_say_the_same_make_no_interval():
    same = measure("same", X, PEOPLE.resampled)
    row = agreement_row(PEOPLE, same, LABELS, DRAWN)
    for kind in ("models", "images"):
        assert np.isnan([row[f"rho_{kind}_low"], row[f"tau_{kind}_high"]]).all()
        assert row[f"{kind}_undefined"] == "every resample gives the same number"
    assert (row["rho"], row["rho_bw_high"], row["tau_score_high"]) == (1, 1, 1)
    assert row["rho_bw_low"] < 1
    assert row["tau_score_low"] < 1


@pytest.mark.parametrize("n", [3, 5])
def test_few_models_have_a_correlation_and_no_interval(n):
    people, metric = (measure(one.name, one.means[:n]) for one in (PEOPLE, METRIC))
    row = agreement_table(people, [metric], LABELS, DRAWN).iloc[0]
    assert pd.notna(row["rho"])
    assert pd.isna(row[["rho_bw_low", "rho_bw_high", "tau_score_low", "tau_score_high"]]).all()
    assert row["interval_undefined"] == f"no interval: {n} models, fewer than 6"


def test_a_set_metric_stays_and_people_move():
    fixed = measure("fid", Y, np.broadcast_to(Y, (B, N)), of_images=False)
    row = agreement_row(PEOPLE, fixed, LABELS, DRAWN)
    draws = [stats.spearmanr(x, Y).statistic for x in PEOPLE.resampled]
    assert row["rho_images_low"] == pytest.approx(np.percentile(draws, 2.5))


def test_best_first_and_undefined_last_without_numbers():
    flat, worst = measure("flat", np.ones(N)), measure("worst", -X, cloud(-X, 0.1))
    table = agreement_table(PEOPLE, [flat, worst, METRIC], LABELS, DRAWN)
    assert table["metric"].tolist() == ["psnr", "worst", "flat"]
    assert table.loc[2, "undefined"] == "metric: the same value for every model"
    numbers = set(AGREEMENT_COLUMNS) - {"metric", "title", "n", "undefined", "mark"}
    assert table.loc[2, list(numbers)].isna().all()


def test_models_without_a_value_are_not_counted():
    people = X.copy()
    people[0] = np.nan
    metric = Y.copy()
    metric[1] = np.nan
    row = agreement_row(measure("people", people), measure("psnr", metric), LABELS, DRAWN)
    assert row["n"] == N - 2
    assert row["rho"] == pytest.approx(stats.spearmanr(X[2:], Y[2:]).statistic)


@pytest.mark.parametrize(("n", "kind"), [(8, "exact"), (9, "Monte Carlo")])
def test_exact_as_long_as_it_is_short(n, kind):
    found = permutation_p(np.arange(n), np.arange(n)[::-1], resample(LAYOUT, 0, 99, 0))
    assert found.kind == kind


def test_a_perfect_ranking_of_four_models_by_hand():
    found = permutation_p(np.arange(4), np.arange(4), resample(LAYOUT, 0, 0, 0))
    assert (found.rho, found.tau) == (2 / 24, 2 / 24)  # this order and its reverse


def test_a_p_by_shuffles_is_never_zero():
    found = permutation_p(np.arange(12), np.arange(12), resample(LAYOUT, 0, 99, 0))
    assert (found.rho, found.tau) == (0.01, 0.01)


def test_both_signs_count():
    up, down = np.array([1, 3, 2, 5, 4, 6]), np.array([6, 4, 5, 2, 3, 1])
    none = resample(LAYOUT, 0, 0, 0)
    assert permutation_p(up, np.arange(6), none) == permutation_p(down, np.arange(6), none)


def test_the_model_that_spoils_a_ranking_is_named():
    found = leave_one_out(SIX, SPOILT, list("abcdef"))
    rho = [stats.spearmanr(np.delete(SIX, i), np.delete(SPOILT, i)).statistic for i in range(6)]
    tau = [stats.kendalltau(np.delete(SIX, i), np.delete(SPOILT, i)).statistic for i in range(6)]
    assert found["loo_model_max"] == "f"
    assert found["loo_model_min"] == "abcdef"[int(np.argmin(rho))]
    assert (found["loo_rho_min"], found["loo_rho_max"]) == pytest.approx((min(rho), max(rho)))
    assert (found["loo_tau_min"], found["loo_tau_max"]) == pytest.approx((min(tau), max(tau)))


def test_three_models_have_no_range():
    assert leave_one_out(SIX[:3], SPOILT[:3], list("abc")) == {}


def test_a_ranking_that_hangs_on_one_model_keeps_the_others():
    found = leave_one_out(np.array([1.0, 1, 1, 2]), np.array([1.0, 2, 3, 4]), list("abcd"))
    assert not np.isnan([found["loo_rho_min"], found["loo_rho_max"]]).any()
    assert found["loo_undefined"] == "d"
    assert leave_one_out(SIX, SPOILT, list("abcdef"))["loo_undefined"] is None
