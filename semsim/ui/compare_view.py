"""The Compare page as HTML: pure functions of a `Comparison`. Every text is escaped."""

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from semsim.analysis.correlation import FEW_MODELS
from semsim.analysis.tables import MODEL_KEY
from semsim.metrics import MetricSpec
from semsim.ui.compare_data import Comparison, model_key, model_name, rows_of_model

STYLE = """<style>
.cmp {color: var(--body-text-color); line-height: 1.5}
.cmp a {color: var(--link-text-color); text-decoration: underline}
.cmp ul {list-style: disc; padding-left: 1.3rem; margin: .3rem 0}
.cmp-scroll {overflow-x: auto}
.cmp-scroll table {border-collapse: collapse; width: 100%; font-size: .92rem}
.cmp-caption {margin: .3rem 0 .5rem; max-width: 60rem; opacity: .85}
.cmp-scroll th, .cmp-scroll td {padding: .35rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--border-color-primary); font-variant-numeric: tabular-nums}
.cmp-scroll th:first-child, .cmp-scroll td:first-child {text-align: left}
.cmp-scroll thead th {font-weight: 600; border-bottom-width: 2px}
.cmp-scroll tbody th {font-weight: 500}
.cmp-note {overflow-wrap: anywhere; padding: .6rem .9rem; border-radius: .4rem; margin: .3rem 0;
  border: 1px solid var(--border-color-primary); background: var(--background-fill-secondary)}
.cmp-simulated {border: 2px solid #b45309; font-weight: 600}
.cmp-cards {display: flex; flex-wrap: wrap; gap: .9rem; margin: .4rem 0}
.cmp-cards figure {margin: 0; width: 8.6rem; font-size: .8rem; line-height: 1.35}
.cmp-cards img {image-rendering: pixelated; width: 8.5rem; height: 8.5rem; object-fit: contain;
  display: block; border-radius: .25rem; border: 1px solid var(--border-color-primary)}
.cmp-cards figcaption {overflow-wrap: anywhere; margin-top: .3rem}
.cmp-pair {display: flex; gap: .25rem}
.cmp-cards figure.cmp-two {width: 17.3rem}
.cmp-yes, .cmp-no, .cmp-open {display: inline-block; padding: 0 .4rem; border-radius: .25rem;
  font-weight: 600}
.cmp-yes {background: #166534; color: #fff}
.cmp-no {background: #991b1b; color: #fff}
.cmp-open {background: #525252; color: #fff}
#compare-plot .xtick text, #compare-plot .ytick text, #compare-plot .g-xtitle text,
#compare-plot .g-ytitle text {fill: var(--body-text-color) !important}
#compare-plot .gridlayer path {stroke: var(--border-color-primary) !important}
</style>"""

_LEAKIEST = ["recognised_rate", "mean_response"]
NO_STUDY = (
    '<div class="cmp-note">There is no study yet. <a href="./">Make one on the page Studies</a>, '
    "have its reconstructions labelled, then come back.</div>"
)


def notice_html(comparison: Comparison) -> str:
    """What a reader must know before any number: simulated votes, none, or none decided."""
    parts = []
    if comparison.study.simulated:
        parts.append(
            '<div class="cmp-note cmp-simulated" role="note">Simulated votes: not human data. '
            "A program voted in this study; its numbers say nothing about people.</div>"
        )
    if comparison.n_votes == 0:
        parts.append(
            '<div class="cmp-note">Nobody has voted in this study yet, so there is nothing to '
            'compare metrics with. <a href="./">Studies</a> has the link annotators sign in '
            "with. Scores are computed meanwhile.</div>"
        )
    elif not comparison.has_decisions:
        parts.append(
            f'<div class="cmp-note">{comparison.n_votes} votes so far, but no reconstruction has '
            "a majority yet. Rankings appear with the first ones.</div>"
        )
    return "".join(parts)


def agreement_html(comparison: Comparison) -> str:
    """|ρ| and |τ| of every metric against people, with signed values and an interval."""
    header = ["Metric", "|ρ|", "|τ|", "ρ", "τ", "95 % interval of ρ", "models", ""]
    rows = [
        _agreement_cells(row, comparison.remarks.get(row["metric"], ""))
        for _, row in comparison.agreement.iterrows()
    ]
    caption = (
        "Rank correlation over models of each metric with the share of reconstructions people "
        "recognise. ρ is Spearman's, τ Kendall's τ-b; a negative sign means that the metric "
        "ranks models the wrong way round."
    )
    return few_models_html(comparison) + table_html(header, rows, "Agreement with people", caption)


def few_models_html(comparison: Comparison) -> str:
    """A plain warning where the study has too few models to rank metrics by."""
    n = int(comparison.models["recognised_rate"].notna().sum())
    if n == 0 or n >= FEW_MODELS:
        return ""
    return (
        f'<div class="cmp-note" role="note">Only {n} models: with fewer than {FEW_MODELS} a rank '
        "correlation can hardly tell one metric from another. Read the intervals, not the order."
        "</div>"
    )


def models_html(comparison: Comparison) -> str:
    """Model by model: what people recognised, and the mean of every metric."""
    specs = [spec for spec in comparison.specs if spec.name in comparison.models]
    header = ["Model", "People recognise", "Mean response", *(heading(spec) for spec in specs)]
    rows = [
        [
            model_name(row, comparison.models),
            _share(row),
            number(row["mean_response"]),
            *(_mean_cell(row, spec, comparison.means) for spec in specs),
        ]
        for _, row in comparison.models.sort_values(_LEAKIEST, ascending=False).iterrows()
    ]
    caption = (
        "People recognise: the share of decided reconstructions that a majority recognised. "
        "Mean response: the share of all votes that did. ↑ a higher value means that more leaks, "
        "↓ a lower one."
    )
    return table_html(header, rows, "Model by model", caption) + _notes_html(comparison)


def unavailable_html(comparison: Comparison) -> str:
    """Metrics without a number, and why; empty where all have one."""
    reasons = [(spec.title, reason) for spec, reason in comparison.unavailable]
    titles = {spec.name: spec.title for spec in comparison.specs}
    reasons += [
        (f"{titles[name]}, {title}", reason)
        for (title, name), reason in comparison.book.refused.items()
    ]
    if not reasons:
        return ""
    shared: dict[str, list[str]] = {}
    for title, reason in reasons:
        shared.setdefault(reason, []).append(title)
    items = "".join(
        f"<li><strong>{escape(', '.join(names))}</strong>: {escape(reason)}</li>"
        for reason, names in shared.items()
    )
    return f'<div class="cmp-note">No number for these metrics:<ul>{items}</ul></div>'


def gallery_html(comparison: Comparison, image: str | None, spec: MetricSpec | None) -> str:
    """One original and its reconstructions, most leaking first by `spec`.

    image: data set and id, as `image_choices` writes them.
    """
    if not image:
        return ""
    dataset, image_id = image.split("\n")
    labels = comparison.labels
    mine = labels[(labels["dataset"] == dataset) & (labels["image_id"].astype(str) == image_id)]
    if mine.empty:
        return ""
    rows = sorted_by_metric(comparison, mine, spec)
    first = rows.iloc[0]
    cards = [
        _figure(
            [(first["original"], "original")], [f"<b>Original</b>: {_text(first, 'class_name')}"]
        )
    ]
    cards += [_reconstruction_card(comparison, row, spec) for _, row in rows.iterrows()]
    return f'<div class="cmp-cards">{"".join(cards)}</div>'


def model_images_html(comparison: Comparison, key: str | None) -> str:
    """Every pair of one model's images with people's verdict."""
    if not key:
        return ""
    rows = rows_of_model(comparison.labels, key).sort_values("image_id")
    cards = [
        _figure(
            [(row["original"], "original"), (row["reconstruction"], "reconstruction")],
            [_text(row, "class_name"), verdict_html(row)],
        )
        for _, row in rows.iterrows()
    ]
    return f'<div class="cmp-cards">{"".join(cards)}</div>'


def sorted_by_metric(
    comparison: Comparison, rows: pd.DataFrame, spec: MetricSpec | None
) -> pd.DataFrame:
    """`rows` of labels with the metric in the column `score`, most leaking first."""
    if spec is None:
        return rows.assign(score=np.nan)
    scores = comparison.book.scores
    mine = scores[scores["metric"] == spec.name]
    keys = [*MODEL_KEY, "image_id"] if spec.per_image else MODEL_KEY
    values = mine[[*keys, "value"]].astype(dict.fromkeys(keys, str))
    joined = rows.astype(dict.fromkeys(keys, str)).merge(values, on=keys, how="left")
    return joined.rename(columns={"value": "score"}).sort_values(
        "score", ascending=not spec.higher_means_more_leakage, kind="stable"
    )


def verdict_html(row: pd.Series) -> str:
    """What people said of a reconstruction, such as "4 of 5 recognised"."""
    if row["n_votes"] == 0:
        return '<span class="cmp-open">no votes yet</span>'
    words = f"{int(row['n_recognised'])} of {int(row['n_votes'])} recognised"
    if pd.isna(row["recognisable"]):
        return f'<span class="cmp-open">{words}, undecided</span>'
    return f'<span class="{"cmp-yes" if row["recognisable"] else "cmp-no"}">{words}</span>'


def heading(spec: MetricSpec) -> str:
    """A metric's title with its unit and which way leakage lies."""
    unit = f" ({spec.unit})" if spec.unit else ""
    return f"{spec.title}{unit} {'↑' if spec.higher_means_more_leakage else '↓'}"


def table_html(
    header: Sequence[str], rows: Iterable[Sequence[str]], label: str, caption: str
) -> str:
    """A table that scrolls sideways on a narrow screen; the first cell of a row heads it."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<p class="cmp-caption">{escape(caption)}</p>'
        f'<div class="cmp-scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def number(value: float, digits: int = 3) -> str:
    """A number for a table; a dash where there is none."""
    if pd.isna(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    small = 0 < abs(value) < 10.0**-digits
    text = f"{value:.{digits}g}" if small or abs(value) >= 1000 else f"{value:.{digits}f}"
    return text.replace("-", "−")


def image_source(path: str) -> str:
    """A PNG as a data: address; a file that has gone leaves an empty image with its alt text."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return ""
    return "data:image/png;base64," + base64.b64encode(content).decode()


def _agreement_cells(row: pd.Series, remark: str) -> list[str]:
    if row["undefined"] is not None and not pd.isna(row["undefined"]):
        return [row["title"], *("–",) * 5, str(row["n"]), f"undefined: {row['undefined']}"]
    interval = "–"
    if not pd.isna(row["rho_low"]):
        interval = f"{number(row['rho_low'], 2)} to {number(row['rho_high'], 2)}"
    values = [number(row[name]) for name in ("abs_rho", "abs_tau", "rho", "tau")]
    return [row["title"], *values, interval, str(row["n"]), remark]


def _share(row: pd.Series) -> str:
    if row["n_decided"] == 0:
        return "–"
    undecided = f", {row['n_undecided']} undecided" if row["n_undecided"] else ""
    counts = f"{row['n_recognisable']} of {row['n_decided']}{undecided}"
    return f"{number(row['recognised_rate'], 2)} ({counts})"


def _mean_cell(row: pd.Series, spec: MetricSpec, means: pd.DataFrame) -> str:
    mine = rows_of_model(means[means["metric"] == spec.name], model_key(row))
    infinite = int(mine["n_inf"].sum())
    if infinite and np.isfinite(row[spec.name]):
        return f"{number(row[spec.name])} (and {infinite} × ∞)"
    return number(row[spec.name])


def _notes_html(comparison: Comparison) -> str:
    """What metrics of sets say about themselves, once a metric."""
    facts = comparison.book.facts
    titles = {spec.name: spec.title for spec in comparison.specs}
    notes = facts.loc[facts["notes"] != "", ["metric", "notes"]].drop_duplicates()
    lines = [f"{titles[metric]}: {note}" for metric, note in notes.to_numpy()]
    errors = facts.dropna(subset=["standard_error"]).groupby("metric")["standard_error"]
    lines += [
        f"{titles[str(name)]}: standard error up to {number(largest)}"
        for name, largest in errors.max().items()
    ]
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>"


def _reconstruction_card(comparison: Comparison, row: pd.Series, spec: MetricSpec | None) -> str:
    lines = [f"<b>{escape(model_name(row, comparison.models))}</b>"]
    if spec is not None:
        lines.append(f"{escape(heading(spec))} {number(row['score'])}")
    return _figure([(row["reconstruction"], "reconstruction")], [*lines, verdict_html(row)])


def _figure(images: Sequence[tuple[str, str]], lines: Sequence[str]) -> str:
    """A card: pictures side by side, then lines of HTML."""
    pictures = "".join(
        f'<img src="{image_source(path)}" alt="{escape(name)}">' for path, name in images
    )
    kind = ' class="cmp-two"' if len(images) > 1 else ""
    return (
        f'<figure{kind}><div class="cmp-pair">{pictures}</div>'
        f"<figcaption>{'<br>'.join(lines)}</figcaption></figure>"
    )


def _text(row: pd.Series, column: str) -> str:
    return escape(str(row[column]))
