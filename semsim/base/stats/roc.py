"""Image by image: AUC of a metric against what people recognise, and correlation with it."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.correlation import weighted_kendall, weighted_spearman
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.grouping import Layout, layout_of
from semsim.base.stats.intervals import error, fisher, pairs_ends, student, why_none
from semsim.base.stats.verdict import human_score, verdict
from semsim.base.stats.votes import ratio
from semsim.base.words import first_of, listed

_BOTH = "has both images that people recognise and images that they do not"
POOLED, WITHIN = "pooled", "within original"
SCOPES = (POOLED, "within model", WITHIN)
# One row a metric and scope: "pooled", "within model", "within original".
AUC_COLUMNS = (
    *("metric", "title", "scope", "auc", "low", "high", "n_positive", "n_negative", "n_groups"),
    "undefined",
)
RHO_COLUMNS = ("rho", "rho_low", "rho_high")  # further ones where people gave ratings
# `difference` is the AUC of the metric minus that of the other, on the images both judge.
AUC_DIFFERENCE_COLUMNS = (
    *("metric", "title", "scope", "auc", "other_auc", "difference", "low", "high", "n_originals"),
    *("interval_undefined", "undefined"),
)
_CELLS = 2**16  # weights of images looked at together: what a core's cache holds
_FEWEST = 3  # pictures that make a ranking
# One row a metric of images.
PICTURE_COLUMNS = (
    *("metric", "title", "n", "n_originals", "rho", "rho_low", "rho_high"),
    *("tau", "tau_low", "tau_high", "interval_undefined", "undefined"),
)
_CORRELATIONS = (("rho", weighted_spearman), ("tau", weighted_kendall))
Correlate = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
_NAMED = 3  # metrics of a note, before the rest is counted
_NO_CONTEST = "no images of both kinds that both score"


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Images of G groups sorted by group and value, P recognised against N that are not.

    Attributes:
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
    no_pictures: str | None = None,
) -> pd.DataFrame:
    """ROC-AUC of every metric of images: one row a metric and scope, columns `AUC_COLUMNS`.

    Args:
        human: (R,); above one half is recognised, below is not, one half and NaN are left out.
            Above 0.5 agrees with people; ties count a half. "within model" and "within original"
            are means over the models and the originals that have images of both kinds, so that a
            metric gains nothing by telling models, or originals, apart. Intervals are `pairs_ends`
            over the originals that have the rarer kind. The scope to go by comes first, see
            `scopes_by`. Of ratings the pooled rows also have Spearman's ρ with the mean rating, in
            `RHO_COLUMNS`.
        no_pictures: Why people judged no single picture: the reason of every row without a number.
    """
    if no_pictures:
        human = np.full(len(human), np.nan)
    rated = None if evidence.ratings is None else evidence.response.means
    rows = partial(_of_metric, evidence=evidence, human=human, rated=rated, layout=layout)
    found = [row for spec in specs if spec.per_image for row in rows(spec)]
    table = pd.DataFrame(found, columns=[*AUC_COLUMNS, *(() if rated is None else RHO_COLUMNS)])
    order = [SCOPES.index(scope) for scope in scopes_by(scale_differs(table))]
    places = np.arange(len(table)).reshape(-1, len(SCOPES))[:, order]
    ordered = table.iloc[places.ravel()].reset_index(drop=True)
    return ordered.assign(undefined=no_pictures) if no_pictures else ordered


def _of_metric(
    spec: MetricSpec,
    evidence: Evidence,
    human: np.ndarray,
    rated: np.ndarray | None,
    layout: Layout,
) -> list[dict[str, Any]]:
    """The rows of one metric."""
    rows = []
    values = spec.sign * evidence.scores[spec.name]
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

    Args:
        differing: As of `scale_differs`. Where a metric is among them that is the AUC within
            originals, and the pooled one, which flatters, stands second.
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

    Args:
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
    return ratio(np.where(defined, auc, 0.0).sum(axis=1), defined.sum(axis=1))


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
    auc_of = within_originals_auc if one_original_each else pooled_auc
    draws = auc_of(contest, layout.left_out)
    units = min(originals_of_kinds(contest))
    low, high = pairs_ends(draws[0], error(draws, units), units)
    return {
        **row,
        "auc": float(auc_of_groups(contest).mean()),
        "low": float(low),
        "high": float(high),
    }


def originals_of_kinds(contest: Contest) -> tuple[int, int]:
    """Of how many originals the images are that people recognise, and those they do not."""
    sides = (contest.winners, contest.losers)
    winners, losers = (int(np.count_nonzero(np.bincount(side))) for side in sides)
    return winners, losers


def within_originals_auc(contest: Contest, weights: np.ndarray) -> np.ndarray:
    """(B,): as `pooled_auc`, where a group is an original: its AUC stays, drawn or not."""
    original, once = contest.winners[contest.first_winner], auc_of_groups(contest)
    auc, groups = (
        np.bincount(original, each, weights.shape[1]) for each in (once, np.ones(len(once)))
    )
    return ratio(weights @ auc, weights @ groups)


def _correlated(values: np.ndarray, human: np.ndarray, layout: Layout) -> dict[str, float]:
    """Spearman's ρ over the images that have both, and its interval."""
    draws = over_originals(weighted_spearman, values, human, layout)
    units = len(np.unique(layout.original[~np.isnan(values) & ~np.isnan(human)]))
    ends = fisher(draws[0], error(draws, units), units)
    return dict(zip(RHO_COLUMNS, map(float, (draws[0], *ends)), strict=True))


def picture_agreement(
    evidence: Evidence, specs: Sequence[MetricSpec], headline: str
) -> pd.DataFrame:
    """Spearman's ρ and Kendall's τ-b with people over pictures: columns `PICTURE_COLUMNS`.

    One row a metric of images that has scores, positive where it agrees. A picture counts where
    both people, by the human score `headline`, and the metric have a value. Pictures of one
    original are not independent, so originals are left out with all their pictures. Intervals are
    `fisher`.
    """
    layout = layout_of(evidence.images)
    human = human_score(evidence, headline)
    rows = [
        _picture_row(spec, spec.sign * evidence.scores[spec.name], human, layout)
        for spec in specs
        if spec.per_image and spec.name in evidence.scores
    ]
    return pd.DataFrame(rows).reindex(columns=list(PICTURE_COLUMNS))


def over_originals(
    correlate: Correlate,
    values: np.ndarray,
    human: np.ndarray,
    layout: Layout,
) -> np.ndarray:
    """(1 + G,): a correlation over the images that have both, by the weights `layout.left_out`.

    Args:
        correlate: As `weighted_spearman`.
        values, human: (R,), NaN where there is none.
    """
    used = ~np.isnan(values) & ~np.isnan(human)
    weights = layout.left_out
    draws = np.full(len(weights), np.nan)
    step = max(1, _CELLS // max(1, int(used.sum())))
    for start in range(0, len(weights), step):
        part = slice(start, start + step)
        each = weights[part][:, layout.original[used]]
        draws[part] = correlate(values[used], human[used], each)
    return draws


def _picture_row(
    spec: MetricSpec, values: np.ndarray, human: np.ndarray, layout: Layout
) -> dict[str, Any]:
    used = ~np.isnan(values) & ~np.isnan(human)
    row: dict[str, Any] = {
        **{"metric": spec.name, "title": spec.title, "n": int(used.sum())},
        "n_originals": len(np.unique(layout.original[used])),
        "undefined": _why_no_ranking(values[used], human[used]),
    }
    if row["undefined"] is not None:
        return row
    for name, correlate in _CORRELATIONS:
        draws = over_originals(correlate, values, human, layout)
        spread = error(draws, row["n_originals"])
        low, high = fisher(draws[0], spread, row["n_originals"])
        row |= {name: float(draws[0]), f"{name}_low": float(low), f"{name}_high": float(high)}
        row["interval_undefined"] = why_none(row["n_originals"], float(spread))
    return row


def _why_no_ranking(values: np.ndarray, human: np.ndarray) -> str | None:
    if len(values) < _FEWEST:
        return f"a ranking needs at least {_FEWEST} pictures; there are {len(values)}"
    for side, name in ((human, "people"), (values, "metric")):
        if len(np.unique(side)) == 1:
            return f"{name}: the same value for every picture"
    return None


def auc_differences(
    own: MetricSpec,
    others: Iterable[MetricSpec],
    evidence: Evidence,
    headline: str,
    scope: str = POOLED,
) -> pd.DataFrame:
    """One row an other metric of images: AUC of `own` less its, columns `AUC_DIFFERENCE_COLUMNS`.

    Args:
        headline: The human score that says what is recognised.
        scope: `POOLED`, or `WITHIN` where a metric's scale differs by original, see `scopes_by`.
            Both are of the images both have scores of. The interval is `student`, originals being
            left out of both metrics at once; `interval_undefined` says why there is none. NaN where
            there is no AUC, and `undefined` says why.
    """
    layout = layout_of(evidence.images)
    human = verdict(evidence, headline)
    rows = []
    for other in (spec for spec in others if spec.per_image):
        values = [spec.sign * evidence.scores[spec.name] for spec in (own, other)]
        used = ~np.isnan(values[0]) & ~np.isnan(values[1]) & ~np.isnan(human) & (human != 0.5)
        original = layout.original[used]
        groups = original if scope == WITHIN else np.zeros_like(original)
        seen = human[used] > 0.5
        contests = [contest_of(side[used], seen, groups, original) for side in values]
        row: dict[str, Any] = {"metric": other.name, "title": other.title, "scope": scope}
        if not contests[0].n_groups:
            rows.append({**row, "n_originals": 0, "undefined": _NO_CONTEST})
            continue
        auc_of = within_originals_auc if scope == WITHIN else pooled_auc
        a, b = (auc_of(contest, layout.left_out) for contest in contests)
        units = min(originals_of_kinds(contests[0]))
        spread = error(a - b, units)
        low, high = map(float, student(a[0] - b[0], spread, units))
        rows.append(
            {
                **row,
                **{"auc": a[0], "other_auc": b[0], "difference": a[0] - b[0]},
                **{"low": low, "high": high, "n_originals": len(np.unique(original))},
                "interval_undefined": why_none(units, float(spread)),
            }
        )
    return pd.DataFrame(rows).reindex(columns=list(AUC_DIFFERENCE_COLUMNS))
