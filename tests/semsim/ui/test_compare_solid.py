"""What the tab How solid says in sentences, of tables by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from made_analysis import made_analysis

from semsim.base.stats.agreement import leave_one_out
from semsim.ui.compare import _images, same_best, without_one

TITLES = {"a": "A", "b": "B", "semsim:x": "SemSim (x)", "semsim:x.start": "initial weights"}


def under(**columns):
    """ρ of A and B, under each name."""
    return {
        name: rho if isinstance(rho, pd.Series) else pd.Series(rho, ["a", "b"], dtype=float)
        for name, rho in columns.items()
    }


CONTROLLED = pd.Series({"a": 0.5, "semsim:x.start": 0.9})


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (under(one=[0.9, 0.8], two=[0.7, 0.6]), "rule is chosen, A agrees best."),
        (under(one=[0.9, 0.8], two=[0.6, 0.7]), "depends on the rule. one: A; two: B."),
        # Tied under one of them, it is the best under both.
        (under(one=[0.9, 0.9], two=[0.9, 0.95]), "rule is chosen, B agrees best."),
        (under(one=[1, 1], two=[1, 1]), "rule is chosen, A and B agree best."),
        # A control is no candidate.
        (under(one=CONTROLLED, two=CONTROLLED), "rule is chosen, A agrees best."),
        (
            under(one=[0.9, 0.8], two=[np.nan, np.nan]),
            "A agrees best. Nothing can be ranked by two.",
        ),
        (under(one=[np.nan, np.nan]), "No metric can be ranked yet."),
    ],
)
def test_the_best_metric_is_named_under_ties_controls_and_what_has_no_ranking(columns, said):
    assert said in same_best(columns, TITLES, "rule", {"semsim:x.start"})


def row(people, metric):
    people, metric = np.array(people, float), np.array(metric, float)
    rho = pd.Series(people).corr(pd.Series(metric), method="spearman")
    facts = leave_one_out(people, metric, list("abcdef")[: len(people)])
    return pd.Series({"title": "PSNR", "rho": rho, **facts})


def test_a_ranking_that_hangs_on_one_model_says_so():
    told = without_one(row([1, 1, 1, 2], [1, 2, 3, 4]))
    assert told.startswith("Without d there is no ranking to compare PSNR with")
    assert told.endswith("without another one ρ is 0.87 to 0.87.")


def test_no_model_carries_a_perfect_ranking_and_the_one_that_does_is_named():
    assert without_one(row([1, 2, 3, 4], [1, 2, 3, 4])).endswith(
        "stays between 1.00 and 1.00: no model carries it."
    )
    assert without_one(row([1, 2, 3, 4, 9], [2, 1, 4, 3, 9])).endswith("it is least without e.")


def test_an_auc_below_chance_that_has_no_interval_lies_where_it_is():
    """Its axis began at 0.5, where the point then stood."""
    made = made_analysis()
    auc = made.auc.assign(auc=0.25, low=np.nan, high=np.nan)
    drawn = _images(None, SimpleNamespace(analysis=replace(made, auc=auc)), None)
    assert 'cx="25.0%"' in drawn


def test_a_scale_that_differs_by_original_is_read_within_originals():
    made = made_analysis()
    within = made.auc["scope"] == "within original"
    auc = made.auc.assign(
        auc=np.where(within, 0.93, 0.71), low=np.where(within, 0.88, 0.6), high=0.97, undefined=None
    )
    drawn = _images(None, SimpleNamespace(analysis=replace(made, auc=auc)), None)
    assert "Of two pictures of one original, one recognised and one not" in drawn
    assert "in 93% of pairs" in drawn
    assert "flatters where originals are few" in drawn
    assert drawn.index("within original<") < drawn.index("pooled<")
    assert 'cx="86.0%"' in drawn  # of 0.5 to 1: the drawn AUC is that within originals
