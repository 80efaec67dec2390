"""The human ceiling: how well annotators predict each other's ranking of the models."""

import itertools
import math

import numpy as np

from semsim.analysis.correlation import kendall_rows, spearman_rows
from semsim.analysis.human import mean_response
from semsim.analysis.layout import Layout, model_means
from semsim.analysis.resampling import Resamples, interval
from semsim.analysis.result import Ceiling

MOST_SPLITS = 100


def human_ceiling(recognised: np.ndarray, layout: Layout, resamples: Resamples) -> Ceiling:
    """Rank the models by some annotators and by the others, over all ways to split them.

    recognised: (R, A), as in `Evidence`. floor(A/2) annotators stand against the rest, each group
    ranking by its mean response over the images both groups have judged; at most `MOST_SPLITS`
    splits, chosen at random where there are more. A split in which a group has no ranking does
    not count. Each side has fewer votes than the whole panel, so a metric compared with the panel
    may come out a little above this.
    """
    annotators = recognised.shape[1]
    if annotators < 2:
        return Ceiling(
            n_annotators=annotators,
            undefined=f"{annotators} annotators; to predict each other takes at least 2",
        )
    size = annotators // 2
    sizes = (size, annotators - size)
    weights = np.vstack([np.ones((1, layout.n_originals)), resamples.originals])
    found = np.array(
        [_one_split(recognised, group, layout, weights) for group in splits(annotators, resamples)]
    )
    ranked = found[~np.isnan(found[:, :, 0]).any(axis=1)]  # (splits, ρ and τ, 1 + B)
    if not len(ranked):
        why = "no split of the annotators leaves two groups that rank 3 or more models"
        return Ceiling(n_annotators=annotators, sizes=sizes, undefined=why)
    rho, tau = ranked.mean(axis=0)
    rho_low, rho_high = interval(rho[1:])
    tau_low, tau_high = interval(tau[1:])
    return Ceiling(
        n_annotators=annotators,
        sizes=sizes,
        n_splits=len(ranked),
        rho=float(rho[0]),
        tau=float(tau[0]),
        rho_low=rho_low,
        rho_high=rho_high,
        tau_low=tau_low,
        tau_high=tau_high,
    )


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


def _one_split(
    recognised: np.ndarray, group: tuple[int, ...], layout: Layout, weights: np.ndarray
) -> np.ndarray:
    """(2, B): ρ and τ of the two groups' rankings, under each row of weights."""
    inside = np.zeros(recognised.shape[1], dtype=bool)
    inside[list(group)] = True
    responses = np.stack([mean_response(recognised[:, side]) for side in (inside, ~inside)])
    both = ~np.isnan(responses).any(axis=0)
    first, second = (
        model_means(layout, np.where(both, response, np.nan), weights) for response in responses
    )
    judged = layout.counts(both) > 0
    if judged.sum() < 3:
        return np.full((2, len(weights)), np.nan)
    first, second = first[:, judged], second[:, judged]
    return np.stack([spearman_rows(first, second), kendall_rows(first, second)])
