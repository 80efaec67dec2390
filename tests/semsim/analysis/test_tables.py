import numpy as np
import pandas as pd
import pytest
from scipy import stats

from semsim.analysis.tables import (
    AGREEMENT_COLUMNS,
    HUMAN_COLUMNS,
    agreement_table,
    human_table,
    metric_means,
    model_table,
)
from semsim.errors import DataError
from semsim.metrics import METRICS

KEY = {"dataset": "d", "attack": "a"}


def labels(votes):
    """{model: [(recognised, cast), …]} as a table of labels, one image an entry."""
    rows = []
    for model, images in votes.items():
        for image, (recognised, cast) in enumerate(images):
            decided = cast >= 3 and recognised * 2 != cast
            rows.append(
                {
                    **KEY,
                    "model": model,
                    "image_id": str(image),
                    "n_votes": cast,
                    "n_recognised": recognised,
                    "mean_response": recognised / cast if cast else np.nan,
                    "recognisable": recognised * 2 > cast if decided else pd.NA,
                }
            )
    return pd.DataFrame(rows).astype({"recognisable": "boolean"})


def scores(values):
    """{(model, metric): [value, …] or one value of the set} as a table of scores."""
    rows = []
    for (model, metric), given in values.items():
        of_images = isinstance(given, list)
        for image, value in enumerate(given if of_images else [given]):
            place = {"image_id": str(image) if of_images else None, "value": value}
            rows.append({**KEY, "model": model, "metric": metric, **place})
    return pd.DataFrame(rows)


def test_people_are_counted_over_decided_images():
    table = human_table(labels({"m": [(5, 5), (1, 5), (4, 5), (1, 2), (0, 0)]}))
    assert tuple(table.columns) == HUMAN_COLUMNS
    row = table.iloc[0]
    assert (row["n_recognisable"], row["n_decided"], row["n_undecided"]) == (2, 3, 2)
    assert row["recognised_rate"] == pytest.approx(2 / 3)
    assert row["mean_response"] == pytest.approx(np.mean([1, 0.2, 0.8, 0.5]))


def test_a_study_without_votes_has_models_and_no_numbers():
    row = human_table(labels({"m": [(0, 0), (0, 0)]})).iloc[0]
    assert (row["n_decided"], row["n_undecided"]) == (0, 2)
    assert np.isnan(row["recognised_rate"])
    assert np.isnan(row["mean_response"])


def test_means_are_over_images_that_both_sides_judged():
    judged = labels({"m": [(5, 5), (0, 5), (1, 2)]})
    means = metric_means(judged, scores({("m", "mse"): [0.1, 0.3, 0.9], ("m", "fid"): 7.0}))
    found = means.set_index("metric")["mean"]
    assert found["mse"] == pytest.approx(0.2)  # the undecided third image is left out
    assert found["fid"] == 7.0


def test_infinite_scores_are_counted_and_kept_out():
    judged = labels({"m": [(5, 5)] * 3, "same": [(5, 5)] * 2})
    given = {("m", "psnr"): [10.0, 20.0, np.inf], ("same", "psnr"): [np.inf, np.inf]}
    means = metric_means(judged, scores(given)).set_index("model")
    assert (means.loc["m", "mean"], means.loc["m", "n"], means.loc["m", "n_inf"]) == (15.0, 3, 1)
    assert means.loc["same", "mean"] == np.inf


def test_models_are_told_apart_by_data_set_and_attack_too():
    judged = pd.concat(
        [labels({"m": [(5, 5)]}), labels({"m": [(0, 5)]}).assign(dataset="other")],
        ignore_index=True,
    )
    given = scores({("m", "mse"): [0.5]})
    table = model_table(judged, pd.concat([given, given.assign(dataset="other", value=0.7)]))
    assert table["recognised_rate"].tolist() == [1.0, 0.0]
    assert table["mse"].tolist() == [0.5, 0.7]


def study():
    rates = {"m1": 4, "m2": 3, "m3": 1, "m4": 0}
    judged = labels({m: [(5, 5)] * k + [(0, 5)] * (4 - k) for m, k in rates.items()})
    given = {}
    for step, model in enumerate(rates):
        given[model, "mse"] = [0.1 * (step + 1)] * 4
        given[model, "psnr"] = [[9.0, 5.0, 7.0, 6.0][step]] * 4
        given[model, "ssim"] = [0.5] * 4
    return judged, scores(given)


def test_agreement_equals_scipy_best_first_and_undefined_last():
    models = model_table(*study())
    specs = [METRICS[name].spec for name in ("ssim", "psnr", "mse", "fid")]
    table = agreement_table(models, specs)
    assert tuple(table.columns) == AGREEMENT_COLUMNS
    assert table["metric"].tolist()[:2] == ["mse", "psnr"]
    by_name = table.set_index("metric")
    assert by_name.loc["mse", "rho"] == 1.0  # a small error is a leak: oriented
    for side, function in (("rho", stats.spearmanr), ("tau", stats.kendalltau)):
        expected = function(models["recognised_rate"], models["psnr"]).statistic
        assert by_name.loc["psnr", side] == pytest.approx(expected)
        assert by_name.loc["psnr", f"abs_{side}"] == pytest.approx(abs(expected))
    assert by_name.loc["ssim", "undefined"] == "metric: the same value for every model"
    assert by_name.loc["fid", "undefined"] == "no scores yet"
    assert by_name.loc[["ssim", "fid"], ["rho", "tau", "abs_rho", "rho_low"]].isna().all(axis=None)
    assert by_name["n"].to_dict() == {"mse": 4, "psnr": 4, "ssim": 4, "fid": 0}


def test_a_model_without_a_score_is_not_counted():
    judged, given = study()
    models = model_table(judged, given[~((given["model"] == "m4") & (given["metric"] == "mse"))])
    assert agreement_table(models, [METRICS["mse"].spec])["n"].tolist() == [3]


def test_relabelling_models_permutes_the_table_and_nothing_else():
    judged, given = study()
    other = {"m1": "z", "m2": "y", "m3": "x", "m4": "w"}
    specs = [METRICS[name].spec for name in ("mse", "psnr")]
    before = agreement_table(model_table(judged, given), specs)
    after = agreement_table(
        model_table(judged.replace({"model": other}), given.replace({"model": other})), specs
    )
    pd.testing.assert_frame_equal(before, after)


def test_a_table_that_is_no_table_of_labels_is_refused():
    with pytest.raises(DataError, match="lacks the columns mean_response, recognisable"):
        human_table(labels({"m": [(5, 5)]}).drop(columns=["recognisable", "mean_response"]))
