from dataclasses import replace

import numpy as np
import pytest
from made_measures import measure
from made_votes import FID, MSE, PSNR, SPECS, evidence, voted
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from semsim.base.stats.grouping import layout_of
from semsim.base.stats.human import RULES, human_score
from semsim.base.stats.measures import metric_measure, people_measure
from semsim.base.stats.model_tables import backbone_table, matrix_table, model_table, rule_table
from semsim.base.stats.resampling import resample
from semsim.base.stats.result import BACKBONE_COLUMNS, MODEL_COLUMNS, RULE_COLUMNS
from semsim.metrics import find_metric

FOUND = evidence(n_models=5, n_originals=10)
LAYOUT = layout_of(FOUND.images)
DRAWN = resample(LAYOUT, 60, 0, 0)
X = np.array([1.0, 2, 3, 4, 5, 6])
Y = np.array([1.0, 2, 3, 4, 6, -9])


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
    values = FOUND.scores["psnr"][LAYOUT.model == 2]
    expected = stats.t.interval(0.95, 9, values.mean(), stats.sem(values))
    assert table.loc[2, ["psnr:low", "psnr:high"]].tolist() == pytest.approx(expected)
    assert table[["fid:low", "fid:high"]].isna().all(axis=None)


def test_rates_of_nothing_and_of_everything_are_not_certain():
    """No original varies them, so each is a trial of Wilson's."""
    human = np.tile(np.repeat([0.0, 1.0], 5), 5)  # every model half recognised, but for three
    for model, same in ((0, 0.0), (1, 1.0), (2, 0.25)):
        human[LAYOUT.model == model] = same
    human[np.flatnonzero(LAYOUT.model == 1)[:3]] = np.nan
    recogniser = find_metric("recogniser").spec
    scores = {**FOUND.scores, "recogniser": (human > 0.9).astype(float), "mse": np.ones(50)}
    found = replace(FOUND, scores=scores)
    people = people_measure(human, LAYOUT, DRAWN)
    metrics = [metric_measure(spec, found, human, LAYOUT, DRAWN) for spec in (recogniser, MSE)]
    table = model_table(people, metrics, human, LAYOUT)
    none, every = stats.t.ppf(0.975, 9) ** 2, stats.t.ppf(0.975, 6) ** 2
    expected = [(0, none / (10 + none)), (7 / (7 + every), 1)]
    for name in ("human_low", "human_high"), ("recogniser:low", "recogniser:high"):
        np.testing.assert_allclose(table.loc[:1, list(name)].to_numpy(), expected, atol=1e-9)
    level = 2 * stats.norm.sf(np.sqrt(none))  # half of ten, one image an original
    half = proportion_confint(5, 10, alpha=level, method="wilson")
    assert table.loc[3, ["human_low", "human_high"]].tolist() == pytest.approx(half)
    assert table[["mse:low", "mse:high"]].isna().all(axis=None)  # an error is no rate


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
    silent = voted(FOUND, np.ones((50, 5)))
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
