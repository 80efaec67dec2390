import pandas as pd
import pytest

from semsim.importers.table_facts import facts_of, scores_of
from semsim.scores.scoring import SCORE_COLUMNS

ROWS = pd.DataFrame(
    [
        ("a", "1", "9.5", "13005"),
        ("a", "1", "9.5", "13005"),
        ("b", "no", "inf", None),
        ("c", "0.25", "x", "65025"),
        ("d", "2", None, "0"),
        ("e", "0", "1", "1"),
        ("e", "1", "1", "1"),
        ("f", None, "nan", "1"),
    ],
    columns=["image_id", "label", "psnr", "mse"],
    dtype=object,
).assign(dataset="d", attack="x", model="m")


def test_labels_that_came_with_the_data():
    facts, unread = facts_of(ROWS, ROWS, {"given": "label"})
    assert facts["image_id"].tolist() == list("abcdef")
    assert facts["human:given"].tolist() == pytest.approx(
        [1, 0, 0.25, *[float("nan")] * 3], nan_ok=True
    )
    assert [str(one) for one in unread] == [
        "label of image d of m: cannot be read: 2",
        "label of image e of m: 0 is not its only value",
        "label of image e of m: 1 is not its only value",
    ]


def test_scores_are_divided_and_broken_ones_named():
    scores, unread = scores_of(ROWS, ROWS, {"psnr": ("psnr", 1), "mse": ("mse", 65025)})
    assert list(scores.columns) == list(SCORE_COLUMNS)
    values = {(row["metric"], row["image_id"]): row["value"] for row in scores.to_dict("records")}
    assert values["psnr", "a"] == 9.5
    assert values["psnr", "b"] == float("inf")
    assert values["mse", "a"] == pytest.approx(0.2)
    assert values["mse", "c"] == 1
    assert len(values) == 3 + 5
    assert [str(one) for one in unread] == [
        "psnr of image c of m: cannot be read: x",
        "psnr of image f of m: cannot be read: nan",
    ]


def test_without_metrics_there_are_no_scores():
    assert scores_of(ROWS, ROWS, {}) == (None, ())


def test_an_empty_column_gives_no_value():
    facts, _ = facts_of(ROWS, ROWS.assign(label=None), {"given": "label"})
    assert facts["human:given"].isna().all()
