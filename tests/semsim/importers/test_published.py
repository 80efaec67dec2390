"""Data that others published, where it is at hand: the numbers they printed come out again."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from semsim.base.sets.imports import places_of, read_import
from semsim.base.sets.reader import read_set
from semsim.importers import plan_import
from semsim.importers.import_folder import carry_out
from semsim.metrics import Resources
from semsim.metrics.scoring import pair_sets_of_folders, score_sets

# Table 1 of the SemSim paper, CIFAR-100: |ρ| and |τ|.
PRINTED = {"psnr": (0.6703, 0.4725), "mse": (0.6176, 0.4286)}
KEY = ["dataset", "attack", "model"]


@pytest.fixture(scope="module")
def paper(published, tmp_path_factory):
    """The votes behind the paper's CIFAR-100 row, imported and read back."""
    data = tmp_path_factory.mktemp("data")
    plan = plan_import("semsim-cifar100", published / "semsim_cifar100_labels.csv", "paper")
    assert plan.complete
    places = places_of("paper", data)
    carry_out(plan, places)
    return read_import(places.tables)


def ranking(paper, metric, people):
    """|ρ| and |τ| of model means, computed here from the imported tables."""
    scores = paper.scores[paper.scores["metric"] == metric].groupby(KEY)["value"].mean()
    human = paper.labels.assign(human=people.astype(float)).groupby(KEY)["human"].mean()
    assert (scores.index == human.index).all()
    return tuple(abs(test(scores, human).statistic) for test in (stats.spearmanr, stats.kendalltau))


def test_everything_is_there(paper):
    assert paper.record["counts"] == {
        "models": 14,
        "originals": 600,
        "reconstructions": 8400,
        "annotators": 5,
        "votes": 42000,
        "released_label_inferred": 714,
    }
    assert len(paper.votes) == 42000
    assert paper.votes["vote_id"].is_unique
    assert paper.labels["human:released"].mean() == pytest.approx(0.695238, abs=1e-6)
    assert (paper.labels["n_votes"] == 5).all()


@pytest.mark.parametrize("metric", PRINTED)
def test_the_released_label_gives_the_printed_numbers(paper, metric):
    found = ranking(paper, metric, paper.labels["human:released"])
    assert np.round(found, 4).tolist() == list(PRINTED[metric])


def test_the_majority_of_five_is_another_label(paper, published):
    source = pd.read_csv(published / "semsim_cifar100_labels.csv")
    votes = source[[f"ann{n}" for n in range(5)]].eq(source["class_id"], axis=0)
    majority = votes.sum(axis=1) >= 3
    labels = paper.labels
    assert (labels["n_recognised"] >= 3).sum() == majority.sum()
    assert (labels["recognisable"] == labels["human:released"]).all()  # the headline
    ours = (labels["n_recognised"] >= 3).groupby(labels["model"]).mean()
    theirs = majority.groupby(source["model"]).mean()
    pd.testing.assert_series_equal(ours, theirs, check_names=False)
    assert ranking(paper, "psnr", labels["n_recognised"] >= 3) != ranking(
        paper, "psnr", labels["human:released"]
    )


def test_reconstructions_under_eleven_defences_become_sets_that_can_be_scored(published, tmp_path):
    plan = plan_import("variant-folders", published / "ats_reconstructions", "ats")
    assert plan.complete
    assert plan.found.counts["models"] == 11
    assert plan.found.counts["reconstructions"] == 660
    places = places_of("ats", tmp_path / "data")
    carry_out(plan, places)
    folders = sorted(path.parent for path in places.sets.glob("*/run.json"))
    run = read_set(folders[0]).run
    assert run["import"]["source_formats"] == {"JPEG": 120}
    resources = Resources(checkpoints=tmp_path)
    book = score_sets(pair_sets_of_folders(folders), ["psnr"], resources, tmp_path / "scores")
    assert len(book.scores) == 660
    assert np.isfinite(book.scores["value"]).all()
