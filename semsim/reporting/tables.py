"""The tables of an analysis: raw numbers to compute with, and cells to be read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from semsim.base.columns import ATTACKER
from semsim.base.registry import unknown
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.intervals import RULE
from semsim.base.stats.pairwise_accuracy import LEVEL
from semsim.base.stats.roc import scale_differs, scale_note
from semsim.base.stats.verdict import title_of
from semsim.base.words import capital
from semsim.reporting.canvas import SIMULATED
from semsim.reporting.model_figures import heading
from semsim.reporting.notation import (
    LACKING,
    NONE,
    attacker_text,
    number,
    p_value,
    rank_text,
    reason,
    target_text,
    undefined_text,
    with_interval,
    with_interval_or_why,
)

TABLE_ONE_COLUMNS = (
    *("study", "dataset", "rule", "metric", "title", "n", "rho", "tau", "abs_rho", "abs_tau"),
    *("rho_low", "rho_high", "rho_note", "tau_low", "tau_high", "interval_undefined"),
    *("best_rho", "best_tau", "undefined"),
)
_TABLE1_HEADINGS = ("Study", "Data set", "Human score", "Models", "Statistic")
BACKBONES = (
    "Models of one backbone are not independent. A model's backbone is its name up to the first /, "
    "else the first of _ · | and space, without the data set that a campaign puts before it."
)
Cells = Mapping[str, Callable[[pd.Series], str]]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table.

    Attributes:
        frame: The raw numbers in full precision.
        cells: What is printed, texts under their headings.
        best: (row, column) of the cells that are best, marked when printed.
    """

    name: str
    title: str
    caption: str
    frame: pd.DataFrame
    cells: pd.DataFrame
    best: frozenset[tuple[int, int]] = frozenset()


def tables(analysis: Analysis) -> tuple[Table, ...]:
    """Every table of an analysis, the most asked for first."""
    return tuple(table(analysis, name) for name in _TABLES)


def table(analysis: Analysis, name: str) -> Table:
    """The table `name` of an analysis; raises `UnknownNameError` that names the others."""
    if name not in _TABLES:
        raise unknown("table", name, _TABLES)
    return _marked(_TABLES[name](analysis), [analysis])


def table1(analyses: Sequence[Analysis]) -> Table:
    """The form of the paper's Table 1: data sets as rows, metrics as columns.

    Each data set has four lines: |ρ| and |τ| as the paper prints them, the best in bold, and
    under each the signed value with its 95% interval over models. Simulated votes are named.
    """
    return _marked(_table1(analyses), analyses)


def _marked(made: Table, analyses: Sequence[Analysis]) -> Table:
    """The table, whose caption says first which of these studies have simulated votes.

    The column `SIMULATED` of the frame says it row by row.
    """
    marks = {one.evidence.name: one.evidence.mark for one in analyses if one.evidence.simulated}
    if not marks:
        return made
    of = {mark: [name for name in marks if marks[name] == mark] for mark in marks.values()}
    said = [f"{capital(mark)}, not human data: {', '.join(names)}." for mark, names in of.items()]
    rows = made.frame["study"].isin(marks) if len(analyses) > 1 else True
    frame = made.frame.assign(**{SIMULATED: rows})
    return replace(made, caption=" ".join([*said, made.caption]), frame=frame)


def _table1(analyses: Sequence[Analysis]) -> Table:
    frame = table_one(analyses)
    titles = {str(row["metric"]): str(row["title"]) for _, row in frame.iterrows()}
    words = {(one.evidence.name, one.settings.headline): one.score_title for one in analyses}
    lines: list[list[str]] = []
    best: set[tuple[int, int]] = set()
    for key, part in frame.groupby(["study", "dataset", "rule"], sort=False, dropna=False):
        rows = {str(row["metric"]): row for _, row in part.iterrows()}
        study, dataset, rule = (str(name) for name in key)
        named = [study, dataset, words[study, rule], _n_range(part["n"])]
        nameless = [""] * len(named)
        for statistic, symbol in (("rho", "ρ"), ("tau", "τ")):
            found = [rows.get(metric) for metric in titles]
            best |= {
                (len(lines), len(named) + 1 + place)
                for place, row in enumerate(found)
                if row is not None and row[f"best_{statistic}"]
            }
            heads = named if statistic == "rho" else nameless
            lines.append([*heads, f"|{symbol}|", *(_absolute(row, statistic) for row in found)])
            signed = (_signed(row, statistic) for row in found)
            lines.append([*nameless, f"{symbol} [95%]", *signed])
    return Table(
        name="table1",
        title="Agreement of metrics with people, by data set",
        caption=(
            "Absolute rank correlations over models as in Table 1 of the paper: Spearman's |ρ| "
            "and Kendall's |τ-b|. The metric that agrees best is marked, never one that ranks "
            "backwards. Below each the signed value, positive where the metric agrees with "
            "people, with its 95% interval over models: of ρ after Bonett and Wright, of τ by "
            f"its score.{LACKING if 4 * len(frame) < len(titles) * len(lines) else ''}"
        ),
        frame=frame,
        cells=pd.DataFrame(lines, columns=[*_TABLE1_HEADINGS, *titles.values()]),
        best=frozenset(best),
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
    leading = table.index.isin(analysis.of_candidates(table).index)
    for name, kind in (("rho", "bw"), ("tau", "score")):
        table[f"{name}_low"] = table[f"{name}_{kind}_low"]
        table[f"{name}_high"] = table[f"{name}_{kind}_high"]
        table[f"best_{name}"] = (table[name] > 0) & (table[name] == table.loc[leading, name].max())
        table[f"best_{name}"] &= leading
    return table[list(TABLE_ONE_COLUMNS)]


def _n_range(n: pd.Series) -> str:
    low, high = int(n.min()), int(n.max())
    return str(low) if low == high else f"{low} to {high}"


def _absolute(row: pd.Series | None, statistic: str) -> str:
    if row is None:
        return NONE
    return undefined_text(row["undefined"]) or number(row[f"abs_{statistic}"])


def _signed(row: pd.Series | None, statistic: str) -> str:
    if row is None:
        return NONE
    ends = row[f"{statistic}_low"], row[f"{statistic}_high"]
    note = row.get(f"{statistic}_note")
    return with_interval_or_why(row[statistic], *ends, row["interval_undefined"], note)


def _agreement(analysis: Analysis) -> Table:
    frame = analysis.agreement
    cells: Cells = {
        "Metric": lambda row: str(row["title"]),
        "n": lambda row: str(row["n"]),
        "|ρ|": lambda row: number(row["abs_rho"]),
        "|τ|": lambda row: number(row["abs_tau"]),
        "ρ [95%, models]": lambda row: (
            undefined_text(row["undefined"]) or _estimate(row, "rho", "rho_bw")
        ),
        "p of ρ": lambda row: _p(row, "p_rho"),
        "τ [95%, models]": lambda row: _estimate(row, "tau", "tau_score"),
        "p of τ": lambda row: _p(row, "p_tau"),
        "ρ, images resampled": lambda row: _resampled(row, "rho"),
        "τ, images resampled": lambda row: _resampled(row, "tau"),
        "ρ, one model left out": lambda row: _one_left_out(row, "rho"),
        "τ, one model left out": lambda row: _one_left_out(row, "tau"),
    }
    shown = _cells(frame, cells)
    best = _best(analysis.of_candidates(frame), shown, {"|ρ|": "rho", "|τ|": "tau"}, above=0)
    return Table(
        name="agreement",
        title="Agreement of each metric with people",
        caption=(
            f"Rank correlation over models with the human score '{analysis.score_title}'. "
            "Signed values are oriented: positive agrees with people. Intervals: 95% over models, "
            "of ρ after Bonett and Wright, of τ by its score. p: two-sided, exact or by "
            f"{analysis.settings.permutations} random permutations, not corrected for the number "
            "of metrics. Last columns, which are no confidence intervals: where 95% of the values "
            "lie when originals are resampled, and the smallest and largest value when one model "
            "is left out. Marked: the metric that agrees best, which is not one that ranks "
            "backwards."
        ),
        frame=frame,
        cells=shown,
        best=best,
    )


def _p(row: pd.Series, column: str) -> str:
    return NONE if pd.isna(row[column]) else f"{p_value(row[column])} ({row['p_kind']})"


def _range(row: pd.Series, low: str, high: str) -> str:
    return NONE if pd.isna(row[low]) else f"{number(row[low], 2)} to {number(row[high], 2)}"


def _resampled(row: pd.Series, statistic: str) -> str:
    said = undefined_text(row["images_undefined"])
    return said or _range(row, f"{statistic}_images_low", f"{statistic}_images_high")


def _one_left_out(row: pd.Series, statistic: str) -> str:
    told = _range(row, f"loo_{statistic}_min", f"loo_{statistic}_max")
    without = reason(row["loo_undefined"])
    return told if without is None else f"{told}; none without {without}"


def _estimate(row: pd.Series, value: str, bounds: str) -> str:
    ends = row[f"{bounds}_low"], row[f"{bounds}_high"]
    note = row.get(f"{value}_note")
    return with_interval_or_why(row[value], *ends, row["interval_undefined"], note)


def _models(analysis: Analysis) -> Table:
    frame = analysis.models.sort_values("human", ascending=False, kind="stable", ignore_index=True)
    specs = [spec for spec in analysis.specs if spec.name in frame]
    attackers = frame.filter([ATTACKER]).notna().any(axis=None)
    cells: dict[str, Callable[[pd.Series], str]] = {
        "Model": lambda row: str(row["label"]),
        "Target on its test": target_text,
        **({"Attacker": attacker_text} if attackers else {}),
        "People [95%]": lambda row: with_interval(
            row["human"], row["human_low"], row["human_high"]
        ),
        "Images": lambda row: str(row["n_images"]),
        "Undecided": lambda row: str(row["n_undecided"]),
    }
    cells |= {heading(spec): _mean_cell(spec.name) for spec in specs}
    return table_of(
        *(frame, cells),
        name="models",
        title="Model by model",
        caption=(
            "Target: test accuracy of the target model. Models at chance show little about "
            "trained ones. "
            f"People: mean human score '{analysis.score_title}' of a model's images. "
            "Metrics: mean over the same images, ↑ a higher value means that more leaks, ↓ a "
            f"lower one. {RULE} Infinite values are left out of means and counted."
        ),
    )


def _mean_cell(name: str) -> Callable[[pd.Series], str]:
    def cell(row: pd.Series) -> str:
        text = with_interval(row[name], row[f"{name}:low"], row[f"{name}:high"], digits=3)
        infinite = row[f"{name}:n_inf"]
        counted = np.isfinite(row[name]) and infinite > 0
        return f"{text} (and {int(infinite)} × ∞)" if counted else text

    return cell


def _auc(analysis: Analysis) -> Table:
    frame = analysis.auc
    cells: dict[str, Callable[[pd.Series], str]] = {
        "Metric": lambda row: str(row["title"]),
        "Scope": lambda row: str(row["scope"]),
        "AUC [95%]": lambda row: (
            undefined_text(row["undefined"]) or with_interval(row["auc"], row["low"], row["high"])
        ),
        "Recognisable": lambda row: str(row["n_positive"]),
        "Not": lambda row: str(row["n_negative"]),
        "Groups": lambda row: str(row["n_groups"]),
    }
    rated = "rho" in frame
    if rated:
        cells |= {
            "ρ with the mean rating [95%]": lambda row: with_interval(
                row["rho"], row["rho_low"], row["rho_high"]
            )
        }
    shown = _cells(frame, cells)
    best = {
        spot
        for _, part in frame.groupby("scope", sort=False)
        for spot in _best(analysis.of_candidates(part), shown, {"AUC [95%]": "auc"})
    }
    return Table(
        name="auc",
        title="Single images: area under the ROC curve",
        caption=(
            "How often a metric puts a recognised image above one that is not: over "
            "all images, and as the mean over models, or originals, that have images of both "
            f"kinds. 0.5 is chance. {RULE} The best of each scope is marked."
            + (" ρ: Spearman's, over all images with a mean rating." if rated else "")
            + f" {scale_note(scale_differs(frame))}".rstrip()
        ),
        frame=frame,
        cells=shown,
        best=frozenset(best),
    )


def _differences(analysis: Analysis) -> Table:
    cells: Cells = {
        "Metric A": lambda row: str(row["title_a"]),
        "Metric B": lambda row: str(row["title_b"]),
        "n": lambda row: str(row["n"]),
        "ρ of A − ρ of B [95%]": lambda row: (
            undefined_text(row["undefined"])
            or with_interval_or_why(
                row["difference"], row["low"], row["high"], row["interval_undefined"]
            )
        ),
        "p": lambda row: p_value(row["p"]),
        "p after Holm": lambda row: p_value(row["p_holm"]),
    }
    return table_of(
        *(analysis.differences, cells),
        name="differences",
        title="Would one metric rank other models better than another?",
        caption=(
            "Difference of the signed ρ of two metrics over the same models, with its 95% "
            "interval over models (Zou, of Bonett and Wright's). p: two-sided, of equal "
            "correlation with people. It is below 0.05 where the interval leaves out 0. "
            "p after Holm accounts for the number of pairs."
        ),
    )


def _order(analysis: Analysis) -> Table:
    cells: Cells = {
        "Metric": lambda row: str(row["title"]),
        "Band": lambda row: str(row["band"] or NONE),
        "Soft pairwise accuracy": lambda row: (
            undefined_text(row["undefined"]) or number(row["soft_accuracy"])
        ),
        "Pairwise accuracy": lambda row: number(row["hard_accuracy"]),
        "Within originals, ties calibrated": lambda row: number(row["tied_accuracy"]),
        "All called equal": lambda row: number(row["ties_alone"]),
        "Models": lambda row: str(row["n_models"]),
        "Originals": lambda row: str(row["n_originals"]),
    }
    return table_of(
        *(analysis.order, cells),
        name="order",
        title="Which metric orders these models as people do?",
        caption=(
            "Soft pairwise accuracy: 1 less the mean distance, over pairs of models, between "
            "people's and the metric's p that the first leads (random signs over originals; "
            "Thompson et al. 2024); 0.5 is a metric that is never sure, with people who always "
            "are. Pairwise accuracy: pairs of means in the same order. Within originals: pairs of "
            "pictures of one original, ties of the metric calibrated (Deutsch et al. 2023), next "
            "to the accuracy of calling all equal. Metrics share a band unless its best beats them "
            f"(p after Holm below {LEVEL:g})."
        ),
    )


def _leads(analysis: Analysis) -> Table:
    cells: Cells = {
        "Metric A": lambda row: str(row["title_a"]),
        "Metric B": lambda row: str(row["title_b"]),
        "Originals": lambda row: str(row["n_originals"]),
        "Accuracy of A − of B": lambda row: (
            undefined_text(row["undefined"]) or number(row["difference"])
        ),
        "p": lambda row: p_value(row["p"]),
        "p after Holm": lambda row: p_value(row["p_holm"]),
        "p over models": lambda row: p_value(row["p_models"]),
    }
    return table_of(
        *(analysis.leads, cells),
        name="leads",
        title="Does one metric order these models better than another?",
        caption=(
            "Difference of soft pairwise accuracy. p: two-sided, by swapping the standardised "
            "scores of both at random, original by original, about these models on other "
            "originals. p over models: swapped model by model, about other models "
            "(Deutsch et al. 2021)."
        ),
    )


def _backbones(analysis: Analysis) -> Table:
    cells: Cells = {
        "Metric": lambda row: str(row["title"]),
        "Backbone left out": lambda row: str(row["left_out"]),
        "n": lambda row: str(row["n"]),
        "ρ": lambda row: undefined_text(row["undefined"]) or number(row["rho"]),
        "τ": lambda row: number(row["tau"]),
    }
    return table_of(
        *(analysis.backbones, cells),
        name="backbones",
        title="One backbone left out",
        caption=f"Signed ρ and τ over the models that remain. {BACKBONES}",
    )


def _rules(analysis: Analysis) -> Table:
    cells: Cells = {
        "Human score": lambda row: title_of(analysis.evidence, str(row["rule"])),
        "Metric": lambda row: str(row["title"]),
        "n": lambda row: str(row["n"]),
        "ρ": lambda row: undefined_text(row["undefined"]) or number(row["rho"]),
        "τ": lambda row: number(row["tau"]),
        "Images": lambda row: str(row["n_images"]),
        "Left out": lambda row: str(row["n_left_out"]),
    }
    return table_of(
        *(analysis.rules, cells),
        name="rules",
        title="Human scores side by side",
        caption=(
            "Signed ρ and τ of each metric when people are summed up in other ways; the headline "
            f"score is '{analysis.score_title}'. Left out: images on which the score is "
            "undecided."
        ),
    )


def _ceiling(analysis: Analysis) -> Table:
    found = analysis.ceiling
    why = found.interval_undefined
    row = {
        "Annotators": str(found.n_annotators),
        "Split": f"{found.sizes[0]} against {found.sizes[1]}",
        "Splits": str(found.n_splits),
        "ρ [95%]": undefined_text(found.undefined)
        or with_interval_or_why(found.rho, found.rho_low, found.rho_high, why, found.rho_note),
        "τ [95%]": with_interval_or_why(found.tau, found.tau_low, found.tau_high, why),
    }
    raw = {**vars(found), "sizes": f"{found.sizes[0]}+{found.sizes[1]}"}
    return Table(
        name="ceiling",
        title="Human ceiling",
        caption=(
            "How well the ranking of the models by some annotators predicts that by the others, as "
            "mean over splits of the annotators. The 95% interval over models is that of one split "
            "(of ρ after Bonett and Wright, of τ by its score). A metric that reaches "
            "it agrees with people as well as people with each other."
        ),
        frame=pd.DataFrame([raw]),
        cells=pd.DataFrame([row]),
    )


def _matrix(analysis: Analysis) -> Table:
    frame = analysis.matrix.copy()
    frame.insert(0, "Ranking", frame.index.astype(str))
    frame = frame.reset_index(drop=True)
    cells = frame.copy().astype(object)
    for title in frame.columns[1:]:
        cells[title] = [number(value) for value in frame[title]]
    return Table(
        name="matrix",
        title="Metrics against metrics",
        caption=(
            "Spearman's ρ over models between every two rankings, people among them, each "
            "oriented so that more means more leakage."
        ),
        frame=frame,
        cells=cells,
    )


def ranks(analysis: Analysis) -> Table:
    """The rank of each model by people and by every metric, most recognised first."""
    table = analysis.stability
    wide = table.pivot_table(index="label", columns="title", values="rank", sort=False)
    if "People" in wide:
        wide = wide.sort_values("People", kind="stable")
    cells = wide.map(rank_text)
    cells.insert(0, "Model", cells.index.astype(str))
    return Table(
        name="ranks",
        title="Ranks of the models",
        caption="By people and by each metric; 1 leaks most, equal values share their mean rank.",
        frame=wide.reset_index(),
        cells=cells.reset_index(drop=True),
    )


def table_of(frame: pd.DataFrame, cells: Cells, *, name: str, title: str, caption: str) -> Table:
    """The table of a frame;

    Args:
        cells: By their heads, what is printed of each of its rows.
    """
    return Table(name=name, title=title, caption=caption, frame=frame, cells=_cells(frame, cells))


def _cells(frame: pd.DataFrame, cells: Cells) -> pd.DataFrame:
    lines = [[show(row) for show in cells.values()] for _, row in frame.iterrows()]
    return pd.DataFrame(lines, columns=list(cells))


def _best(
    frame: pd.DataFrame, cells: pd.DataFrame, columns: Mapping[str, str], above: float = -np.inf
) -> frozenset[tuple[int, int]]:
    """Return the places of the largest raw value of each column of `cells`; ties are all best.

    A column whose largest value is not above `above` has none.
    """
    spots = set()
    for shown, raw in columns.items():
        values, place = frame[raw].astype(float), list(cells.columns).index(shown)
        best = values.index[(values == values.max()) & (values > above)]
        spots |= {(int(row), place) for row in best}
    return frozenset(spots)


_TABLES: dict[str, Callable[[Analysis], Table]] = {
    "agreement": _agreement,
    "table1": lambda analysis: _table1([analysis]),
    "models": _models,
    "auc": _auc,
    "order": _order,
    "leads": _leads,
    "differences": _differences,
    "ceiling": _ceiling,
    "rules": _rules,
    "backbones": _backbones,
    "matrix": _matrix,
}
