"""Image by image: does a metric tell what people recognise from what they do not?"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.correlation import weighted_spearman
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.grouping import Layout
from semsim.base.stats.intervals import error, fisher, pairs_ends
from semsim.base.stats.measures import sign_of
from semsim.base.stats.picture_ranks import over_originals
from semsim.base.stats.result import AUC_COLUMNS, RHO_COLUMNS
from semsim.base.words import first_of, listed

_BOTH = "has both images that people recognise and images that they do not"
POOLED, WITHIN = "pooled", "within original"
SCOPES = (POOLED, "within model", WITHIN)
_NAMED = 3  # metrics of a note, before the rest is counted


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Images of G groups sorted by group and value, P recognised against N that are not.

    winners: (P,), losers: (N,) int, the original each image is of.
    below, upto: (P,) int, how many losers lie before a winner: those of earlier groups and of
        smaller values, and also those of the same value.
    first_winner, first_loser: (G,) int, where each group begins; every group has both.
    """

    winners: np.ndarray
    losers: np.ndarray
    below: np.ndarray
    upto: np.ndarray
    first_winner: np.ndarray
    first_loser: np.ndarray

    @property
    def n_groups(self) -> int:
        return len(self.first_winner)


def auc_table(
    specs: Sequence[MetricSpec],
    evidence: Evidence,
    human: np.ndarray,
    layout: Layout,
) -> pd.DataFrame:
    """ROC-AUC of every metric of images: one row a metric and scope, columns `AUC_COLUMNS`.

    human: (R,); above one half is recognised, below is not, one half and NaN are left out.
    Above 0.5 agrees with people; ties count a half. "within model" and "within original" are means
    over the models and the originals that have images of both kinds, so that a metric gains
    nothing by telling models, or originals, apart. Intervals are `pairs_ends` over the originals
    that have the rarer kind. The scope to go by comes first, see `scopes_by`.
    Of ratings the pooled rows also have Spearman's ρ with the mean rating, in `RHO_COLUMNS`.
    """
    rated = None if evidence.ratings is None else evidence.response.means
    rows = partial(_of_metric, evidence=evidence, human=human, rated=rated, layout=layout)
    found = [row for spec in specs if spec.per_image for row in rows(spec)]
    table = pd.DataFrame(found, columns=[*AUC_COLUMNS, *(() if rated is None else RHO_COLUMNS)])
    order = [SCOPES.index(scope) for scope in scopes_by(scale_differs(table))]
    places = np.arange(len(table)).reshape(-1, len(SCOPES))[:, order]
    return table.iloc[places.ravel()].reset_index(drop=True)


def _of_metric(
    spec: MetricSpec,
    evidence: Evidence,
    human: np.ndarray,
    rated: np.ndarray | None,
    layout: Layout,
) -> list[dict[str, Any]]:
    """The rows of one metric."""
    rows = []
    values = sign_of(spec) * evidence.scores[spec.name]
    used = ~np.isnan(values) & ~np.isnan(human) & (human != 0.5)
    model, original = layout.model[used], layout.original[used]
    for scope, groups, unit in zip(
        SCOPES,
        (np.zeros_like(model), model, original),
        ("study", "model", "original"),
        strict=True,
    ):
        contest = contest_of(values[used], human[used] > 0.5, groups, original)
        found = _numbers(contest, scope == WITHIN, layout, f"no {unit} {_BOTH}")
        if rated is not None and scope == POOLED:
            found |= _correlated(values, rated, layout)
        rows.append({"metric": spec.name, "title": spec.title, "scope": scope, **found})
    return rows


def scale_differs(table: pd.DataFrame) -> list[str]:
    """Titles of the metrics of an `auc_table` whose scale differs by original.

    The interval of their AUC within originals lies above the pooled AUC: they order pictures of one
    original better than pictures of several.
    """
    scopes = table.pivot(index="title", columns="scope", values=["auc", "low"])
    if ("auc", POOLED) not in scopes or ("low", WITHIN) not in scopes:
        return []
    found = scopes["low", WITHIN] > scopes["auc", POOLED]
    return [str(title) for title in table["title"].unique() if found[title]]


def scopes_by(differing: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes of a table in order, the one that all its metrics go by first.

    differing: as of `scale_differs`. Where a metric is among them that is the AUC within originals,
    and the pooled one, which flatters, stands second.
    """
    return (WITHIN, POOLED, SCOPES[1]) if differing else SCOPES


def scale_note(differing: Sequence[str]) -> str:
    """Return why a table goes by the AUC within originals, "" where it does not."""
    if not differing:
        return ""
    names = listed(differing) if len(differing) <= _NAMED else first_of(differing, _NAMED)
    return (
        f"The scale of {names} differs by original: go by the AUC within originals. The pooled one "
        "mixes pairs of one original with those of two, which flatters where originals are few."
    )


def contest_of(
    values: np.ndarray, recognised: np.ndarray, groups: np.ndarray, original: np.ndarray
) -> Contest:
    """Sort images into a contest, without the groups that have only one kind.

    values (float64), recognised (bool), groups, original (int): (R,), one an image; values may be
    infinite but not NaN, and groups are numbered from 0.
    """
    n = np.bincount(groups)
    wins = np.bincount(groups[recognised], minlength=len(n))
    kept = np.flatnonzero(((wins > 0) & (wins < n))[groups])
    rows = kept[np.lexsort((values[kept], groups[kept]))]
    value, group, won = values[rows], groups[rows], recognised[rows]
    new = np.append(True, (group[1:] != group[:-1]) | (value[1:] != value[:-1]))[: len(rows)]
    edges = np.append(np.flatnonzero(new), len(rows))  # of runs of equal values
    run = (np.cumsum(new) - 1)[won]
    losers_before = np.append(0, np.cumsum(~won))
    return Contest(
        winners=original[rows[won]],
        losers=original[rows[~won]],
        below=losers_before[edges[run]],
        upto=losers_before[edges[run + 1]],
        first_winner=np.unique(group[won], return_index=True)[1],
        first_loser=np.unique(group[~won], return_index=True)[1],
    )


def auc_of_groups(contest: Contest) -> np.ndarray:
    """(G,): the AUC of each group, every image counting once."""
    wins = np.diff(contest.first_winner, append=len(contest.winners))
    losses = np.diff(contest.first_loser, append=len(contest.losers))
    beaten = np.add.reduceat((contest.below + contest.upto) / 2, contest.first_winner)
    # What lies in earlier groups was counted as beaten, too.
    return np.asarray((beaten - contest.first_loser * wins) / (wins * losses))


def weighted_auc(contest: Contest, weights: np.ndarray) -> np.ndarray:
    """(B, G): the AUC of each group when originals count as `weights`, (B, O), says.

    The weighted share of pairs of a recognised and another image in which the recognised one has
    the larger value. NaN where a group has no weight of one kind.
    """
    times = list(np.ascontiguousarray(weights.T))
    auc = np.full((contest.n_groups, len(weights)), np.nan)
    winners = _runs(contest.first_winner, len(contest.winners))
    losers = _runs(contest.first_loser, len(contest.losers))
    for row, of_winners, of_losers in zip(auc, winners, losers, strict=True):
        won, pairs = _pairs(contest, of_winners, of_losers, times)
        np.divide(won, pairs, out=row, where=pairs > 0)
    return auc.T


def _pairs(
    contest: Contest, winners: slice, losers: slice, times: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """(B,) each: the weight of a group's pairs that the winner has won, and of all its pairs.

    times: O arrays, (B,), how often an original is drawn. Images are passed in order of their
    value, all resamples at once: what is added are rows that stay in a core's cache.
    """
    below, upto = (of_all[winners] - losers.start for of_all in (contest.below, contest.upto))
    starts = np.flatnonzero(np.append(True, np.diff(below) + np.diff(upto)))
    steps = zip(
        *(starts.tolist(), [*starts[1:].tolist(), len(below)]),
        *(below[starts].tolist(), upto[starts].tolist()),
        strict=True,
    )
    of_winner, of_loser = contest.winners[winners].tolist(), contest.losers[losers].tolist()
    passed = 0
    lost, beating, won, product = np.zeros((4, len(times[0])))
    for start, end, low, high in steps:
        for original in of_loser[passed:low]:
            lost += times[original]
        alike = _sum(times, of_winner[start:end])
        beating += alike
        if high > low:
            equal = _sum(times, of_loser[low:high])
            won += (lost + equal / 2) * alike
            lost += equal
        else:
            won += np.multiply(lost, alike, out=product)
        passed = high
    for original in of_loser[passed:]:
        lost += times[original]
    return won, beating * lost


def _sum(times: Sequence[np.ndarray], originals: list[int]) -> np.ndarray:
    if len(originals) == 1:
        return times[originals[0]]
    total = times[originals[0]] + times[originals[1]]
    for original in originals[2:]:
        total += times[original]
    return total


def _runs(starts: np.ndarray, n: int) -> list[slice]:
    """Return the slices between `starts` and, after the last of them, n."""
    return [slice(a, b) for a, b in itertools.pairwise([*starts.tolist(), n])]


def pooled_auc(contest: Contest, weights: np.ndarray) -> np.ndarray:
    """(B,): the mean AUC of the groups that have both kinds when originals count as `weights`."""
    auc = weighted_auc(contest, weights)
    defined = ~np.isnan(auc)
    return _mean(np.where(defined, auc, 0.0).sum(axis=1), defined.sum(axis=1))


def _numbers(contest: Contest, one_original_each: bool, layout: Layout, why: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        **{"auc": np.nan, "low": np.nan, "high": np.nan},
        "n_positive": len(contest.winners),
        "n_negative": len(contest.losers),
        "n_groups": contest.n_groups,
        "undefined": None if contest.n_groups else why,
    }
    if not contest.n_groups:
        return row
    once = auc_of_groups(contest)
    draws = (
        _of_whole_originals(once, contest, layout.left_out)
        if one_original_each
        else pooled_auc(contest, layout.left_out)
    )
    units = min(originals_of_kinds(contest))
    low, high = pairs_ends(draws[0], error(draws, units), units)
    return {**row, "auc": float(once.mean()), "low": float(low), "high": float(high)}


def originals_of_kinds(contest: Contest) -> tuple[int, int]:
    """Of how many originals the images are that people recognise, and those they do not."""
    sides = (contest.winners, contest.losers)
    winners, losers = (int(np.count_nonzero(np.bincount(side))) for side in sides)
    return winners, losers


def _of_whole_originals(once: np.ndarray, contest: Contest, times: np.ndarray) -> np.ndarray:
    """(B,): as `pooled_auc`, where a group is an original: its AUC stays, drawn or not."""
    original = contest.winners[contest.first_winner]
    auc, groups = (
        np.bincount(original, each, times.shape[1]) for each in (once, np.ones(len(once)))
    )
    return _mean(times @ auc, times @ groups)


def _correlated(values: np.ndarray, human: np.ndarray, layout: Layout) -> dict[str, float]:
    """Spearman's ρ over the images that have both, and its interval."""
    draws = over_originals(weighted_spearman, values, human, layout)
    units = len(np.unique(layout.original[~np.isnan(values) & ~np.isnan(human)]))
    ends = fisher(draws[0], error(draws, units), units)
    return dict(zip(RHO_COLUMNS, map(float, (draws[0], *ends)), strict=True))


def _mean(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
