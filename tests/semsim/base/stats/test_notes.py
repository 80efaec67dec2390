from dataclasses import replace

import numpy as np
import pytest
from made_votes import SPECS, evidence, voted

from semsim.base.stats.result import AnalysisSettings
from semsim.base.stats.run import analyse

QUICK = AnalysisSettings(bootstraps=50, permutations=9)


def notes(found, settings=QUICK):
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
    shared = notes(replace(found, images=images, set_scores=sets))
    assert "The 3 models have 1 backbone between them and are not independent" in shared


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
    half = replace(QUICK, headline="mean-response")
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
