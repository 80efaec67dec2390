"""Verdicts, on results whose pictures are known."""

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from made_leaks import made_images
from scipy import stats

from semsim.base.errors import DataError
from semsim.base.jobs.folders import read_json
from semsim.base.stats.intervals import too_few
from semsim.base.storage.atomic import write_json
from semsim.metrics.structural import ssim
from semsim.sets.no_attack_baseline import Count
from semsim.systems.federated.settings import REFERENCE, RESCALED
from semsim.systems.federated.summary import figures_of, leak_row
from semsim.systems.federated.verdict import ArmPictures, over_seeds, scored, sentence, summary

ORIGINALS = made_images(6, side=16).images
NOISE = torch.rand(ORIGINALS.shape, generator=torch.Generator().manual_seed(0))


def result(arm: str, share: float, gradient: float | None = None) -> ArmPictures:
    """An arm that got back its originals but for a share of noise."""
    images = (1 - share) * ORIGINALS + share * NOISE
    return ArmPictures(arm=arm, pictures=tuple(images), gradient_difference=gradient)


def failed(arm: str) -> ArmPictures:
    return ArmPictures(arm=arm, pictures=(None,) * 6, gradient_difference=None)


def verdicts(*others: ArmPictures) -> dict[str, str]:
    results = [result(REFERENCE, 0.02, 0.0), result(RESCALED, 0.0), *others]
    return {score.arm: score.verdict for score in scored(results, ORIGINALS)}


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
    found = scored(results, ORIGINALS)[-1]
    assert found.yardstick == RESCALED
    assert found.difference < 0
    assert found.verdict == "less"


def test_an_exact_picture_has_an_infinite_psnr_and_is_shown_so(tmp_path):
    three, whole = ORIGINALS[:3], result(REFERENCE, 0.0)
    exact = replace(whole, pictures=whole.pictures[:3])
    near = ORIGINALS[1] * (1 - 1e-6)
    for found in (exact, replace(exact, pictures=(ORIGINALS[0], near, None))):
        (score,) = scored([found], three)
        assert score.psnr == math.inf
        assert math.isnan(score.psnr_sd)
        assert score.ssim == pytest.approx(1.0)
        assert "PSNR ∞ dB" in sentence(score)
        write_json(tmp_path / "scores.json", asdict(score))
        kept = read_json(tmp_path / "scores.json")
        assert kept["psnr"] == math.inf
        assert leak_row(kept)[3] == "∞"
        assert over_seeds([[score], [score]])[0].psnr == math.inf
    (score,) = scored([replace(exact, pictures=(near,) * 3)], ORIGINALS[[1, 1, 1]])
    assert 100 < score.psnr < math.inf
    assert leak_row(asdict(score))[1] == "0 of 3"  # the others are the same picture
    assert leak_row(asdict(score))[3] == f"{score.psnr:.1f} ± 0.0"


def test_of_one_picture_no_spread_is_told():
    scores = scored(
        [
            replace(found, pictures=found.pictures[:1])
            for found in (result(REFERENCE, 0.3), result("uplink", 0.5))
        ],
        ORIGINALS[:1],
    )
    for score in scores:
        assert math.isnan(score.ssim_sd)
        told = " ".join([*leak_row(asdict(score)), sentence(score)])
        assert "±" not in told
        assert "nan" not in told
        assert "inf" not in told


def test_of_an_arm_whose_attacks_all_failed_no_number_is_told():
    _, score = scored([result(REFERENCE, 0.0), failed("uplink")], ORIGINALS)
    row = leak_row(asdict(score))
    assert row[2:5] == ["–", "–", ""]
    assert "nan" not in " ".join(map(str, (*row, *figures_of(asdict(score)))))


def test_without_its_yardstick_an_arm_has_no_verdict():
    with pytest.raises(DataError, match=RESCALED):
        scored([result(REFERENCE, 0.0), result("links-canonical", 0.0)], ORIGINALS)


def test_words_carry_the_figures():
    scores = scored(
        [result(REFERENCE, 0.0), result("uplink", 1.0), failed("server-pbpfl")], ORIGINALS
    )
    yard, uplink, gone = (sentence(score) for score in scores)
    assert "the reference: a server" in yard
    assert "protection from this attack" in uplink
    assert f"{scores[1].difference:+.2f}" in uplink
    assert "6 of 6" in gone


def test_a_party_counts_by_its_strongest_attack():
    scores = scored(
        [
            result(REFERENCE, 0.02),
            result(RESCALED, 0.0),
            result("links-naive", 1.0),
            result("links-canonical", 0.0),
        ],
        ORIGINALS,
    )
    assert summary(scores) == [
        "An eavesdropper on both links: no protection, SSIM at least as high as at FedAvg's "
        f"server ({Count(6, 0, 6).words}; SSIM 1.00, against FedAvg's server's +0.00, "
        "no interval: no picture that is left out changes it)."
    ]


def test_of_a_party_whose_attacks_all_failed_it_is_said_so():
    gone, known = failed("links-naive"), [result(REFERENCE, 0.02), result(RESCALED, 0.0)]
    lines = summary(scored([*known, failed("client-own-mask"), gone], ORIGINALS))
    assert lines == [
        "An eavesdropper on both links: unknown, every attack failed.",
        "Another client: unknown, every attack failed.",
    ]
    (line,) = summary(scored([*known, gone, result("links-canonical", 0.0)], ORIGINALS))
    assert "failed" not in line


def test_a_server_with_fedavgs_gradient_counts_by_the_best_attack_on_that():
    results = [result(REFERENCE, 0.5), result(RESCALED, 0.0), result("server-pbpfl", 0.5, 1e-12)]
    (line,) = summary(scored(results, ORIGINALS))
    assert line.startswith("The server: no protection")
    assert f"({Count(6, 0, 6).words}; SSIM 1.00)" in line


def test_an_attack_that_gets_nothing_anywhere_protects_nobody():
    results = [result(REFERENCE, 1.0), result("uplink", 1.0)]
    assert scored(results, ORIGINALS)[1].verdict == "too weak"


def dark(n=3, side=40):
    """Mostly black pictures, as digits are, with something light in each."""
    found = torch.zeros(n, 3, side, side)
    for place in range(n):
        found[place, :, 3 + 2 * place : 8 + 2 * place, 4:7] = 0.9
    return found


def test_noise_that_looks_near_by_ssim_gives_no_picture_away():
    """Dim noise over dark pictures reaches an SSIM far above that of a picture in the mean colour,
    by which it was once said to give them away."""
    originals = dark()
    noise = 0.01 * torch.rand(originals.shape, generator=torch.Generator().manual_seed(0))
    found = ArmPictures(arm=REFERENCE, pictures=tuple(noise), gradient_difference=0.0)
    masked = replace(found, arm="server-pbpfl", gradient_difference=0.5)
    plain, hidden = scored([found, masked], originals)
    mean = originals.mean(dim=(0, 2, 3)).view(1, 3, 1, 1).expand_as(originals).contiguous()
    assert plain.ssim - ssim(originals, mean).mean() > 0.1
    assert (plain.clearer, plain.images) == (0, 3)
    assert hidden.verdict == "too weak"
    assert Count(0, 0, 3).words in sentence(plain)


def test_what_comes_back_of_some_pictures_only_is_little():
    found = scored([result(REFERENCE, 0.0), differing("uplink", [0.0, *[1.0] * 5])], ORIGINALS)[1]
    assert (found.clearer, found.verdict) == (1, "little")


def differing(arm: str, shares: list[float]) -> ArmPictures:
    """As `result`, with a share of noise of its own for each image."""
    parts = [result(arm, share).pictures[place] for place, share in enumerate(shares)]
    return ArmPictures(arm=arm, pictures=tuple(parts), gradient_difference=None)


def test_what_cannot_be_told_apart_is_said_so():
    arms = [result(REFERENCE, 0.1), differing("links-naive", [0.0, 0.1, 0.5] * 2)]
    found = scored(arms, ORIGINALS)[1]
    assert found.difference - found.margin < -0.05 < 0 < found.difference + found.margin
    assert found.verdict == "unclear"
    assert "neither shown to differ" in sentence(found)


@pytest.mark.parametrize("n", [1, 5])
def test_few_images_tell_nothing_apart_and_say_why(n):
    arms = result(REFERENCE, 0.1), result("uplink", 0.2)
    found = scored([replace(r, pictures=r.pictures[:n]) for r in arms], ORIGINALS[:n])[1]
    assert (found.verdict, found.no_interval) == ("unclear", too_few(n, "picture"))
    assert f"{found.difference:+.2f}, {too_few(n, 'picture')}" in sentence(found)
    assert leak_row(asdict(found))[4].endswith(too_few(n, "picture"))


def test_of_few_seeds_no_interval_is_told():
    runs = [scored([result(REFERENCE, 0.1), result("uplink", 0.3)], ORIGINALS)] * 5
    assert over_seeds(runs)[1].no_interval == too_few(5, "seed")


def test_what_is_as_like_as_can_be_leaks_as_much_whatever_the_number_of_pictures():
    both = result(REFERENCE, 0.1), result("uplink", 0.0)
    arms = [replace(one, pictures=one.pictures[:2]) for one in both]
    assert scored(arms, ORIGINALS[:2])[1].verdict == "as much"


def test_seeds_count_once_each():
    runs = [
        scored([result(REFERENCE, 0.1), result("uplink", share)], ORIGINALS)
        for share in (0.3, 0.35, 0.4, 0.3, 0.35, 0.4)
    ]
    found = over_seeds(runs)[1]
    levels = np.array([run[1].ssim for run in runs])
    gaps = np.array([run[1].difference for run in runs])
    assert (found.images, found.clearer) == (36, sum(run[1].clearer for run in runs))
    assert found.ssim == pytest.approx(levels.mean())
    assert found.ssim_sd == pytest.approx(levels.std(ddof=1))
    low, high = stats.t.interval(0.95, 5, gaps.mean(), stats.sem(gaps))
    assert found.difference - found.margin == pytest.approx(low)
    assert found.difference + found.margin == pytest.approx(high)
    assert over_seeds(runs[:1]) == runs[0]  # one seed has no spread but that over its images
