"""Pairwise accuracy: does a metric order every two models as people do, on these originals?

Scores are (M, O): of M models on O originals, more meaning more leakage, NaN where there is none.
Every two models are compared on the originals that both have.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from semsim.base.metric_spec import MetricSpec, is_start
from semsim.base.stats.agreement import best_first, holm
from semsim.base.stats.evidence import Evidence
from semsim.base.stats.grouping import Layout, model_means
from semsim.base.stats.measures import People
from semsim.base.stats.resampling import Resamples

LEVEL = 0.05  # p below which a metric is behind another
FEWEST = 2  # originals whose signs can be flipped
MOST = 1000  # originals, or groups of them, whose signs are flipped and scores swapped
# One row a metric. `band` is its rank, shared by those that the best of a band does not beat; 0 of
# those that lead nothing. `ties_alone` is the tied accuracy of calling all models equal.
ORDER_COLUMNS = (
    *("metric", "title", "mark", "band", "soft_accuracy", "hard_accuracy", "tied_accuracy"),
    *("epsilon", "ties_alone", "n_models", "n_originals", "undefined"),
)
# One row a pair of metrics. `difference` is soft accuracy of a minus that of b, `p` is over
# originals, `p_holm` is p after Holm, `p_models` is over models.
LEAD_COLUMNS = (
    *("metric_a", "title_a", "metric_b", "title_b", "n_models", "n_originals", "difference"),
    *("p", "p_holm", "p_models", "undefined"),
)
OF_SETS = "it scores whole sets, no single picture"
FEW_ORIGINALS = "one original, whose sign alone can be flipped"
NO_PAIR = "people and it have no original in common that two models share"
_WITHIN = ("tied_accuracy", "epsilon", "ties_alone")  # of single pictures
_ZERO = 1e-12  # sums that are added in another order differ by less


@dataclass(frozen=True, kw_only=True)
class SwapTest:
    """Comparison of two metrics by their soft pairwise accuracy.

    Attributes:
        difference: Accuracy of the first less that of the second; NaN where either has none.
        p: Share of random swaps after which they differ at least as much, both ways; NaN likewise.
    """

    difference: float
    p: float


@dataclass(frozen=True, kw_only=True)
class TiedAccuracy:
    """Accuracy within originals, where people often see two models as equal.

    Attributes:
        accuracy: Mean over originals of the share of pairs that people and metric order alike or
            both call equal; NaN without an original that has a pair.
        epsilon: Difference up to which the metric's scores count as equal: the one that gives the
            highest accuracy on these very scores, so that a finer scale costs no metric a point.
        ties_alone: Accuracy of calling all models equal.
    """

    accuracy: float
    epsilon: float
    ties_alone: float


def differences(scores: np.ndarray) -> np.ndarray:
    """Subtract the scores of every two models.

    Args:
        scores: (M, O).

    Returns:
        (P, O), the pairs in the order of `numpy.triu_indices(M, 1)`; NaN where either has none.
    """
    first, second = np.triu_indices(len(scores), 1)
    return scores[first] - scores[second]


def in_groups(scores: np.ndarray) -> np.ndarray:
    """Return scores, (M, O), or of more than `MOST` originals (M, MOST), means of groups.

    Groups are dealt at random and stand for one original each. Whoever flips signs or swaps scores
    of so many originals learns little more, and waits.
    """
    n = scores.shape[1]
    if n <= MOST:
        return scores
    dealt = np.random.default_rng(0).permutation(n)
    starts = np.linspace(0, n, MOST, endpoint=False, dtype=int)
    known = ~np.isnan(scores[:, dealt])
    sums = np.add.reduceat(np.nan_to_num(scores[:, dealt]), starts, axis=1)
    counts = np.add.reduceat(known.astype(float), starts, axis=1)
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)


def sign_flips(n: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Draw vectors of signs for n originals, or list all where they are no more than `draws`.

    Returns:
        (B, n) float64, 1 or -1.
    """
    if n < 63 and 2**n <= draws:
        return 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    return np.where(rng.random((draws, n)) < 0.5, -1.0, 1.0)


def lead_p(pairs: np.ndarray, flips: np.ndarray) -> np.ndarray:
    """Test whether the first model of each pair is ahead, by flipping signs of differences.

    Args:
        pairs: (P, O), as from `differences`.
        flips: (B, O), as from `sign_flips`.

    Returns:
        (P,): the share of flips whose sum is at least the one seen; NaN without an original that
            both have. Equal sums count half: so p of a lead and p of the opposite lead add to 1,
            and the order of the models does not matter.
    """
    known = np.nan_to_num(pairs)
    gap = flips @ known.T - known.sum(axis=1)
    p = np.mean(gap > _ZERO, axis=0) + np.mean(np.abs(gap) <= _ZERO, axis=0) / 2
    return np.where(np.isnan(pairs).all(axis=1), np.nan, p)


def people_lead_p(people: People, layout: Layout, flips: np.ndarray) -> np.ndarray:
    """Test whether people put the first model of each pair ahead.

    By the standard errors of shares of whole models where the source states them, else as `lead_p`.

    Args:
        people: Human score.
        layout: Model and original of each image.
        flips: (B, O), as from `sign_flips`.

    Returns:
        (P,), as of `lead_p`.
    """
    if not (people.of_models and people.errors.any()):
        return lead_p(differences(in_groups(layout.table(people.scores))), flips)
    first, second = np.triu_indices(layout.n_models, 1)
    shares = model_means(layout, people.scores, layout.left_out[:1])[0]
    gap = shares[first] - shares[second]
    width = np.hypot(people.errors[first], people.errors[second])
    exact = np.select([gap > 0, gap < 0, gap == 0], [np.inf, -np.inf, 0.0], np.nan)
    return np.asarray(ndtr(-np.divide(gap, width, out=exact, where=width > 0)))


def soft_accuracy(people: np.ndarray, metric: np.ndarray) -> float:
    """Return soft pairwise accuracy: 1 less the mean distance of p over pairs of models.

    Thompson, Mathur, Deutsch and Khayrallah 2024, arXiv:2409.09598.

    Args:
        people: (P,) p of `lead_p` from people's scores.
        metric: (P,) p from the metric's scores.

    Returns:
        In [0, 1], 0.5 for a metric that is sure of nothing beside people who are sure of all; NaN
            without a pair that both have.
    """
    return _mean(1 - np.abs(people - metric))


def hard_accuracy(people: np.ndarray, metric: np.ndarray) -> float:
    """Return the share of pairs of models whose means people and metric order alike.

    Args:
        people: (M, O).
        metric: (M, O).

    Returns:
        In [0, 1]; two means that are equal for both are ordered alike. NaN without a pair.
    """
    pairs = np.stack([differences(people), differences(metric)])
    known = _either(*pairs)
    ours, theirs = np.sign(_rounded(np.where(known, pairs, 0.0).sum(axis=2)))
    return _mean((ours == theirs)[known.any(axis=1)].astype(float))


def tied_accuracy(people: np.ndarray, metric: np.ndarray) -> TiedAccuracy:
    """Return pairwise accuracy within single originals, with the metric's ties calibrated.

    Deutsch, Foster and Freitag 2023, arXiv:2305.14324: acc_eq and tie calibration, grouped by
    item.

    Args:
        people: (M, O).
        metric: (M, O).
    """
    first, second = differences(people), differences(metric)
    known = _either(first, second)
    nan = float("nan")
    if not known.any():
        return TiedAccuracy(accuracy=nan, epsilon=nan, ties_alone=nan)
    of_original = known.sum(axis=0)
    weight = (known / np.maximum(of_original, 1))[known] / np.count_nonzero(of_original)
    ours, theirs = np.sign(_rounded(first[known])), _rounded(second[known])
    order = np.argsort(np.abs(theirs), kind="stable")
    size, ours, theirs, weight = (x[order] for x in (np.abs(theirs), ours, theirs, weight))
    equal = np.cumsum(weight * (ours == 0))  # right where all up to here are ties
    apart = weight * ((ours != 0) & (ours == np.sign(theirs)))
    right = equal + apart.sum() - np.cumsum(apart)
    last = np.append(size[1:] > size[:-1], True)  # equal sizes are ties together
    if size[0] > 0:  # no tie at all is a choice, too
        right, size, last = (
            np.append(a, b) for a, b in ((apart.sum(), right), (0.0, size), (True, last))
        )
    best = int(np.argmax(np.where(last, right, -1.0)))
    return TiedAccuracy(
        accuracy=float(right[best]), epsilon=float(size[best]), ties_alone=float(equal[-1])
    )


def swap_test(
    people: np.ndarray,
    metrics: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
    draws: int = 1000,
) -> SwapTest:
    """Test whether two metrics order these models equally well, on other originals.

    The standardised scores of both are swapped at random, original by original: PERM-INPUTS of
    Deutsch, Dror and Roth 2021, arXiv:2104.00054. In the draws, p of a lead is the normal
    approximation of `lead_p`.

    Args:
        people: (P,) p of `lead_p` from people's scores.
        metrics: Two times (M, O).
        rng: Source of the swaps.
        draws: Swaps.
    """
    sums = _sums(metrics, mixed=False)
    own = np.stack([sums[0, 0], sums[1, 1]])  # (2, 2, P, O)
    swaps = (rng.random((draws, own.shape[-1])) < 0.5).astype(float)
    chosen = swaps @ np.swapaxes(own, -1, -2)  # (2, 2, B, P)
    drawn = own.sum(axis=-1)[:, :, None] - chosen + chosen[::-1]
    return _tested(people, sums, drawn)


def model_swap_test(
    people: np.ndarray,
    metrics: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
    draws: int = 1000,
) -> SwapTest:
    """Test whether two metrics order models equally well, on other models of their kind.

    As `swap_test`, but scores are swapped model by model: PERM-SYSTEMS. Swapping both at once is
    no such test: where metrics err by model, it finds a difference in a third of studies.

    Both metrics are standardised by the models that are swapped, so `_widening` restores the
    variance of two models that different metrics score.
    """
    sums = {pair: one.sum(axis=-1) for pair, one in _sums(metrics, mixed=True).items()}
    first, second = np.triu_indices(len(metrics[0]), 1)
    swapped = (rng.random((draws, len(metrics[0]))) < 0.5).astype(int)
    table = np.array([[sums[x, y] for y in (0, 1)] for x in (0, 1)])  # (2, 2, 2, P)
    pair = np.arange(len(first))
    drawn = [
        np.moveaxis(table[swapped[:, first] ^ side, swapped[:, second] ^ side, :, pair], -1, 0)
        for side in (0, 1)
    ]
    return _tested(people, sums, np.stack(drawn))


def _widening(both: Sequence[np.ndarray]) -> np.ndarray:
    """Return what is added to the difference of two models that different metrics score.

    The differences of the two metrics by model are residuals of their common mean: standardising
    takes it out. The sum of two of M residuals has 1 - 2 / M of the variance of two errors
    (Hoaglin and Welsch 1978, The American Statistician 32), so it is too small in swaps by the
    square root of that. Without this, swaps differ too little, and p is too small.

    Args:
        both: Two times (M, O), standardised.

    Returns:
        (P,): for the first model of a pair by the first metric, the second by the second; the
            opposite for the other way round.
    """
    apart = both[0] - both[1]
    known = ~np.isnan(apart)
    mean = np.nan_to_num(apart).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    n = len(mean)
    first, second = np.triu_indices(n, 1)
    wider = np.sqrt(n / (n - 2)) - 1 if n > 2 else 0.0
    return np.asarray(wider * (mean[first] + mean[second]) / 2)


def standardised(scores: np.ndarray) -> np.ndarray:
    """Return scores, (M, O), with mean 0 and variance 1 over all there are; zeros if all equal."""
    spread = np.nanstd(scores)
    return (scores - np.nanmean(scores)) / (spread if spread > _ZERO else 1.0)


def bands(accuracy: np.ndarray, p: np.ndarray, level: float = LEVEL) -> np.ndarray:
    """Rank metrics so that those which the best of a band does not beat share its rank.

    Args:
        accuracy: (K,).
        p: (K, K) of each two; NaN counts as not beaten.
        level: Below it a metric is beaten, and begins the next band.

    Returns:
        (K,) int, such as 1, 2, 2, 4, 4; 0 where the accuracy is NaN.
    """
    found = np.zeros(len(accuracy), dtype=int)
    best = None
    order = [k for k in np.argsort(-accuracy, kind="stable") if not np.isnan(accuracy[k])]
    for place, metric in enumerate(order, start=1):
        if best is None or p[best, metric] < level:
            best = metric
            found[metric] = place
        else:
            found[metric] = found[best]
    return found


def _sums(
    metrics: tuple[np.ndarray, np.ndarray], *, mixed: bool
) -> dict[tuple[int, int], np.ndarray]:
    """Return what is added up over originals, by the metrics that score the models of a pair.

    Args:
        metrics: Two times (M, O), standardised here.
        mixed: Whether two models may be scored by different metrics.

    Returns:
        By (metric of the first model, of the second), 0 or 1: (2, P, O), the differences and
        their squares, 0 where either metric lacks a score.
    """
    both = [standardised(one) for one in metrics]
    first, second = np.triu_indices(len(both[0]), 1)
    known = _either(*map(differences, both))
    widening = _widening(both)[:, None]
    found = {}
    for x, y in itertools.product((0, 1), repeat=2):
        if mixed or x == y:
            apart = both[x][first] - both[y][second] + (y - x) * widening
            moved = np.where(known, apart, 0.0)
            found[x, y] = np.stack([moved, moved**2])
    return found


def _tested(
    people: np.ndarray, sums: Mapping[tuple[int, int], np.ndarray], drawn: np.ndarray
) -> SwapTest:
    """Hold the difference that was seen against the draws, (2, 2, B, P)."""
    seen = np.stack([sums[k, k].reshape(2, len(people), -1).sum(axis=-1) for k in (0, 1)])
    accuracy = _soft_of_each(people, seen[:, :, None])[:, 0]
    difference = float(accuracy[0] - accuracy[1])
    if np.isnan(difference):
        return SwapTest(difference=difference, p=difference)
    others = _soft_of_each(people, drawn)
    reached = np.abs(others[0] - others[1]) >= abs(difference) - _ZERO
    return SwapTest(difference=difference, p=float((1 + reached.sum()) / (1 + reached.size)))


def _soft_of_each(people: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """(2, B): `soft_accuracy` of both metrics in each draw, from (2, 2, B, P) sums."""
    # A sum of squares of 0 may be a little less, as swaps are subtracted and added.
    total, squares = sums[:, 0], np.sqrt(np.maximum(sums[:, 1], 0.0))
    ahead = np.divide(total, squares, out=np.zeros_like(total), where=squares > _ZERO)
    distance = np.abs(people - ndtr(-ahead))
    known = ~np.isnan(people)
    if not known.any():
        return np.full(distance.shape[:2], np.nan)
    return 1 - distance[..., known].mean(axis=-1)


def _either(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return where both have a number."""
    return ~(np.isnan(first) | np.isnan(second))


def _rounded(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) <= _ZERO, 0.0, values)


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def ordering_tables(
    specs: Sequence[MetricSpec],
    evidence: Evidence,
    said: People,
    layout: Layout,
    resamples: Resamples,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare how metrics order the models of a study, on its originals.

    Args:
        specs: Metrics, in the order of the tables.
        evidence: Scores of the metrics.
        said: Human score; a metric counts on the images on which people have decided.
        layout: Model and original of each image.
        resamples: How many flips and swaps, and their source.

    Returns:
        A row a metric, columns `ORDER_COLUMNS`, the best first; a row a pair, `LEAD_COLUMNS`.
    """
    people = layout.table(said.scores)
    values = {
        spec.name: spec.sign
        * layout.table(np.where(np.isnan(said.scores), np.nan, evidence.scores[spec.name]))
        for spec in specs
        if spec.per_image
    }
    groups = {name: in_groups(one) for name, one in values.items()}
    flips = sign_flips(min(people.shape[1], MOST), resamples.n, resamples.flips())
    p_of_people = people_lead_p(said, layout, flips)
    rows = []
    for spec in specs:
        row = _order_row(spec, people, values.get(spec.name))
        if "undefined" not in row:
            p_of_metric = lead_p(differences(groups[spec.name]), flips)
            row["soft_accuracy"] = soft_accuracy(p_of_people, p_of_metric)
            row |= dict.fromkeys(_WITHIN, np.nan) if said.of_models else {}
        rows.append(row)
    order = pd.DataFrame(rows).reindex(columns=list(ORDER_COLUMNS))
    leading = order["mark"].eq("") & ~order["metric"].map(is_start).astype(bool)
    order["band"] = 0
    pairs = list(itertools.combinations(specs, 2))
    means = np.nan_to_num(people).sum(axis=1)
    found = []
    for pair in pairs:
        row = _lead_row(pair, people, values)
        if "undefined" not in row:
            scored = groups[pair[0].name], groups[pair[1].name]
            row |= _lead_tests(p_of_people, means, scored, resamples)
        found.append(row)
    leads = pd.DataFrame(found).reindex(columns=list(LEAD_COLUMNS))
    leads["p_holm"] = holm(leads["p"].to_numpy(dtype=float))
    own = order[leading]
    if len(own):
        square = leads.pivot(index="metric_a", columns="metric_b", values="p_holm")
        p = square.reindex(index=own["metric"], columns=own["metric"]).to_numpy(dtype=float)
        both = np.where(np.isnan(p), p.T, p)
        order.loc[leading, "band"] = bands(own["soft_accuracy"].to_numpy(dtype=float), both)
    return best_first(order, "soft_accuracy"), leads


def _order_row(spec: MetricSpec, people: np.ndarray, metric: np.ndarray | None) -> dict[str, Any]:
    """Return a row of `ORDER_COLUMNS` without soft accuracy and band."""
    row: dict[str, Any] = {"metric": spec.name, "title": spec.title, "mark": spec.mark}
    if metric is None:
        return {**row, "undefined": OF_SETS, "n_models": 0, "n_originals": 0}
    n_models, n_originals = _in_common(people, metric)
    row |= {"n_models": n_models, "n_originals": n_originals}
    if n_originals < FEWEST:
        return {**row, "undefined": FEW_ORIGINALS if n_originals else NO_PAIR}
    tied = tied_accuracy(people, metric)
    return {
        **row,
        "hard_accuracy": hard_accuracy(people, metric),
        "tied_accuracy": tied.accuracy,
        "epsilon": tied.epsilon,
        "ties_alone": tied.ties_alone,
    }


def _lead_row(
    pair: tuple[MetricSpec, MetricSpec], people: np.ndarray, values: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Return a row of `LEAD_COLUMNS` without the tests."""
    first, second = pair
    row: dict[str, Any] = {
        **{"metric_a": first.name, "title_a": first.title},
        **{"metric_b": second.name, "title_b": second.title, "n_models": 0, "n_originals": 0},
    }
    if first.name not in values or second.name not in values:
        return {**row, "undefined": OF_SETS}
    n_models, n_originals = _in_common(people, values[first.name], values[second.name])
    row |= {"n_models": n_models, "n_originals": n_originals}
    few = FEW_ORIGINALS if n_originals else NO_PAIR
    return row if n_originals >= FEWEST else {**row, "undefined": few}


def _lead_tests(
    p_of_people: np.ndarray,
    means: np.ndarray,
    both: tuple[np.ndarray, np.ndarray],
    resamples: Resamples,
) -> dict[str, float]:
    """Test two metrics over originals and over models.

    Args:
        p_of_people: (P,) p of the leads of models by people.
        means: (M,) by which people order the models.
        both: Two times (M, O), values of the metrics.
        resamples: How many swaps, and their source.
    """
    found = swap_test(p_of_people, both, resamples.swaps(), resamples.n)
    # Models are taken in the order of their values, so that draws do not depend on their names.
    order = np.lexsort([*(np.nan_to_num(one).sum(axis=1) for one in reversed(both)), means])
    square = np.zeros((len(means), len(means)))
    pairs = np.triu_indices(len(means), 1)
    square[pairs], square.T[pairs] = p_of_people, 1 - p_of_people
    ordered = square[np.ix_(order, order)][pairs]
    over_models = model_swap_test(
        ordered, (both[0][order], both[1][order]), resamples.swaps(), resamples.n
    )
    return {"difference": found.difference, "p": found.p, "p_models": over_models.p}


def _in_common(*scores: np.ndarray) -> tuple[int, int]:
    """Count models and originals in a pair of models on one original that all score."""
    known = ~np.isnan(np.stack(scores)).any(axis=0)
    paired = known & (known.sum(axis=0) > 1)
    return int(paired.any(axis=1).sum()), int(paired.any(axis=0).sum())
