import numpy as np
import pytest
from made_measures import measure
from made_votes import MSE, PSNR, SPECS, evidence, scores_of, votes_of

from semsim.base.stats.evidence import gather
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.ranks import disagreement_table, stability_table
from semsim.base.stats.result import DISAGREEMENT_COLUMNS, STABILITY_COLUMNS

LAYOUT = layout_of(evidence(n_models=3).images)


def test_rank_one_leaks_most_and_ranges_are_of_resampled_ranks():
    resampled = np.array([[3, 2, 1]] * 90 + [[1, 2, 3]] * 10)
    measures = [measure("people", [3, 2, 1], resampled), measure("mse", [1, 2, 2], sign=-1)]
    table = stability_table(measures, LAYOUT)
    assert tuple(table.columns) == STABILITY_COLUMNS
    people, mse = table[table["measure"] == "people"], table[table["measure"] == "mse"]
    assert people["rank"].tolist() == [1, 2, 3]
    assert people[["low", "high"]].to_numpy().tolist() == [[1, 3], [2, 2], [1, 3]]
    assert mse["rank"].tolist() == [1, 2.5, 2.5]
    assert mse["low"].isna().all()  # nothing was resampled


def test_a_model_without_a_value_has_no_rank_and_takes_no_place():
    table = stability_table([measure("psnr", [1, np.nan, 2], [[1, np.nan, 2]] * 5)], LAYOUT)
    np.testing.assert_equal(table["rank"].to_numpy(), [2, np.nan, 1])
    np.testing.assert_equal(table["low"].to_numpy(), [2, np.nan, 1])


def test_of_one_original_ranks_have_no_range():
    """Its every resample is itself, so that no width is not certainty."""
    alone = layout_of(evidence(n_models=3, n_originals=1).images)
    table = stability_table([measure("people", [3, 2, 1], [[3, 2, 1]] * 5)], alone)
    assert table["rank"].tolist() == [1, 2, 3]
    assert table[["low", "high"]].isna().all(axis=None)


def test_ranks_by_a_metric_of_sets_have_no_range():
    """No resample of images changes its value, so that no width is not certainty."""
    fixed = np.broadcast_to([3.0, 2.0, 1.0], (5, 3))
    table = stability_table([measure("fid", [3, 2, 1], fixed, of_images=False)], LAYOUT)
    assert table["rank"].tolist() == [1, 2, 3]
    assert table[["low", "high"]].isna().all(axis=None)


def test_where_a_metric_and_people_differ():
    votes = {("m", "1"): "11", ("m", "2"): "10", ("m", "3"): "00", ("m", "4"): "00"}
    values = {"1": 1.0, "2": 2.0, "3": np.inf, "4": np.nan}
    scores = scores_of({("mse", "m"): values, ("psnr", "m"): values})
    found = gather(votes_of(votes), scores, [PSNR, MSE])
    table = disagreement_table([PSNR, MSE], found, found.response.means).set_index(
        ["metric", "row"]
    )
    assert tuple(table.reset_index().columns) == DISAGREEMENT_COLUMNS
    assert table.loc["psnr"].index.tolist() == [0, 1, 2]  # the fourth has no score
    assert table.loc["psnr", "human"].tolist() == [1, 0.5, 0]
    assert table.loc["psnr", "human_share"].tolist() == [1, 0.5, 0]
    assert table.loc["psnr", "metric_share"].tolist() == [0, 0.5, 1]
    assert table.loc["psnr", "gap"].tolist() == [-1, 0, 1]
    assert table.loc["mse", "gap"].tolist() == [0, 0, 0]  # a small error is a leak


def test_a_metric_of_sets_has_no_images_to_differ_on():
    found = evidence()
    human = found.response.means
    assert set(disagreement_table(SPECS, found, human)["metric"]) == {"psnr", "mse"}
    assert disagreement_table([], found, human).empty


def test_ties_share_their_rank():
    votes = {("m", str(i)): "1" if i < 2 else "0" for i in range(4)}
    scores = scores_of({("psnr", "m"): dict.fromkeys("0123", 1.0)})
    found = gather(votes_of(votes), scores, [PSNR])
    table = disagreement_table([PSNR], found, found.response.means)
    assert table["metric_share"].tolist() == [0.5] * 4
    assert table["human_share"].tolist() == pytest.approx([5 / 6, 5 / 6, 1 / 6, 1 / 6])
