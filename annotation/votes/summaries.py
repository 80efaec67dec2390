"""Results of the votes on each item, side by side, and those of them that are not settled."""

import numpy as np
import pandas as pd

from annotation.votes.aggregate import counts, verdict
from annotation.votes.ballots import Ballots

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
