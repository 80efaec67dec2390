from dataclasses import replace

import pytest
from made_votes import SPECS, evidence

from semsim.analysis.frames import TABLE_ONE_COLUMNS, table_one
from semsim.analysis.result import AnalysisSettings
from semsim.analysis.run import analyse

ANALYSIS = analyse(evidence(), SPECS, AnalysisSettings(bootstraps=40, permutations=9))


def test_a_row_a_study_and_metric_in_the_order_given():
    other = replace(ANALYSIS, evidence=replace(ANALYSIS.evidence, name="other"))
    table = table_one([ANALYSIS, other])
    assert tuple(table.columns) == TABLE_ONE_COLUMNS
    assert table["study"].tolist() == ["made"] * 3 + ["other"] * 3
    assert table["metric"].tolist() == ["psnr", "mse", "fid"] * 2
    assert set(table["dataset"]) == {"d"}
    assert set(table["rule"]) == {"majority"}


def test_numbers_are_those_of_the_agreement():
    agreement = ANALYSIS.agreement.set_index("metric")
    for _, row in table_one([ANALYSIS]).iterrows():
        own = agreement.loc[row["metric"]]
        for column in ("n", "rho", "tau", "abs_rho", "abs_tau"):
            assert row[column] == own[column]
        assert row["rho_low"] == own["rho_bw_low"]
        assert row["tau_high"] == own["tau_score_high"]


@pytest.mark.parametrize("name", ["rho", "tau"])
def test_a_metric_that_ranks_backwards_is_never_best(name):
    agreement = ANALYSIS.agreement.assign(rho=[0.5, -0.9, 0.4], tau=[0.5, -0.9, 0.4])
    table = table_one([replace(ANALYSIS, agreement=agreement)]).set_index("metric")
    assert table.index[table[f"best_{name}"]].tolist() == [agreement.loc[0, "metric"]]


def test_nothing_is_best_among_what_is_undefined_and_ties_are_all_best():
    undefined = ANALYSIS.agreement.assign(rho=float("nan"), tau=0.5)
    table = table_one([replace(ANALYSIS, agreement=undefined)])
    assert not table["best_rho"].any()
    assert table["best_tau"].all()


def test_no_study_no_rows():
    assert tuple(table_one([]).columns) == TABLE_ONE_COLUMNS
