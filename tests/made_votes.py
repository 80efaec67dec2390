"""Votes and scores made up for tests of the statistics: small, seeded, with known structure."""

from dataclasses import replace

import numpy as np
import pandas as pd

from semsim.base.metric_spec import MetricSpec
from semsim.base.stats.evidence import gather
from semsim.base.stats.votes import SparseVotes

PSNR = MetricSpec(name="psnr", title="PSNR", higher_means_more_leakage=True, per_image=True)
MSE = MetricSpec(name="mse", title="MSE", higher_means_more_leakage=False, per_image=True)
FID = MetricSpec(name="fid", title="FID", higher_means_more_leakage=False, per_image=False)
SPECS = (PSNR, MSE, FID)
KEY = {"dataset": "d", "attack": "a"}


def vote(model, image, annotator, recognised, answer=None, **more):
    """One row of a table of votes."""
    said = answer or ("cat" if recognised else "dog")
    return {
        **KEY,
        "model": model,
        "image_id": image,
        "annotator": annotator,
        "answer": said,
        "recognised": recognised,
        **more,
    }


def votes_of(answers):
    """{(model, image): "10-n"} as votes, one annotator a place.

    The marks: recognised, not recognised, no vote, the answer "none".
    """
    rows = []
    for (model, image), said in answers.items():
        for who, mark in enumerate(said):
            if mark != "-":
                rows.append(vote(model, image, f"p{who}", mark == "1", "none" * (mark == "n")))
    return pd.DataFrame(rows, columns=list(vote("", "", "", True)))


def scores_of(values):
    """{(metric, model): {image: value} or the value of the set} as scores."""
    rows = []
    for (metric, model), given in values.items():
        for image, value in (given if isinstance(given, dict) else {None: given}).items():
            rows.append(
                {**KEY, "model": model, "metric": metric, "image_id": image, "value": value}
            )
    return pd.DataFrame(rows, columns=[*KEY, "model", "metric", "image_id", "value"])


def study(seed=0, n_models=6, n_originals=20, annotators=5):
    """Votes and scores of models that leak less and less; PSNR and MSE follow, with noise."""
    draw = np.random.default_rng(seed)
    leak = np.linspace(0.9, 0.1, n_models)[:, None] + draw.normal(0, 0.2, (n_models, n_originals))
    said = draw.random((n_models, n_originals, annotators)) < leak[:, :, None]
    psnr = 10 + 5 * leak + draw.normal(0, 1.5, leak.shape)
    mse = np.exp(-psnr / 4) * draw.uniform(0.7, 1.4, leak.shape)
    models = [f"m{i}" for i in range(n_models)]
    images = [f"{i:03}" for i in range(n_originals)]
    marks = {False: "0", True: "1"}
    votes = {
        (model, image): "".join(marks[bool(one)] for one in said[i, j])
        for i, model in enumerate(models)
        for j, image in enumerate(images)
    }
    scores = {}
    for i, model in enumerate(models):
        scores["psnr", model] = dict(zip(images, psnr[i], strict=True))
        scores["mse", model] = dict(zip(images, mse[i], strict=True))
        scores["fid", model] = 10.0 + 3 * i + 10 * (i == 2)
    return votes_of(votes), scores_of(scores)


def said(table):
    """Votes as `Evidence` holds them, of an (R, A) table with NaN where there is none."""
    table = np.asarray(table, dtype=float)
    image, annotator = np.nonzero(~np.isnan(table))
    values = table[image, annotator]
    return SparseVotes(image=image, annotator=annotator, values=values, shape=table.shape)


def voted(found, table):
    """The evidence with these votes, (R, A), none of which is "none"."""
    votes = said(table)
    return replace(found, recognised=votes, none=votes.of(0 * votes.values))


def table_of(votes):
    """(R, A): what `said` was made of."""
    table = np.full(votes.shape, np.nan)
    table[votes.image, votes.annotator] = votes.values
    return table


def evidence(seed=0, specs=SPECS, **sizes):
    """`study` as evidence."""
    return gather(*study(seed, **sizes), specs, name="made")


def renamed(found, names):
    """The evidence with models called otherwise, in the order that gives them."""
    images = found.images.assign(model=found.images["model"].map(names))
    order = images.sort_values(["dataset", "attack", "model", "image_id"]).index.to_numpy()
    return replace(
        found,
        images=images.loc[order].reset_index(drop=True),
        recognised=said(table_of(found.recognised)[order]),
        none=said(table_of(found.none)[order]),
        scores={name: values[order] for name, values in found.scores.items()},
        set_scores={
            name: table.assign(model=table["model"].map(names))
            for name, table in found.set_scores.items()
        },
    )
