"""Leakage of each model to people, certainty of its rank, confusions, and signal detection.

In the pair task detection asks whether people tell matches from decoys, and how readily they say
"same". A hit is "same" said of a reconstruction beside its own original, a false alarm "same" said
of a decoy. z(hits) - z(false alarms) takes an original with one other image as a yes-no design.
"""

import numpy as np
import pandas as pd
from scipy.special import ndtri

from annotation.domain import StimulusKind, VoteStatus
from annotation.tasks.kind import NONE, Kind
from annotation.votes.aggregate import (
    DECIMALS,
    NO_VOTES,
    ORIGINAL,
    Ballots,
    counts,
    crossed,
    few,
    ratings,
    recognising,
    scale_of,
    verdict,
)
from semsim.base.stats.correlation import mean_ranks
from semsim.base.stats.evidence import model_names
from semsim.base.stats.intervals import error, share_ends, student
from semsim.base.stats.standstill import Standstill, watched
from semsim.base.stats.votes import ratio

RATE_COLUMNS = (
    "model",
    "n_items",  # with at least one vote
    "n_decided",  # on which a majority agrees, whatever votes are missing
    "rate",
    "rate_low",
    "rate_high",
    "mean_response",
    "mean_response_low",
    "mean_response_high",
    "rank",
    "rank_low",
    "rank_high",
    "reason",
)
RATING_COLUMNS = ("mean_rating", "mean_rating_low", "mean_rating_high")  # further ones of ratings
_RANK_LEVEL = (2.5, 97.5)
DETECTION_KINDS = (StimulusKind.RECONSTRUCTION.value, StimulusKind.DECOY.value)
ALL_VOTES = "all votes"
DETECTION_COLUMNS = (
    "of",  # "all votes", "annotator", "model" or "stratum"
    "name",
    "n_matched",
    "hits",
    "n_decoys",
    "false_alarms",
    "d_prime",
    "d_prime_low",
    "d_prime_high",
    "criterion",
    "criterion_low",
    "criterion_high",
    "interval",  # how the intervals were made
    "reason",
)
_JACKKNIFE = "jackknife"
_VARIANCE = "Gourevitch-Galanter"


def rate_table(ballots: Ballots, votes_per_item: int) -> pd.DataFrame:
    """One row a model, the one that leaks most first, with the columns `RATE_COLUMNS`.

    `rate` is the share of decided items whose verdict is recognised, `mean_response` the mean over
    items of the share of votes that recognised it, `mean_rating`, of ratings, the mean over items
    of their mean. Models are ranked by it, or else by rate, 1 leaks most, ties share their mean
    rank; the range of a rank holds 95% of the resamples of originals. Intervals are `share_ends`,
    of ratings as shares of the way from the lowest to the highest.
    """
    if not len(ballots.votes):
        return pd.DataFrame(columns=list(RATE_COLUMNS))
    items = _items(ballots, votes_per_item)
    names = np.unique(items["model"])
    decided, voted = items[items["recognised"].notna()], items[items["share"].notna()]
    verdicts, scale = decided["recognised"].astype(float), scale_of(ballots.votes)
    table = pd.DataFrame({"model": names})
    for name, of, amount, ends in (
        ("rate", decided, verdicts, (0, 1)),
        ("mean_response", voted, voted["share"], (0, 1)),
        ("mean_rating", items, items["rating"], (1, scale.levels if scale else 2)),
    ):
        known = _with_ends(ballots, of, amount, names, ends)
        table[name], table[f"{name}_low"], table[f"{name}_high"] = known
    table["n_items"] = table["model"].map(items["model"].value_counts())
    counts = table["model"].map(decided["model"].value_counts())
    table["n_decided"] = counts.fillna(0).astype(int)
    by = "rate" if scale is None else "mean_rating"
    of, ranked = (decided, verdicts) if by == "rate" else (items, items["rating"])
    every = np.vstack([ballots.weights[:1], ballots.drawn])
    ranks = rank_rows(_means(ballots, of, ranked, names, every))
    table["rank"], (table["rank_low"], table["rank_high"]) = ranks[0], _rank_range(ranks)
    alone = few(_n_originals(decided, names))
    table["reason"] = np.where(table["n_decided"] == 0, "no item is decided yet", alone)
    ordered = table.sort_values([by, "model"], ascending=[False, True], ignore_index=True)
    return ordered[[*RATE_COLUMNS, *(() if by == "rate" else RATING_COLUMNS)]]


def standstill_of(votes: pd.DataFrame, wanted: int) -> tuple[tuple[str, ...], Standstill] | None:
    """Return the models' names, and their bands look by look; None where no vote has a time.

    Args:
        votes: As of an export. The share of votes decides, of ratings their mean, as a verdict
            comes late.
        wanted: Counted votes on reconstructions that the protocol asks for.
    """
    said, kind = recognising(votes), StimulusKind.RECONSTRUCTION.value
    if (scale := scale_of(votes)) is not None:
        said = (ratings(votes) - 1) / (scale.levels - 1)
    counted = (votes["status"] == VoteStatus.COUNTED.value) & (votes["kind"] == kind)
    kept = votes.assign(said=said)[counted & ~np.isnan(said)]
    if "server_ts" not in kept or kept["server_ts"].isna().any() or not len(kept):
        return None
    kept = kept.sort_values(["server_ts", "vote_id"], ignore_index=True)
    model, names = pd.factorize(model_names(kept), sort=True)
    original = kept.groupby(ORIGINAL).ngroup().to_numpy()
    return tuple(map(str, names)), watched(model, original, kept["said"].to_numpy(), wanted)


def whole_rate(ballots: Ballots, votes_per_item: int) -> tuple[float, float, float]:
    """The share of decided items of all models whose verdict is recognised, and its interval."""
    if not len(ballots.votes):
        return np.nan, np.nan, np.nan
    items = _items(ballots, votes_per_item).assign(model="")
    decided, names = items[items["recognised"].notna()], np.array([""])
    rate, low, high = _with_ends(ballots, decided, decided["recognised"].astype(float), names)
    return float(rate[0]), float(low[0]), float(high[0])


def _with_ends(
    ballots: Ballots,
    items: pd.DataFrame,
    amount: pd.Series,
    names: np.ndarray,
    ends: tuple[float, float] = (0, 1),
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(M,) the mean of `amount` over each model's items, and its interval within `ends`."""
    draws, n = _means(ballots, items, amount, names, ballots.weights), _n_originals(items, names)
    least, length = ends[0], ends[1] - ends[0]
    shares = (draws - least) / length
    low, high = share_ends(shares[0], error(shares, n), n)
    return draws[0], least + length * low, least + length * high


def _items(ballots: Ballots, votes_per_item: int) -> pd.DataFrame:
    """One row an item: original, model, share of votes that recognised it, rating, verdict."""
    first = ballots.votes.iloc[ballots.first]
    counted = counts(ballots.votes, ballots.item, len(first))
    return pd.DataFrame(
        {
            "original": ballots.original[ballots.first],
            "model": model_names(first).to_numpy(),
            "share": counted["mean_response"],
            "rating": np.bincount(ballots.item, ratings(ballots.votes)) / counted["n_votes"],
            "recognised": verdict(ballots.votes, ballots.item, counted, votes_per_item),
        }
    )


def _means(
    ballots: Ballots,
    items: pd.DataFrame,
    amount: pd.Series,
    names: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """(W, M) the mean of `amount` over each model's items; NaN for a model without any.

    Args:
        weights: (W, O). Rounded, so that equal means are equal however their sums were made.
    """
    column = np.searchsorted(names, items["model"].to_numpy())
    shape, original = (ballots.weights.shape[1], len(names)), items["original"].to_numpy()
    total, n = (crossed(original, column, shape, one) for one in (amount.to_numpy(), None))
    return np.round(ratio(weights @ total, weights @ n), DECIMALS)


def _n_originals(items: pd.DataFrame, names: np.ndarray) -> np.ndarray:
    """(M,) how many originals each model's items are of."""
    found = items.groupby("model")["original"].nunique()
    return found.reindex(names, fill_value=0).to_numpy()


def rank_rows(rates: np.ndarray) -> np.ndarray:
    """(B, M) ranks of each row's rates, 1 for the highest, tied ones their mean rank.

    A row with a missing rate has no ranks, as it would rank fewer models; models that have no
    rate in the first row are left out of all rows.
    """
    ranks = np.full(rates.shape, np.nan)
    known = ~np.isnan(rates[0])
    whole = ~np.isnan(rates[:, known]).any(axis=1)
    if known.any():
        ranks[np.ix_(whole, known)] = mean_ranks(-rates[np.ix_(whole, known)])
    return ranks


def _rank_range(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranks that were drawn, not values in between."""
    known = ~np.isnan(ranks[0])
    drawn = ranks[1:][~np.isnan(ranks[1:][:, known]).any(axis=1)]
    ends = np.full((2, ranks.shape[1]), np.nan)
    if known.any() and len(drawn) and 2 * len(drawn) >= len(ranks) - 1:
        ends[:, known] = np.percentile(drawn[:, known], _RANK_LEVEL, axis=0, method="inverted_cdf")
    return ends[0], ends[1]


def confusion_table(ballots: Ballots, kind: Kind) -> pd.DataFrame:
    """Count the votes of each truth (rows) that gave each answer (columns).

    Recognition: true class by class answered, the answer none last. Pair: "reconstruction" and
    "decoy", where `ballots` has them, by "same" and "different". Ratings: models by all ratings.
    """
    truth = kind.truth
    answers = sorted(ballots.votes["answer"].unique(), key=lambda said: (said == NONE, said))
    if kind.scale:
        answers = list(kind.offered(None))
    if kind.lists:
        named = {*answers, *ballots.votes["class_name"].unique()} - {NONE}
        answers = [*sorted(named), NONE] if len(ballots.votes) else []
    counts = pd.crosstab(ballots.votes[truth], ballots.votes["answer"])
    table = counts.reindex(columns=answers, fill_value=0)
    return table.rename_axis(index=truth, columns="answer")


def likely_confusions(confusion: pd.DataFrame, most: int = 10) -> pd.DataFrame:
    """The pairs of classes most often taken for each other: true class, answered, votes, share.

    `share` is of all votes on the true class. The answer none is not taken for a class.
    """
    long = confusion.stack().reset_index()
    long.columns = pd.Index(["class_name", "answered", "votes"])
    totals = long["class_name"].map(confusion.sum(axis=1)).astype(float)
    long["share"] = long["votes"] / totals
    mistaken = (long["class_name"] != long["answered"]) & (long["answered"] != NONE)
    found = long[mistaken & (long["votes"] > 0)]
    order = found.sort_values(
        ["votes", "class_name", "answered"], ascending=[False, True, True], ignore_index=True
    )
    return order.head(most)


def detection_table(ballots: Ballots) -> pd.DataFrame:
    """d′ and criterion of all votes and by annotator, model, stratum; columns `DETECTION_COLUMNS`.

    `ballots` holds both `DETECTION_KINDS`. A stratum is the quality of what is shown within its
    model, by which decoys are drawn; votes without one are in no such row. Rates are corrected
    log-linearly, (hits + 0.5) / (n + 1), for every group (Hautus 1995), so that 0 and 1 have a z.
    Criterion is -(z(hits) + z(false alarms)) / 2: above 0 leans towards "different". The 95%
    intervals are `student`, over the originals of matched items or of decoys, whichever are fewer.
    Where a raw rate is 0 or 1 no original can vary it: the error is at least that of Gourevitch and
    Galanter 1967, which takes votes as independent.
    """
    everybody = np.zeros(len(ballots.votes), dtype=int)
    models, model_of = np.unique(model_names(ballots.votes), return_inverse=True)
    stratum_of, strata = pd.factorize(ballots.votes["stratum"], sort=True)  # −1 without one
    tables = [
        _table(ballots, "all votes", [ALL_VOTES], everybody),
        _table(ballots, "annotator", list(ballots.annotators), ballots.annotator),
        _table(ballots, "model", list(models), model_of),
        _table(ballots, "stratum", list(map(str, strata)), stratum_of),
    ]
    return pd.concat(tables, ignore_index=True)


def _table(ballots: Ballots, of: str, names: list[str], group: np.ndarray) -> pd.DataFrame:
    decoy = (ballots.votes["kind"] == StimulusKind.DECOY.value).to_numpy()
    same = ballots.votes["recognised"].to_numpy()
    cells = [
        _cells(ballots, group, len(names), kept)
        for kept in (~decoy, decoy, ~decoy & same, decoy & same)
    ]
    n_matched, n_decoys, hits, alarms = (ballots.weights @ cell for cell in cells)
    units = np.minimum(*((cell > 0).sum(axis=0) for cell in cells[:2]))
    d_prime, criterion = _d_prime(hits, n_matched, alarms, n_decoys)
    deviation = np.sqrt(_variance(hits[0], n_matched[0]) + _variance(alarms[0], n_decoys[0]))
    stuck = _stuck(hits[0], n_matched[0]) | _stuck(alarms[0], n_decoys[0])
    table = pd.DataFrame({"of": of, "name": names})
    table["n_matched"], table["hits"] = n_matched[0].astype(int), hits[0].astype(int)
    table["n_decoys"], table["false_alarms"] = n_decoys[0].astype(int), alarms[0].astype(int)
    # The criterion is half of a sum with the same two variances.
    for name, draws, spread in (
        ("d_prime", d_prime, deviation),
        ("criterion", criterion, deviation / 2),
    ):
        moved = error(draws, units)
        spread = np.where(stuck, np.fmax(moved, spread), moved)
        table[name] = draws[0]
        table[f"{name}_low"], table[f"{name}_high"] = student(draws[0], spread, units)
    table["reason"] = _reasons(n_matched[0], n_decoys[0], units)
    table["interval"] = np.where(stuck, _VARIANCE, _JACKKNIFE)
    table.loc[table["d_prime_low"].isna(), "interval"] = ""
    return table[list(DETECTION_COLUMNS)]


def _cells(ballots: Ballots, group: np.ndarray, n_groups: int, kept: np.ndarray) -> np.ndarray:
    """(O, G) how many of the `kept` (V,) votes each group has on each original."""
    kept = kept & (group >= 0)
    return crossed(ballots.original[kept], group[kept], (ballots.weights.shape[1], n_groups))


def _d_prime(
    hits: np.ndarray, n_matched: np.ndarray, alarms: np.ndarray, n_decoys: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """d′ and criterion, NaN where there are no matched items or no decoys."""
    both = (n_matched > 0) & (n_decoys > 0)
    z_hits = ndtri(np.where(both, _corrected(hits, n_matched), np.nan))
    z_alarms = ndtri(np.where(both, _corrected(alarms, n_decoys), np.nan))
    return z_hits - z_alarms, -(z_hits + z_alarms) / 2


def _corrected(count: np.ndarray, n: np.ndarray) -> np.ndarray:
    return (count + 0.5) / (n + 1)


def _variance(count: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Of z(rate), Gourevitch and Galanter 1967, at the corrected rate; infinite without items."""
    rate = _corrected(count, n)
    density = np.exp(-(ndtri(rate) ** 2) / 2) / np.sqrt(2 * np.pi)
    bound = np.full(len(n), np.inf)
    return np.divide(rate * (1 - rate), n * density**2, out=bound, where=n > 0)


def _stuck(count: np.ndarray, n: np.ndarray) -> np.ndarray:
    return (n > 0) & ((count == 0) | (count == n))


def _reasons(n_matched: np.ndarray, n_decoys: np.ndarray, units: np.ndarray) -> np.ndarray:
    return np.select(
        [(n_matched == 0) & (n_decoys == 0), n_decoys == 0, n_matched == 0],
        [
            NO_VOTES,
            "without votes on decoys the rate of wrong “same” is unknown",
            "there are no votes on matched pairs",
        ],
        few(units),
    )
