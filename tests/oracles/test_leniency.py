"""Leniency beside a slow reference: its penalised likelihood, vote by vote, by an optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from semsim.base.stats.verdict import SPREAD, adjusted


def reference(votes, items, people):
    """Scores at the least of minus the logarithm of likelihood and prior, a loop over votes."""

    def loss(x):
        theta, b = x[:items], x[items:]
        total = sum(t**2 for t in theta) / (2 * SPREAD**2)
        for item, who, said in votes:
            total += np.log1p(np.exp(-(2 * said - 1) * (theta[item] - b[who])))
        return total

    x = minimize(loss, np.zeros(items + people), method="BFGS", options={"gtol": 1e-7}).x
    mean = np.mean([x[items + who] for _, who, _ in votes])
    return 1 / (1 + np.exp(mean - x[:items]))


@pytest.mark.parametrize("missing", [0.0, 0.5], ids=["all votes", "half of them"])
def test_newton_finds_what_an_optimiser_finds(missing):
    draw = np.random.default_rng(3)
    item, annotator = (one.ravel() for one in np.indices((9, 3)))
    kept = (draw.random(len(item)) >= missing) | (annotator == item % 3)
    said = (draw.random(len(item)) < np.array([0.8, 0.5, 0.3])[annotator]).astype(float)
    item, annotator, said = item[kept], annotator[kept], said[kept]
    expected = reference(list(zip(item, annotator, said, strict=True)), 9, 3)
    score, why = adjusted(item, annotator, said, np.zeros(len(item), int))
    assert why == ""
    np.testing.assert_allclose(score, expected, atol=1e-5)
