"""Shares of people without single votes: what is known of them, and what is not."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_votes import MSE, PSNR, scores_of, votes_of
from scipy.stats import norm

from semsim.base.errors import DataError
from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.ceiling import NO_VOTES
from semsim.base.stats.evidence import gather
from semsim.base.stats.grouping import layout_of
from semsim.base.stats.measures import OF_MODELS, People
from semsim.base.stats.pairwise_accuracy import people_lead_p, sign_flips
from semsim.base.stats.verdict import rules_of

MODELS, IMAGES = [f"m{i}" for i in range(8)], [f"{i:02}" for i in range(6)]
SHARES = dict(zip(MODELS, (0.95, 0.9, 0.7, 0.69, 0.5, 0.4, 0.3, 0.1), strict=True))
SETTINGS = AnalysisSettings(headline="people", bootstraps=200, permutations=99)


def labels(errors=0.02, share=lambda model, image: SHARES[model]):
    rows = [
        {"dataset": "d", "attack": "a", "model": model, "image_id": image, "class_name": "cat"}
        | {"human:people": share(model, image), "human_error:people": errors}
        for model in MODELS
        for image in IMAGES
    ]
    return pd.DataFrame(rows)


def evidence(table):
    draw = np.random.default_rng(0)
    values = {
        (metric, model): {
            image: sign * (10 * SHARES[model] + draw.normal(0, 2)) for image in IMAGES
        }
        for metric, sign in (("psnr", 1), ("mse", -1))
        for model in MODELS
    }
    return gather(votes_of({}), scores_of(values), [PSNR, MSE], labels=table, name="shares")


def found(**of):
    return analyse(evidence(labels(**of)), [PSNR, MSE], SETTINGS)


def people(table):
    gathered = evidence(table)
    layout = layout_of(gathered.images)
    return People.of(gathered, "people", layout), layout


def test_what_needs_votes_or_pictures_is_undefined_with_its_reason():
    analysis = found()
    assert analysis.ceiling.undefined == NO_VOTES
    assert set(analysis.auc["undefined"]) == {OF_MODELS}
    assert analysis.order[["tied_accuracy", "epsilon", "ties_alone"]].isna().all().all()
    assert analysis.agreement["rho"].notna().all()
    assert analysis.order["soft_accuracy"].between(0, 1).all()
    assert analysis.models["human"].tolist() == pytest.approx(list(SHARES.values()))


def test_shares_stand_alone_among_human_scores():
    assert rules_of(evidence(labels())) == ("people",)
    assert set(found().rules["rule"]) == {"people"}


def test_shares_of_pictures_have_a_picture_s_numbers():
    draw = np.random.default_rng(1)
    noisy = {
        model: np.clip(share + draw.normal(0, 0.2, 6), 0, 1) for model, share in SHARES.items()
    }
    wide = found(share=lambda model, image: noisy[model][int(image)])
    assert wide.auc["auc"].notna().any()
    assert wide.order["tied_accuracy"].notna().all()
    assert wide.ceiling.undefined == NO_VOTES


def test_errors_of_shares_widen_the_ranges():
    exact, unsure = found(errors=0.0), found(errors=0.1)
    rank = {
        name: one.stability[one.stability["measure"] == "people"]
        for name, one in (("exact", exact), ("unsure", unsure))
    }
    assert (rank["exact"]["high"] == rank["exact"]["low"]).all()
    assert (rank["unsure"]["high"] > rank["unsure"]["low"]).all()
    assert exact.agreement["rho"].tolist() == unsure.agreement["rho"].tolist()
    ends = unsure.models[["human_low", "human", "human_high"]].to_numpy()
    assert (ends[:, 0] < ends[:, 1]).all()
    assert (ends[:, 1] < ends[:, 2]).all()


def test_people_lead_by_their_standard_errors():
    said, layout = people(labels(errors=0.1))
    assert said.of_models
    p = people_lead_p(said, layout, sign_flips(len(IMAGES), 100, np.random.default_rng(0)))
    first, second = np.triu_indices(len(MODELS), 1)
    shares = np.array(list(SHARES.values()))
    assert p == pytest.approx(norm.sf((shares[first] - shares[second]) / np.hypot(0.1, 0.1)))


def test_equal_shares_lead_nowhere_and_exact_ones_everywhere():
    table = labels(errors=0.0)
    table["human_error:people"] = table["model"].map({"m0": 0.1}).fillna(0.0)
    table.loc[table["model"] == "m3", "human:people"] = SHARES["m2"]
    said, layout = people(table)
    p = people_lead_p(said, layout, sign_flips(len(IMAGES), 100, np.random.default_rng(0)))
    pairs = dict(zip(zip(*np.triu_indices(len(MODELS), 1), strict=True), p, strict=True))
    assert pairs[2, 3] == 0.5
    assert pairs[3, 4] == 0.0
    assert pairs[0, 1] == pytest.approx(norm.sf(0.05 / 0.1))


def test_the_error_of_a_mean_of_pictures_is_of_their_errors():
    draw = np.random.default_rng(2)
    table = labels(share=lambda model, image: draw.uniform(0.2, 0.8))
    table["human_error:people"] = draw.uniform(0.01, 0.1, len(table))
    said, _ = people(table)
    own = table[table["model"] == "m3"]["human_error:people"]
    assert said.errors[3] == pytest.approx(np.sqrt((own**2).sum()) / len(own))
    assert not said.of_models


def test_votes_make_a_share_one_of_pictures():
    gathered = evidence(labels())
    votes = votes_of({(model, image): "10" for model in MODELS for image in IMAGES})
    voted = gather(votes, scores_of({}), [PSNR], labels=labels(), name="both")
    layout = layout_of(voted.images)
    assert not People.of(voted, "people", layout).of_models
    assert People.of(gathered, "people", layout).of_models
    yes = replace(gathered, given={"people": np.round(gathered.given["people"])})
    assert not People.of(yes, "people", layout).of_models  # verdicts, not shares


def test_an_error_below_zero_is_refused():
    with pytest.raises(DataError, match=r"human_error:people must lie in \[0, 1\]"):
        evidence(labels(errors=-0.1))


def test_shares_of_single_people_have_a_ceiling():
    draw = np.random.default_rng(3)
    rows = [
        {"dataset": "d", "attack": "a", "model": model, "annotator": f"p{who}"}
        | {"share": float(np.clip(SHARES[model] + draw.normal(0, 0.05), 0, 1))}
        for who in range(10)
        for model in draw.permutation(MODELS)[:5]
    ]
    values = {("psnr", model): dict.fromkeys(IMAGES, 1.0) for model in MODELS}
    gathered = gather(
        votes_of({}), scores_of(values), [PSNR], labels=labels(), people=pd.DataFrame(rows)
    )
    found = analyse(gathered, [PSNR], SETTINGS).ceiling
    assert (found.n_annotators, found.sizes) == (10, (5, 5))
    assert 0.8 < found.rho <= 1
    twice = pd.DataFrame([*rows, rows[0]])
    with pytest.raises(DataError, match="Two shares of people"):
        gather(votes_of({}), scores_of(values), [PSNR], labels=labels(), people=twice)
