from dataclasses import replace

import numpy as np
import pytest
from made_analysis import SPECS, TESTED, WHY, made_analysis, with_targets

from semsim.base.errors import UnknownNameError
from semsim.base.stats.ceiling import Ceiling
from semsim.reporting.tables import TABLE_ONE_COLUMNS, ranks, table, table1, table_one, tables


def cell(found, row, column):
    return found.cells.iloc[row][column]


def test_every_table_has_its_numbers_and_its_texts_in_step(analysis):
    names = [one.name for one in tables(analysis)]
    assert len(set(names)) == len(names)
    for one in tables(analysis):
        assert one.caption.endswith("."), one.name
        assert one.cells.map(lambda text: isinstance(text, str)).all(axis=None), one.name
        if one.name != "table1":
            assert len(one.cells) == len(one.frame), one.name


def test_agreement_shows_absolute_and_signed_values_and_reasons(analysis):
    found = table(analysis, "agreement")
    assert cell(found, 1, "|ρ|") == "0.618"
    assert cell(found, 1, "ρ [95%, models]") == "−0.618 [−0.90, −0.10]"
    assert cell(found, 1, "p of ρ") == "< 0.001 (exact)"
    assert cell(found, 0, "ρ, one model left out") == "0.60 to 0.75"
    assert cell(found, 0, "τ [95%, models]") == "0.472 [0.12, 0.75]"
    assert cell(found, 0, "ρ, images resampled") == "0.60 to 0.72"
    assert cell(found, 2, "ρ [95%, models]") == f"undefined: {WHY}"
    assert cell(found, 2, "|ρ|") == "–"


def test_a_metric_that_ranks_backwards_is_never_best(analysis):
    agreement = analysis.agreement.copy()
    agreement.loc[1, ["rho", "abs_rho"]] = [-0.99, 0.99]
    found = table(replace(analysis, agreement=agreement), "agreement")
    columns = list(found.cells.columns)
    assert found.best == {(row, columns.index(name)) for row in (0, 3) for name in ("|ρ|", "|τ|")}
    first = table(replace(analysis, agreement=agreement), "table1")
    marked = {list(first.cells.columns)[column] for _, column in first.best}
    assert marked == {"PSNR", "FID"}


def test_where_all_rank_backwards_none_is_best(analysis):
    agreement = analysis.agreement.assign(rho=[-0.9, -0.2, np.nan, -0.2], tau=0.0)
    backwards = replace(analysis, agreement=agreement)
    assert table(backwards, "agreement").best == table(backwards, "table1").best == frozenset()
    assert not table_one([backwards])[["best_rho", "best_tau"]].any(axis=None)


def test_table1_has_data_sets_as_rows_and_metrics_as_columns(analysis):
    other = made_analysis(5)
    other = replace(other, evidence=replace(other.evidence, name="second"))
    found = table1([analysis, other])
    assert list(found.cells.columns)[5:] == ["PSNR", "MSE", "<Flat> & co", "FID"]
    assert found.cells["Study"].tolist() == ["made <study>", "", "", "", "second", "", "", ""]
    assert found.cells["Models"].tolist()[::4] == ["4", "5"]
    assert found.cells["MSE"].tolist()[:4] == [
        *("0.618", "−0.618 [−0.90, −0.10]", "0.429", "−0.429 [0.12, 0.75]")
    ]
    assert cell(found, 0, "<Flat> & co") == f"undefined: {WHY}"
    assert len(found.frame) == 8


def test_a_study_without_a_metric_has_a_dash_there(analysis):
    fewer = made_analysis(specs=analysis.specs[:1])
    fewer = replace(fewer, evidence=replace(fewer.evidence, name="second"))
    found = table1([analysis, fewer])
    assert found.cells["MSE"].tolist()[4:] == ["–"] * 4
    assert found.caption.endswith("–: the study has no score by that metric.")
    assert "no score" not in table1([analysis]).caption
    assert cell(found, 4, "PSNR") == "0.670"


def test_models_come_most_recognised_first_and_count_infinite_values(analysis):
    models = analysis.models.iloc[::-1].reset_index(drop=True)
    models["mse:n_inf"] = [0, 0, 0, 2]
    found = table(replace(analysis, models=models), "models")
    assert found.cells["Model"].tolist() == [f"resnet/{i} <b>" for i in range(4)]
    assert cell(found, 0, "People [95%]") == "0.900 [0.85, 0.95]"
    assert cell(found, 0, "MSE ↓") == "20.12 [19.62, 20.62] (and 2 × ∞)"
    assert cell(found, 3, "PSNR (dB) ↑").startswith("∞")


def test_the_table_of_models_says_how_good_each_target_was(analysis):
    found = table(with_targets(analysis), "models")
    assert found.cells["Target on its test"].tolist() == [*TESTED, "not kept", "not kept"]


def test_the_table_of_models_has_attackers_where_one_is_known(analysis):
    assert "Attacker" not in table(analysis, "models").cells
    known = ["B · 1 of 4 parameters (25%)", None, None, None]
    found = table(replace(analysis, models=analysis.models.assign(attacker=known)), "models")
    assert found.cells["Attacker"].tolist() == [known[0], "–", "–", "–"]


def test_the_best_of_each_scope_is_marked(analysis):
    found = table(analysis, "auc")
    assert cell(found, 0, "AUC [95%]") == "0.600 [0.55, 0.75]"
    assert cell(found, 6, "AUC [95%]") == "undefined: the same value for every image"
    assert {row for row, _ in found.best} == {0, 1, 2, 3, 4, 5}  # PSNR and MSE tie


def test_the_ceiling_or_why_there_is_none(analysis):
    found = table(analysis, "ceiling")
    assert found.cells.iloc[0].tolist() == [
        *("5", "2 against 3", "10", "0.900 [0.70, 0.95]", "0.800 [0.60, 0.90]")
    ]
    none = table(replace(analysis, ceiling=Ceiling(undefined="one annotator")), "ceiling")
    assert none.cells["ρ [95%]"].tolist() == ["undefined: one annotator"]


def test_differences_rules_backbones_and_the_matrix(analysis):
    assert table(analysis, "differences").cells.iloc[0].tolist() == [
        *("PSNR", "MSE", "4", "0.050 [−0.30, 0.40]", "0.400", "1.000")
    ]
    assert table(analysis, "rules").cells.iloc[0].tolist() == [
        *("Majority of votes", "PSNR", "4", "0.600", "0.400", "24", "1")
    ]
    assert cell(table(analysis, "backbones"), 0, "ρ").startswith("undefined: 2 models")
    found = table(analysis, "matrix")
    assert found.cells.iloc[0].tolist() == ["People", "1.000", *["−0.250"] * 4]
    assert found.frame["PSNR"].tolist() == [-0.25, 1.0, -0.25, -0.25, -0.25]


def test_nothing_scored_leaves_tables_without_rows(empty):
    for one in tables(empty):
        assert len(one.cells) == (not one.frame.empty), one.name  # one model, one ceiling
        assert not one.best


def test_a_number_without_an_interval_says_why(analysis):
    why = "no interval: 3 models, fewer than 6"
    no_ends = {"interval_undefined": why, "rho_bw_low": np.nan, "rho_bw_high": np.nan}
    few = replace(
        analysis,
        agreement=analysis.agreement.assign(**no_ends, images_undefined="every resample is alike"),
        differences=analysis.differences.assign(low=np.nan, high=np.nan, interval_undefined=why),
        ceiling=Ceiling(n_annotators=2, sizes=(1, 1), rho=1.0, tau=1.0, interval_undefined=why),
    )
    found = table(few, "agreement")
    assert cell(found, 0, "ρ [95%, models]") == f"0.670 [{why}]"
    assert cell(found, 0, "ρ, images resampled") == "undefined: every resample is alike"
    assert f"0.670 [{why}]" in table(few, "table1").cells["PSNR"].tolist()
    assert cell(table(few, "ceiling"), 0, "τ [95%]") == f"1.000 [{why}]"
    shown = cell(table(few, "differences"), 0, "ρ of A − ρ of B [95%]")
    assert shown == f"0.050 [{why}]"


def test_undefined_numbers_are_not_best(analysis):
    agreement = analysis.agreement.assign(rho=np.nan, tau=np.nan)
    assert table(replace(analysis, agreement=agreement), "agreement").best == frozenset()


def test_unknown_names_are_refused(analysis):
    with pytest.raises(UnknownNameError, match="agreement, table1"):
        table(analysis, "table2")


def test_the_table_of_models_names_the_interval_where_resampling_gives_none(analysis):
    assert "Wilson's score interval" in table(analysis, "models").caption


def test_the_frame_of_table1_has_the_numbers_of_the_agreement(analysis):
    other = replace(analysis, evidence=replace(analysis.evidence, name="other"))
    frame = table_one([analysis, other])
    assert tuple(frame.columns) == tuple(table_one([]).columns) == TABLE_ONE_COLUMNS
    assert frame["study"].tolist() == ["made <study>"] * 4 + ["other"] * 4
    assert frame["metric"].tolist() == [spec.name for spec in analysis.specs] * 2
    assert set(frame["dataset"]) == {"symbols"}
    assert set(frame["rule"]) == {"majority"}
    agreement = analysis.agreement.set_index("metric")
    for _, row in frame[frame["metric"] != "flat:x"].iterrows():
        own = agreement.loc[row["metric"]]
        for column in ("n", "rho", "tau", "abs_rho", "abs_tau"):
            assert row[column] == own[column]
        assert row["rho_low"] == own["rho_bw_low"]
        assert row["tau_high"] == own["tau_score_high"]


def test_nothing_is_best_among_what_is_undefined_and_ties_are_all_best(analysis):
    undefined = analysis.agreement.assign(rho=np.nan, tau=0.5)
    frame = table_one([replace(analysis, agreement=undefined)])
    assert not frame["best_rho"].any()
    assert frame["best_tau"].all()


def test_captions_and_rows_name_the_studies_of_simulated_votes(analysis):
    played = made_analysis(simulated=True)
    played = replace(played, evidence=replace(played.evidence, name="Played"))
    said = "Simulated votes, not human data: Played. "
    for one, plain in zip(tables(played), tables(analysis), strict=True):
        assert one.caption.count("Simulated votes") == 1
        assert one.caption.startswith(said)
        assert "Simulated" not in plain.caption
        assert list(one.frame) == [*plain.frame, "simulated"]
        assert one.frame["simulated"].all()
    both = table1([analysis, played])
    assert both.caption.startswith(said)
    assert (both.frame["simulated"] == (both.frame["study"] == "Played")).all()
    assert both.frame["simulated"].sum() == len(SPECS)


def test_a_rank_that_two_models_share_is_a_half_of_any_size(analysis):
    """It was 10 or 12 for 10.5 and 11.5, and on the page 2 for 1.5 and for 2.5."""
    shared = analysis.stability.assign(rank=[10.5, 11.5, 1.5, 2.0] * (len(SPECS) + 1))
    printed = ranks(replace(analysis, stability=shared)).cells
    assert sorted(printed["PSNR"]) == ["1.5", "10.5", "11.5", "2"]
