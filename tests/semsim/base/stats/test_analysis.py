from dataclasses import fields, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_votes import FID, MSE, PSNR, SPECS, evidence, renamed, scores_of, study, voted, votes_of

from semsim.base.errors import SettingsError, UnknownNameError
from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.evidence import gather
from semsim.base.stats.verdict import human_score

QUICK = AnalysisSettings(bootstraps=40, permutations=19)
FEW = settings(max_examples=4)
SEEDS = st.integers(0, 2**16)
TABLES = [
    *("models", "agreement", "backbones", "differences", "auc", "rules", "stability"),
    *("disagreement", "matrix", "order", "leads"),
]


@cache
def made():
    """A small study, its evidence and its analysis, which many others are compared with."""
    tables = study(n_originals=6)
    found = gather(*tables, SPECS, name="made")
    return tables, found, analyse(found, SPECS, QUICK)


def same(first, second, without=()):
    for name in set(TABLES) - set(without):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name), obj=name)
    assert first.ceiling == second.ceiling


def test_every_part_is_there_and_progress_reaches_its_total():
    steps = []
    found = analyse(evidence(), SPECS, QUICK, steps.append)
    assert [field.name for field in fields(found) if getattr(found, field.name) is None] == []
    assert found.specs == SPECS
    assert [step.done for step in steps] == list(range(steps[-1].total + 1))
    assert found.agreement["n"].tolist() == [6, 6, 6]


@pytest.mark.parametrize("name", ["human", "label", "people"])
def test_no_metric_is_called_as_what_people_say(name):
    """The table of models told the metric's mean where the share that people recognise stands."""
    own = replace(PSNR, name=name)
    found = replace(evidence(), scores={name: evidence().scores["psnr"]})
    with pytest.raises(SettingsError, match=f"another name, such as own-{name}"):
        analyse(found, [own], QUICK)


@FEW
@given(SEEDS)
def test_the_order_of_votes_and_scores_does_not_matter(seed):
    tables, _, first = made()
    mixed = [table.sample(frac=1, random_state=seed) for table in tables]
    same(first, analyse(gather(*mixed, SPECS), SPECS, QUICK))


@FEW
@given(st.permutations([f"m{i}" for i in range(6)]))
def test_relabelling_models_permutes_the_table_and_leaves_agreement(names):
    _, found, first = made()
    rename = dict(zip([f"m{i}" for i in range(6)], names, strict=True))
    second = analyse(renamed(found, rename), SPECS, QUICK)
    named = ["loo_model_min", "loo_model_max"]
    pd.testing.assert_frame_equal(
        first.agreement.replace(dict.fromkeys(named, rename)), second.agreement
    )
    for table in ("differences", "rules", "matrix", "auc", "order", "leads"):
        pd.testing.assert_frame_equal(getattr(first, table), getattr(second, table), obj=table)
    for column in ("human", "human_low", "psnr", "fid", "mse:high"):
        before = first.models.set_index("model")[column].rename(rename)
        assert before.to_dict() == second.models.set_index("model")[column].to_dict()


@FEW
@given(SEEDS)
def test_a_metric_that_says_what_people_say_is_perfect(seed):
    found = evidence(seed, n_models=5, n_originals=9)
    human = human_score(found, "majority")
    table = analyse(replace(found, scores={"psnr": human}), [PSNR], QUICK)
    row = table.agreement.iloc[0]
    if pd.isna(row["undefined"]):
        assert (row["rho"], row["tau"]) == pytest.approx((1, 1))
    pooled = table.auc.set_index("scope").loc["pooled"]
    assert (pooled["auc"], pooled["high"]) == (1, 1)
    assert 0 < pooled["low"] < 1  # Newcombe's: few answers leave room below


def test_turning_a_metric_and_its_orientation_changes_nothing_but_its_own_values():
    found = evidence()
    turned = replace(PSNR, higher_means_more_leakage=False)
    minus = replace(found, scores={**found.scores, "psnr": -found.scores["psnr"]})
    first, second = analyse(found, SPECS, QUICK), analyse(minus, (turned, MSE, FID), QUICK)
    same(first, second, without=["models", "disagreement"])
    for name in ("human_share", "metric_share", "gap"):
        assert first.disagreement[name].tolist() == second.disagreement[name].tolist()


def test_another_metric_leaves_the_first_ones_numbers_as_they_are():
    found = evidence()
    alone, together = analyse(found, [MSE], QUICK), analyse(found, SPECS, QUICK)
    for table in ("agreement", "auc", "rules", "backbones", "disagreement"):
        own = getattr(together, table)
        own = own[own["metric"] == "mse"].reset_index(drop=True)
        pd.testing.assert_frame_equal(own, getattr(alone, table), obj=table, check_dtype=False)
    pd.testing.assert_frame_equal(alone.models, together.models[alone.models.columns])
    pair = analyse(found, [PSNR, MSE], QUICK).differences
    whole = together.differences
    whole = whole[(whole["metric_a"] == "psnr") & (whole["metric_b"] == "mse")]
    columns = ["difference", "low", "high", "p"]
    assert whole[columns].to_numpy().tolist() == pair[columns].to_numpy().tolist()


def test_the_seed_decides_and_nothing_else():
    _, found, first = made()
    same(first, analyse(found, SPECS, QUICK))
    other = analyse(found, SPECS, replace(QUICK, seed=1))
    points = ["metric", "n", "rho", "tau"]
    pd.testing.assert_frame_equal(first.agreement[points], other.agreement[points])
    assert (first.agreement["rho_images_low"] != other.agreement["rho_images_low"]).any()


def test_metrics_without_scores_are_left_out():
    blur = MetricSpec(name="blur", title="Blur", higher_means_more_leakage=True, per_image=True)
    assert analyse(evidence(), (blur, *SPECS), QUICK).specs == SPECS


def test_a_study_without_votes_or_scores_has_tables_and_no_numbers():
    labels = votes_of({("m", "1"): "1", ("n", "1"): "1"}).drop(columns="recognised")
    found = analyse(gather(votes_of({}), scores_of({}), (), labels=labels), SPECS, QUICK)
    assert found.agreement.empty
    assert found.ceiling.undefined.startswith("0 annotators")
    assert found.models["human"].isna().all()
    assert found.matrix.shape == (1, 1)
    scored = scores_of({("psnr", "m"): {"1": 1.0}, ("psnr", "n"): {"1": 2.0}})
    found = analyse(gather(votes_of({}), scored, SPECS, labels=labels), SPECS, QUICK)
    assert found.agreement["undefined"].tolist() == ["0 models; a ranking needs at least 3"]
    assert found.auc["auc"].isna().all()
    assert found.disagreement.empty


def test_a_headline_that_is_no_human_score_is_refused():
    with pytest.raises(UnknownNameError, match="No human score is called 'mine'"):
        analyse(evidence(), SPECS, AnalysisSettings(headline="mine"))


def test_a_label_that_came_with_the_data_can_be_the_headline():
    found = evidence()
    label = (np.arange(len(found.images)) % 2).astype(float)
    given = analyse(
        replace(found, given={"folder": label}), SPECS, replace(QUICK, headline="folder")
    )
    assert given.models["human"].tolist() == [0.5] * 6
    assert (given.agreement["undefined"] == "people: the same value for every model").all()


FEW_DRAWS = AnalysisSettings(bootstraps=50, permutations=9)


def notes(found, settings=FEW_DRAWS):
    return "\n".join(analyse(found, SPECS, settings).notes)


@pytest.mark.parametrize("n_models", [9, 10])
def test_few_models_are_warned_of(n_models):
    found = notes(evidence(n_models=n_models, n_originals=4))
    assert ("Only 9 models" in found) == (n_models == 9)


def test_models_that_share_a_backbone_are_not_independent():
    found = evidence(n_models=3, n_originals=4)
    assert "independent" not in notes(found)
    images = found.images.assign(model="resnet_" + found.images["model"])
    sets = {
        name: table.assign(model="resnet_" + table["model"])
        for name, table in found.set_scores.items()
    }
    named = replace(found, images=images, set_scores=sets)
    assert "independent" not in notes(named)  # a foreign name is no statement of a network
    stated = replace(named, images=images.assign(architecture="resnet"))
    assert "The 3 models have 1 backbone between them and are not independent" in notes(stated)
    some = images.assign(architecture=images["model"].map({"resnet_m0": "resnet"}))
    assert "independent" not in notes(replace(named, images=some))


def test_what_is_ranked_together_is_told():
    found = evidence(n_models=4, n_originals=4)
    assert "ranked together" not in notes(found)
    half = found.images["model"] < "m2"
    images = found.images.assign(attack=np.where(half, "a", "b"))
    assert "Models of 2 attacks are ranked together" in notes(replace(found, images=images))


def test_undecided_images_and_halves_are_counted():
    found = evidence(n_models=3, n_originals=4, annotators=4)
    recognised = np.ones((12, 4))
    recognised[0] = [1, 1, 0, 0]
    recognised[1] = np.nan
    found = voted(found, recognised)
    assert "2 of 12 images are undecided under the rule 'Majority of votes'" in notes(found)
    half = replace(FEW_DRAWS, headline="mean-response")
    assert "1 image has a human score of exactly one half" in notes(found, half)
    assert "1 of 12 images is undecided" in notes(found, half)


def test_an_undefined_headline_says_why():
    found = voted(evidence(n_models=3, n_originals=4), np.full((12, 5), np.nan))
    assert "'Majority of votes' is undefined: no image has 3 votes that agree" in notes(found)


def test_infinite_scores_and_sets_are_told():
    found = evidence(n_models=3, n_originals=4)
    psnr = found.scores["psnr"].copy()
    psnr[[0, 5]] = np.inf
    said = notes(replace(found, scores={**found.scores, "psnr": psnr}))
    assert "PSNR: 2 infinite scores are counted and kept out of the means" in said
    assert "FID: one value a set of images, so the cluster bootstrap holds it fixed" in said


def test_lost_resamples_are_told():
    found = evidence(n_models=3, n_originals=6)
    recognised = np.ones((18, 5))
    recognised[1] = 0  # only the second original tells the models apart
    found = voted(found, recognised)
    assert "of 50 resamples of originals gave no ranking" in notes(found)


def test_what_gathering_found_is_passed_on():
    found = replace(evidence(n_models=3, n_originals=4), notes=("as it was",))
    assert notes(found).endswith("as it was")
