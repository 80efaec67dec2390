"""The SemSim paper's Tables 1 and 2 from a study: our |ρ| and |τ| beside the printed ones."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.analysis.result import Analysis
from semsim.analysis.run import analyse
from semsim.learning.ablations_run import Material, Workplace
from semsim.learning.controls import verdict_of
from semsim.learning.evaluation import auc_of, evidence_of, metric_rows, semsim_row
from semsim.learning.leave_out import judged_words
from semsim.learning.shuffles import SHUFFLED
from semsim.metrics import find_metric
from semsim.metrics.provenance import CONTROLS
from semsim.progress import Report, silent
from semsim.reporting.notation import interval, number
from semsim.reproduce.semsim_paper import METRICS, SAID, TABLE_1, TABLE_2
from semsim.reproduce.simulated_votes import Jury
from semsim.scores.scoring import pair_sets_of_labels, score_sets
from semsim.terminal import text_table

# The paper's metrics by the names of ours.
OURS = {"PSNR": "psnr", "MSE": "mse", "SSIM": "ssim", "LPIPS": "lpips-alex", "FID": "fid"}
_PAPER = {(number, row.name): row for number, rows in ((1, TABLE_1), (2, TABLE_2)) for row in rows}
VARIANTS = (
    "Beside the paper's cells stand: SSIM with a Gaussian window of 11 pixels, where its program "
    "has a uniform one of 7 (ssim-uniform here); LPIPS with AlexNet on pictures as they are, where "
    "it takes AlexNet for some and SqueezeNet for others, resized to 256 in [0, 1]; FID without "
    "its resize to 64."
)
_SIMULATED = "Simulated votes: these numbers say nothing about people."
_ENDS = {  # columns of an analysis, and ours
    **{"rho_bw_low": "rho_low", "rho_bw_high": "rho_high"},
    **{"tau_score_low": "tau_low", "tau_score_high": "tau_high"},
}


def analysis_of(
    name: str,
    material: Material,
    checkpoint: Path | None,
    place: Workplace,
    report: Report = silent,
) -> Analysis:
    """How well every metric agrees with the votes of one study, called `name`.

    checkpoint: of the SemSim beside them; None where there is none.
    """
    judging = place.judging()
    sets, names = pair_sets_of_labels(material.labels), list(judging.metrics)
    books = [score_sets(sets, names, judging.resources, judging.scores, report)]
    if checkpoint is not None:
        own, elsewhere = f"semsim:{checkpoint.stem}", checkpoint.parent
        resources = replace(judging.resources, checkpoints=elsewhere)
        books.append(score_sets(sets, [own], resources, judging.scores, report))
        names.append(own)
    specs = [find_metric(one).spec for one in names]
    scores = pd.concat([book.scores for book in books if not book.scores.empty])
    evidence = evidence_of(material.labels, material.votes, scores, specs)
    return analyse(replace(evidence, name=name), specs, judging.analysis)


def cells(
    table: int, row: str, data: str, analysis: Analysis | None, jury: Jury | None = None
) -> pd.DataFrame:
    """A row of the paper's table as a line a metric.

    Columns: table, row, data (what stands in for it), metric, models, rho, tau, both absolute and
    NaN where there is none, `_ENDS`, their 95 % intervals over models with the sign they have
    (above 0 agrees), paper_rho, paper_tau, simulated, why, of what is missing, and jury_originals,
    jury_grey, jury_mean of `jury`, who voted.
    """
    shares = jury or Jury(*[float("nan")] * 3)
    printed, lines = _PAPER[table, row], []
    for place, metric in enumerate(METRICS):
        lines.append(
            {
                **{"table": table, "row": row, "data": data, "metric": metric},
                **_found(metric, analysis),
                **{"paper_rho": printed.rho[place], "paper_tau": printed.tau[place]},
                "simulated": analysis is not None and analysis.evidence.simulated,
                **{f"jury_{name}": share for name, share in shares._asdict().items()},
            }
        )
    return pd.DataFrame(lines)


def _found(metric: str, analysis: Analysis | None) -> dict[str, Any]:
    nothing = {"models": 0, **dict.fromkeys(("rho", "tau", *_ENDS.values()), float("nan"))}
    if analysis is None:
        return {**nothing, "why": "not run"}
    table = analysis.agreement
    mine = table["metric"].str.startswith("semsim:")
    rows = table[mine] if metric == "SemSim" else table[table["metric"] == OURS[metric]]
    if rows.empty:
        learned = "no SemSim could be trained" if metric == "SemSim" else "not scored"
        return {**nothing, "why": learned}
    one = rows.iloc[0]
    why = one["undefined"] if isinstance(one["undefined"], str) else ""
    ends = {ours: one[theirs] for theirs, ours in _ENDS.items()}
    return {
        **{"models": int(one["n"]), "rho": one["abs_rho"], "tau": one["abs_tau"]},
        **ends,
        "why": why,
    }


def table_text(number: int, table: pd.DataFrame) -> str:
    """Table 1 or 2 for a terminal: ours with the paper's in brackets, and 95 % intervals.

    Below it, who voted where these were programs, and why cells are missing.
    """
    own = table[table["table"] == number]
    lines: list[list[str]] = []
    voted: list[str] = []
    gaps: list[str] = []
    for (row, data), part in own.groupby(["row", "data"], sort=False):
        for sign, column in (("|ρ|", "rho"), ("|τ|", "tau")):
            found = zip(part[column], part[f"paper_{column}"], strict=True)
            texts = [f"{'–' if a != a else f'{a:.4f}'} ({b:.4f})" for a, b in found]
            lines.append([str(row), str(data), str(part["models"].max()), sign, *texts])
            ends = zip(part[f"{column}_low"], part[f"{column}_high"], strict=True)
            lines.append(["", "", "", f"{sign[1]}, 95 %", *(interval(*both) for both in ends)])
        one = part.iloc[0]
        jury = Jury(*(float(one[f"jury_{name}"]) for name in Jury._fields))
        voted += [] if pd.isna(jury.originals) else [f"{row}: {jury.words}"]
        missing = part[part["why"] != ""].groupby("why")["metric"].agg(", ".join)
        gaps += [f"{row}: {metrics}: {why}." for why, metrics in missing.items()]
    said = [_SIMULATED] if own["simulated"].any() else []
    head = f"Table {number}. Agreement with people over models; in brackets the paper's, of 14."
    header = ["paper's row", "here", "models", "", *METRICS]
    return "\n".join([head, *said, text_table(header, lines), VARIANTS, *voted, *gaps])


def learned_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Every SemSim of Table 1 beside its controls, by the data set that it has not seen.

    rows: of `leave_each_out`; of those with `why` the reason stands there.
    """
    lines: list[list[str]] = []
    said: list[str] = []
    for row in rows:
        left_out = str(row["left_out"])
        if "why" in row:
            said.append(f"{left_out}: {row['why']}")
            continue
        judged = row["held_out"]
        own = semsim_row(judged)["metric"]
        named = {one["metric"]: one for one in judged["metrics"]}
        titles = {own: "SemSim", **{f"{own}.{one}": what for one, what in CONTROLS.items()}}
        titles |= {SHUFFLED: "on shuffled votes, mean"}
        for name, title in titles.items():
            if name in named:
                sizes = [_size(named[name][sign]) for sign in ("rho", "tau")]
                found = [*sizes, _size(auc_of(judged, name))]
                lines.append([left_out, title, *(number(one, 2) for one in found)])
        said.append(" ".join([f"{left_out}:", *verdict_of(judged).sentences]))
    head = "SemSim beside its controls, on the data set that it has not seen."
    marks = [_SIMULATED] if any(row.get("held_out", {}).get("simulated") for row in rows) else []
    header = ["not seen", "network", "|ρ|", "|τ|", "AUC"]
    table = [text_table(header, lines)] if lines else []
    return "\n".join([head, *marks, *table, *judged_words(rows), *said])


def figures_text(analysis: Analysis, data: str) -> str:
    """What Figures 3, 5 and 6 show, as numbers of every metric; Figures 5 and 6 of single pictures.

    data: what stands in for the paper's first data set.
    """
    between = analysis.matrix.astype(float).to_dict()
    lines: list[list[str]] = []
    for row in metric_rows(analysis):
        others = [one.title for one in analysis.specs if one.title != row["title"]]
        alike = [near for one in others if not math.isnan(near := between[row["title"]][one])]
        ends = (min(alike), max(alike)) if alike else (math.nan, math.nan)
        order = ["–"] * 3
        if own := row["auc"].get("within original"):
            order = [number(own["auc"], 2), interval(own["low"], own["high"])]
            order.append(str(own["n_groups"]))
        lines.append([row["title"], *(number(one, 2) for one in (row["rho"], *ends)), *order])
    simulated = [_SIMULATED] if analysis.evidence.simulated else []
    header = ["metric", "ρ with people", "with metrics, from", "to", "ordered", "95 %", "originals"]
    return "\n".join(
        [
            f"Figures 3, 5 and 6 in numbers, on {data}. Ordered: how often, of two reconstructions "
            "of one original, the one that people recognise stands before the one that they do "
            "not; a guesser's is 0.50. Originals: those that have both.",
            *simulated,
            text_table(header, lines),
            f"The paper: {SAID['pictures']}",
        ]
    )


def study_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """What a study found, a row a value: |ρ| and |τ| of SemSim, |τ| of the others, its AUC.

    rows: of `run_study`; means over the seeds that were trained, NaN where nothing is defined.
    """
    found: list[dict[str, Any]] = []
    for row in rows:
        if "why" in row:
            found.append({"value": str(row["value"])})
            continue
        judged = row["held_out"]
        named = {one["metric"]: one for one in judged["metrics"]}
        own = semsim_row(judged)
        others = {
            f"{metric} |τ|": _size(named[name]["tau"])
            for metric, name in OURS.items()
            if name in named
        }
        mine = {"SemSim |ρ|": _size(own["rho"]), "SemSim |τ|": _size(own["tau"])}
        auc = _size(auc_of(judged, "semsim"))
        found.append({"value": str(row["value"]), **mine, **others, "SemSim AUC": auc})
    return pd.DataFrame(found).groupby("value", sort=False).mean().reset_index()


def _size(value: float | None) -> float:
    return float("nan") if value is None else abs(value)
