"""Verdict on the leak of each arm, in figures and in words."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from torch import Tensor

from semsim.base.errors import DataError
from semsim.base.sets.reader import read_set
from semsim.base.stats.intervals import of_means
from semsim.base.words import with_spread
from semsim.images import read_image, read_images, to_uint8
from semsim.metrics.pixel import psnr
from semsim.metrics.structural import ssim
from semsim.sets.no_attack_baseline import Count, judged
from semsim.systems.federated.settings import ARMS, PARTIES, REFERENCE, RESCALED, yardstick
from semsim.systems.federated.summary import NEAR, count_of, gap_words, strength

SAME = 1e-6  # gradients closer than this are one gradient with rounding


@dataclass(frozen=True, kw_only=True)
class ArmPictures:
    """Result of one arm: a picture a client, in order, None where the attack failed.

    Attributes:
        gradient_difference: See `ArmResult`.
    """

    arm: str
    pictures: tuple[Tensor | None, ...]
    gradient_difference: float | None


@dataclass(frozen=True, kw_only=True)
class ArmScore:
    """One arm in figures, means over the images it got back, or over seeds.

    psnr in dB, infinite where an image is exact, and psnr_sd then NaN.

    Attributes:
        psnr_sd, ssim_sd: Standard deviations over images, or over seeds.
        yardstick: The arm it is compared with, FedAvg's server after the same treatment.
        difference: Of SSIM from the yardstick's, image by image.
        margin: Half its 95% interval over images, or over seeds, NaN where `no_interval` says why
            there is none.
        images, failed, clearer, by_shapes: Counts over all seeds, the last two as in a `Count`
            (`semsim.sets.no_attack_baseline`); means are NaN where all failed.
        verdict: One of `WORDS`.
    """

    arm: str
    psnr: float
    psnr_sd: float
    ssim: float
    ssim_sd: float
    yardstick: str
    difference: float
    margin: float
    no_interval: str | None
    images: int
    failed: int
    clearer: int
    by_shapes: int
    gradient_difference: float | None
    verdict: str
    seeds: int = 1


WORDS = {
    "reference": "the reference: a server's view without PBPFL",
    "identical": "no protection, this party works with FedAvg's own gradient",
    "as much": "no protection, SSIM at least as high as at FedAvg's server",
    "less": "some protection, lower SSIM, but most pictures are above the no-attack baseline",
    "little": "protection from this attack, only some pictures are above the no-attack baseline",
    "nothing": "protection from this attack, no picture is above the no-attack baseline",
    "unclear": "neither shown to differ from FedAvg's server, nor to leak as much",
    "too weak": (
        "unknown, the attack is too weak, most pictures of FedAvg's server are not above the "
        "no-attack baseline either"
    ),
    "failed": "unknown, every attack failed",
}


def scores_in(out: Path, arms: Sequence[str]) -> list[ArmScore]:
    """Figures and verdicts of the sets of `arms` in `out`, from their pictures; see `scored`."""
    folders = {arm: out / "sets" / arm for arm in arms}
    first = folders[arms[0]]
    paths = read_set(first).manifest["original"]
    if paths.empty:
        raise DataError(f"{first} has no images.")
    originals = read_images([first / path for path in paths])
    return scored([_read(folder, arm) for arm, folder in folders.items()], originals)


def _read(folder: Path, arm: str) -> ArmPictures:
    found = read_set(folder)
    paths = found.manifest["reconstruction"]
    return ArmPictures(
        arm=arm,
        pictures=tuple(None if pd.isna(path) else read_image(folder / path) for path in paths),
        gradient_difference=found.run["gradient_difference"],
    )


def scored(results: Sequence[ArmPictures], originals: Tensor) -> list[ArmScore]:
    """Figures and verdict of every arm.

    Args:
        originals: (N, C, H, W) in [0, 1], as attacked, 11 pixels a side or more.

    Raises:
        DataError: Where an arm's yardstick is missing.
    """
    by_arm = {result.arm: result for result in results}
    missing = sorted({yardstick(arm) for arm in by_arm} - set(by_arm))
    if missing:
        raise DataError(f"Verdicts compare with the arm {missing[0]!r}; attack it too.")
    similar = {arm: _each(ssim, result, originals) for arm, result in by_arm.items()}
    counts = {arm: _count(result, originals) for arm, result in by_arm.items()}
    return [
        _judged(
            result.arm,
            _Values(
                noun="picture",
                own=similar[result.arm],
                reference=similar[yardstick(result.arm)],
                psnr=_each(psnr, result, originals),
            ),
            counts,
            failed=sum(picture is None for picture in result.pictures),
            gradient_difference=result.gradient_difference,
        )
        for result in results
    ]


def _count(result: ArmPictures, originals: Tensor) -> Count:
    pictures = [None if one is None else to_uint8(one) for one in result.pictures]
    return Count.of(judged(pictures, [to_uint8(one) for one in originals]))


def over_seeds(runs: Sequence[Sequence[ArmScore]]) -> list[ArmScore]:
    """Scores of the same arms under several seeds as one; a seed's means count as one value.

    Images of one seed share a network and may fail together, so that only seeds are independent.
    Of a single seed its own scores, over images, are all there is.
    """
    if len(runs) == 1:
        return list(runs[0])
    arms = [list(same) for same in zip(*runs, strict=True)]
    counts = {
        same[0].arm: Count(*map(sum, zip(*map(_counted, same), strict=True))) for same in arms
    }
    return [_over(same, counts) for same in arms]


def sentence(score: ArmScore) -> str:
    """The verdict with its figures."""
    if score.verdict == "failed":
        return f"{ARMS[score.arm].title}: {WORDS['failed']} ({score.failed} of {score.images})."
    decibels = with_spread(score.psnr, None, ".1f")
    figures = f"{_counted(score).words}; SSIM {score.ssim:.2f}, PSNR {decibels} dB"
    if score.arm != score.yardstick:
        figures += f"; {_from_server(score)}"
    if score.gradient_difference is not None and score.arm != REFERENCE:
        figures += f"; gradient off by {score.gradient_difference:.0e}"
    return f"{ARMS[score.arm].title}: {WORDS[score.verdict]} ({figures})."


def summary(scores: Sequence[ArmScore]) -> list[str]:
    """Summarise all arms, a line a party; a party counts by its strongest attack."""
    known = {score.arm: score for score in scores}
    lines = []
    for party, arms in PARTIES.items():
        asked = [known[arm] for arm in arms if arm in known]
        usable = [score for score in asked if score.verdict != "failed"]
        if not usable:
            lines += [f"{party}: {WORDS['failed']}."] if asked else []
            continue
        best = max(usable, key=_strength)
        figures = f"{_counted(best).words}; SSIM {best.ssim:.2f}, {_from_server(best)}"
        if best.verdict == "identical":  # and can treat it as FedAvg's server can
            own = [known[arm] for arm in (REFERENCE, RESCALED) if arm in known]
            most = max([best, *own], key=_strength)
            figures = f"{_counted(most).words}; SSIM {most.ssim:.2f}"
        lines.append(f"{party}: {WORDS[best.verdict]} ({figures}).")
    return lines


def _from_server(score: ArmScore) -> str:
    return f"against FedAvg's server's {gap_words(vars(score))}"


def _counted(score: ArmScore) -> Count:
    return count_of(vars(score))


def _strength(score: ArmScore) -> tuple[int, float]:
    return strength(vars(score))


def _over(same: list[ArmScore], counts: Mapping[str, Count]) -> ArmScore:
    ssims = np.array([score.ssim for score in same])
    gradients = [s.gradient_difference for s in same if s.gradient_difference is not None]
    values = _Values(
        noun="seed",
        own=ssims,
        reference=ssims - np.array([score.difference for score in same]),
        psnr=np.array([score.psnr for score in same]),
    )
    score = _judged(
        same[0].arm,
        values,
        counts,
        failed=sum(score.failed for score in same),
        gradient_difference=max(gradients) if gradients else None,
    )
    return replace(score, seeds=len(same))


@dataclass(frozen=True, kw_only=True)
class _Values:
    """Figures of each picture, or seed, as `noun` says, (N,); NaN where the attack failed."""

    noun: str
    own: np.ndarray
    reference: np.ndarray
    psnr: np.ndarray


def _judged(
    arm: str,
    values: _Values,
    counts: Mapping[str, Count],
    *,
    failed: int,
    gradient_difference: float | None,
) -> ArmScore:
    gaps = values.own - values.reference
    margin, no_interval = of_means(gaps[np.isfinite(gaps)], noun=values.noun)
    score = ArmScore(
        arm=arm,
        psnr=_decibels(values.psnr),
        psnr_sd=math.nan if np.isinf(values.psnr).any() else _sd(values.psnr),
        ssim=_mean(values.own),
        ssim_sd=_sd(values.own),
        yardstick=yardstick(arm),
        difference=_mean(gaps),
        margin=margin,
        no_interval=no_interval,
        images=counts[arm].over,
        failed=failed,
        clearer=counts[arm].clearer,
        by_shapes=counts[arm].by_shapes,
        gradient_difference=gradient_difference,
        verdict="",
    )
    return replace(score, verdict=_verdict(score, counts[yardstick(arm)]))


def _verdict(score: ArmScore, reference: Count) -> str:
    """Return the word for what came back.

    Args:
        reference: Of its yardstick.
    """
    if np.isnan(score.ssim):
        return "failed"
    if score.arm == score.yardstick:
        return "reference"
    if score.gradient_difference is not None and score.gradient_difference <= SAME:
        return "identical"
    if not _counted(score).comes_back:
        if not reference.comes_back:
            return "too weak"
        return "little" if score.clearer else "nothing"
    if score.difference - score.margin > -NEAR or score.ssim > 1 - NEAR:  # none is above 1
        return "as much"
    return "less" if score.difference + score.margin < 0 else "unclear"


def _each(metric: Callable[..., Tensor], result: ArmPictures, originals: Tensor) -> np.ndarray:
    """Of each picture, (N,); NaN where the attack failed."""
    found = np.full(len(originals), np.nan)
    for place, picture in enumerate(result.pictures):
        if picture is not None:
            found[place] = metric(originals[place : place + 1], picture[None])[0]
    return found


def _decibels(values: np.ndarray) -> float:
    """The mean of those that did not fail, infinite where one is."""
    good = values[~np.isnan(values)]
    return float(good.mean()) if len(good) else float("nan")


def _mean(values: np.ndarray) -> float:
    good = values[np.isfinite(values)]
    return float(good.mean()) if len(good) else float("nan")


def _sd(values: np.ndarray) -> float:
    good = values[np.isfinite(values)]
    return float(good.std(ddof=1)) if len(good) > 1 else math.nan
