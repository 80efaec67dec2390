"""What a study of SemSim varies, and what it leaves as it is."""

import json
import re
from dataclasses import replace

import pandas as pd
import pytest
from learning_toy import toy_labels

from semsim.base.errors import DataError, SettingsError, UnknownNameError
from semsim.base.jobs.orders import from_record, to_record
from semsim.learning import PRESETS, TrainSettings
from semsim.learning.ablations import (
    ALL,
    STUDIES,
    AblationPlan,
    default_values,
    plain_names,
    read_values,
    study_plan,
    summary,
    within_budget,
)
from semsim.learning.splits import HoldOut, divide
from semsim.learning.triplets import take_stock

SMALL = PRESETS["triplet"]
NONE = pd.DataFrame()  # what a study varies does not hang on its labels


def plan(what="margin", values=(0.5, 1.0), seeds=(0, 1)):
    return AblationPlan(what=what, values=values, settings=SMALL, seeds=seeds)


def test_trainings_differ_in_the_value_and_are_judged_by_the_same_images():
    every = plan().variants(NONE)
    told = [(one.facts["value"], one.facts["seed"]) for one in every]
    assert told == [(0.5, 0), (1.0, 0), (0.5, 1), (1.0, 1)]
    assert len({one.folder for one in every}) == len({one.facts["name"] for one in every}) == 4
    for one, (value, seed) in zip(every, told, strict=True):
        changed = {
            name
            for name, value in to_record(one.settings).items()
            if value != to_record(SMALL)[name]
        }
        assert changed <= {"margin", "seed"}
        assert (one.settings.margin, one.settings.seed) == (value, seed)
        assert one.hold_out == HoldOut(seed=seed)


def test_no_two_values_share_a_folder():
    assert plain_names([0.5, "all", 50]) == {0.5: "0.5", "all": "all", 50: "50"}
    for alike in (["a b", "a-b", "a_b"], ["数据", "图像"], ["Faces", "faces"]):
        names = plain_names(alike)
        assert len({name.lower() for name in names.values()}) == len(alike)
        assert all(re.fullmatch(r"[0-9A-Za-z.-]+", name) for name in names.values())


def test_a_budget_takes_originals_away_and_nothing_else(labels, quick):
    few = within_budget(labels, 3, quick)
    more = within_budget(labels, 5, quick)
    assert few["image_id"].nunique() == 3
    assert set(few["reconstruction"]) < set(more["reconstruction"])
    chosen = labels[labels["image_id"].isin(set(few["image_id"]))]
    assert len(chosen) == len(few)
    assert set(within_budget(labels, 5, replace(quick, seed=1))["image_id"]) != set(
        more["image_id"]
    )
    assert within_budget(labels, None, quick) is labels
    with pytest.raises(DataError, match="more than the 10"):
        within_budget(labels, 11, quick)


def test_budgets_have_the_same_settings():
    small, whole = plan("budget", (5, ALL), (0,)).variants(NONE)
    assert (small.budget, whole.budget) == (5, None)
    assert small.settings == whole.settings


def test_values_at_first_are_the_papers_as_far_as_there_are_originals(tmp_path):
    labels = toy_labels(tmp_path, originals=8, of_each_kind=1)
    assert default_values("budget", labels, SMALL) == (2, 4, ALL)
    assert default_values("backbone", labels, SMALL) == ("lenet", "resnet18", "resnet50")
    assert default_values("loss", labels, SMALL) == ("triplet", "contrastive")
    assert 1.0 in default_values("margin", labels, SMALL)


def test_budgets_at_first_are_those_that_every_seed_can_learn_from(tmp_path):
    labels = toy_labels(tmp_path, originals=8, of_each_kind=1).assign(attack="a", model="m")
    hold_out = HoldOut(fraction=0.5)
    # Of the four on the training side a budget of one is too few to keep any for validation.
    assert default_values("budget", labels, SMALL, hold_out, (0, 1)) == (2, ALL)
    many = pd.concat([labels.assign(dataset=f"d{n}") for n in range(7)], ignore_index=True)
    assert len(take_stock(many).usable) == 56
    chosen = default_values("budget", many, SMALL, HoldOut(fraction=0.25), (0, 1, 2))
    assert chosen == (10, 21, ALL)  # 42 are learned from, fewer than the first usual budget
    for seed in (0, 1, 2):
        learned = divide(many, HoldOut(fraction=0.25, seed=seed)).train
        assert len(within_budget(learned, 21, replace(SMALL, seed=seed)))


@pytest.mark.parametrize("what", STUDIES)
def test_a_plan_is_read_as_it_was_written(what, labels):
    made = plan(what, default_values(what, labels, SMALL))
    assert from_record(AblationPlan, json.loads(json.dumps(to_record(made)))) == made


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
    with pytest.raises(SettingsError, match="no AblationPlan"):
        from_record(AblationPlan, {"what": "margin"})
    assert from_record(TrainSettings, {}, by_hand=True) == TrainSettings()


def test_a_summary_is_the_mean_over_seeds_in_the_order_of_values():
    def judged(auc):
        scopes = {"pooled": {"auc": auc, "low": None, "high": None}}
        rows = [{"metric": "semsim:semsim", "rho": None, "auc": scopes}]
        before = {"pooled": {"auc": 0.25, "low": None, "high": None}}
        rows.append({"metric": "semsim:semsim.start", "rho": None, "auc": before})
        rows.append({"metric": "mse", "rho": 0.5, "auc": scopes})
        return {"metrics": rows, "scale_differs": []}

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


def test_seeds_are_those_of_the_settings_and_up(labels):
    seventh = replace(SMALL, seed=7)
    asked = {"settings": seventh, "hold_out": HoldOut(), "trainings": 2}
    found = study_plan("margin", "0.5", labels, **asked)
    assert found.seeds == (7, 8)
    assert [one.settings.seed for one in found.variants(NONE)] == [7, 8]
