import numpy as np
import pytest
from made_measures import measure
from made_votes import FID, MSE, PSNR, evidence

from semsim.base.stats.grouping import layout_of
from semsim.base.stats.measures import People, both_have, metric_measure, people_measure
from semsim.base.stats.resampling import resample

FOUND = evidence(n_models=3, n_originals=6)
LAYOUT = layout_of(FOUND.images)
DRAWN = resample(LAYOUT, 20, 0, 0)
HUMAN = np.where(np.arange(18) % 5, 1.0, np.nan)
HUMAN[3] = 0.0


def test_both_sides_speak_of_the_images_people_decided_on():
    people = people_measure(People(scores=HUMAN), LAYOUT, DRAWN)
    metric = metric_measure(PSNR, FOUND, HUMAN, LAYOUT, DRAWN)
    for m in range(3):
        own = (LAYOUT.model == m) & ~np.isnan(HUMAN)
        assert people.means[m] == pytest.approx(HUMAN[own].mean())
        assert metric.means[m] == pytest.approx(FOUND.scores["psnr"][own].mean())


def test_a_resample_is_the_mean_of_the_drawn_images():
    metric = metric_measure(MSE, FOUND, HUMAN, LAYOUT, DRAWN)
    times = DRAWN.originals[7][LAYOUT.original] * ~np.isnan(HUMAN)
    for m in range(3):
        drawn = np.repeat(FOUND.scores["mse"], (times * (LAYOUT.model == m)).astype(int))
        assert metric.resampled[7, m] == pytest.approx(drawn.mean())
    np.testing.assert_array_equal(metric.oriented, -metric.means)


def test_errors_are_those_of_the_means_of_a_models_own_images():
    metric = metric_measure(MSE, FOUND, HUMAN, LAYOUT, DRAWN)
    for m in range(3):
        own = FOUND.scores["mse"][(LAYOUT.model == m) & ~np.isnan(HUMAN)]
        assert metric.units[m] == len(own)
        assert metric.errors[m] == pytest.approx(own.std(ddof=1) / np.sqrt(len(own)))


def test_a_metric_of_sets_is_the_same_in_every_resample():
    metric = metric_measure(FID, FOUND, HUMAN, LAYOUT, DRAWN)
    assert metric.means.tolist() == [10, 13, 26]
    assert (metric.resampled == metric.means).all()
    assert not metric.of_images


def test_infinite_scores_are_counted():
    scores = {**FOUND.scores, "psnr": np.where(np.arange(18) == 1, np.inf, FOUND.scores["psnr"])}
    found = evidence(n_models=3, n_originals=6)
    found = type(found)(**{**vars(found), "scores": scores})
    metric = metric_measure(PSNR, found, HUMAN, LAYOUT, DRAWN)
    assert metric.n_inf.tolist() == [1, 0, 0]
    assert np.isfinite(metric.means).all()


def test_models_that_all_have_come_in_an_order_of_their_values():
    first = measure("a", [3, np.nan, 1, 1])
    second = measure("b", [0, 1, 9, 4], sign=-1)
    assert both_have([first, second]).tolist() == [2, 3, 0]
