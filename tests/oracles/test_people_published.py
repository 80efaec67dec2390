"""Metrics against 218 people, by the product and by a loop of scipy and scikit-image alone."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy import stats
from skimage.metrics import structural_similarity

from semsim.base.sets.imports import places_of, read_import
from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.evidence import gather
from semsim.importers.import_folder import carry_out
from semsim.metrics import Resources, find_metric
from semsim.metrics.scoring import pair_sets_of_labels, score_sets
from semsim.people import SOURCES

COPY = Path(__file__).resolve().parents[3] / "shared" / "data" / "people" / "recurrent"
NAMES = ("mse", "psnr", "ssim")
pytestmark = pytest.mark.skipif(
    not COPY.is_dir(), reason="the public copy of recurrent is not part of the repository"
)


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    places = places_of("recurrent", tmp_path_factory.mktemp("data"))
    carry_out(SOURCES["recurrent"].plan(COPY), places)
    study = read_import(places.tables)
    scores = score_sets(pair_sets_of_labels(study.labels), NAMES, Resources(), None).scores
    specs = [find_metric(name).spec for name in NAMES]
    evidence = gather(study.votes, scores, specs, labels=study.labels, people=study.people)
    return analyse(evidence, specs, AnalysisSettings(headline="people", bootstraps=100))


def pixels(path):
    return np.asarray(Image.open(path).convert("L"), dtype=float) / 255


@pytest.fixture(scope="module")
def by_hand():
    """Share of people and mean metric of each degradation, read from the files one by one."""
    rates = pd.read_csv(COPY / "rates.csv").set_index("condition")["accuracy"].drop("control")
    window = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
    rows = []
    for condition in rates.index:
        pairs = [
            (pixels(COPY / "originals" / path.name), pixels(path))
            for path in sorted((COPY / condition).glob("*.png"))
        ]
        errors = [float(np.mean((a - b) ** 2)) for a, b in pairs]
        similar = [structural_similarity(a, b, data_range=1, **window) for a, b in pairs]
        psnr = np.mean([-10 * np.log10(one) for one in errors])
        rows.append((rates[condition], np.mean(errors), psnr, np.mean(similar)))
    return pd.DataFrame(rows, columns=["people", *NAMES], index=rates.index)


def test_correlations_are_those_of_scipy_and_the_known_ones(analysis, by_hand):
    found = analysis.agreement.set_index("metric")
    for name in NAMES:
        rho = stats.spearmanr(by_hand["people"], by_hand[name]).statistic
        tau = stats.kendalltau(by_hand["people"], by_hand[name]).statistic
        assert found.loc[name, "abs_rho"] == pytest.approx(abs(rho), abs=1e-6)
        assert found.loc[name, "abs_tau"] == pytest.approx(abs(tau), abs=1e-6)
    assert found["abs_rho"].round(3).to_dict() == {"psnr": 0.5, "mse": 0.491, "ssim": 0.268}


def test_halves_of_the_people_agree_far_better(analysis):
    people = pd.read_csv(COPY / "people.csv")
    table = people[people["condition"] != "control"].pivot(
        index="person", columns="condition", values="accuracy"
    )
    rng, found = np.random.default_rng(0), []
    for _ in range(100):
        side = rng.permutation(len(table)) < len(table) // 2
        found.append(stats.spearmanr(table[side].mean(), table[~side].mean()).statistic)
    assert analysis.ceiling.rho == pytest.approx(np.mean(found), abs=0.02)
    assert analysis.ceiling.rho == pytest.approx(0.91, abs=0.01)


def test_a_share_of_a_degradation_judges_no_single_picture(analysis):
    assert analysis.auc["auc"].isna().all()
