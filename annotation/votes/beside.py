"""Two studies on the same pictures side by side: whether a model says of them what people say."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from annotation.tasks.kind import Kind
from annotation.votes.aggregate import ballots_of
from annotation.votes.agreement import Coding, codings_of, pair_table, pairs_of

PICTURE = ["original", "reconstruction"]  # SHA-256s of what an item shows
SAID = {Coding.RECOGNISED: "recognisable", Coding.ANSWER: "plurality"}  # columns of summaries
_KEPT = ("model", "attack", "image_id", "class_name")
BESIDE_COLUMNS = (
    *("model", "coding", "n_items", "value", "low", "high", "reason"),
    *("both", "people_only", "model_only", "neither"),
)


def together(people: pd.DataFrame, model: pd.DataFrame) -> pd.DataFrame:
    """One row a picture that both studies have, with `_people` and `_model` behind what they say.

    Args:
        people: An `aggregate.summary_table` with the columns `PICTURE`.
        model: The same of the study that a model answered.
    """
    said = [*PICTURE, *SAID.values()]
    one = people[[*_KEPT, *said]].drop_duplicates(PICTURE)
    return one.merge(
        model[said].drop_duplicates(PICTURE), on=PICTURE, suffixes=("_people", "_model")
    )


def beside_table(pictures: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Agreement of the verdicts of people and of a model, with the columns `BESIDE_COLUMNS`.

    Cohen's κ with its interval over originals, as of two annotators. The first rows are of all
    target models, whose `model` is missing. Pictures that one side leaves undecided are left out.
    Of the coding "recognised" the counts say who recognised how many.

    Args:
        pictures: Of `together`.
        kind: Of both studies.
    """
    parts = [(None, pictures), *pictures.groupby("model", sort=True)]
    codings = [one for one in codings_of(kind) if one in SAID and not (
        one is Coding.ANSWER and kind.scale
    )]  # fmt: skip
    rows = [{"model": name, **row} for name, part in parts for row in _rows(part, codings)]
    return pd.DataFrame(rows, columns=list(BESIDE_COLUMNS))


def _rows(pictures: pd.DataFrame, codings: list[Coding]) -> Iterator[dict[Any, Any]]:
    for coding in codings:
        one, other = (f"{SAID[coding]}_{who}" for who in ("people", "model"))
        known = pictures[pictures[one].notna() & pictures[other].notna()]
        found: dict[Any, Any] = {"coding": coding.value, "n_items": len(known)}
        if len(known):
            ballots = ballots_of(_as_votes(known), np.random.default_rng(0), bootstraps=1)
            table = pair_table(ballots, pairs_of(ballots, coding))
            found |= table.iloc[0][["value", "low", "high", "reason"]].to_dict()
        else:
            found |= {"reason": "no picture has a verdict of both"}
        yield found | (_counts(known[one], known[other]) if coding is Coding.RECOGNISED else {})


def _as_votes(pictures: pd.DataFrame) -> pd.DataFrame:
    """Both verdicts on each picture as votes of two annotators."""
    both = [
        pictures.assign(
            item=np.arange(len(pictures)).astype(str),
            dataset="",
            kind="reconstruction",
            status="counted",
            annotator=who,
            answer=pictures[f"plurality_{who}"].astype(object).fillna(""),
            recognised=pictures[f"recognisable_{who}"].fillna(False).astype(bool),
        )
        for who in ("people", "model")
    ]
    return pd.concat(both, ignore_index=True)


def _counts(people: pd.Series, model: pd.Series) -> dict[str, int]:
    yes, also = people.astype(bool), model.astype(bool)
    cells = (yes & also, yes & ~also, ~yes & also, ~yes & ~also)
    names = ("both", "people_only", "model_only", "neither")
    return {name: int(one.sum()) for name, one in zip(names, cells, strict=True)}


def differing(pictures: pd.DataFrame) -> pd.DataFrame:
    """Pairs of answers of people and of a model that differ, with how many pictures, most first."""
    both = pictures.dropna(subset=["plurality_people", "plurality_model"])
    apart = both[both["plurality_people"] != both["plurality_model"]]
    named = apart.rename(columns={"plurality_people": "people", "plurality_model": "model_says"})
    counts = named.groupby(["class_name", "people", "model_says"]).size().rename("pictures")
    order = ["pictures", "class_name", "people", "model_says"]
    return counts.reset_index().sort_values(order, ascending=[False, True, True, True])
