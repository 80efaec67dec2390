"""Agreement of annotators beyond chance, with intervals, or the reason that there is none."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from annotation.tasks.kind import NONE, Kind
from annotation.votes.aggregate import NO_VOTES, Ballots, crossed, ratings, scale_of
from semsim.base.stats.intervals import Ends, error, fisher, pairs_ends, student, why_none
from semsim.base.stats.votes import ratio

AGREEMENT_COLUMNS = ("coding", "statistic", "n_items", "value", "low", "high", "reason")
PAIR_COLUMNS = ("coding", "first", "second", "n_items", "value", "low", "high", "reason")
FEWEST_SHARED = 10  # items two annotators must share before their κ says anything
_SAME = "all votes are equal, so agreement beyond chance is undefined"
_NOMINAL = ("Krippendorff's α", "mean Cohen's κ")
_ORDINAL = ("Krippendorff's ordinal α", "mean weighted κ")
_ROUNDING = 1e-12


class Coding(StrEnum):
    """Part of an answer that is compared."""

    ANSWER = "answer"  # the class named, none being one more; same or different; the rating
    RECOGNISED = "recognised"  # whether it is right
    NONE = "none"  # whether it is none


def codings_of(kind: Kind) -> tuple[Coding, ...]:
    """The codings that mean something: a binary answer is recognised or not, and none may lack."""
    answers = () if kind.binary else (Coding.ANSWER,)
    return (*answers, Coding.RECOGNISED, *((Coding.NONE,) if kind.has_none else ()))


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Cohen's κ of P pairs of annotators under one coding.

    Attributes:
        first, second, n_items: (P,) annotators, and how many items both answered.
        value, low, high: (P,) κ and the ends of its interval; NaN where it is not defined.
        why: (P,) text, why there is no interval, "" where there is one.
        mean: (1 + G,) the mean over the pairs that have one, under all weights; NaN where none has.
    """

    coding: Coding
    first: np.ndarray
    second: np.ndarray
    n_items: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    why: np.ndarray
    mean: np.ndarray


@dataclass(frozen=True, kw_only=True)
class _Sums:
    """Terms of agreement, as sums over the items of each original; K categories.

    Attributes:
        items: (O,) how many items.
        agreeing: (O,) the sum of their shares of agreeing pairs of votes.
        votes: (O, K) votes by category.
        together: (O,) the sum over items of agreeing ordered pairs divided by the number of other
            votes, which is Krippendorff's coincidences on the diagonal.
        apart: (O, K, K) all of these coincidences, of ratings only.
    """

    items: np.ndarray
    agreeing: np.ndarray
    votes: np.ndarray
    together: np.ndarray
    apart: np.ndarray | None


def is_ordered(ballots: Ballots, coding: Coding) -> bool:
    """Check whether the distance of two categories counts: of ratings it does."""
    return coding is Coding.ANSWER and scale_of(ballots.votes) is not None


def codes(ballots: Ballots, coding: Coding) -> np.ndarray:
    """(V,) int from 0: the category of each vote."""
    if is_ordered(ballots, coding):
        return ratings(ballots.votes).astype(int) - 1
    if coding is Coding.ANSWER:
        return pd.factorize(ballots.votes["answer"], sort=True)[0]
    if coding is Coding.NONE:
        return (ballots.votes["answer"] == NONE).to_numpy().astype(int)
    return ballots.votes["recognised"].to_numpy().astype(int)


def agreement_table(ballots: Ballots, pairs: list[Pairs]) -> pd.DataFrame:
    """A row a statistic for the coding of each of `pairs`, with the columns `AGREEMENT_COLUMNS`.

    Raw agreement is the mean over items of the share of pairs of votes that agree; Fleiss' κ
    (Fleiss 1971), Krippendorff's α for nominal data (Krippendorff 2004) and the mean of the
    pairwise Cohen's κ (Cohen 1960) set it against chance. Of ratings there are
    raw agreement, α for ordinal data and κ weighted by the square of how far two are apart (Cohen
    1968). Intervals are `student`, those of raw agreement `pairs_ends`, over the originals with two
    votes on an item. Where a value or its interval is missing, `reason` says why.
    """
    rows = [row for one in pairs for row in _rows(ballots, one)]
    return pd.DataFrame(rows, columns=list(AGREEMENT_COLUMNS))


def _rows(ballots: Ballots, pairs: Pairs) -> Iterator[tuple[object, ...]]:
    category = codes(ballots, pairs.coding)
    votes_of_item = np.bincount(ballots.item)
    shared = votes_of_item[ballots.item] > 1
    ordered = is_ordered(ballots, pairs.coding)
    sums = _sums(ballots, category, shared, ordered=ordered)
    n = int((votes_of_item > 1).sum())
    missing = _why_nothing(ballots, n)
    same = missing or (_SAME if len(np.unique(category[shared])) == 1 else "")
    units = int((sums.items > 0).sum())
    coding = pairs.coding.value

    def row(
        statistic: str,
        reason: str,
        compute: Callable[[np.ndarray], np.ndarray],
        ends: Callable[[np.ndarray, np.ndarray, int], Ends] = _at_most_one,
    ) -> tuple[object, ...]:
        if reason:
            return coding, statistic, n, np.nan, np.nan, np.nan, reason
        draws = compute(ballots.weights)
        spread = error(draws, units)
        low, high = ends(draws[0], spread, units)
        why = _why(low, units, spread)
        return coding, statistic, n, float(draws[0]), float(low), float(high), why

    yield row("raw agreement", missing, lambda w: _raw(sums, w), ends=pairs_ends)
    unequal = same or _why_no_fleiss(votes_of_item)
    if not ordered:
        yield row("Fleiss' κ", unequal, lambda w: _fleiss(sums, w))
    alpha, kappa = _ORDINAL if ordered else _NOMINAL
    yield row(alpha, same, lambda w: _alpha(sums, w))
    yield row(kappa, same or _why_no_mean(pairs), lambda _: pairs.mean)


def _why(end: np.ndarray, units: int, spread: np.ndarray) -> str:
    """Return why there is no interval, "" where there is one."""
    return (why_none(units, float(spread)) or "") if np.isnan(end) else ""


def _at_most_one(value: np.ndarray, spread: np.ndarray, units: np.ndarray | int) -> Ends:
    """`student` of what cannot be above 1."""
    low, high = student(value, spread, units)
    return low, np.minimum(high, 1)


def _why_nothing(ballots: Ballots, n_shared: int) -> str:
    if not len(ballots.votes):
        return NO_VOTES
    if len(ballots.annotators) == 1:
        return f"only one annotator has voted, {ballots.annotators[0]}"
    return "" if n_shared else "no item has two votes yet"


def _why_no_fleiss(votes_of_item: np.ndarray) -> str:
    fewest, most = votes_of_item.min(), votes_of_item.max()
    if fewest == most:
        return ""
    return (
        f"Fleiss' κ needs the same number of votes for every item; here it is {fewest} to {most}. "
        "Krippendorff's α allows for that"
    )


def _why_no_mean(pairs: Pairs) -> str:
    if not np.isnan(pairs.value).all():
        return ""
    return f"no two annotators share {FEWEST_SHARED} items on which their κ is defined"


def _sums(ballots: Ballots, category: np.ndarray, shared: np.ndarray, *, ordered: bool) -> _Sums:
    """Sums over the items with at least two votes; `shared` (V,) says which votes those are."""
    item, category = ballots.item[shared], category[shared]
    n_categories = int(category.max(initial=0)) + 1
    n_originals = ballots.weights.shape[1]
    cell, n_cell = np.unique(item * n_categories + category, return_counts=True)
    pairs = np.bincount(cell // n_categories, n_cell * (n_cell - 1), len(ballots.first))
    votes = np.bincount(item, minlength=len(ballots.first))
    used = votes > 1
    original = ballots.original[ballots.first][used]
    pairs, votes = pairs[used], votes[used]
    counts = crossed(ballots.original[shared], category, (n_originals, n_categories))
    return _Sums(
        items=ballots.per_original(original),
        agreeing=ballots.per_original(original, pairs / (votes * (votes - 1))),
        votes=counts.astype(float),
        together=ballots.per_original(original, pairs / (votes - 1)),
        apart=_coincidences(ballots, item, category) if ordered else None,
    )


def _coincidences(ballots: Ballots, item: np.ndarray, category: np.ndarray) -> np.ndarray:
    """(O, K, K) the ordered pairs of votes on one item, divided by the number of other votes."""
    counts = np.zeros((len(ballots.first), int(category.max(initial=0)) + 1))
    np.add.at(counts, (item, category), 1)
    used = counts.sum(axis=1) > 1
    counts = counts[used]
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    pairs /= counts.sum(axis=1)[:, None, None] - 1
    found = np.zeros((ballots.weights.shape[1], *pairs.shape[1:]))
    np.add.at(found, ballots.original[ballots.first][used], pairs)
    return found


def _raw(sums: _Sums, weights: np.ndarray) -> np.ndarray:
    return ratio(weights @ sums.agreeing, weights @ sums.items)


def _fleiss(sums: _Sums, weights: np.ndarray) -> np.ndarray:
    """Fleiss 1971, equations 3 to 7."""
    votes = weights @ sums.votes
    share = ratio(votes, votes.sum(axis=1, keepdims=True).repeat(votes.shape[1], axis=1))
    return _beyond_chance(_raw(sums, weights), (share**2).sum(axis=1))


def _alpha(sums: _Sums, weights: np.ndarray) -> np.ndarray:
    """Krippendorff 2004, "Content Analysis", section 11.3.3, nominal data, missing votes."""
    if sums.apart is not None:
        return _ordinal_alpha(sums.apart, weights)
    votes = weights @ sums.votes
    n = votes.sum(axis=1)
    by_chance = ratio((votes * (votes - 1)).sum(axis=1), n * (n - 1))
    return _beyond_chance(ratio(weights @ sums.together, n), by_chance)


def _ordinal_alpha(apart: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The same, section 11.3.4: c and k are apart by the votes from c to k, c and k by half."""
    pairs = np.tensordot(weights, apart, axes=1)
    votes = pairs.sum(axis=2)
    n = votes.sum(axis=1)
    middle = votes.cumsum(axis=1) - votes / 2
    distance = (middle[:, :, None] - middle[:, None, :]) ** 2
    observed = (pairs * distance).sum(axis=(1, 2))
    by_chance = (votes[:, :, None] * votes[:, None, :] * distance).sum(axis=(1, 2))
    return 1 - ratio((n - 1) * observed, by_chance)


def _beyond_chance(observed: np.ndarray, by_chance: np.ndarray) -> np.ndarray:
    """Correct agreement for chance: 0 where it is chance's, NaN where chance explains all."""
    left, beyond = 1 - by_chance, observed - by_chance
    return ratio(
        np.where(np.abs(beyond) > _ROUNDING, beyond, 0.0), np.where(left > _ROUNDING, left, 0.0)
    )


def pairs_of(ballots: Ballots, coding: Coding) -> Pairs:
    """Cohen's κ of every two annotators who share at least one item, with the interval `fisher`.

    It is not defined below `FEWEST_SHARED` shared items, nor where both always say the same one
    thing. Of a crowd almost all pairs share a few items: only the mean is kept under all weights.
    """
    first, second, n_items = _who_share(ballots)
    by_person = np.argsort(ballots.annotator, kind="stable")
    ends = np.searchsorted(ballots.annotator[by_person], np.arange(len(ballots.annotators) + 1))
    item, code = ballots.item[by_person], codes(ballots, coding)[by_person]
    original, ordered = ballots.original[ballots.first], is_ordered(ballots, coding)
    weights = np.ascontiguousarray(ballots.weights.T)
    value, low, high = np.full((3, len(first)), np.nan)
    why = np.full(len(first), "", dtype=object)
    total, defined = np.zeros((2, len(ballots.weights)))
    for pair in np.flatnonzero(n_items >= FEWEST_SHARED):
        one, other = (slice(ends[who], ends[who + 1]) for who in (first[pair], second[pair]))
        both, here, there = np.intersect1d(
            item[one], item[other], assume_unique=True, return_indices=True
        )
        said = code[one][here], code[other][there]
        kappas = cohen(*said, original[both], weights, ordered=ordered)
        units = len(np.unique(original[both]))
        spread = error(kappas, units)
        value[pair], (low[pair], high[pair]) = kappas[0], fisher(kappas[0], spread, units)
        why[pair] = _why(low[pair], units, spread)
        total += np.nan_to_num(kappas)
        defined += ~np.isnan(kappas)
    return Pairs(
        coding=coding,
        first=first,
        second=second,
        n_items=n_items,
        value=value,
        low=low,
        high=high,
        why=why,
        mean=ratio(total, defined),
    )


def _who_share(ballots: Ballots) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(P,) each two annotators who share items, in order, and how many."""
    shape = (max(1, len(ballots.annotators)), max(1, len(ballots.first)))
    ones = np.ones(len(ballots.item), dtype=int)
    voted = csr_array((ones, (ballots.annotator, ballots.item)), shape)
    shared = (voted @ voted.T).tocoo()
    above = np.flatnonzero(shared.row < shared.col)
    order = above[np.lexsort((shared.col[above], shared.row[above]))]
    return shared.row[order], shared.col[order], shared.data[order]


def _closeness(categories: np.ndarray, *, ordered: bool) -> np.ndarray:
    """(k, k) how far each of `categories`, (k,) int, agrees with each: 1 with itself, else 0.

    Ordered ones lose the square of their distance, as a share of the largest (Cohen 1968).
    """
    if not ordered:
        return np.eye(len(categories))
    return 1 - ((categories[:, None] - categories) / max(np.ptp(categories), 1)) ** 2


def cohen(
    one: np.ndarray,
    other: np.ndarray,
    original: np.ndarray,
    weights: np.ndarray,
    *,
    ordered: bool,
) -> np.ndarray:
    """(1 + G,) κ of two annotators from their answers (n,) to the same items.

    Args:
        weights: (O, 1 + G). Two people share items of few originals, so counts are a sparse matrix:
            for each of the k categories a row of the one and a row of the other, then agreement,
            then all.
    """
    categories, said = np.unique(np.concatenate([one, other]), return_inverse=True)
    k, n_items, close = len(categories), len(one), _closeness(categories, ordered=ordered)
    agreement = close[said[:n_items], said[n_items:]]
    agreeing = np.flatnonzero(agreement)
    said[n_items:] += k
    rows = np.concatenate([said, np.full(len(agreeing), 2 * k), np.full(n_items, 2 * k + 1)])
    columns = np.concatenate([original, original, original[agreeing], original])
    amounts = np.concatenate([np.ones(len(said)), agreement[agreeing], np.ones(n_items)])
    shape = (2 * k + 2, len(weights))
    sums = csr_array((amounts, (rows, columns)), shape) @ weights
    n = sums[-1]
    by_chance = ratio((sums[:k] * (close @ sums[k : 2 * k])).sum(axis=0), n**2)
    return _beyond_chance(ratio(sums[-2], n), by_chance)


def pair_table(ballots: Ballots, pairs: Pairs) -> pd.DataFrame:
    """One row a pair of annotators, with the columns `PAIR_COLUMNS`."""
    short = pairs.n_items < FEWEST_SHARED
    undefined = np.isnan(pairs.value)
    return pd.DataFrame(
        {
            "coding": pairs.coding.value,
            "first": [ballots.annotators[a] for a in pairs.first],
            "second": [ballots.annotators[b] for b in pairs.second],
            "n_items": pairs.n_items,
            "value": pairs.value,
            "low": pairs.low,
            "high": pairs.high,
            "reason": np.select(
                [short, undefined],
                [f"fewer than {FEWEST_SHARED} shared items", _SAME],
                pairs.why,
            ),
        },
        columns=list(PAIR_COLUMNS),
    )
