"""Each annotator beside the others: pace, bias towards none, agreement, weight in the result."""

import numpy as np
import pandas as pd
import scipy

from annotation.tasks.kind import NONE, Kind
from annotation.votes.aggregate import DECIMALS, ratings, recognising, scale_of
from annotation.votes.agreement import Coding, Pairs
from annotation.votes.ballots import Ballots
from annotation.votes.quality import EVERYBODY, Check
from annotation.votes.rates import model_names
from semsim.base.stats.votes import ratio

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
TRIAL_COLUMNS = (
    *(f"{check.value}_accuracy" for check in Check),
    "repeat_kappa",
    "repeat_reason",  # why there is no κ
)
NOT_ANSWERED = "none answered"


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
    """An `annotator_table` with `TRIAL_COLUMNS`, from `quality.check_table` and `repeat_table`.

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
    cell = ballots.annotator[known] * n_models + model
    moved = np.bincount(cell, change, people * n_models).reshape(people, n_models)
    lost = np.bincount(cell, rest == 0, people * n_models).reshape(people, n_models)
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
    tau = float(scipy.stats.kendalltau(everybody[both], rest[both]).statistic)
    return tau, change, "all models have the same mean response" if np.isnan(tau) else ""
