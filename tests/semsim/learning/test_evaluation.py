"""A SemSim judged beside other metrics on the same images."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_study import make_labels, make_votes
from scipy.stats import spearmanr

from semsim.base.errors import DataError
from semsim.base.stats.analysis import AnalysisSettings
from semsim.base.stats.roc import POOLED, WITHIN
from semsim.images import read_image, write_png
from semsim.learning import TrainSettings, evaluation
from semsim.learning.baselines import verdict_of
from semsim.learning.card import table_rows
from semsim.learning.evaluation import (
    Judging,
    auc_of,
    evaluate,
    scale_notes,
    scope_of,
    semsim_row,
)
from semsim.metrics import Resources
from semsim.metrics.network import (
    ModelSettings,
    SemSimModel,
    load_semsim,
    save_semsim,
    semsim_distance,
)
from semsim.metrics.provenance import Provenance

QUICK = AnalysisSettings(bootstraps=30, permutations=19)
METRICS = ("mse", "ssim", "lpips-alex")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluation")
    labels = make_labels(folder / "images", n_images=4)
    torch.manual_seed(0)
    model = SemSimModel(ModelSettings(backbone="lenet"), mean=[0.5] * 3, std=[0.3] * 3)
    checkpoint = folder / "own" / "mine.safetensors"
    facts = {"n_originals": 1, "n_triplets": 1, "simulated": True, "created": "", "versions": {}}
    facts |= {"settings": TrainSettings().result_settings(), "results": {"moved": 1.0}}
    pixels = {"symbols/none of these": [""]}
    save_semsim(model, checkpoint, Provenance(**facts, pixels=pixels))
    resources = Resources(checkpoints=folder / "none", classifiers=())
    judging = Judging(resources=resources, scores=folder / "scores", metrics=METRICS)
    return labels, make_votes(labels), checkpoint, replace(judging, analysis=QUICK)


@pytest.fixture(scope="module")
def judged(made):
    labels, votes, checkpoint, judging = made
    return evaluate(checkpoint, labels, votes, judging, sample="held-out")


def test_every_metric_is_judged_by_the_same_images(judged):
    assert (judged["n_images"], judged["n_originals"], judged["n_models"]) == (24, 4, 6)
    assert [row["metric"] for row in judged["metrics"]][-1] == "human"
    named = [row["metric"] for row in judged["metrics"]]
    assert named == ["semsim:mine", "block:pixels", "mse", "ssim", "human"]
    for row in judged["metrics"][:-1]:
        assert row["n_models"] == 6
        assert row["auc"]["pooled"]["n_positive"] == 12
    assert "missing" in judged["left_out"]["lpips-alex"]
    assert json.loads(json.dumps(judged, allow_nan=False)) == judged


def test_the_numbers_are_those_of_an_obvious_loop(made, judged):
    labels, _, checkpoint, _ = made
    model = load_semsim(checkpoint)
    first, second = (
        torch.stack([read_image(path) for path in labels[name]])
        for name in ("original", "reconstruction")
    )
    distance = semsim_distance(model, first, second).numpy()
    seen = labels["recognisable"].to_numpy(dtype=bool)
    # Smaller means more leakage, so the recognised one should be nearer.
    nearer = distance[seen][:, None] < distance[~seen][None, :]
    assert auc_of(judged, "semsim") == pytest.approx(nearer.mean(), abs=1e-12)
    means = labels.assign(d=distance).groupby("model")[["d", "recognisable"]].mean()
    rho = spearmanr(-means["d"], means["recognisable"].astype(float)).statistic
    assert semsim_row(judged)["rho"] == pytest.approx(rho, abs=1e-12)


def test_noise_that_people_see_is_ranked_by_mse_and_by_people(judged):
    assert auc_of(judged, "mse", "within original") == 1.0
    people = judged["metrics"][-1]
    assert 0.5 < people["rho"] <= 1
    assert people["auc"]["pooled"]["auc"] > 0.7
    assert people["auc"]["pooled"]["low"] is None  # of four originals


def test_without_votes_the_majority_is_judged_by_and_there_is_no_ceiling(made, judged):
    labels, _, checkpoint, judging = made
    bare = evaluate(checkpoint, labels, None, judging, sample="in-sample")
    assert bare["sample"] == "in-sample"
    assert bare["n_annotators"] == 0
    assert auc_of(bare, "semsim") == auc_of(judged, "semsim")
    assert bare["metrics"][-1]["auc"] == {}
    assert auc_of(bare, "human") is None
    assert auc_of(bare, "nothing") is None
    empty = made[1].iloc[:0]
    assert evaluate(checkpoint, labels, empty, judging, sample="in-sample") == bare


def test_where_people_named_the_originals_it_is_judged_by_the_verdict_that_it_learned(made, judged):
    labels, votes, checkpoint, judging = made
    other = votes["image_id"].astype(int) % 2 == 1  # which everybody calls a phone
    answer = votes["answer"].mask(votes["recognised"] & other, "phone")
    named = votes.assign(
        answer=answer,
        recognised=answer == votes["class_name"],
        original_answer=votes["class_name"].mask(other, "phone"),
        headline="as-original-named",
    )
    assert named["recognised"].sum() < votes["recognised"].sum()
    told = labels.assign(headline="as-original-named")
    found = evaluate(checkpoint, told, named, judging, sample="held-out")
    for row, before in zip(found["metrics"], judged["metrics"], strict=True):
        assert row == before


@pytest.mark.parametrize("rule", ["dawid-skene", "mean-response", "published"])
def test_whatever_rule_the_labels_came_by_they_are_what_is_judged_by(made, judged, rule):
    labels, votes, checkpoint, judging = made
    other = labels["recognisable"].mask(labels["image_id"] == "000", ~labels["recognisable"])
    told = labels.assign(recognisable=other, headline=rule)
    assert other.ne(labels["recognisable"]).any()
    found = evaluate(checkpoint, told, votes.assign(headline=rule), judging, sample="held-out")
    pooled = semsim_row(found)["auc"]["pooled"]
    assert (pooled["n_positive"], pooled["n_negative"]) == (other.sum(), (~other).sum())
    bare = evaluate(checkpoint, told, None, judging, sample="held-out")
    assert found["metrics"][:-1] == bare["metrics"][:-1]
    assert found["metrics"][-1]["auc"] == judged["metrics"][-1]["auc"]  # of votes alone


def test_votes_on_other_images_change_nothing(made, judged):
    labels, votes, checkpoint, judging = made
    few = labels[labels["image_id"] != "000"]
    with_all = evaluate(checkpoint, few, votes, judging, sample="held-out")
    only = votes[votes["image_id"] != "000"]
    assert with_all == evaluate(checkpoint, few, only, judging, sample="held-out")
    assert with_all["n_images"] == 18 != judged["n_images"]


def test_votes_without_their_keys_are_refused(made):
    labels, votes, checkpoint, judging = made
    with pytest.raises(DataError, match="votes lacks the columns image_id"):
        evaluate(checkpoint, labels, votes.drop(columns="image_id"), judging, sample="held-out")


def test_a_test_of_one_kind_has_no_auc_and_says_why(made):
    labels, votes, checkpoint, judging = made
    seen = labels[labels["recognisable"].astype(bool)]
    judged = evaluate(checkpoint, seen, votes, judging, sample="held-out")
    pooled = semsim_row(judged)["auc"]["pooled"]
    assert pooled["auc"] is None
    assert "both" in pooled["undefined"]
    assert not np.isnan(pooled["n_positive"])


def test_the_scale_of_a_metric_by_original_decides_what_all_go_by(made, monkeypatch):
    """Both ways: the tables, the differences and the default of `auc_of` follow the same scope."""
    labels, votes, checkpoint, judging = made
    for differing, scope in (([], POOLED), (["MSE"], WITHIN)):
        monkeypatch.setattr(evaluation, "scale_differs", lambda table, found=differing: found)
        judged = evaluate(checkpoint, labels, votes, judging, sample="held-out")
        assert judged["scale_differs"] == differing
        assert {row["scope"] for row in judged["against"]} == {scope}
        for row in judged["against"]:
            assert row["auc"] == pytest.approx(auc_of(judged, "semsim"))
            assert row["other_auc"] == pytest.approx(auc_of(judged, row["metric"], scope))
        assert scope_of(judged) == scope
        assert len(scale_notes([{"held_out": judged}, {"why": "failed"}])) == len(differing)


def test_of_the_blocks_that_nothing_is_fitted_to_the_best_stands_beside_it(made, tmp_path):
    """People recognise what is dimmed and not a faint grain: fine structure alone tells that."""
    _, votes, checkpoint, judging = made
    labels = make_labels(tmp_path, n_images=6, side=32)
    grain = 0.05 * (torch.arange(32) % 2 * 2 - 1) * (torch.arange(32)[:, None] % 2 * 2 - 1)
    ramps = torch.linspace(0.2, 0.8, 32)[:, None] * torch.linspace(0.4, 1, 32)
    for number, row in enumerate(labels.to_dict("records")):
        write_png((ramps + 0.02 * (number // 6)).expand(3, 32, 32), Path(row["original"]))
        picture = read_image(row["original"])
        changed = 0.7 * picture + 0.25 if row["recognisable"] else (picture + grain).clamp(0, 1)
        write_png(changed, Path(row["reconstruction"]))
    elsewhere = replace(judging, scores=tmp_path / "scores")
    judged = evaluate(checkpoint, labels, votes.iloc[:0], elsewhere, sample="held-out")
    (row,) = [row for row in judged["metrics"] if row["metric"].startswith("block:")]
    (ahead,) = [row for row in judged["against"] if row["metric"].startswith("block:")]
    assert row["metric"] == "block:structure"
    assert row["auc"]["pooled"]["auc"] == ahead["other_auc"] == 1.0
    assert row["auc"]["pooled"]["low"] is not None
    among = "best of 4 blocks, picked on these images, which flatters it"
    assert row["title"] == ahead["title"] == f"Structure alone ({among})"
    (sentence,) = [one for one in verdict_of(judged).sentences if among in one]
    assert sentence.startswith("It does not beat structure alone")
    assert any(among in cells[0] for cells in table_rows(judged))
    assert not any("alone" in one for one in verdict_of(judged).lost)
