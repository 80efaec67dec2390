"""Tables over models: agreement of each metric with people, its certainty, ranks and values."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.columns import ATTACKER, TARGET_COLUMNS
from semsim.base.errors import SettingsError
from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.correlation import (
    difference_interval,
    difference_p,
    interval_note,
    kendall_rows,
    mean_ranks,
    pearson_rows,
    rank_agreement,
    spearman_rows,
)
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.grouping import Layout
from semsim.base.stats.intervals import FEWEST, share_ends, student, too_few
from semsim.base.stats.measures import (
    PEOPLE,
    Measure,
    People,
    both_have,
    metric_measure,
    people_measure,
)
from semsim.base.stats.resampling import (
    FEWEST_BOOTSTRAPPED,
    Resamples,
    interval,
    resample,
    varied_interval,
)
from semsim.base.stats.verdict import judged, rules_of

EXACT_UP_TO = 8  # models: 8! = 40,320 orders
_SLACK = 1e-12  # two orders of the same correlation may differ by rounding
# One row a model. `human` is the model's mean human score under the headline rule. For every
# metric there are four more columns: <name>, <name>:low, <name>:high, <name>:n_inf.
MODEL_COLUMNS = (
    *("dataset", "attack", "model", "label", "backbone"),
    *TARGET_COLUMNS,
    ATTACKER,
    *("n_images", "n_decided", "n_undecided"),
    *("human", "human_low", "human_high"),
)
# One row a metric, the one that agrees best first. 95% intervals over models: `bw` Bonett-Wright
# and `score`, which tables, figures and the terminal print, and `models`, a bootstrap. `images` is
# no such interval but the range of 95% of the resamples of originals. `loo` leaves one model out;
# `loo_undefined` names those without which there is no ranking.
# `mark` says why a metric is below the others and leads nothing, "" of most.
# `p_kind` is "exact" or "Monte Carlo". `left_out` counts resamples without a ranking. Each kind
# has a column that says why it has no ends: `interval_undefined` for `bw` and `score`. `rho_note`
# stands beside the ends of `bw` where there is one.
AGREEMENT_COLUMNS = (
    *("metric", "title", "mark", "n", "rho", "tau"),
    *("abs_rho", "abs_tau", "p_rho", "p_tau", "p_kind"),
    *("rho_bw_low", "rho_bw_high", "rho_note", "tau_score_low", "tau_score_high"),
    "interval_undefined",
    *("rho_models_low", "rho_models_high"),
    *("tau_models_low", "tau_models_high", "rho_images_low", "rho_images_high"),
    *("tau_images_low", "tau_images_high", "loo_rho_min", "loo_rho_max", "loo_tau_min"),
    *("loo_tau_max", "loo_model_min", "loo_model_max", "loo_undefined"),
    *("left_out_models", "left_out_images", "models_undefined", "images_undefined", "undefined"),
)
# One row a metric and backbone left out.
BACKBONE_COLUMNS = ("metric", "title", "left_out", "n", "rho", "tau", "undefined")
# One row a pair of metrics; `difference` is ρ of a minus ρ of b, its interval is 95% over models,
# `p` is of equal ρ in the population of models, and `p_holm` is p after Holm.
# `interval_undefined` says why a difference has neither interval nor p.
DIFFERENCE_COLUMNS = (
    *("metric_a", "title_a", "metric_b", "title_b", "n", "difference", "low", "high"),
    *("p", "p_holm", "interval_undefined", "undefined"),
)
# One row a human score and metric.
RULE_COLUMNS = ("rule", "metric", "title", "n", "rho", "tau", "n_images", "n_left_out", "undefined")
# One row a model and measure ("people" or a metric): its rank, 1 leaks most, and its 95% range
# under the cluster bootstrap.
STABILITY_COLUMNS = ("measure", "title", "label", "model_key", "rank", "low", "high")
# One row an image and metric of images: both as rank shares, 0 leaks least and 1 most.
DISAGREEMENT_COLUMNS = (*("metric", "row", "human", "value", "human_share", "metric_share", "gap"),)
_CORRELATIONS = (("rho", spearman_rows), ("tau", kendall_rows))


@dataclass(frozen=True, kw_only=True)
class PermutationP:
    """Two-sided p of ρ and of τ-b; kind is "exact" or "Monte Carlo"."""

    rho: float
    tau: float
    kind: str


def agreement_table(
    people: Measure, metrics: list[Measure], labels: list[str], resamples: Resamples
) -> pd.DataFrame:
    """One row a metric, the one that agrees best first; columns `AGREEMENT_COLUMNS`.

    Args:
        labels: What each model is called. A model counts for a metric where both people and the
            metric have a value. A metric of sets is held fixed in the cluster bootstrap: its value
            for resampled images is not known. That bootstrap adds the noise of the images once
            more, so its ranges lean towards 0 where models lie close together: they show how steady
            a ranking is and are no confidence intervals.
    """
    rows = [agreement_row(people, metric, labels, resamples) for metric in metrics]
    table = pd.DataFrame(rows).reindex(columns=list(AGREEMENT_COLUMNS))
    return best_first(table)


def best_first(table: pd.DataFrame, by: str = "rho") -> pd.DataFrame:
    """The rows by the column `by`, the largest first; those with a mark below all others."""
    marked, size = table["mark"].ne("").to_numpy(), table[by].to_numpy(dtype=float)
    return table.iloc[np.lexsort((-size, marked))].reset_index(drop=True)


def agreement_row(
    people: Measure, metric: Measure, labels: list[str], resamples: Resamples
) -> dict[str, Any]:
    """One row of `agreement_table`; only n and the reason where there is no correlation."""
    models = both_have([people, metric])
    x, y = people.oriented[models], metric.oriented[models]
    found = rank_agreement(x, y)
    row: dict[str, Any] = {
        "metric": metric.name,
        "title": metric.title,
        "mark": metric.mark,
        "n": found.n,
        "undefined": found.undefined,
    }
    if found.rho is None or found.tau is None:
        return row
    rho, tau = (ends or (np.nan, np.nan) for ends in (found.rho_interval, found.tau_interval))
    p = permutation_p(x, y, resamples)
    return {
        **row,
        **{"rho": found.rho, "tau": found.tau},
        **{"abs_rho": abs(found.rho), "abs_tau": abs(found.tau)},
        **{"p_rho": p.rho, "p_tau": p.tau, "p_kind": p.kind},
        **{"rho_bw_low": rho[0], "rho_bw_high": rho[1]},
        "rho_note": interval_note(found.rho, found.n),
        **{"tau_score_low": tau[0], "tau_score_high": tau[1]},
        "interval_undefined": too_few(found.n, "model"),
        **_over_models(x, y, resamples),
        **_over_images(people, metric, models, resamples.originals.shape[1]),
        **leave_one_out(x, y, [labels[model] for model in models]),
    }


def _over_models(x: np.ndarray, y: np.ndarray, resamples: Resamples) -> dict[str, Any]:
    """Intervals of the bootstrap over models, and how many resamples had no ranking."""
    if len(x) < FEWEST_BOOTSTRAPPED:
        why = f"{len(x)} models; a bootstrap over models needs at least {FEWEST_BOOTSTRAPPED}"
        return {"models_undefined": why}
    picks = resamples.picks(len(x))
    return _intervals(x[picks], y[picks], "models", resamples.n)


def _over_images(people: Measure, metric: Measure, models: np.ndarray, n: int) -> dict[str, Any]:
    """Ranges of the cluster bootstrap over `n` originals."""
    if (few := too_few(n)) is not None:
        return {"images_undefined": few}
    x, y = people.oriented_resampled[:, models], metric.oriented_resampled[:, models]
    return _intervals(x, y, "images", len(x))


def _intervals(x: np.ndarray, y: np.ndarray, kind: str, asked: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, correlate in _CORRELATIONS:
        draws = np.full(asked, np.nan)
        draws[: len(x)] = correlate(x, y)
        low, high, why = varied_interval(draws)
        found |= {f"{name}_{kind}_low": low, f"{name}_{kind}_high": high}
        # ρ and τ are flat, or without a ranking, in the same resamples.
        found |= {f"{kind}_undefined": why, f"left_out_{kind}": int(np.isnan(draws).sum())}
    return found


def permutation_p(x: np.ndarray, y: np.ndarray, resamples: Resamples) -> PermutationP:
    """Two-sided p: the share of orders of `x` that correlate with `y` at least as strongly.

    Args:
        x, y: (n,), not constant. Up to `EXACT_UP_TO` models all orders are counted; above it the
            seeded shuffles, with (1 + count) / (1 + shuffles) so that p is never 0 (Phipson and
            Smyth 2010, "Permutation p-values should never be zero").
    """
    exact = len(x) <= EXACT_UP_TO
    orders = _all_orders(len(x)) if exact else resamples.shuffles(len(x))
    extra = 0 if exact else 1
    first, second = mean_ranks(np.stack([x, y]))  # another order has these, too
    p = {}
    for name, correlate in (("rho", pearson_rows), ("tau", kendall_rows)):
        seen = abs(correlate(first[None], second[None])[0])
        as_strong = np.abs(correlate(first[orders], second[None])) >= seen - _SLACK
        p[name] = float((as_strong.sum() + extra) / (len(orders) + extra))
    return PermutationP(**p, kind="exact" if exact else "Monte Carlo")


@cache
def _all_orders(n: int) -> np.ndarray:
    return np.array(list(itertools.permutations(range(n))))


def leave_one_out(x: np.ndarray, y: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """The range of ρ and τ when each of n models in turn is left out, and whose absence makes it.

    Args:
        x, y: (n,). The models named are those whose absence makes ρ smallest and largest, and those
            without which there is no ranking, since all others have one value. Empty below four
            models, and where no ranking is left.
    """
    n = len(x)
    if n < 4:
        return {}
    others = np.array([np.delete(np.arange(n), one) for one in range(n)])
    rho, tau = (correlate(x[others], y[others]) for correlate in (spearman_rows, kendall_rows))
    if np.isnan(rho).all():
        return {}
    return {
        **{"loo_rho_min": float(np.nanmin(rho)), "loo_rho_max": float(np.nanmax(rho))},
        **{"loo_tau_min": float(np.nanmin(tau)), "loo_tau_max": float(np.nanmax(tau))},
        "loo_model_min": labels[int(np.nanargmin(rho))],
        "loo_model_max": labels[int(np.nanargmax(rho))],
        "loo_undefined": ", ".join(labels[one] for one in np.flatnonzero(np.isnan(rho))) or None,
    }


def difference_table(people: Measure, metrics: list[Measure]) -> pd.DataFrame:
    """Every two metrics: ρ of the first minus ρ of the second, columns `DIFFERENCE_COLUMNS`.

    Over the models that people and both metrics rank. p tests that among all models of the kind
    studied both metrics are correlated with people alike; see `difference_p`. p_holm is corrected
    for all pairs that have a p: whether one has depends on the number of models alone.
    """
    rows = [_difference_row(people, a, b) for a, b in itertools.combinations(metrics, 2)]
    table = pd.DataFrame(rows).reindex(columns=list(DIFFERENCE_COLUMNS))
    table["p_holm"] = holm(table["p"].to_numpy(dtype=float))
    return table


def holm(p: np.ndarray) -> np.ndarray:
    """p of several tests, (T,), corrected for their number; NaN stays and does not count.

    Returns (T,) in [0, 1], never below `p`.

    Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    corrected = np.full(len(p), np.nan)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # NaN is sorted last
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected


def _difference_row(people: Measure, a: Measure, b: Measure) -> dict[str, Any]:
    models = both_have([people, a, b])
    x, *sides = (measure.oriented[models] for measure in (people, a, b))
    found = [rank_agreement(x, side) for side in sides]
    row: dict[str, Any] = {
        **{"metric_a": a.name, "title_a": a.title, "metric_b": b.name, "title_b": b.title},
        "n": len(models),
        "undefined": found[0].undefined or found[1].undefined,
    }
    rho_a, rho_b, rho_ab = (one.rho for one in (*found, rank_agreement(*sides)))
    if rho_a is None or rho_b is None or rho_ab is None:
        return row
    low, high = difference_interval(rho_a, rho_b, rho_ab, len(models)) or (np.nan, np.nan)
    return {
        **row,
        **{"difference": rho_a - rho_b, "low": low, "high": high},
        "p": difference_p(rho_a, rho_b, rho_ab, len(models)),
        "interval_undefined": too_few(len(models), "model"),
    }


def check_metric_name(name: str) -> None:
    """Raise `SettingsError` for a metric called as people are, or a column of models is."""
    if name in (PEOPLE, *MODEL_COLUMNS):
        raise SettingsError(
            f"No metric can be called {name}, as a column of the table of models is. Give it "
            f"another name, such as own-{name}."
        )


def model_table(
    people: Measure, metrics: list[Measure], human: np.ndarray, layout: Layout
) -> pd.DataFrame:
    """One row a model: `MODEL_COLUMNS`, then four columns a metric.

    Args:
        human: (R,), the headline score, NaN where undecided. Intervals are `share_ends` of shares,
            else `student`, over originals; a metric of sets has none.
    """
    everything = np.ones(len(human), dtype=bool)
    n, decided = layout.counts(everything), layout.counts(~np.isnan(human))
    table = layout.models.drop(columns="model_key").assign(
        n_images=n, n_decided=decided, n_undecided=n - decided
    )
    low, high = _ends(people)
    columns = {"human": people.means, "human_low": low, "human_high": high}
    for metric in metrics:
        low, high = _ends(metric)
        columns |= {
            metric.name: metric.means,
            f"{metric.name}:low": low,
            f"{metric.name}:high": high,
            f"{metric.name}:n_inf": metric.n_inf,
        }
    return pd.concat([table, pd.DataFrame(columns)], axis=1)


def rule_table(specs: Sequence[MetricSpec], evidence: Evidence, layout: Layout) -> pd.DataFrame:
    """The agreement of each metric under every human score, columns `RULE_COLUMNS`.

    n_images have that score, n_left_out do not; both sides are means over the former.
    """
    rows = []
    nothing = resample(layout, bootstraps=0, permutations=0, seed=0)
    for rule in rules_of(evidence):
        score = judged(evidence, rule)
        people = people_measure(People(scores=score.values), layout, nothing)
        counted = int((~np.isnan(score.values)).sum())
        for spec in specs:
            metric = metric_measure(spec, evidence, score.values, layout, nothing)
            found = _pair(people, metric, score.undefined)
            rows.append(
                {
                    "rule": rule,
                    **found,
                    "n_images": counted,
                    "n_left_out": len(score.values) - counted,
                }
            )
    return pd.DataFrame(rows, columns=list(RULE_COLUMNS))


def matrix_table(measures: list[Measure]) -> pd.DataFrame:
    """Spearman's ρ over models of people and metrics with each other, oriented; by titles."""
    titles = [measure.title for measure in measures]
    values = np.full((len(measures), len(measures)), np.nan)
    for (i, a), (j, b) in itertools.combinations_with_replacement(enumerate(measures), 2):
        values[i, j] = values[j, i] = _pair(a, b)["rho"]
    return pd.DataFrame(values, index=titles, columns=titles, dtype=float)


def backbone_table(people: Measure, metrics: list[Measure], backbones: list[str]) -> pd.DataFrame:
    """The agreement without the models of one backbone: columns `BACKBONE_COLUMNS`.

    Args:
        backbones: (M,) names, one a model; "" where it is not known. Empty where all models have
            the same one.
    """
    known = sorted({*backbones} - {""})
    names = known if len({*backbones}) > 1 else []
    rows = [
        {**_pair(people, metric, without=np.array(backbones) == name), "left_out": name}
        for metric in metrics
        for name in names
    ]
    return pd.DataFrame(rows, columns=list(BACKBONE_COLUMNS))


def _pair(
    a: Measure, b: Measure, undefined: str | None = None, without: np.ndarray | None = None
) -> dict[str, Any]:
    """The two as rankings;

    Args:
        without: (M,) bool, the models that are left out.
    """
    models = both_have([a, b])
    if without is not None:
        models = models[~without[models]]
    found = rank_agreement(a.oriented[models], b.oriented[models])
    return {
        "metric": b.name,
        "title": b.title,
        "n": found.n,
        "rho": np.nan if found.rho is None else found.rho,
        "tau": np.nan if found.tau is None else found.tau,
        "undefined": undefined or found.undefined,
    }


def _ends(measure: Measure) -> tuple[np.ndarray, np.ndarray]:
    """(M,) each: the ends of the interval of every model's mean."""
    ends = share_ends if measure.is_share else student
    return ends(measure.means, measure.errors, measure.units)


def stability_table(measures: list[Measure], layout: Layout) -> pd.DataFrame:
    """The rank of every model by people and by each metric, columns `STABILITY_COLUMNS`.

    Rank 1 leaks most; tied models share their mean rank. low and high: 95% range under the
    cluster bootstrap over originals, NaN where these are fewer than `FEWEST`, and for metrics of
    sets, which no resample changes. A model without a value has no rank.
    """
    tables = [_ranks(measure, layout) for measure in measures]
    return pd.concat(tables, ignore_index=True)[list(STABILITY_COLUMNS)]


def disagreement_table(
    specs: Sequence[MetricSpec], evidence: Evidence, human: np.ndarray
) -> pd.DataFrame:
    """Every image by each metric of images, beside people: columns `DISAGREEMENT_COLUMNS`.

    Args:
        human: (R,), the means of `response_by`. Both sides as shares of a ranking of all images
            that have both, ties sharing their mean rank. A gap of 1: the metric says it leaks most
            where people recognise least; -1: the other way round. row is a row of
            `evidence.images`.
    """
    tables = [_gaps(spec, evidence, human) for spec in specs if spec.per_image]
    if not tables:
        return pd.DataFrame(columns=list(DISAGREEMENT_COLUMNS))
    return pd.concat(tables, ignore_index=True)


def _ranks(measure: Measure, layout: Layout) -> pd.DataFrame:
    has_value = ~np.isnan(measure.means)
    found = np.full((3, layout.n_models), np.nan)
    found[0, has_value] = mean_ranks(-measure.oriented[has_value])
    if layout.n_originals >= FEWEST and measure.of_images:
        drawn = mean_ranks(-measure.oriented_resampled[:, has_value])
        found[1:, has_value] = np.array([interval(column) for column in drawn.T]).reshape(-1, 2).T
    return layout.models[["label", "model_key"]].assign(
        measure=measure.name, title=measure.title, rank=found[0], low=found[1], high=found[2]
    )


def _gaps(spec: MetricSpec, evidence: Evidence, human: np.ndarray) -> pd.DataFrame:
    values = evidence.scores[spec.name]
    rows = np.flatnonzero(~np.isnan(values) & ~np.isnan(human))
    people, metric = _share(human[rows]), _share(spec.sign * values[rows])
    columns: dict[str, Any] = {
        "metric": spec.name,
        "row": rows,
        "human": human[rows],
        "value": values[rows],
        "human_share": people,
        "metric_share": metric,
        "gap": metric - people,
    }
    return pd.DataFrame(columns)


def _share(values: np.ndarray) -> np.ndarray:
    """(N,) in [0, 1]: 0 the smallest, 1 the largest; ties share their mean."""
    return (mean_ranks(values) - 1) / max(1, len(values) - 1)
