"""What a single model, or a single architecture, does to the agreement."""

from typing import Any

import numpy as np
import pandas as pd

from semsim.analysis.correlation import kendall_rows, rank_agreement, spearman_rows
from semsim.analysis.measures import Measure, both_have
from semsim.analysis.result import BACKBONE_COLUMNS


def leave_one_out(x: np.ndarray, y: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """The range of ρ and τ when each of n models in turn is left out, and whose absence makes it.

    x, y: (n,). The models named are those whose absence makes ρ smallest and largest. Empty below
    four models, and where no ranking is left.
    """
    n = len(x)
    if n < 4:
        return {}
    others = np.array([np.delete(np.arange(n), one) for one in range(n)])
    rho, tau = (correlate(x[others], y[others]) for correlate in (spearman_rows, kendall_rows))
    if np.isnan(rho).all():
        return {}
    return {
        **{"loo_rho_min": float(np.nanmin(rho)), "loo_rho_max": float(np.nanmax(rho))},
        **{"loo_tau_min": float(np.nanmin(tau)), "loo_tau_max": float(np.nanmax(tau))},
        "loo_model_min": labels[int(np.nanargmin(rho))],
        "loo_model_max": labels[int(np.nanargmax(rho))],
    }


def backbone_table(people: Measure, metrics: list[Measure], backbones: list[str]) -> pd.DataFrame:
    """The agreement without the models of one backbone: columns `BACKBONE_COLUMNS`.

    backbones: (M,) names, one a model. Empty where all models have the same one.
    """
    names = sorted(set(backbones)) if len(set(backbones)) > 1 else []
    rows = [_without(people, metric, backbones, name) for metric in metrics for name in names]
    return pd.DataFrame(rows, columns=list(BACKBONE_COLUMNS))


def _without(people: Measure, metric: Measure, backbones: list[str], name: str) -> dict[str, Any]:
    models = [model for model in both_have([people, metric]) if backbones[model] != name]
    found = rank_agreement(people.oriented[models], metric.oriented[models])
    return {
        "metric": metric.name,
        "title": metric.title,
        "left_out": name,
        "n": found.n,
        "rho": np.nan if found.rho is None else found.rho,
        "tau": np.nan if found.tau is None else found.tau,
        "undefined": found.undefined,
    }
