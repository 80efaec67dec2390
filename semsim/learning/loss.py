"""What SemSim minimises."""

from dataclasses import dataclass

import torch
from pytorch_metric_learning import distances, losses, reducers
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class TripletLoss:
    """max(‖a − p‖₂ − ‖a − n‖₂ + margin, 0), averaged (Sun et al. 2023, Fig. 4).

    The average is over all triplets, satisfied ones too: leaving those out would hide progress.
    Features are taken as they are; the model normalises them where its settings say so.
    """

    margin: float = 1.0

    def __call__(self, anchors: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
        """A scalar from features (N, d) of originals, recognisable and unrecognisable ones."""
        loss = losses.TripletMarginLoss(
            margin=self.margin,
            distance=distances.LpDistance(normalize_embeddings=False, p=2, power=1),
            reducer=reducers.MeanReducer(),
        )
        n = len(anchors)
        row = torch.arange(n, device=anchors.device)
        # Positives and negatives are one table of references: row i and row n + i.
        references = torch.cat([positives, negatives])
        return torch.as_tensor(loss(anchors, indices_tuple=(row, row, row + n), ref_emb=references))
