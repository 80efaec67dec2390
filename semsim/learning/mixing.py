"""Fits how much pixels and a network that stays as it is count in what people recognise."""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from semsim.base.stats.roc import POOLED, WITHIN
from semsim.learning.batches import load_table, take
from semsim.learning.diagnostics import EpochRecord, auc, triplet_distances
from semsim.learning.epoch import EpochMaterial, embed, validate
from semsim.learning.settings import TrainSettings
from semsim.learning.triplets import ImageIndex, JudgedOriginal
from semsim.metrics.network import NAMES, SemSimModel

_BATCH = 256  # images whose blocks are held at once
# How far weights lie from their mean before any vote, in units of a block's mean distance: votes
# must outweigh that all blocks count alike. Of 0.3, 1 and 10 the first was best with 8 originals.
_PRIOR = 0.3


def run_mixing(model: SemSimModel, material: EpochMaterial, settings: TrainSettings) -> EpochRecord:
    """Fit the weights of a mixed SemSim; the one epoch of its training."""
    pairs, shares = judged_shares(material.index, material.training, settings.ordering)
    loss = fit(model, material.table, pairs, shares)
    triplets = material.index.every(material.training, settings.ordering)
    numbers = np.unique(np.concatenate([triplets.ravel(), pairs.ravel()]))
    features = embed(model, material.table, numbers)
    measured = triplet_distances(features, triplets)
    return EpochRecord(
        epoch=1,
        loss=loss,
        d_plus=float(measured.plus.mean()),
        d_minus=float(measured.minus.mean()),
        violated=measured.violated(settings.margin),
        norm=measured.norm,
        **validate(model, material),
    )


def block_distances(model: SemSimModel, table: Tensor, pairs: np.ndarray) -> np.ndarray:
    """Squared distances (M, B) of each block between the images numbered in `pairs`, (M, 2).

    Args:
        table: (N, 3, S, S) uint8.

    Returns:
        Float64, on the CPU.
    """
    model.eval()
    found = []
    with torch.inference_mode():
        for part in np.array_split(pairs, -(-len(pairs) // _BATCH)):
            sides = (
                model.blocks(take(table, part[:, side]).to(model.mean.device)) for side in (0, 1)
            )
            gaps = [(a - b).square().sum(1) for a, b in zip(*sides, strict=True)]
            found.append(torch.stack(gaps, dim=1).cpu().double().numpy())
    return np.concatenate(found)


def balance(model: SemSimModel, table: Tensor, pairs: np.ndarray) -> None:
    """Make every block count alike over `pairs`: what a mixed SemSim is before it sees a vote.

    Args:
        table: (N, 3, S, S) uint8.
        pairs: (M, 2) int, numbers of its images. Changes the model.
    """
    mean = block_distances(model, table, pairs).mean(axis=0)
    model.weights.copy_(torch.from_numpy(1 / np.maximum(mean, 1e-12)))


def fit(model: SemSimModel, table: Tensor, pairs: np.ndarray, shares: np.ndarray) -> float:
    """Fit the weights of the blocks to the shares (M,) of people who recognised; returns the loss.

    Logistic regression: the log-odds of being recognised are a constant less the weighted squared
    distances. Weights are at least 0, so that no difference makes two images more alike, and are
    drawn to their own mean by a normal prior, in units of the block's mean distance. Convex, so
    it has one answer. The loss is the mean negative log-likelihood with that prior.
    """
    gaps = block_distances(model, table, pairs)
    unit = np.maximum(gaps.mean(axis=0), 1e-12)
    scaled = gaps / unit

    def cost(values: np.ndarray) -> tuple[float, np.ndarray]:
        odds, apart = values[0] - scaled @ values[1:], values[1:] - values[1:].mean()
        likelihood = shares * np.logaddexp(0, -odds) + (1 - shares) * np.logaddexp(0, odds)
        wrong = 1 / (1 + np.exp(-odds)) - shares
        slope = np.concatenate([[wrong.sum()], -scaled.T @ wrong + apart / _PRIOR**2])
        return float(likelihood.sum() + (apart**2).sum() / (2 * _PRIOR**2)), slope

    begin = np.ones(1 + scaled.shape[1])
    bounds = [(None, None), *[(0.0, None)] * scaled.shape[1]]
    found = minimize(cost, begin, jac=True, bounds=bounds, method="L-BFGS-B")
    weights = found.x[1:] / unit
    if weights.max() > 0:  # else no distance says anything, and the start is left as it was
        model.weights.copy_(torch.from_numpy(weights))
    return float(found.fun / len(shares))


def block_aucs(
    model: SemSimModel, originals: Sequence[JudgedOriginal], scope: str = POOLED
) -> dict[str, float]:
    """Return the AUC of each block alone, by its name, for the majorities on `originals`.

    Args:
        scope: Of AUC, see `scopes_by`. Empty where there are no images of both kinds.
    """
    index = ImageIndex(originals)
    pairs, recognisable = index.judged(originals)
    if not recognisable.any() or recognisable.all():
        return {}
    table = load_table(index.paths, model.settings.input_size)
    gaps = torch.from_numpy(block_distances(model, table, pairs).T)
    groups = pairs[:, 0] if scope == WITHIN else 0 * pairs[:, 0]
    parts = [groups == group for group in np.unique(groups)]
    found = {
        name: [auc(gap[torch.from_numpy(own)], recognisable[own]) for own in parts]
        for name, gap in zip(NAMES, gaps, strict=True)
    }
    known = {name: [one for one in each if one is not None] for name, each in found.items()}
    return {name: float(np.mean(each)) for name, each in known.items() if each}


def block_alone(start: SemSimModel, block: str) -> SemSimModel:
    """The mixed SemSim `start` with one block of `NAMES` and no other."""
    model = copy.deepcopy(start)
    model.weights *= torch.tensor([float(name == block) for name in NAMES])
    return model


def judged_shares(
    index: ImageIndex, originals: tuple[JudgedOriginal, ...], ordering: str
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
