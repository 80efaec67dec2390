"""The calibrated baseline: weights of pixels and structure, fitted to the votes of a SemSim.

No network learns in it. It is what a SemSim has to beat, since it saw the same votes.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.optimize import minimize
from scipy.special import expit
from torch import Tensor

from semsim.base.columns import IMAGE_KEY
from semsim.base.metric_spec import CALIBRATED, MetricSpec, block_name
from semsim.learning.batches import load_table, take
from semsim.learning.triplets import ImageIndex, JudgedOriginal
from semsim.metrics.calibrated import NAMES, PixelBlocks, pixel_blocks
from semsim.metrics.network import ModelSettings, SemSimModel
from semsim.metrics.provenance import N_PAIRS, WEIGHT_OF

_BATCH = 256  # images whose blocks are held at once
# How far weights lie from their mean without votes, in units of a block's mean distance: votes
# must outweigh that all blocks count alike. Of 0.3, 1 and 10 the first was best with 8 originals.
_PRIOR = 0.3


def calibrate(
    originals: Sequence[JudgedOriginal], ordering: str, input_size: int
) -> tuple[SemSimModel, dict[str, float]]:
    """Fit the calibrated baseline to what people said of `originals`.

    Args:
        ordering: As of `TrainSettings`.
        input_size: Pixels a side at which images are compared.

    Returns:
        The baseline, in eval mode, and the weight of each block by name, where 1 is that of blocks
        that all count alike, with the number of pairs that it was fitted to.
    """
    index = ImageIndex(originals)
    table = load_table(index.paths, input_size)
    pairs, shares = judged_shares(index, originals, ordering)
    weights, unit = fit(_gaps(table, pairs), shares)
    settings = ModelSettings(backbone=CALIBRATED, input_size=input_size)
    model = SemSimModel(settings, mean=[0.0] * 3, std=[1.0] * 3).eval()
    assert isinstance(model.body, PixelBlocks)
    model.body.weights.copy_(torch.from_numpy(weights / unit))
    named = {f"{WEIGHT_OF}{name}": float(one) for name, one in zip(NAMES, weights, strict=True)}
    return model, {N_PAIRS: float(len(pairs)), **named}


def block_scores(labels: pd.DataFrame, input_size: int) -> tuple[pd.DataFrame, list[MetricSpec]]:
    """Score the pairs of `labels` by each block alone, to which nothing is fitted.

    Args:
        labels: See `pair_sets_of_labels`.
        input_size: Pixels a side at which images are compared.

    Returns:
        Scores, columns `SCORE_COLUMNS`, and the spec of each block.
    """
    both = [labels["original"].astype(str), labels["reconstruction"].astype(str)]
    numbers, paths = pd.factorize(pd.concat(both))
    table = load_table([Path(path) for path in paths], input_size)
    gaps = _gaps(table, numbers.reshape(2, -1).T)
    specs = [
        MetricSpec(
            name=block_name(name),
            title=f"{name.capitalize()} alone",
            higher_means_more_leakage=False,
            per_image=True,
        )
        for name in NAMES
    ]
    tables = [
        labels[IMAGE_KEY].assign(metric=spec.name, value=gap)
        for spec, gap in zip(specs, gaps.T, strict=True)
    ]
    return pd.concat(tables, ignore_index=True), specs


def _gaps(table: Tensor, pairs: np.ndarray) -> np.ndarray:
    """Squared distances (M, B) of each block between the images of `pairs` (M, 2), by number."""
    found = []
    for part in np.array_split(pairs, -(-len(pairs) // _BATCH)):
        sides = (pixel_blocks(take(table, part[:, side])) for side in (0, 1))
        apart = [(a - b).square().sum(1) for a, b in zip(*sides, strict=True)]
        found.append(torch.stack(apart, dim=1).double().numpy())
    return np.concatenate(found)


def fit(gaps: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit weights of blocks to the shares (M,) of people who recognised a reconstruction.

    Logistic regression: the log-odds of being recognised are a constant less the weighted squared
    distances. Weights are at least 0, so that no difference makes two images more alike, and are
    drawn to their own mean by a normal prior, in units of the block's mean distance. Convex, so
    it has one answer.

    Args:
        gaps: (M, B), squared distances of each block between original and reconstruction.

    Returns:
        Weights (B,) in units of the mean distances, which come second; 1 each where no distance
        tells anything.
    """
    unit = np.maximum(gaps.mean(axis=0), 1e-12)
    scaled = gaps / unit

    def cost(values: np.ndarray) -> tuple[float, np.ndarray]:
        odds, apart = values[0] - scaled @ values[1:], values[1:] - values[1:].mean()
        likelihood = shares * np.logaddexp(0, -odds) + (1 - shares) * np.logaddexp(0, odds)
        wrong = expit(odds) - shares
        slope = np.concatenate([[wrong.sum()], -scaled.T @ wrong + apart / _PRIOR**2])
        return float(likelihood.sum() + (apart**2).sum() / (2 * _PRIOR**2)), slope

    begin = np.ones(1 + scaled.shape[1])
    bounds = [(None, None), *[(0.0, None)] * scaled.shape[1]]
    found = minimize(cost, begin, jac=True, bounds=bounds, method="L-BFGS-B").x[1:]
    return (found if found.max() > 0 else np.ones_like(found)), unit


def judged_shares(
    index: ImageIndex, originals: Sequence[JudgedOriginal], ordering: str
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (M, 2) of original and reconstruction by number, and the target of each, (M,).

    Args:
        ordering: "majority" for 1 or 0, "votes" for the share of people who recognised it.
    """
    if ordering == "majority":
        pairs, recognisable = index.judged(originals)
        return pairs, recognisable.astype(float)
    rows = [
        (index.number(one.image), index.number(path), share)
        for one in originals
        for path, share in one.shares
    ]
    numbers = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2)
    return numbers, np.array([row[2] for row in rows], dtype=float)
