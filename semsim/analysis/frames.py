"""The paper's table of agreement, for any number of studies."""

from collections.abc import Iterable

import pandas as pd

from semsim.analysis.result import Analysis

TABLE_ONE_COLUMNS = (
    *("study", "dataset", "rule", "metric", "title", "n", "rho", "tau", "abs_rho", "abs_tau"),
    *("rho_low", "rho_high", "tau_low", "tau_high", "interval_undefined"),
    *("best_rho", "best_tau", "undefined"),
)


def table_one(analyses: Iterable[Analysis]) -> pd.DataFrame:
    """One row a study and metric, columns `TABLE_ONE_COLUMNS`.

    As Table 1 of the SemSim paper: data sets by metrics. Intervals are over models, of ρ after
    Bonett and Wright and of τ by its score. The best of a study agrees most with people: its signed
    correlation is the largest, so a metric that ranks backwards is never best however strongly it
    does.
    """
    parts = [_of_study(analysis) for analysis in analyses]
    if not parts:
        return pd.DataFrame(columns=list(TABLE_ONE_COLUMNS))
    return pd.concat(parts, ignore_index=True)


def _of_study(analysis: Analysis) -> pd.DataFrame:
    """The rows of one study, metrics in the order they were given."""
    names = [spec.name for spec in analysis.specs]
    table = analysis.agreement.set_index("metric").loc[names].reset_index()
    table = table.assign(
        study=analysis.evidence.name,
        dataset=" + ".join(sorted(analysis.models["dataset"].unique())),
        rule=analysis.settings.headline,
    )
    for name, kind in (("rho", "bw"), ("tau", "score")):
        table[f"{name}_low"] = table[f"{name}_{kind}_low"]
        table[f"{name}_high"] = table[f"{name}_{kind}_high"]
        table[f"best_{name}"] = table[name].notna() & (table[name] == table[name].max())
    return table[list(TABLE_ONE_COLUMNS)]
