import numpy as np
import pytest
from made_measures import measure
from scipy import stats

from semsim.analysis.influence import backbone_table, leave_one_out
from semsim.analysis.result import BACKBONE_COLUMNS

X = np.array([1.0, 2, 3, 4, 5, 6])
Y = np.array([1.0, 2, 3, 4, 6, -9])


def test_the_model_that_spoils_a_ranking_is_named():
    found = leave_one_out(X, Y, list("abcdef"))
    rho = [stats.spearmanr(np.delete(X, i), np.delete(Y, i)).statistic for i in range(6)]
    tau = [stats.kendalltau(np.delete(X, i), np.delete(Y, i)).statistic for i in range(6)]
    assert found["loo_model_max"] == "f"
    assert found["loo_model_min"] == "abcdef"[int(np.argmin(rho))]
    assert (found["loo_rho_min"], found["loo_rho_max"]) == pytest.approx((min(rho), max(rho)))
    assert (found["loo_tau_min"], found["loo_tau_max"]) == pytest.approx((min(tau), max(tau)))


def test_three_models_have_no_range():
    assert leave_one_out(X[:3], Y[:3], list("abc")) == {}


def test_a_ranking_that_hangs_on_one_model_keeps_the_others():
    found = leave_one_out(np.array([1.0, 1, 1, 2]), np.array([1.0, 2, 3, 4]), list("abcd"))
    assert not np.isnan([found["loo_rho_min"], found["loo_rho_max"]]).any()


def test_each_backbone_is_left_out_in_turn():
    people, metric = measure("people", X), measure("psnr", Y)
    table = backbone_table(people, [metric], ["r", "r", "r", "c", "c", "c"])
    assert tuple(table.columns) == BACKBONE_COLUMNS
    assert table[["left_out", "n"]].to_numpy().tolist() == [["c", 3], ["r", 3]]
    assert table["rho"].tolist() == pytest.approx([1.0, stats.spearmanr(X[3:], Y[3:]).statistic])


def test_what_is_left_may_be_too_few():
    table = backbone_table(measure("people", X[:4]), [measure("p", Y[:4])], ["r", "r", "c", "c"])
    assert table["undefined"].tolist() == ["2 models; a ranking needs at least 3"] * 2
    assert table["rho"].isna().all()


def test_one_backbone_cannot_be_left_out():
    assert backbone_table(measure("people", X), [measure("psnr", Y)], ["r"] * 6).empty
