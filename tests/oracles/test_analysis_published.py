"""The paper's own cells from the votes it released, and the same data by scipy alone."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_votes import MSE, PSNR
from scipy import stats

from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.evidence import gather
from semsim.base.stats.pairwise_accuracy import differences, lead_p, sign_flips, soft_accuracy

RELEASED = Path(__file__).resolve().parents[3] / "shared" / "data" / "semsim_cifar100_labels.csv"
ANNOTATORS = [f"ann{i}" for i in range(5)]
pytestmark = pytest.mark.skipif(
    not RELEASED.exists(), reason="the released votes are not part of the repository"
)


@pytest.fixture(scope="module")
def released():
    return pd.read_csv(RELEASED)


@pytest.fixture(scope="module")
def tables(released):
    """Votes, scores and labels as an importer would give them."""
    images = pd.DataFrame(
        {
            "dataset": "cifar100",
            "attack": "invgrad",
            "model": released["model"],
            "image_id": released["cifar100_test_index0"],
        }
    )
    votes = [
        images.assign(
            annotator=who,
            answer=released[who].astype(str).where(released[who] >= 0, "none"),
            recognised=released[who] == released["class_id"],
            votes_per_item=5,
        )
        for who in ANNOTATORS
    ]
    scores = [
        images.assign(metric="psnr", value=released["psnr"]),
        images.assign(metric="mse", value=released["mse_uint8"] / 255**2),
    ]
    labels = images.assign(
        architecture=released["model"].str.split("_").str[0],
        **{"human:released": released["released_recognizable"]},
    )
    return pd.concat(votes), pd.concat(scores), labels


def analysis(tables, headline):
    votes, scores, labels = tables
    found = gather(votes, scores, [PSNR, MSE], labels=labels, name="released")
    return analyse(
        found, [PSNR, MSE], AnalysisSettings(headline=headline, bootstraps=100, permutations=99)
    )


def test_the_papers_cells_with_the_released_label(tables):
    found = analysis(tables, "released").agreement.set_index("metric")
    cells = found[["rho", "tau"]].round(4)
    # Positive: both rank the models as people do, once a small error counts as a leak.
    assert cells.loc["psnr"].tolist() == [0.6703, 0.4725]
    assert cells.loc["mse"].tolist() == [0.6176, 0.4286]
    assert (found["n"] == 14).all()


def test_the_majority_of_five_gives_other_cells(tables, released):
    found = analysis(tables, "majority").agreement.set_index("metric")
    right = released[ANNOTATORS].eq(released["class_id"], axis=0).sum(axis=1) >= 3
    people = right.groupby(released["model"]).mean()
    for name, column, sign in (("psnr", "psnr", 1), ("mse", "mse_uint8", -1)):
        means = sign * released.groupby("model")[column].mean()
        assert found.loc[name, "rho"] == pytest.approx(stats.spearmanr(people, means).statistic)
        assert found.loc[name, "tau"] == pytest.approx(stats.kendalltau(people, means).statistic)
    assert found["rho"].round(4).to_dict() == {"psnr": 0.7451, "mse": 0.7099}


def test_the_ceiling_is_above_both_metrics(tables):
    found = analysis(tables, "mean-response")
    assert found.ceiling.n_splits == 10
    assert found.ceiling.rho > found.agreement["rho"].max()


def test_models_share_two_backbones(tables):
    found = analysis(tables, "majority")
    assert set(found.models["backbone"]) == {"ResNet20-4", "ConvNet"}
    assert found.backbones.groupby("left_out")["n"].unique().map(list).to_dict() == {
        "ConvNet": [7],
        "ResNet20-4": [7],
    }
    assert any("2 backbones" in note for note in found.notes)
    assert np.isfinite(found.backbones["rho"]).all()


def test_pairwise_accuracy_of_both_metrics_is_known(released):
    """0.755 and 0.750, and 75 of 91 pairs apart, by a script that shares no code with ours."""
    right = released[ANNOTATORS].eq(released["class_id"], axis=0).sum(axis=1) >= 3
    table = released.assign(people=right.astype(float), mse=-released["mse_uint8"])
    flips = sign_flips(600, 1000, np.random.default_rng(0))
    people, psnr, mse = (
        lead_p(differences(one.to_numpy()), flips)
        for one in (
            table.pivot(index="model", columns="cifar100_test_index0", values=name)
            for name in ("people", "psnr", "mse")
        )
    )
    found = [soft_accuracy(people, one) for one in (psnr, mse)]
    assert found == pytest.approx([0.755, 0.750], abs=0.002)  # two errors of 1,000 random flips
    assert ((people < 0.025) | (people > 0.975)).sum() == pytest.approx(75, abs=1)
