"""The human ceiling: how well annotators predict each other's ranking of the models."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from semsim.base.columns import MODEL_KEY, SCORE_COLUMNS
from semsim.base.stats.correlation import (
    RankAgreement,
    bonett_wright,
    interval_note,
    kendall_score,
    rank_agreement,
)
from semsim.base.stats.evidence import gather, stated
from semsim.base.stats.grouping import Layout, layout_of, model_means
from semsim.base.stats.intervals import too_few
from semsim.base.stats.resampling import Resamples, resample
from semsim.base.stats.verdict import response_by
from semsim.base.stats.votes import SparseVotes
from semsim.base.words import counted

MOST_SPLITS = 100
NO_VOTES = "the source has no single votes"


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """Correlation of annotators' rankings of the models with each other.

    Attributes:
        rho, tau: Mean over `n_splits` splits of the annotators into two groups of `sizes` people.
        n_models: The fewest models that a split ranks.
        rho_low, rho_high, tau_low, tau_high: 95% over models, or None; interval_undefined says
            why; rho_note stands beside that of ρ.
        undefined: Why there are no numbers, or None.
    """

    n_annotators: int = 0
    sizes: tuple[int, int] = (0, 0)
    n_splits: int = 0
    n_models: int = 0
    rho: float | None = None
    tau: float | None = None
    rho_low: float | None = None
    rho_high: float | None = None
    tau_low: float | None = None
    tau_high: float | None = None
    rho_note: str | None = None
    interval_undefined: str | None = None
    undefined: str | None = None


def human_ceiling(recognised: SparseVotes, layout: Layout, resamples: Resamples) -> Ceiling:
    """Rank the models by some annotators and by the others, over all ways to split them.

    Args:
        recognised: As in `Evidence`. floor(A/2) annotators stand against the rest, each group
            ranking by its mean response over the images both groups have judged; at most
            `MOST_SPLITS` splits, chosen at random where there are more. A split in which a group
            has no ranking does not count. Each side has fewer votes than the whole panel, so a
            metric compared with the panel may come out a little above this. The intervals are those
            that ρ and τ of one split would have: the mean over splits varies less from study to
            study, so they are rather too wide.
    """
    annotators = recognised.shape[1]
    if annotators < 2:
        return Ceiling(
            n_annotators=annotators,
            undefined=f"{counted(annotators, 'annotator')}; to predict each other takes at least 2",
        )
    size = annotators // 2
    sizes = (size, annotators - size)
    found = [_one_split(recognised, group, layout) for group in splits(annotators, resamples)]
    ranked = [one for one in found if one.rho is not None]
    if not ranked:
        why = "no split of the annotators leaves two groups that rank 3 or more models"
        return Ceiling(n_annotators=annotators, sizes=sizes, undefined=why)
    n_models = min(one.n for one in ranked)
    rho, tau = (_mean(ranked, name) for name in ("rho", "tau"))
    rho_ends = bonett_wright(rho, n_models) or (None, None)
    tau_ends = kendall_score(tau, n_models) or (None, None)
    return Ceiling(
        n_annotators=annotators,
        sizes=sizes,
        n_splits=len(ranked),
        n_models=n_models,
        rho=rho,
        tau=tau,
        rho_low=rho_ends[0],
        rho_high=rho_ends[1],
        rho_note=interval_note(rho, n_models, "of a mean"),
        tau_low=tau_ends[0],
        tau_high=tau_ends[1],
        interval_undefined=too_few(n_models, "model"),
    )


def ceiling_of_shares(people: SparseVotes, layout: Layout, resamples: Resamples) -> Ceiling:
    """Return the ceiling from shares of single people, as `Evidence.people`; see `human_ceiling`.

    Args:
        people: One share a person and model.
        layout: Of the study.
        resamples: Source of splits where there are too many.
    """
    models = layout.models[MODEL_KEY].assign(image_id="all")
    return human_ceiling(people, layout_of(models), resamples)


def ceiling_of_votes(votes: pd.DataFrame) -> Ceiling:
    """The ceiling of a study from its table of votes alone, as `Evidence` is gathered from it."""
    real = votes[(votes["status"] == "counted") & (votes["kind"] == "reconstruction")]
    if not len(real):
        return Ceiling(undefined="there are no votes yet")
    evidence = gather(real, pd.DataFrame(columns=list(SCORE_COLUMNS)), ())
    layout = layout_of(evidence.images)
    response = response_by(evidence, str(stated([real], "headline", None)))
    return human_ceiling(response, layout, resample(layout, 1, 1, seed=0))


def splits(annotators: int, resamples: Resamples) -> list[tuple[int, ...]]:
    """The smaller group of every split into floor(A/2) and the rest, at most `MOST_SPLITS`.

    Of an even number each split is listed once: its two groups are of one size.
    """
    size = annotators // 2
    # Halves are told apart by who is with the first annotator.
    free = range(1 if annotators % 2 == 0 else 0, annotators)
    first = (0,) if annotators % 2 == 0 else ()
    if math.comb(len(free), size - len(first)) <= MOST_SPLITS:
        return [first + rest for rest in itertools.combinations(free, size - len(first))]
    draw = resamples.splits()
    chosen: dict[tuple[int, ...], None] = {}
    while len(chosen) < MOST_SPLITS:
        rest = draw.choice(np.array(free), size - len(first), replace=False)
        chosen[first + tuple(int(one) for one in np.sort(rest))] = None
    return list(chosen)


def _one_split(recognised: SparseVotes, group: tuple[int, ...], layout: Layout) -> RankAgreement:
    """The agreement of the two groups' rankings."""
    inside = np.zeros(recognised.shape[1], dtype=bool)
    inside[list(group)] = True
    responses = np.stack([recognised.by(side).means for side in (inside, ~inside)])
    both = ~np.isnan(responses).any(axis=0)
    once, judged = np.ones((1, layout.n_originals)), layout.counts(both) > 0
    first, second = (
        model_means(layout, np.where(both, response, np.nan), once)[0, judged]
        for response in responses
    )
    return rank_agreement(first, second)


def _mean(ranked: list[RankAgreement], name: str) -> float:
    """Rounded as a single ρ is: the mean of ones is one."""
    return round(float(np.mean([getattr(one, name) for one in ranked])), 12)
