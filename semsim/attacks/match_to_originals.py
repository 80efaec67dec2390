"""Pairs of reconstructions and their originals: a measurement, no part of an attack.

An attack finds all pictures of a client at once and in no order. The researcher knows the
originals and takes the pairs that lie nearest together, as papers on batches do.
"""

import scipy
import torch
from torch import Tensor

BY = "least sum of pixel MSE (scipy.optimize.linear_sum_assignment)"  # as records say it


def assigned(found: Tensor, originals: Tensor) -> list[int]:
    """For each original the place of its reconstruction; each is taken once.

    found, originals: (P, C, H, W) in [0, 1]. Where fewer are found, those originals that are best
    left without one have -1. Minimises the sum of mean squared errors (Kuhn 1955).
    """
    a, b = originals.flatten(1).double(), found.flatten(1).double()
    apart = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()
    taken = dict(zip(*scipy.optimize.linear_sum_assignment(apart.numpy()), strict=True))
    return [int(taken.get(own, -1)) for own in range(len(originals))]
