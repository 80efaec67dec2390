"""From labels and scores to the tables a study is judged by."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from semsim.analysis.correlation import RankAgreement, rank_agreement
from semsim.errors import DataError
from semsim.metrics.base import MetricSpec, summarise

MODEL_KEY = ["dataset", "attack", "model"]
HUMAN_COLUMNS = (
    *MODEL_KEY,
    "n_recognisable",
    "n_decided",
    "n_undecided",
    "recognised_rate",  # recognisable among decided reconstructions
    "mean_response",  # share of votes that recognised, over reconstructions with a vote
)
MEAN_COLUMNS = (*MODEL_KEY, "metric", "mean", "n", "n_inf")
AGREEMENT_COLUMNS = (
    "metric",
    "title",
    "n",
    "rho",
    "tau",
    "abs_rho",
    "abs_tau",
    "rho_low",
    "rho_high",
    "undefined",
)
_LABEL_COLUMNS = (*MODEL_KEY, "image_id", "recognisable", "mean_response", "n_votes")


def human_table(labels: pd.DataFrame) -> pd.DataFrame:
    """What people recognised of each model: one row a model, columns `HUMAN_COLUMNS`.

    labels: one row a reconstruction. recognised_rate is NaN where nothing is decided yet.
    Raises `DataError` where the table lacks a column.
    """
    check_labels(labels)
    rows = [
        {**dict(zip(MODEL_KEY, key, strict=True)), **_human_row(part)}
        for key, part in labels.groupby(MODEL_KEY, sort=True, dropna=False)
    ]
    return pd.DataFrame(rows, columns=list(HUMAN_COLUMNS))


def metric_means(labels: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """The mean of every metric for every model: columns `MEAN_COLUMNS`.

    scores: columns dataset, attack, model, metric, image_id, value; image_id is None for a
    metric of a whole set. A metric of images is averaged over the images people have decided on,
    so that both sides speak of the same images; one of sets is taken as it is. Infinite values
    are counted in n_inf and kept out of the mean.
    """
    check_labels(labels)
    keys = [*MODEL_KEY, "image_id"]
    decided = labels.loc[labels["recognisable"].notna(), keys].astype(str)
    of_images = scores[scores["image_id"].notna()].astype(dict.fromkeys(keys, str))
    of_sets = scores[scores["image_id"].isna()]
    judged = pd.concat([of_images.merge(decided, on=keys), of_sets], ignore_index=True)
    rows = [
        {**dict(zip([*MODEL_KEY, "metric"], key, strict=True)), **_mean_row(part)}
        for key, part in judged.groupby([*MODEL_KEY, "metric"], sort=False)
    ]
    return pd.DataFrame(rows, columns=list(MEAN_COLUMNS))


def model_table(labels: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """`human_table` with one more column a metric, named as it: its mean for the model."""
    people = human_table(labels)
    means = metric_means(labels, scores)
    if means.empty:
        return people
    wide = means.pivot(index=MODEL_KEY, columns="metric", values="mean").reset_index()
    wide = wide.astype(dict.fromkeys(MODEL_KEY, object))
    wide.columns.name = None
    return people.merge(wide, on=MODEL_KEY, how="left")


def agreement_table(models: pd.DataFrame, specs: Iterable[MetricSpec]) -> pd.DataFrame:
    """How well each metric ranks the models as people do, best first.

    models: as `model_table` makes it. A model counts for a metric where both people and the
    metric have a value. Columns `AGREEMENT_COLUMNS`; numbers are NaN where undefined says why.
    """
    rows = [_agreement_row(models, spec) for spec in specs]
    table = pd.DataFrame(rows, columns=list(AGREEMENT_COLUMNS))
    return table.sort_values("abs_rho", ascending=False, kind="stable", ignore_index=True)


def check_labels(labels: pd.DataFrame) -> None:
    """Raise `DataError` unless the table has the columns of labels."""
    absent = sorted(set(_LABEL_COLUMNS) - set(labels.columns))
    if absent:
        raise DataError(f"The table of labels lacks the columns {', '.join(absent)}.")


def _human_row(part: pd.DataFrame) -> dict[str, float]:
    decided = part["recognisable"].dropna().astype(bool)
    responses = part.loc[part["n_votes"] > 0, "mean_response"]
    return {
        "n_recognisable": int(decided.sum()),
        "n_decided": len(decided),
        "n_undecided": len(part) - len(decided),
        "recognised_rate": float(decided.mean()) if len(decided) else np.nan,
        "mean_response": float(responses.mean()) if len(responses) else np.nan,
    }


def _mean_row(part: pd.DataFrame) -> dict[str, float]:
    found = summarise(part["value"].to_numpy(dtype=np.float64))
    # Where every image is infinite, so is the mean.
    mean = float(part["value"].iloc[0]) if found.mean is None else found.mean
    return {"mean": mean, "n": found.n, "n_inf": found.n_inf}


def _agreement_row(models: pd.DataFrame, spec: MetricSpec) -> dict[str, object]:
    if spec.name not in models:
        found = RankAgreement(n=0, undefined="no scores yet")
    else:
        both = models.dropna(subset=["recognised_rate", spec.name])
        found = rank_agreement(
            both["recognised_rate"].to_numpy(),
            both[spec.name].to_numpy(),
            spec.higher_means_more_leakage,
        )
    low, high = found.rho_interval or (np.nan, np.nan)
    rho, tau = (np.nan if value is None else value for value in (found.rho, found.tau))
    return {
        "metric": spec.name,
        "title": spec.title,
        "n": found.n,
        "rho": rho,
        "tau": tau,
        "abs_rho": abs(rho),
        "abs_tau": abs(tau),
        "rho_low": low,
        "rho_high": high,
        "undefined": found.undefined,
    }
