"""From votes to labels: each vote is binary, then the majority decides."""

import numpy as np
import pandas as pd

ITEM_COLUMNS = (
    "study",
    "task",
    "headline",
    "item",
    "model",
    "dataset",
    "attack",
    "image_id",
    "class_name",
    "original",
    "reconstruction",
    "attacked",  # missing where the study does not have it
)
LABEL_COLUMNS = (
    *ITEM_COLUMNS,
    "n_votes",
    "n_recognised",
    "mean_response",
    "recognisable",
    "votes_per_item",
    "simulated",
)


def majority(n_recognised: pd.Series, n_votes: pd.Series, votes_per_item: int) -> pd.Series:
    """Nullable boolean: True or False once floor(K/2) + 1 of K votes agree, else <NA>.

    Three of five decide whatever the others will say; a tie of an even K stays undecided. An item
    with an extra vote is decided by more than half of its K + 1 votes: 3 to 3 is a tie.
    """
    needed = n_votes.clip(lower=votes_per_item) // 2 + 1
    verdict = pd.Series(pd.NA, index=n_votes.index, dtype="boolean")
    verdict[n_recognised >= needed] = True
    verdict[n_votes - n_recognised >= needed] = False
    return verdict


def labels(
    items: pd.DataFrame, votes: pd.DataFrame, *, votes_per_item: int, simulated: bool
) -> pd.DataFrame:
    """One row a reconstruction with the columns `LABEL_COLUMNS`.

    `items` has `ITEM_COLUMNS` and no decoys; `votes` has item, status and recognised. Only counted
    votes are used. `mean_response` is the share of votes that recognised the image, NaN without
    votes; `recognisable` is the `majority`.
    """
    counted = votes[votes["status"] == "counted"]
    answers = counted["recognised"].astype("int64").groupby(counted["item"].to_numpy())
    table = items[list(ITEM_COLUMNS)].reset_index(drop=True)
    table["n_votes"] = _per_item(table["item"], answers.size())
    table["n_recognised"] = _per_item(table["item"], answers.sum())
    table["mean_response"] = table["n_recognised"] / table["n_votes"].where(
        table["n_votes"] > 0, np.nan
    )
    table["recognisable"] = majority(table["n_recognised"], table["n_votes"], votes_per_item)
    table["votes_per_item"] = votes_per_item
    table["simulated"] = simulated
    return table[list(LABEL_COLUMNS)]


def _per_item(items: pd.Series, counts: pd.Series) -> pd.Series:
    return items.map(counts).fillna(0).astype("int64")
