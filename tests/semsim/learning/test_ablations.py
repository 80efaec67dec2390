"""What a study of SemSim varies, and what it leaves as it is."""

import json

import pytest
from learning_toy import toy_labels

from semsim.errors import DataError, SettingsError, UnknownNameError
from semsim.jobs.orders import from_record, to_record
from semsim.learning import PRESETS, TrainSettings
from semsim.learning.ablations import (
    ALL,
    STUDIES,
    StudyPlan,
    arms,
    default_values,
    read_values,
    summary,
    within_budget,
)
from semsim.learning.splits import HoldOut

SMALL = PRESETS["small"]


def plan(what="margin", values=(0.5, 1.0), seeds=(0, 1)):
    return StudyPlan(what=what, values=values, settings=SMALL, seeds=seeds)


def test_arms_differ_in_the_value_and_are_judged_by_the_same_images():
    every = arms(plan())
    assert [(arm.value, arm.seed) for arm in every] == [(0.5, 0), (1.0, 0), (0.5, 1), (1.0, 1)]
    assert len({arm.name for arm in every}) == 4
    for arm in every:
        changed = {
            name
            for name, value in to_record(arm.settings).items()
            if value != to_record(SMALL)[name]
        }
        assert changed <= {"margin", "seed"}
        assert (arm.settings.margin, arm.settings.seed) == (arm.value, arm.seed)
        assert arm.hold_out == HoldOut(seed=arm.seed)


def test_a_budget_takes_originals_away_and_nothing_else(labels, quick):
    few = within_budget(labels, 3, 0, quick)
    more = within_budget(labels, 5, 0, quick)
    assert few["image_id"].nunique() == 3
    assert set(few["reconstruction"]) < set(more["reconstruction"])
    chosen = labels[labels["image_id"].isin(set(few["image_id"]))]
    assert len(chosen) == len(few)
    assert set(within_budget(labels, 5, 1, quick)["image_id"]) != set(more["image_id"])
    assert within_budget(labels, None, 0, quick) is labels
    with pytest.raises(DataError, match="more than the 10"):
        within_budget(labels, 11, 0, quick)


def test_budgets_are_arms_of_the_same_settings():
    small, whole = arms(plan("budget", (5, ALL), (0,)))
    assert (small.budget, whole.budget) == (5, None)
    assert small.settings == whole.settings


def test_values_at_first_are_the_papers_as_far_as_there_are_originals(tmp_path):
    labels = toy_labels(tmp_path, originals=8, of_each_kind=1)
    assert default_values("budget", labels) == (2, 4, ALL)
    assert default_values("backbone", labels) == ("lenet", "resnet18", "resnet50")
    assert default_values("loss", labels) == ("triplet", "contrastive")
    assert 1.0 in default_values("margin", labels)


@pytest.mark.parametrize("what", STUDIES)
def test_a_plan_is_read_as_it_was_written(what, labels):
    made = plan(what, default_values(what, labels))
    assert from_record(StudyPlan, json.loads(json.dumps(to_record(made)))) == made


@pytest.mark.parametrize(
    ("what", "text", "values"),
    [
        ("budget", "50, 100,all", (50, 100, ALL)),
        ("margin", ".5,1", (0.5, 1.0)),
        ("loss", "triplet", ("triplet",)),
    ],
)
def test_values_are_read_from_text(what, text, values):
    assert read_values(what, text) == values


@pytest.mark.parametrize(
    ("what", "values", "seeds"),
    [
        ("margin", (-1.0,), (0,)),
        ("loss", ("hinge",), (0,)),
        ("budget", (0,), (0,)),
        ("budget", (2.5,), (0,)),
        ("margin", (), (0,)),
        ("margin", (1.0, 1.0), (0,)),
        ("margin", (1.0,), ()),
    ],
)
def test_a_plan_that_cannot_be_is_refused(what, values, seeds):
    with pytest.raises(SettingsError):
        plan(what, values, seeds)


def test_unknown_studies_values_and_settings_are_named():
    with pytest.raises(UnknownNameError, match="Known: backbone, budget, loss, margin"):
        plan("depth")
    with pytest.raises(SettingsError, match="are not values"):
        read_values("budget", "fifty")
    with pytest.raises(SettingsError, match="no setting 'colour'"):
        from_record(TrainSettings, {"colour": 1})
    with pytest.raises(SettingsError, match="no StudyPlan"):
        from_record(StudyPlan, {"what": "margin"})
    assert from_record(TrainSettings, {}) == TrainSettings()


def test_a_summary_is_the_mean_over_seeds_in_the_order_of_values():
    def judged(auc):
        scopes = {"pooled": {"auc": auc, "low": None, "high": None}}
        rows = [{"metric": "semsim:semsim", "rho": None, "auc": scopes}]
        before = {"pooled": {"auc": 0.25, "low": None, "high": None}}
        rows.append({"metric": "semsim:semsim.start", "rho": None, "auc": before})
        return {"metrics": [*rows, {"metric": "mse", "rho": 0.5, "auc": scopes}]}

    rows = [
        {"value": value, "seed": seed, "n_originals": 4, "held_out": judged(auc)}
        for value, seed, auc in ((2.0, 0, 0.5), (1.0, 0, 0.8), (2.0, 1, 0.7), (1.0, 1, None))
    ]
    table = summary(rows)
    assert table["value"].tolist() == ["2.0", "1.0"]
    assert table["auc"].tolist() == pytest.approx([0.6, 0.8])
    assert table.loc[0, ["auc_lowest", "auc_highest"]].tolist() == [0.5, 0.7]
    assert table["mse"].tolist() == pytest.approx([0.6, 0.8])
    assert table["start"].tolist() == [0.25, 0.25]
    assert table[["rho", "ssim"]].isna().all(axis=None)
    assert table["seeds"].tolist() == [2, 2]
