"""Verdicts, on results whose pictures are known."""

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from made_leaks import made_images
from scipy import stats

from semsim.errors import DataError
from semsim.federated.arms import REFERENCE, RESCALED
from semsim.federated.summary import leak_row
from semsim.federated.verdict import ArmPictures, over_seeds, scored, sentence, summary
from semsim.jobs.folders import read_json
from semsim.kept.whole import write_json

ORIGINALS = made_images(3, side=16).images
NOISE = torch.rand(ORIGINALS.shape, generator=torch.Generator().manual_seed(0))
MEAN = (0.5, 0.5, 0.5)


def result(arm: str, share: float, gradient: float | None = None) -> ArmPictures:
    """An arm that got back its originals but for a share of noise."""
    images = (1 - share) * ORIGINALS + share * NOISE
    return ArmPictures(arm=arm, pictures=tuple(images), gradient_difference=gradient)


def failed(arm: str) -> ArmPictures:
    return ArmPictures(arm=arm, pictures=(None,) * 3, gradient_difference=None)


def verdicts(*others: ArmPictures) -> dict[str, str]:
    results = [result(REFERENCE, 0.02, 0.0), result(RESCALED, 0.0), *others]
    return {score.arm: score.verdict for score in scored(results, ORIGINALS, MEAN)}


def test_verdicts_say_how_much_comes_back():
    found = verdicts(
        result("server-pbpfl", 0.02, 1e-12),
        result("links-naive", 0.2),
        result("links-stripped", 0.0),
        result("uplink", 1.0),
        result("server-zero-sum", 0.02, 0.8),
        failed("client-own-mask"),
    )
    assert found == {
        REFERENCE: "reference",
        RESCALED: "reference",
        "server-pbpfl": "identical",
        "links-naive": "less",
        "links-stripped": "as much",
        "uplink": "nothing",
        "server-zero-sum": "as much",  # another gradient, yet as good a picture
        "client-own-mask": "failed",
    }


def test_an_arm_is_compared_with_the_server_after_the_same_treatment():
    results = [result(REFERENCE, 0.5), result(RESCALED, 0.0), result("links-canonical", 0.2)]
    found = scored(results, ORIGINALS, MEAN)[-1]
    assert found.yardstick == RESCALED
    assert found.difference < 0
    assert found.verdict == "less"


def test_an_exact_picture_has_an_infinite_psnr_and_is_shown_so(tmp_path):
    exact = result(REFERENCE, 0.0)
    near = ORIGINALS[1] * (1 - 1e-6)
    for found in (exact, replace(exact, pictures=(ORIGINALS[0], near, None))):
        (score,) = scored([found], ORIGINALS, MEAN)
        assert score.psnr == math.inf
        assert math.isnan(score.psnr_sd)
        assert score.ssim == pytest.approx(1.0)
        assert "PSNR ∞ dB" in sentence(score)
        write_json(tmp_path / "scores.json", asdict(score))
        kept = read_json(tmp_path / "scores.json")
        assert kept["psnr"] == math.inf
        assert leak_row(kept)[2] == "∞"
        assert over_seeds([[score], [score]])[0].psnr == math.inf
    (score,) = scored([replace(exact, pictures=(near,) * 3)], ORIGINALS[[1, 1, 1]], MEAN)
    assert 100 < score.psnr < math.inf
    assert leak_row(asdict(score))[2] == f"{score.psnr:.1f} ± 0.0"


def test_without_its_yardstick_an_arm_has_no_verdict():
    with pytest.raises(DataError, match=RESCALED):
        scored([result(REFERENCE, 0.0), result("links-canonical", 0.0)], ORIGINALS, MEAN)


def test_words_carry_the_figures():
    scores = scored(
        [result(REFERENCE, 0.0), result("uplink", 1.0), failed("server-pbpfl")], ORIGINALS, MEAN
    )
    yard, uplink, gone = (sentence(score) for score in scores)
    assert "yardstick" in yard
    assert "protection from this attack" in uplink
    assert f"{scores[1].difference:+.2f}" in uplink
    assert "3 of 3" in gone


def test_a_party_counts_by_its_strongest_attack():
    scores = scored(
        [
            result(REFERENCE, 0.02),
            result(RESCALED, 0.0),
            result("links-naive", 1.0),
            result("links-canonical", 0.0),
        ],
        ORIGINALS,
        MEAN,
    )
    assert summary(scores) == [
        "An eavesdropper on both links: no protection, at least as much comes back as at FedAvg's "
        "server (SSIM 1.00; +0.00 ± 0.00 from FedAvg's server's)."
    ]


def test_a_server_with_fedavgs_gradient_counts_by_the_best_attack_on_that():
    results = [result(REFERENCE, 0.5), result(RESCALED, 0.0), result("server-pbpfl", 0.5, 1e-12)]
    (line,) = summary(scored(results, ORIGINALS, MEAN))
    assert line.startswith("The server: no protection")
    assert "(SSIM 1.00)" in line


def test_an_attack_that_gets_nothing_anywhere_protects_nobody():
    results = [result(REFERENCE, 1.0), result("uplink", 1.0)]
    assert scored(results, ORIGINALS, MEAN)[1].verdict == "too weak"


def differing(arm: str, shares: list[float]) -> ArmPictures:
    """As `result`, with a share of noise of its own for each image."""
    parts = [result(arm, share).pictures[place] for place, share in enumerate(shares)]
    return ArmPictures(arm=arm, pictures=tuple(parts), gradient_difference=None)


def test_what_cannot_be_told_apart_is_said_so():
    found = scored(
        [result(REFERENCE, 0.1), differing("links-naive", [0.0, 0.1, 0.5])], ORIGINALS, MEAN
    )[1]
    assert found.difference - found.margin < -0.05 < 0 < found.difference + found.margin
    assert found.verdict == "unclear"
    assert "cannot be told apart" in sentence(found)


def test_one_image_tells_nothing_apart():
    one = [
        replace(r, pictures=r.pictures[:1]) for r in (result(REFERENCE, 0.1), result("uplink", 0.2))
    ]
    assert scored(one, ORIGINALS[:1], MEAN)[1].verdict == "unclear"


def test_seeds_count_once_each():
    runs = [
        scored([result(REFERENCE, 0.1), result("uplink", share)], ORIGINALS, MEAN)
        for share in (0.3, 0.35, 0.4)
    ]
    found = over_seeds(runs)[1]
    levels = np.array([run[1].ssim for run in runs])
    gaps = np.array([run[1].difference for run in runs])
    assert found.images == 9
    assert found.ssim == pytest.approx(levels.mean())
    assert found.ssim_sd == pytest.approx(levels.std(ddof=1))
    low, high = stats.t.interval(0.95, 2, gaps.mean(), stats.sem(gaps))
    assert found.difference - found.margin == pytest.approx(low)
    assert found.difference + found.margin == pytest.approx(high)
