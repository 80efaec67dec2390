"""From votes to labels: votes as arrays, what they say of each item, and the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from annotation.domain import StimulusKind, VoteStatus
from annotation.tasks.kind import NONE, Scale
from semsim.base.columns import AS_NAMED, ITEM_COLUMNS, LABEL_COLUMNS, ORIGINAL_ANSWER, RATED
from semsim.base.stats.intervals import FEWEST, left_out, too_few
from semsim.base.stats.resampling import draw_originals
from semsim.base.stats.votes import at_threshold, majority, votes_needed
from semsim.base.words import PEOPLE

ORIGINAL = ["dataset", "image_id"]  # columns that name an original
_BY_CLASS = ("original", "practice", "catch")  # kinds that no name of an original can judge
DECIMALS = 12  # of means that are ranked: equal ones are equal however they were summed
BOOTSTRAPS = 1000
NO_VOTES = "there are no votes yet"
SUMMARY_COLUMNS = (
    "item",
    "model",
    "attack",
    "image_id",
    "class_name",
    "n_votes",
    "n_recognised",
    "mean_response",
    "recognisable",  # the verdict; missing while it is not decided
    "undecided",
    "too_few_votes",  # fewer than the study asks for
    "plurality",  # the answer given most often; missing on a tie
    "n_plurality",
    "tie",  # of the answers given most often
)


def scale_of(votes: pd.DataFrame) -> Scale | None:
    """The scale of answers that are numbers, which such votes carry; None of any others."""
    if not set(RATED) <= set(votes.columns):
        return None
    levels, threshold = (votes[name].max() for name in RATED)  # NaN without votes
    return Scale(levels=levels, threshold=threshold)


def ratings(votes: pd.DataFrame) -> np.ndarray:
    """(V,) float: the answers as numbers; NaN where they are none."""
    if scale_of(votes) is None:
        return np.full(len(votes), np.nan)
    return votes["answer"].astype(float).to_numpy()


def with_original_answers(votes: pd.DataFrame, votes_per_item: int) -> pd.DataFrame:
    """`votes` with the column `ORIGINAL_ANSWER`, from the counted votes on originals among them.

    It is the class that more than half of K votes on the original name, or of all where there are
    more. It is missing where no class has so many, as on a tie, or where no annotator was asked.
    """
    asked = votes[(votes["kind"] == "original") & (votes["status"] == "counted")]
    n_votes = asked.groupby(ORIGINAL).size()
    n_same = asked[asked["answer"] != NONE].groupby([*ORIGINAL, "answer"]).size().reset_index()
    all_of = _originals(n_same).map(n_votes).astype(float)
    most = n_same[n_same[0] >= votes_needed(all_of.to_numpy(), votes_per_item)]
    named = dict(zip(_originals(most), most["answer"], strict=True))
    return votes.assign(**{ORIGINAL_ANSWER: _originals(votes).map(named).astype("str")})


def _originals(rows: pd.DataFrame) -> pd.Series:
    """Return the key of the original of each row, a tuple."""
    return pd.Series(list(rows[ORIGINAL].itertuples(index=False, name=None)), index=rows.index)


def recognising(votes: pd.DataFrame) -> np.ndarray:
    """(V,) float: whether each vote recognises what is shown, as the headline of `votes` has it.

    Where that goes by the names of originals: whether the answer is that name, NaN without one.
    Originals go by their class all the same, as they have that name from these very votes. So do
    those whose names the study does not ask for.
    """
    said = votes["recognised"].to_numpy(dtype=float)
    if not goes_by_names(votes):
        return said
    by_name = (votes["answer"] == votes[ORIGINAL_ANSWER]).to_numpy(dtype=float)
    by_name[votes[ORIGINAL_ANSWER].isna()] = np.nan
    return np.where(votes["kind"].isin(_BY_CLASS), said, by_name)


def goes_by_names(votes: pd.DataFrame) -> bool:
    """Check whether the headline of the study these votes are of is `AS_NAMED`."""
    return "headline" in votes and bool((votes["headline"] == AS_NAMED).any())


def counts(votes: pd.DataFrame, item: np.ndarray, n: int) -> pd.DataFrame:
    """One row for each of `n` items: n_votes, n_recognised (int), and mean_response, their ratio.

    Args:
        item: (V,) int, which row each vote is of. mean_response is NaN without a vote, and where
            `recognising` is: then no vote is counted as recognising.
    """
    said = recognising(votes)
    table = pd.DataFrame({"n_votes": np.bincount(item, minlength=n)})
    table["n_recognised"] = np.bincount(item, np.nan_to_num(said), n).astype(int)
    # A sum of NaN is NaN.
    table["mean_response"] = np.bincount(item, said, n) / table["n_votes"].where(
        table["n_votes"] > 0, np.nan
    )
    return table


def verdict(votes: pd.DataFrame, item: np.ndarray, counted: pd.DataFrame, k: int) -> pd.Series:
    """Nullable boolean, one an item: the `majority` of `votes`, or, of ratings, what is below.

    Args:
        item: (V,) int, which row of `counted`, as from `counts`, each vote is of. An original
            without a name, where the headline goes by it, leaves <NA>. Of ratings: True where their
            mean is at or above the threshold and False where it is below, whatever the votes that
            are missing of K will say; else <NA>.
    """
    scale, n_votes = scale_of(votes), counted["n_votes"].to_numpy()
    if scale is None:
        values = majority(counted["n_recognised"].to_numpy(), n_votes, k)
        values[counted["mean_response"].isna()] = np.nan
    else:
        total, asked = np.bincount(item, ratings(votes), len(n_votes)), np.maximum(n_votes, k)
        ends = (1, scale.levels)
        values = at_threshold(total, asked - n_votes, scale.threshold * asked, ends)
    return pd.Series(values, index=counted.index).astype("boolean")


def labels(
    items: pd.DataFrame, votes: pd.DataFrame, *, votes_per_item: int, voter: str = PEOPLE
) -> pd.DataFrame:
    """One row a reconstruction with the columns `LABEL_COLUMNS`.

    `items` has `ITEM_COLUMNS` and no decoys; `votes` has item, status and recognised. Only counted
    votes are used. What recognised the image is as in `counts`; `recognisable` is the `verdict`.
    Ratings have one column more, `mean_rating`.

    Args:
        voter: Who votes in the study, as `words.voters_of` has it.
    """
    counted = votes[votes["status"] == "counted"]
    table = items[list(ITEM_COLUMNS)].reset_index(drop=True)
    place = pd.Index(table["item"]).get_indexer(counted["item"])
    counted, place = counted[place >= 0], place[place >= 0]
    table = table.join(counts(counted, place, len(table)))
    table["recognisable"] = verdict(counted, place, table, votes_per_item)
    table["votes_per_item"] = votes_per_item
    table["simulated"], table["voter"] = voter != PEOPLE, pd.Series(voter, table.index, "str")
    if scale_of(votes) is None:
        return table[list(LABEL_COLUMNS)]
    voted = table["n_votes"].where(table["n_votes"] > 0, np.nan)
    table["mean_rating"] = np.bincount(place, ratings(counted), len(table)) / voted
    return table[[*LABEL_COLUMNS, "mean_rating"]]


@dataclass(frozen=True, kw_only=True)
class Ballots:
    """V counted votes of I items by A annotators about O originals.

    Attributes:
        votes: The rows themselves, sorted by item and annotator, so that nothing depends on the
            order in which they came.
        item, annotator, original: (V,) int from 0; `annotators` are their names, sorted.
        weights: (1 + G, O), how often each original counts: once in the first row, which makes the
            statistic itself, then as `left_out` has it.
        drawn: (B, O), how often each original was drawn in each of the B bootstrap resamples.
    """

    votes: pd.DataFrame
    item: np.ndarray
    annotator: np.ndarray
    original: np.ndarray
    annotators: tuple[str, ...]
    weights: np.ndarray
    drawn: np.ndarray

    @property
    def first(self) -> np.ndarray:
        """(I,) where each item's first vote is, in the order of items."""
        return np.unique(self.item, return_index=True)[1]

    def per_original(self, where: np.ndarray, amount: np.ndarray | None = None) -> np.ndarray:
        """(O,) float: how many elements, or how much of `amount`, fall on each original."""
        return np.bincount(where, amount, minlength=self.weights.shape[1]).astype(float)


def ballots_of(
    votes: pd.DataFrame,
    rng: np.random.Generator,
    *,
    kinds: Sequence[str] = (StimulusKind.RECONSTRUCTION.value,),
    bootstraps: int = BOOTSTRAPS,
) -> Ballots:
    """The counted votes on items of these kinds, out of a table with `base.columns.VOTE_COLUMNS`.

    Resamples are of `draw_originals`, with all items of an original of all models.
    """
    wanted = (votes["status"] == VoteStatus.COUNTED.value) & votes["kind"].isin(list(kinds))
    kept = votes[wanted].sort_values(["item", "annotator"], ignore_index=True)
    annotator, names = pd.factorize(kept["annotator"], sort=True)
    original = kept.groupby(ORIGINAL).ngroup().to_numpy()  # by data set first
    sizes = kept.drop_duplicates(ORIGINAL).groupby("dataset").size()
    n = int(sizes.sum())
    drawn = draw_originals(np.repeat(np.arange(len(sizes)), sizes), bootstraps, rng)
    return Ballots(
        votes=kept,
        item=pd.factorize(kept["item"])[0],
        annotator=annotator,
        original=original,
        annotators=tuple(map(str, names)),
        weights=left_out(n),
        drawn=np.ascontiguousarray(drawn) if n >= FEWEST else np.ones((0, n)),
    )


def crossed(
    rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int], amount: np.ndarray | None = None
) -> np.ndarray:
    """Return how many elements, or how much of `amount`, fall on each row and column of `shape`."""
    size = shape[0] * shape[1]
    return np.bincount(rows * shape[1] + columns, amount, size).reshape(shape)


def few(n_originals: np.ndarray) -> np.ndarray:
    """(N,) why a number of so many originals has no interval, "" where it has one."""
    return np.array([too_few(int(n)) or "" for n in n_originals], dtype=str)


def summary_table(ballots: Ballots, votes_per_item: int) -> pd.DataFrame:
    """One row an item with votes, with the columns `SUMMARY_COLUMNS`.

    Nothing is decided by chance: a tie has no plurality, and an item of which no majority of the
    `votes_per_item` agrees yet, or ever will, is undecided.
    """
    first = ballots.votes.iloc[ballots.first].reset_index(drop=True)
    table = first[["item", "model", "attack", "image_id", "class_name"]].copy()
    table = table.join(counts(ballots.votes, ballots.item, len(table)))
    table["recognisable"] = verdict(ballots.votes, ballots.item, table, votes_per_item)
    table["undecided"] = table["recognisable"].isna()
    table["too_few_votes"] = table["n_votes"] < votes_per_item
    table["plurality"], table["n_plurality"], table["tie"] = _plurality(ballots)
    return table[list(SUMMARY_COLUMNS)]


def _plurality(ballots: Ballots) -> tuple[pd.Series, np.ndarray, np.ndarray]:
    """The answer given most often to each item, how often, and whether another was as often."""
    answer, names = pd.factorize(ballots.votes["answer"], sort=True)
    cell, n = np.unique(ballots.item * len(names) + answer, return_counts=True)
    item, answer = np.divmod(cell, max(len(names), 1))
    most = np.zeros(len(ballots.first), dtype=int)
    np.maximum.at(most, item, n)
    top = n == most[item]
    tie = np.bincount(item[top], minlength=len(most)) > 1
    label = np.zeros(len(most), dtype=int)
    label[item[top]] = answer[top]
    said = pd.Series(np.asarray(names, dtype=object)[label], dtype="str")
    return said.mask(pd.Series(tie)), most, tie
