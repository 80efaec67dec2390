"""Results of trials: known answers given, own answers repeated, and learning from other views.

All of it comes from the table of votes (`base.columns.VOTE_COLUMNS`). Trials are its rows with the
status "quality"; an answer that has been blanked with its person is left out.
"""

from enum import StrEnum

import numpy as np
import pandas as pd

from annotation.domain import StimulusKind, TrialKind, VoteStatus
from annotation.tasks.kind import NONE, Kind
from annotation.votes.aggregate import ORIGINAL, recognising
from annotation.votes.agreement import Coding, closeness_of
from annotation.votes.ballots import few
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
        shares = np.array([[(part == one).mean() for one in said] for part in (first, again)])
        close = closeness_of(np.asarray(said), ordered=ordered)
        place = pd.Index(said)
        observed = close[place.get_indexer(first), place.get_indexer(again)].mean()
        by_chance = float(shares[0] @ close @ shares[1])
        kappa, reason = float(observed - by_chance) / (1 - by_chance), ""
    return name, coding.value, n, same, share, float(low), float(high), kappa, reason


def carry_over_table(votes: pd.DataFrame) -> pd.DataFrame:
    """P(recognised | k-th view of that original by that annotator); columns `CARRY_OVER_COLUMNS`.

    Of counted votes on reconstructions that `recognising` can judge. Everything shown of the
    original before is a view: other reconstructions, decoys (of the original they stand beside, not
    of the one they show), gold items and repeats, whatever became of the answer; an answer given
    anew after undo is not another. Intervals are `share_ends` over originals. Rows of `votes` are
    in the order they came.
    """
    seen = votes[(votes["status"] != VoteStatus.SUPERSEDED.value) & _is_view(votes)]
    views = seen.groupby(["annotator", *ORIGINAL]).cumcount() + 1
    wanted = (seen["status"] == VoteStatus.COUNTED.value) & (
        seen["kind"] == StimulusKind.RECONSTRUCTION.value
    )
    wanted &= ~np.isnan(recognising(seen))
    kept, view = seen[wanted], views[wanted].to_numpy()
    original = kept.groupby(ORIGINAL).ngroup().to_numpy()
    n_originals, n_views = int(original.max(initial=-1)) + 1, int(view.max(initial=0))
    shape = (n_originals, n_views + 1)
    place = original * shape[1] + view
    size = shape[0] * shape[1]
    yes = np.bincount(place, recognising(kept), size).reshape(shape)[:, 1:]
    n = np.bincount(place, minlength=size).reshape(shape)[:, 1:]
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


def _is_view(votes: pd.DataFrame) -> pd.Series:
    """Mark the views; practice and catch trials show originals the study does not ask about."""
    return ~votes["kind"].isin([TrialKind.PRACTICE.value, TrialKind.CATCH.value])
