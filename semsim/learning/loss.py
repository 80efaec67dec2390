"""Losses that SemSim minimises."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from pytorch_metric_learning import distances, losses, reducers
from torch import Tensor

from semsim.base.errors import DataError
from semsim.base.registry import Registry


@dataclass(frozen=True, kw_only=True)
class TripletLoss:
    """max(‖a − p‖₂ − ‖a − n‖₂ + margin, 0), averaged (Sun et al. 2023, Fig. 4).

    The average is over all triplets, satisfied ones too: leaving those out would hide progress.
    Features are taken as they are; the model normalises them where its settings say so.
    """

    margin: float = 1.0

    def __call__(
        self, anchors: Tensor, positives: Tensor, negatives: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        """A scalar from features (N, d) of originals, recognisable and unrecognisable ones.

        Args:
            weights: (N,), 0 or more, how much each triplet counts in the average; alike if None.

        Raises:
            DataError: Where the shapes differ or there is no triplet.
        """
        loss = losses.TripletMarginLoss(margin=self.margin, swap=False, **_exactly())
        terms = _terms(loss, anchors, positives, negatives)
        return _average(terms["loss"]["losses"], weights)


@dataclass(frozen=True, kw_only=True)
class ContrastiveLoss:
    """‖a − p‖₂ + max(margin − ‖a − n‖₂, 0), averaged: each distance is judged alone.

    The loss of Sun et al. 2023, Fig. 7C, in the form of pytorch-metric-learning, which is linear
    in the distances (Hadsell et al. 2006 square both terms) but has no loss of a single triplet.
    """

    margin: float = 1.0

    def __call__(
        self, anchors: Tensor, positives: Tensor, negatives: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        """As `TripletLoss.__call__`: a scalar from features (N, d), weights (N,)."""
        plus, minus = _distances(anchors, positives, negatives)
        return _average(plus + (self.margin - minus).clamp_min(0), weights)


@dataclass(frozen=True, kw_only=True)
class PooledLoss:
    """max(d⁺ᵢ − d⁻ⱼ + margin, 0), averaged over all i and j of a batch, whichever their originals.

    Where i = j it is the triplet loss; the other pairs make distances of different originals
    comparable, which the triplet loss leaves open and a pooled AUC counts: the average is a hinge
    bound on 1 − AUC of the batch, in units of the margin.
    """

    margin: float = 1.0

    def __call__(
        self, anchors: Tensor, positives: Tensor, negatives: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        """As `TripletLoss.__call__`: a scalar from features (N, d), weights (N,).

        A pair of triplets counts as the product of their weights.
        """
        plus, minus = _distances(anchors, positives, negatives)
        terms = (plus[:, None] - minus[None, :] + self.margin).clamp_min(0)
        both = None if weights is None else weights[:, None] * weights[None, :]
        return _average(terms.flatten(), None if both is None else both.flatten())


LOSSES: Registry[type[TripletLoss] | type[ContrastiveLoss] | type[PooledLoss]] = Registry(
    "loss", {"triplet": TripletLoss, "contrastive": ContrastiveLoss, "pooled": PooledLoss}
)


def identity_loss(originals: Tensor, changed: Tensor) -> Tensor:
    """Mean ‖f(x) − f(x′)‖₂ of features (N, d) of originals and of themselves mildly changed."""
    return torch.linalg.vector_norm(originals - changed, dim=1).mean()


class _OwnPairs(distances.LpDistance):
    """Distances of each anchor to its own positive and negative; NaN to all others.

    The library's matrix of all pairs comes from inner products where there are more than 25, which
    loses small distances between long features; and no other pair has a meaning here.
    """

    def compute_mat(self, query_emb: Tensor, ref_emb: Tensor) -> Tensor:
        n = len(query_emb)
        own = torch.linalg.vector_norm(query_emb.repeat(2, 1) - ref_emb, dim=1)
        row = torch.arange(n, device=own.device)
        matrix = own.new_full((n, 2 * n), torch.nan)
        matrix[row.repeat(2), torch.cat([row, row + n])] = own
        return matrix


def _exactly() -> dict[str, Any]:
    """The library's own choices here would normalise, and average over violated triplets only."""
    return {
        "distance": _OwnPairs(normalize_embeddings=False, p=2, power=1),
        "reducer": reducers.DoNothingReducer(),
    }


def _check_same(roles: Sequence[Tensor]) -> None:
    shapes = {tuple(part.shape) for part in roles}
    if len(shapes) > 1 or roles[0].ndim != 2 or len(roles[0]) == 0:
        raise DataError(f"Features must be three times the same (N, d), N ≥ 1; got {shapes}.")


def _distances(anchors: Tensor, positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor]:
    """(N,) each: how far each anchor's own positive and negative are."""
    _check_same([anchors, positives, negatives])
    exact = torch.promote_types(anchors.dtype, torch.float32)
    anchors, positives, negatives = (p.to(exact) for p in (anchors, positives, negatives))
    plus, minus = (torch.linalg.vector_norm(anchors - p, dim=1) for p in (positives, negatives))
    return plus, minus


def _terms(loss: Any, anchors: Tensor, positives: Tensor, negatives: Tensor) -> dict[str, Any]:
    _check_same([anchors, positives, negatives])
    exact = torch.promote_types(anchors.dtype, torch.float32)
    row = torch.arange(len(anchors), device=anchors.device)
    # Positives and negatives are one table of references: row i and row n + i.
    references = torch.cat([positives, negatives]).to(exact)
    pairs = (row, row, row, row + len(anchors))
    return dict(loss(anchors.to(exact), indices_tuple=pairs, ref_emb=references))


def _average(values: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return values.mean()
    if weights.shape != values.shape or not bool((weights >= 0).all() & (weights.sum() > 0)):
        raise DataError(
            f"Weights must be {len(values)} numbers, 0 or more and not all 0; "
            f"got {tuple(weights.shape)} from {weights.min():g} to {weights.max():g}."
        )
    return (weights * values).sum() / weights.sum()
