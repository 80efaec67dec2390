"""The agreement of metrics with people as text: what a terminal and Python print."""

import pandas as pd

from semsim.base.cli.terminal import text_table
from semsim.base.stats.agreement import best_first
from semsim.base.stats.analysis import Analysis
from semsim.reporting.methods import Origin, warnings
from semsim.reporting.notation import (
    NONE,
    number,
    p_value,
    reason,
    undefined_text,
    with_interval_or_why,
)


def agreement_text(analysis: Analysis, origin: Origin) -> str:
    """Return the text for a terminal: notes, the agreement of every metric, the human ceiling."""
    rows = [_agreement_line(row) for _, row in best_first(analysis.agreement).iterrows()]
    header = ["metric", "n", "|ρ|", "|τ|", "ρ [95%]", "p", "τ [95%]", "p", ""]
    ceiling = analysis.ceiling
    why = ceiling.interval_undefined
    rho = ceiling.rho, ceiling.rho_low, ceiling.rho_high, why, ceiling.rho_note
    tau = ceiling.tau, ceiling.tau_low, ceiling.tau_high, why
    limit = (
        undefined_text(ceiling.undefined)
        or f"ρ {with_interval_or_why(*rho)}, τ {with_interval_or_why(*tau)}"
    )
    return "\n".join(
        [
            *(f"Note: {note}" for note in warnings(analysis, origin)),
            f"Agreement with people in {analysis.evidence.name}, human score "
            f"'{analysis.score_title}':",
            text_table(header, rows),
            f"Human ceiling: {limit}",
            "Signed values agree with people where positive. Intervals: 95% over models, of ρ "
            "after Bonett and Wright, of τ by its score; of the ceiling that of one split.",
            *_order_lines(analysis.order),
        ]
    )


def _order_lines(order: pd.DataFrame) -> list[str]:
    """Return how metrics order these models, the best first; no line without such a metric."""
    known = order.dropna(subset=["soft_accuracy"])
    if known.empty:
        return []
    columns = ("soft_accuracy", "hard_accuracy", "tied_accuracy", "ties_alone")
    rows = [
        [str(row["band"] or NONE), row["title"], *(number(row[name]) for name in columns)]
        for _, row in known.iterrows()
    ]
    header = ["band", "metric", "soft", "pairs of means", "within originals", "all equal"]
    most = known[["n_models", "n_originals"]].max()
    return [
        f"Order of these {most['n_models']} models by {most['n_originals']} originals, pairwise "
        "accuracy:",
        text_table(header, rows),
        "Metrics of one band do not differ significantly here (p after Holm 0.05 or more).",
    ]


def _agreement_line(row: pd.Series) -> list[str]:
    why = reason(row["undefined"])
    if why is not None:
        return [row["title"], str(row["n"]), *[NONE] * 6, f"undefined: {why}"]
    why_none = row["interval_undefined"]
    rho = row["rho"], row["rho_bw_low"], row["rho_bw_high"], why_none, row["rho_note"]
    return [
        *(row["title"], str(row["n"])),
        *(f"{row['abs_rho']:.4f}", f"{row['abs_tau']:.4f}"),
        with_interval_or_why(*rho),
        p_value(row["p_rho"]),
        with_interval_or_why(row["tau"], row["tau_score_low"], row["tau_score_high"], why_none),
        p_value(row["p_tau"]),
        str(row["p_kind"]),
    ]
