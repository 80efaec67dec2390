from dataclasses import replace

import numpy as np
import pytest
from made_measures import measure
from made_votes import FID, MSE, PSNR, SPECS, evidence
from scipy import stats

from semsim.analysis.human import RULES, human_score
from semsim.analysis.layout import layout_of
from semsim.analysis.measures import metric_measure, people_measure
from semsim.analysis.model_tables import matrix_table, model_table, rule_table
from semsim.analysis.resampling import resample
from semsim.analysis.result import MODEL_COLUMNS, RULE_COLUMNS

FOUND = evidence(n_models=5, n_originals=10)
LAYOUT = layout_of(FOUND.images)
DRAWN = resample(LAYOUT, 60, 0, 0)


def test_models_with_people_metrics_and_intervals():
    human = human_score(FOUND, "majority")
    human[0] = np.nan
    people = people_measure(human, LAYOUT, DRAWN)
    metrics = [metric_measure(spec, FOUND, human, LAYOUT, DRAWN) for spec in (PSNR, FID)]
    table = model_table(people, metrics, human, LAYOUT)
    sides = [f"{name}{end}" for name in ("psnr", "fid") for end in ("", ":low", ":high", ":n_inf")]
    assert tuple(table.columns) == (*MODEL_COLUMNS, *sides)
    assert table.loc[0, ["n_images", "n_decided", "n_undecided"]].tolist() == [10, 9, 1]
    assert table["human"].tolist() == people.means.tolist()
    low, high = np.percentile(metrics[0].resampled[:, 2], [2.5, 97.5])
    assert table.loc[2, ["psnr:low", "psnr:high"]].tolist() == pytest.approx([low, high])
    assert table[["fid:low", "fid:high"]].isna().all(axis=None)


def test_every_human_score_beside_every_metric():
    label = np.where(np.arange(50) % 7 == 0, np.nan, (np.arange(50) % 3 == 0) * 1.0)
    found = replace(FOUND, given={"folder": label})
    table = rule_table(SPECS, found, LAYOUT)
    assert tuple(table.columns) == RULE_COLUMNS
    assert list(dict.fromkeys(table["rule"])) == [*RULES, "folder"]
    row = table.set_index(["rule", "metric"]).loc[("folder", "mse")]
    used = ~np.isnan(label)
    people = [label[used & (LAYOUT.model == m)].mean() for m in range(5)]
    errors = [-FOUND.scores["mse"][used & (LAYOUT.model == m)].mean() for m in range(5)]
    assert row["rho"] == pytest.approx(stats.spearmanr(people, errors).statistic)
    assert row["tau"] == pytest.approx(stats.kendalltau(people, errors).statistic)
    assert (row["n_images"], row["n_left_out"]) == (used.sum(), (~used).sum())


def test_a_rule_without_an_answer_says_why():
    silent = replace(FOUND, recognised=np.ones((50, 5)))
    table = rule_table([MSE], silent, LAYOUT).set_index("rule")
    assert table.loc["dawid-skene", "undefined"] == "Dawid-Skene: every vote says the same"
    assert table.loc["majority", "undefined"] == "people: the same value for every model"
    assert table["rho"].isna().all()


def test_the_matrix_is_oriented_symmetric_and_leaves_out_what_is_undefined():
    measures = [
        measure("people", [1, 2, 3, 4]),
        measure("mse", [4, 3, 1, 2], sign=-1),
        measure("flat", [1, 1, 1, 1]),
    ]
    table = matrix_table(measures)
    assert table.index.tolist() == table.columns.tolist() == ["PEOPLE", "MSE", "FLAT"]
    nan = np.nan
    np.testing.assert_allclose(table, [[1, 0.8, nan], [0.8, 1, nan], [nan, nan, nan]])
