"""Dawid and Skene's models beside the majority, and what no count of votes has settled."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from annotation.tasks.kind import Kind
from annotation.texts import counted
from annotation.votes.aggregate import NO_VOTES, Ballots, goes_by_names
from semsim.base.columns import ORIGINAL_ANSWER
from semsim.base.stats.dawid_skene import dawid_skene

_TIE = 1e-9  # posteriors closer than this are equal
MOST_CELLS = 300_000  # of posterior and matrices up to which the full model takes seconds
RELIABILITY_COLUMNS = ("annotator", "n_votes", "one_coin", "full")
DISAGREEMENT_COLUMNS = (
    "item",
    "model",
    "image_id",
    "class_name",
    "n_votes",
    "n_recognised",
    "majority",  # recognised or not
    "one_coin",  # the most probable answer
    "posterior",  # its probability
)


@dataclass(frozen=True, kw_only=True)
class Model:
    """Result of the model for the votes.

    Attributes:
        answers: (K,) the answers given to any item, sorted.
        posterior: (I, K) the probability that the truth of an item is that answer.
        reliability: (A,) how often each annotator gives the true answer, over the items they saw.
        reason: Why there is nothing, else empty; the numbers are NaN then.
    """

    answers: tuple[str, ...]
    posterior: np.ndarray
    reliability: np.ndarray
    reason: str = ""

    def labels(self) -> pd.Series:
        """(I,) the most probable answer; missing where two are equally so, and without a model."""
        if self.reason:
            return pd.Series([None] * len(self.posterior), dtype="str")
        top = self.posterior.max(axis=1, keepdims=True)
        tie = (self.posterior > top - _TIE).sum(axis=1) > 1
        said = np.asarray(self.answers, dtype=object)[self.posterior.argmax(axis=1)]
        return pd.Series(said, dtype="str").mask(pd.Series(tie))


def model_of(ballots: Ballots, *, even: bool) -> Model:
    """Fit the model of Dawid and Skene.

    Args:
        even: Annotators err evenly, the one-coin model.
    """
    answer, names = pd.factorize(ballots.votes["answer"], sort=True)
    truth, reason = dawid_skene(
        ballots.item, ballots.annotator, answer, even=even, tolerance=1e-5, most_steps=3000
    )
    people = len(ballots.annotators)
    right = np.bincount(ballots.annotator, truth[ballots.item, answer], people)
    return Model(
        answers=tuple(map(str, names)),
        posterior=truth,
        reliability=right / np.bincount(ballots.annotator, minlength=people),
        reason=reason if len(answer) else NO_VOTES,
    )


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """Results of the two models for the votes.

    Attributes:
        people: One row an annotator, with how often each gives the true answer by either model.
        disagreements: The decided items whose majority `one_coin` contradicts, the surest first.
        n_compared: Items with both a majority and a most probable answer.
        reasons: Why a model says nothing, by its name.
    """

    people: pd.DataFrame
    disagreements: pd.DataFrame
    n_compared: int
    reasons: dict[str, str]


def reliability(ballots: Ballots, items: pd.DataFrame, kind: Kind) -> Reliability:
    """Both models of the votes; `items` is the `aggregate.summary_table` of the same ballots.

    The full model is left out where it has more than `MOST_CELLS` to fit, and the reasons say so.
    """
    coin = model_of(ballots, even=True)
    matrices = _full_if_small(ballots, coin)
    people = pd.DataFrame(
        {
            "annotator": list(ballots.annotators),
            "n_votes": np.bincount(ballots.annotator, minlength=len(ballots.annotators)),
            "one_coin": coin.reliability,
            "full": matrices.reliability,
        },
        columns=list(RELIABILITY_COLUMNS),
    )
    compared = items.assign(
        majority=items["recognisable"],
        one_coin=coin.labels().to_numpy(),
        posterior=_surest(coin),
        right=_right(ballots),
    )
    compared = compared[compared["majority"].notna() & compared["one_coin"].notna()]
    named = zip(compared["right"], compared["one_coin"], strict=True)
    said = np.array([kind.recognised(*one) for one in named], dtype=bool)
    contrary = said != compared["majority"].astype("bool")
    found = compared.loc[contrary, list(DISAGREEMENT_COLUMNS)]
    return Reliability(
        people=people,
        disagreements=found.sort_values(
            ["posterior", "item"], ascending=[False, True], ignore_index=True
        ),
        n_compared=len(compared),
        reasons={
            name: model.reason
            for name, model in (("one coin", coin), ("full", matrices))
            if model.reason
        },
    )


def _right(ballots: Ballots) -> np.ndarray:
    """(I,) what an answer is compared with: the class of each item, or its original's name."""
    first = ballots.votes.iloc[ballots.first]
    return first[ORIGINAL_ANSWER if goes_by_names(first) else "class_name"].to_numpy()


def _full_if_small(ballots: Ballots, coin: Model) -> Model:
    (n_items, n_answers), people = coin.posterior.shape, len(coin.reliability)
    if coin.posterior.size + people * n_answers**2 <= MOST_CELLS:
        return model_of(ballots, even=False)
    return Model(
        answers=coin.answers,
        posterior=np.full(coin.posterior.shape, np.nan),
        reliability=np.full(coin.reliability.shape, np.nan),
        reason=f"left out, as {n_items:,} items by {n_answers} answers, with a matrix for each of "
        f"{counted(people, 'annotator')}, would hold up everybody",
    )


def _surest(model: Model) -> np.ndarray:
    """(I,) the probability of the most probable answer; NaN without a model."""
    return (
        model.posterior.max(axis=1, initial=0.0)
        if not model.reason
        else np.full(len(model.posterior), np.nan)
    )


def open_questions(items: pd.DataFrame, votes_per_item: int) -> dict[str, int]:
    """Count the items that are not settled, by reason; `items` is a `aggregate.summary_table`.

    Unnamed: what people call its original decides, and no majority calls it anything. Too few:
    fewer votes than asked for and no majority yet. Split: all votes are there and as many recognise
    it as do not. Extra: one vote more was given because the others were split.
    """
    unnamed = items["mean_response"].isna()
    undecided = items["undecided"].astype("bool") & ~unnamed
    return {
        "unnamed": int(unnamed.sum()),
        "too_few": int((undecided & items["too_few_votes"]).sum()),
        "split": int((undecided & ~items["too_few_votes"]).sum()),
        "extra": int((items["n_votes"] > votes_per_item).sum()),
        "answer_tie": int(items["tie"].sum()),
    }
