"""Two metrics of the same images, without the same originals."""

from dataclasses import replace

import numpy as np
import pytest
from made_measures import error_of
from made_votes import MSE, PSNR, evidence, voted
from scipy import stats

from semsim.base.stats.auc_differences import COLUMNS, auc_differences
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.human import verdict
from semsim.base.stats.result import AnalysisSettings
from semsim.base.stats.roc import WITHIN, auc_table

SETTINGS = AnalysisSettings()
FOUND = evidence(n_models=4, n_originals=15)


def test_the_difference_is_that_of_the_table_of_aucs_and_its_ends_are_of_a_loop():
    table = auc_differences(PSNR, [MSE], FOUND, SETTINGS)
    assert tuple(table.columns) == COLUMNS
    (row,) = table.to_dict("records")
    layout, human = layout_of(FOUND.images), verdict(FOUND, "majority")
    pooled = auc_table([PSNR, MSE], FOUND, human, layout).query("scope == 'pooled'")
    a, b = pooled["auc"]
    assert row["difference"] == pytest.approx(a - b, abs=1e-12)

    def auc(values, kept):
        yes, no = (values[kept & side] for side in (human > 0.5, human < 0.5))
        return (np.sign(yes[:, None] - no[None]) / 2 + 0.5).mean()

    without = [
        auc(FOUND.scores["psnr"], layout.original != one)
        - auc(-FOUND.scores["mse"], layout.original != one)
        for one in range(15)
    ]
    fewer = min(len(set(layout.original[side])) for side in (human > 0.5, human < 0.5))
    reach = stats.t.ppf(0.975, fewer - 1) * error_of(row["difference"], without, fewer)
    assert row["high"] - row["difference"] == pytest.approx(reach, abs=1e-9)
    assert row["difference"] - row["low"] == pytest.approx(reach, abs=1e-9)


def test_within_originals_it_is_the_difference_of_their_means_and_ends_are_of_a_loop():
    (row,) = auc_differences(PSNR, [MSE], FOUND, SETTINGS, WITHIN).to_dict("records")
    assert row["scope"] == WITHIN
    layout, human = layout_of(FOUND.images), verdict(FOUND, "majority")

    def auc(values, one):
        own = layout.original == one
        yes, no = (values[own & side] for side in (human > 0.5, human < 0.5))
        return (np.sign(yes[:, None] - no[None]) / 2 + 0.5).mean() if len(yes) * len(no) else None

    each = [
        auc(FOUND.scores["psnr"], one) - auc(-FOUND.scores["mse"], one)
        for one in range(15)
        if auc(FOUND.scores["psnr"], one) is not None
    ]
    n = len(each)
    assert n > 6
    assert row["difference"] == pytest.approx(np.mean(each), abs=1e-12)
    without = [(sum(each) - one) / (n - 1) for one in each]
    reach = stats.t.ppf(0.975, n - 1) * error_of(row["difference"], without, n)
    assert row["high"] - row["difference"] == pytest.approx(reach, abs=1e-9)


def test_a_difference_that_hangs_on_five_originals_has_no_interval_and_says_why():
    first = np.isin(layout_of(FOUND.images).original, range(5))
    said = FOUND.recognised
    few = replace(FOUND, recognised=said.of(np.where(first[said.image], 1.0, 0.0)))
    (row,) = auc_differences(PSNR, [MSE], few, SETTINGS).to_dict("records")
    assert row["interval_undefined"] == "no interval: 5 originals, fewer than 6"
    assert np.isnan(row["low"])


def test_a_metric_is_no_better_than_itself_and_no_interval_is_made_up():
    (row,) = auc_differences(MSE, [MSE], FOUND, SETTINGS).to_dict("records")
    assert row["difference"] == 0
    assert np.isnan(row["low"])
    assert "changes it" in row["interval_undefined"]


def test_images_of_one_kind_have_no_difference_and_say_why():
    every = voted(FOUND, np.ones(FOUND.recognised.shape))
    (row,) = auc_differences(PSNR, [MSE], every, SETTINGS).to_dict("records")
    assert np.isnan(row["difference"])
    assert "both kinds" in row["undefined"]
