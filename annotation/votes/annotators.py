"""Each annotator beside the others, and results of trials.

Trials are known answers given, own answers repeated, and learning from other views. They come from
the table of votes (`base.columns.VOTE_COLUMNS`), as its rows with the status "quality"; an answer
that has been blanked with its person is left out.
"""

from enum import StrEnum

import numpy as np
import pandas as pd

from annotation.domain import StimulusKind, TrialKind, VoteStatus
from annotation.tasks.kind import NONE, Kind
from annotation.votes.aggregate import (
    DECIMALS,
    ORIGINAL,
    Ballots,
    crossed,
    few,
    ratings,
    recognising,
    scale_of,
)
from annotation.votes.agreement import Coding, Pairs, cohen
from semsim.base.stats.correlation import kendall_rows
from semsim.base.stats.evidence import model_names
from semsim.base.stats.intervals import error, left_out, share_ends, wilson
from semsim.base.stats.votes import ratio

CHECK_COLUMNS = ("annotator", "check", "n", "n_right", "accuracy", "low", "high")
REPEAT_COLUMNS = (
    "annotator",
    "coding",
    "n",
    "n_same",
    "agreement",
    "low",
    "high",
    "kappa",
    "reason",
)
CARRY_OVER_COLUMNS = ("view", "n_votes", "n_originals", "share", "low", "high", "reason")
EVERYBODY = ""  # no annotator can have this name
NO_REPEATS = "no repeat has been answered yet"
SAME_ANSWER = "every answer is the same, so nothing is left for chance to explain"
ANNOTATOR_COLUMNS = (
    "annotator",
    "n_votes",
    "median_rt_ms",
    "none_rate",
    "n_compared",  # items on which a majority of the others agrees
    "agreement",  # share of those where the annotator is with that majority
    "mean_kappa",  # of the pairs with the others
    "tau_without",
    "largest_change",
    "simulated",
    "reason",
)
NOT_ANSWERED = "none answered"


class Check(StrEnum):
    """Kind of trial with a known answer."""

    CLEAR = "clear"  # catch trials of an original as it is; pairs of which are the same
    NOTHING = "nothing"  # catch trials of noise, whose answer is none; pairs that differ
    GOLD = "gold"  # what the researcher says


def check_table(votes: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Compute how often each annotator gave known answers, by `Check`; columns `CHECK_COLUMNS`.

    Intervals are `wilson` and take trials as independent. In the recognition task the rest of
    `Check.NOTHING` are classes named where there is nothing: a bias away from none.
    """
    trials = _trials(votes)
    known = trials[trials["kind"].isin([TrialKind.CATCH.value, TrialKind.GOLD.value])]
    empty = known["expected"] == kind.nothing
    caught = np.where(empty, Check.NOTHING.value, Check.CLEAR.value)
    check = np.where(known["kind"] == TrialKind.GOLD.value, Check.GOLD.value, caught)
    pairs = zip(known["expected"], known["answer"], strict=True)
    right = pd.Series([kind.passes(*pair) for pair in pairs], index=known.index, dtype=bool)
    table = _shares(right, [known["annotator"], pd.Series(check, index=known.index, name="check")])
    return table.rename(columns={"agreement": "accuracy", "n_same": "n_right"})[list(CHECK_COLUMNS)]


def none_bias_table(votes: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Compute how often each annotator said none of a clear original; columns as `CHECK_COLUMNS`.

    `n_right` counts the answers none and `accuracy` is their share: here more is worse. Without
    rows where none is no answer.
    """
    trials = _trials(votes if kind.has_none else votes.iloc[:0])
    clear = trials[(trials["kind"] == TrialKind.CATCH.value) & (trials["expected"] != NONE)]
    said = _shares(clear["answer"] == NONE, [clear["annotator"]]).assign(check="none of clear")
    return said.rename(columns={"agreement": "accuracy", "n_same": "n_right"})[list(CHECK_COLUMNS)]


def _trials(votes: pd.DataFrame) -> pd.DataFrame:
    return votes[(votes["status"] == VoteStatus.QUALITY.value) & (votes["answer"] != "")]


def _shares(yes: pd.Series, by: list[pd.Series]) -> pd.DataFrame:
    """The keys `by`, n, n_same, agreement, low and high: how often `yes` in each group."""
    groups = yes.astype("int64").groupby([key.astype("object") for key in by])
    table = pd.DataFrame({"n": groups.size(), "n_same": groups.sum()}).reset_index()
    count, n = table["n_same"].to_numpy(float), table["n"].to_numpy(float)
    table["agreement"] = ratio(count, n)
    table["low"], table["high"] = wilson(table["agreement"].to_numpy(), n, n)
    return table


def repeat_table(votes: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Compute how far annotators agree with themselves; columns `REPEAT_COLUMNS`.

    Each repeat is set beside the same person's own vote on the item, one row an annotator and
    coding, `EVERYBODY` first. κ is Cohen's (1960), of ratings weighted by the square of how far two
    are apart (1968). Intervals are Wilson's, of the agreement.
    """
    both = _both_answers(votes)
    codings = [Coding.ANSWER] if kind.binary else [Coding.ANSWER, Coding.RECOGNISED]
    everybody = both.assign(annotator=EVERYBODY)
    rows = [
        _repeat_row(str(name), coding, found, kind)
        for part in (everybody, both)
        for name, found in part.groupby("annotator", sort=True)
        for coding in codings
    ]
    if not len(both):
        rows = [_repeat_row(EVERYBODY, coding, both, kind) for coding in codings]
    return pd.DataFrame(rows, columns=list(REPEAT_COLUMNS))


def _both_answers(votes: pd.DataFrame) -> pd.DataFrame:
    """One row a repeat with annotator, and answer and recognised of both times."""
    trials, columns = _trials(votes), ["annotator", "item", "answer", "recognised"]
    again = trials.loc[trials["kind"] == TrialKind.REPEAT.value, columns]
    # Of somebody who is excluded, the votes no longer count but still say how steady they were.
    given = votes["status"].isin([VoteStatus.COUNTED.value, VoteStatus.EXCLUDED.value])
    first = votes.loc[given & (votes["answer"] != ""), columns]
    return again.merge(first, on=["annotator", "item"], suffixes=("_again", "_first"))


def _repeat_row(name: str, coding: Coding, both: pd.DataFrame, kind: Kind) -> tuple[object, ...]:
    first, again = both[f"{coding.value}_first"], both[f"{coding.value}_again"]
    n, same = len(both), int((first == again).sum())
    share = same / n if n else np.nan
    low, high = wilson(np.array(share), np.array(n), n)
    ordered = coding is Coding.ANSWER and kind.scale is not None
    if ordered:
        first, again = first.astype(int), again.astype(int)
    said = pd.unique(pd.concat([first, again]))
    kappa, reason = np.nan, SAME_ANSWER if len(said) else NO_REPEATS
    if len(said) > 1:
        parts = (first.to_numpy(), again.to_numpy(), np.zeros(n, int))
        kappa, reason = float(cohen(*parts, np.ones((1, 1)), ordered=ordered)[0]), ""
    return name, coding.value, n, same, share, float(low), float(high), kappa, reason


def carry_over_table(votes: pd.DataFrame) -> pd.DataFrame:
    """P(recognised | k-th view of that original by that annotator); columns `CARRY_OVER_COLUMNS`.

    Of counted votes on reconstructions that `recognising` can judge. Everything shown of the
    original before is a view: other reconstructions, decoys (of the original they stand beside, not
    of the one they show), gold items and repeats, whatever became of the answer; an answer given
    anew after undo is not another. Intervals are `share_ends` over originals. Rows of `votes` are
    in the order they came.
    """
    # Practice and catch trials show originals that the study does not ask about.
    no_view = votes["kind"].isin([TrialKind.PRACTICE.value, TrialKind.CATCH.value])
    seen = votes[(votes["status"] != VoteStatus.SUPERSEDED.value) & ~no_view]
    views = seen.groupby(["annotator", *ORIGINAL]).cumcount() + 1
    wanted = (seen["status"] == VoteStatus.COUNTED.value) & (
        seen["kind"] == StimulusKind.RECONSTRUCTION.value
    )
    wanted &= ~np.isnan(recognising(seen))
    kept, view = seen[wanted], views[wanted].to_numpy()
    original = kept.groupby(ORIGINAL).ngroup().to_numpy()
    n_originals, n_views = int(original.max(initial=-1)) + 1, int(view.max(initial=0))
    said, shape = recognising(kept), (n_originals, n_views + 1)
    yes, n = (crossed(original, view, shape, one)[:, 1:] for one in (said, None))
    weights = left_out(n_originals)
    draws = ratio(weights @ yes, weights @ n)
    originals = (n > 0).sum(axis=0)
    low, high = share_ends(draws[0], error(draws, originals), originals)
    table = pd.DataFrame(
        {
            "view": np.arange(1, n_views + 1),
            "n_votes": n.sum(axis=0),
            "n_originals": originals,
            "share": draws[0],
            "low": low,
            "high": high,
            "reason": few(originals),
        },
        columns=list(CARRY_OVER_COLUMNS),
    )
    return table[table["n_votes"] > 0].reset_index(drop=True)


def annotator_table(ballots: Ballots, kind: Kind, pairs: Pairs) -> pd.DataFrame:
    """One row an annotator, by name, with the columns `ANNOTATOR_COLUMNS`.

    Agreement and κ are of recognised or not, agreement as the headline has it: a majority is more
    than half of the others' votes on an item. Items do not count where the others are tied, no
    other annotator voted, or the headline gives nothing. `tau_without` is Kendall's τ-b between the
    models ranked by `mean_responses` with and without the annotator, and `largest_change` how far
    any of these moves. NaN where there is nothing to compute from, as where a model has no votes of
    others; `reason` says why.
    `pairs` are those of `Coding.RECOGNISED`.
    """
    votes = ballots.votes
    groups = votes.groupby(ballots.annotator)
    table = pd.DataFrame({"annotator": ballots.annotators})
    table["n_votes"] = groups.size()
    table["median_rt_ms"] = groups["rt_ms"].median()
    table["none_rate"] = np.nan
    if kind.has_none:
        table["none_rate"] = (votes["answer"] == NONE).groupby(ballots.annotator).mean()
    table["n_compared"], table["agreement"] = _with_the_others(ballots)
    table["mean_kappa"] = _mean_kappas(pairs, len(table))
    everybody, without = mean_responses(ballots)
    effects = [_effect(everybody, rest) for rest in without]
    table["tau_without"] = [tau for tau, _, _ in effects]
    table["largest_change"] = [change for _, change, _ in effects]
    table["simulated"] = groups["simulated"].first()
    table["reason"] = [reason for _, _, reason in effects]
    return table.reindex(columns=list(ANNOTATOR_COLUMNS))


def with_trials(people: pd.DataFrame, checks: pd.DataFrame, repeats: pd.DataFrame) -> pd.DataFrame:
    """An `annotator_table` with the accuracy of each `Check` and the κ of repeats.

    Who answered trials but has no vote that counts gets a row too. NaN without trials.
    """
    own = (repeats["annotator"] != EVERYBODY) & (repeats["coding"] == Coding.ANSWER.value)
    shares = checks.pivot(index="annotator", columns="check", values="accuracy")
    kappas = repeats[own].set_index("annotator")[["kappa", "reason"]]
    shares = shares.reindex(columns=list(Check)).add_suffix("_accuracy")
    first, second, third = (
        part.set_index(part.index.astype("str"))
        for part in (people.set_index("annotator"), shares, kappas.add_prefix("repeat_"))
    )
    table = first.join(second, how="outer").join(third, how="outer")
    table.loc[table["n_votes"].isna(), "reason"] = "no vote counts"
    # Simulated annotators get no trials, so whoever has nothing else is a person.
    nothing = {"n_votes": 0, "n_compared": 0, "simulated": False, "repeat_reason": NOT_ANSWERED}
    filled = table.astype({"simulated": object}).fillna(nothing)
    types = {"n_votes": int, "n_compared": int, "simulated": bool}
    return filled.astype(types).rename_axis("annotator").reset_index()


def _with_the_others(ballots: Ballots) -> tuple[np.ndarray, np.ndarray]:
    """(A,) on how many items each annotator is compared with a majority; the share in line."""
    said = recognising(ballots.votes)
    own = np.nan_to_num(said)
    others = np.bincount(ballots.item)[ballots.item] - 1
    yes = np.bincount(ballots.item, own)[ballots.item] - own
    decided = ~np.isnan(said) & (2 * yes != others)
    in_line = decided & ((2 * yes > others) == (own == 1))
    people = len(ballots.annotators)
    compared = np.bincount(ballots.annotator, decided, people)
    return compared.astype(int), ratio(np.bincount(ballots.annotator, in_line, people), compared)


def _mean_kappas(pairs: Pairs, people: int) -> np.ndarray:
    """(A,) the mean κ of the pairs each annotator is part of."""
    known = ~np.isnan(pairs.value)
    part = np.concatenate([pairs.first[known], pairs.second[known]])
    kappas = np.tile(pairs.value[known], 2)
    return ratio(np.bincount(part, kappas, people), np.bincount(part, minlength=people))


def mean_responses(ballots: Ballots) -> tuple[np.ndarray, np.ndarray]:
    """Compute (M,) mean responses with all annotators and (A, M) without each; models by name.

    A model's mean response is the mean over its items of the share of votes that recognised it, as
    `aggregate.recognising` has it, which leaves out those it says nothing of; of ratings, by which
    models are ranked, the mean over its items of their mean, as a share of the scale: 0 the lowest
    rating, 1 the highest. NaN for a model without others.
    """
    said, scale = recognising(ballots.votes), scale_of(ballots.votes)
    if scale is not None and len(said):
        said = (ratings(ballots.votes) - 1) / (scale.levels - 1)
    known = ~np.isnan(said)
    own, item = said[known], pd.factorize(ballots.item[known])[0]
    n, yes = np.bincount(item), np.bincount(item, own)
    models, people = pd.factorize(model_names(ballots.votes), sort=True)[0], len(ballots.annotators)
    n_models, model = int(models.max(initial=-1)) + 1, models[known]
    of_item = model[np.unique(item, return_index=True)[1]]
    total = np.bincount(of_item, yes / n, n_models)
    items = np.bincount(of_item, minlength=n_models)
    # What each vote's absence does to its item: another share, or no votes at all.
    rest = n[item] - 1
    share = np.divide(yes[item] - own, rest, out=np.zeros(len(own)), where=rest > 0)
    change = share - (yes / n)[item]
    who, shape = ballots.annotator[known], (people, n_models)
    moved, lost = (crossed(who, model, shape, one) for one in (change, rest == 0))
    # Rounded, so that models with equal shares are equal however their sums were made.
    without = np.round(ratio(total + moved, items - lost), DECIMALS)
    return np.round(ratio(total, items), DECIMALS), without


def _effect(everybody: np.ndarray, rest: np.ndarray) -> tuple[float, float, str]:
    """Kendall's τ between two sets of mean responses, their largest difference, why not."""
    both = ~np.isnan(rest)
    gone = bool((~np.isnan(everybody) & ~both).any())
    if len(everybody) and np.isnan(everybody).all():
        return np.nan, np.nan, "no original has a name yet"
    if not both.any():
        return np.nan, np.nan, "nobody else has voted"
    change = np.nan if gone else float(np.abs(rest - everybody)[both].max())
    if both.sum() < 2:
        return np.nan, change, "a ranking needs two models with votes of others"
    if gone:
        return np.nan, change, "a model has no votes of others"
    tau = float(kendall_rows(everybody[None, both], rest[None, both])[0])
    return tau, change, "all models have the same mean response" if np.isnan(tau) else ""
