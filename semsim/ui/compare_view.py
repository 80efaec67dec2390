"""The Compare page as HTML: pure functions of a `Comparison`. Every text is escaped."""

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from semsim.analysis.evidence import MODEL_KEY
from semsim.metrics import MetricSpec
from semsim.reporting import canvas
from semsim.reporting.canvas import Drawn
from semsim.reporting.export import svg
from semsim.reporting.gallery import Entry
from semsim.reporting.methods import SIMULATED, Origin, warnings
from semsim.reporting.model_figures import heading
from semsim.reporting.notation import number, target_text
from semsim.reporting.tables import Table
from semsim.reporting.writing import html
from semsim.ui.compare_data import Comparison, View, rows_of_model
from semsim.ui.compare_files import address
from semsim.words import counted

STYLE = """<style>
.cmp {color: var(--body-text-color); line-height: 1.5}
.cmp a {color: var(--link-text-color); text-decoration: underline}
.cmp ul {list-style: disc; padding-left: 1.3rem; margin: .3rem 0}
.semsim-scroll {overflow-x: auto}
.semsim-table {border-collapse: collapse; width: 100%; font-size: .92rem}
.cmp-caption {margin: .3rem 0 .5rem; max-width: 60rem; opacity: .85}
.semsim-table th, .semsim-table td {padding: .35rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--border-color-primary); font-variant-numeric: tabular-nums}
.semsim-table th:first-child, .semsim-table td:first-child {text-align: left}
.semsim-table thead th {font-weight: 600; border-bottom-width: 2px}
.semsim-table tbody th {font-weight: 500}
.semsim-best {font-weight: 700}
.cmp-note {overflow-wrap: anywhere; padding: .6rem .9rem; border-radius: .4rem; margin: .3rem 0;
  border: 1px solid var(--border-color-primary); background: var(--background-fill-secondary)}
.cmp-simulated {border: 2px solid #b45309; font-weight: 600}
.cmp-figure {max-width: 62rem; margin: 0}
.cmp-figure > div {overflow-x: auto}
.cmp-figure svg {display: block; width: 100%; min-width: 34rem; height: auto}
.cmp-figure [data-key] {cursor: pointer}
.cmp-figure text {pointer-events: none}
.cmp-files {font-size: .85rem; margin: .2rem 0 1rem; display: flex; flex-wrap: wrap; gap: 0 .8rem}
.cmp-contents {display: flex; flex-wrap: wrap; gap: .2rem 1rem}
.cmp h2 {font-size: 1.4rem; font-weight: 600; margin-top: 1.6rem}
.cmp h3 {font-size: 1.1rem; font-weight: 600; margin: 1.2rem 0 .2rem}
.cmp h4 {font-weight: 600; margin: .8rem 0 .3rem}
.cmp summary {cursor: pointer; padding: .3rem 0; font-weight: 500}
.cmp-button {display: inline-block; padding: .4rem .9rem; margin-right: .6rem; border-radius: .4rem;
  border: 1px solid var(--border-color-primary)}
.cmp-cards {display: flex; flex-wrap: wrap; gap: .9rem; margin: .4rem 0}
.cmp-cards figure {margin: 0; width: 8.6rem; font-size: .8rem; line-height: 1.35}
.cmp-cards img {image-rendering: pixelated; width: 8.5rem; height: 8.5rem; object-fit: contain;
  display: block; border-radius: .25rem; border: 1px solid var(--border-color-primary)}
.cmp-cards figcaption {overflow-wrap: anywhere; margin-top: .3rem}
.cmp-pair {display: flex; gap: .25rem}
.cmp-cards figure.cmp-two {width: 17.3rem}
.cmp-yes, .cmp-no, .cmp-open {display: inline-block; padding: 0 .4rem; border-radius: .25rem;
  font-weight: 600}
.cmp-yes {background: LEAKED; color: #fff}
.cmp-no {background: PRIVATE; color: #fff}
.cmp-open {background: #525252; color: #fff}
#compare-images .xtick text, #compare-images .ytick text, #compare-images .g-xtitle text,
#compare-images .g-ytitle text {fill: var(--body-text-color) !important}
#compare-images .gridlayer path {stroke: var(--border-color-primary) !important}
</style>""".replace("LEAKED", canvas.LEAKED).replace("PRIVATE", canvas.PRIVATE)

NO_STUDY = (
    '<div class="cmp-note">There is no study yet. <a href="./">Make one on the page Studies</a>, '
    "have its reconstructions labelled, then come back.</div>"
)
NO_IMAGES = (
    '<div class="cmp-note">The pictures of this study are not at hand, only its numbers.</div>'
)


def notice_html(comparison: Comparison, origin: Origin) -> str:
    """What a reader must know before any number: simulated votes, none, few models and so on."""
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
    elif not comparison.has_ranking:
        parts.append(
            f'<div class="cmp-note">{counted(comparison.n_votes, "vote")} so far, but no '
            "reconstruction has a human score yet. Rankings appear with the first ones.</div>"
        )
    said = [text for text in warnings(comparison.analysis, origin) if text != SIMULATED]
    if comparison.n_votes and said:
        notes = "".join(f"<li>{escape(text)}</li>" for text in said)
        parts.append(f'<div class="cmp-note" role="note"><ul>{notes}</ul></div>')
    return "".join(parts)


def figure_html(figure: Drawn, view: View) -> str:
    """A figure in the page's colours, its caption, and links to its files."""
    links = links_html(view, figure.name, figure.metric)
    return (
        f"<h3>{escape(figure.title)}</h3>"
        f'<figure class="cmp-figure"><div tabindex="0" role="region" '
        f'aria-label="Figure: {escape(figure.title)}">{svg(figure, live=True)}</div>'
        f'<figcaption class="cmp-caption">{escape(figure.caption)}</figcaption></figure>{links}'
    )


def links_html(view: View, name: str, metric: str | None = None) -> str:
    """Links to the files of a figure."""
    return _links(view, name, ("png", "svg", "csv"), metric)


def files_html(view: View) -> str:
    """Links to the report and to everything at once, and how to make both without the page."""
    report, everything = address(view, "report", "html"), address(view, "everything", "zip")
    return (
        f'<p><a class="cmp-button" href="{escape(report)}" download>Report (HTML)</a> one file '
        "with methods, settings, figures, tables and images; it opens offline.</p>"
        f'<p><a class="cmp-button" href="{escape(everything)}" download>Everything (ZIP)</a> the '
        "report, and each figure as PNG, SVG and CSV, each table as CSV, LaTeX and Markdown; it "
        "takes a minute.</p><p>Without this page: <code>python -m semsim compare votes.parquet "
        "scores.parquet --out folder</code>.</p>"
    )


def table_html(table: Table, view: View, studies: Sequence[str] = ()) -> str:
    """A table that scrolls sideways on a narrow screen, and links to its files."""
    links = _links(view, table.name, ("csv", "tex", "md"), None, studies)
    return (
        f'<h3>{escape(table.title)}</h3><p class="cmp-caption">{escape(table.caption)}</p>'
        f"{html(table)}{links}"
    )


def bare_html(names: Sequence[str]) -> str:
    """Which of the chosen studies have no scores; empty where all have some."""
    if not names:
        return ""
    listed = escape(", ".join(names))
    return (
        f'<div class="cmp-note">No scores yet: {listed}. Choose it as the study above; its scores '
        "are then computed.</div>"
    )


def folded_html(title: str, content: str) -> str:
    """Something long behind its title, opened by a press."""
    return f"<details><summary>Table: {escape(title)}</summary>{content}</details>"


def unavailable_html(comparison: Comparison) -> str:
    """Metrics without a number, and why; empty where all have one."""
    reasons = [(spec.title, reason) for spec, reason in comparison.unavailable]
    titles = {spec.name: spec.title for spec in comparison.specs}
    refused: dict[tuple[str, str], list[str]] = {}
    for (title, name), reason in comparison.book.refused.items():
        refused.setdefault((name, reason), []).append(title)
    every = len(comparison.analysis.models)
    for (name, reason), sets in refused.items():
        where = "every model" if len(sets) == every else ", ".join(sets)
        reasons.append((f"{titles[name]} ({where})", reason))
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
    if not comparison.has_images:
        return NO_IMAGES
    dataset, image_id = image.split("\n")
    images = comparison.images
    mine = images[(images["dataset"] == dataset) & (images["image_id"] == image_id)]
    if mine.empty:
        return ""
    rows = sorted_by_metric(comparison, mine, spec)
    first = rows.iloc[0]
    cards = [
        _figure(
            [(first["original"], "original")], [f"<b>Original</b>: {_text(first, 'class_name')}"]
        )
    ]
    cards += [_reconstruction_card(row, spec) for _, row in rows.iterrows()]
    return f'<div class="cmp-cards">{"".join(cards)}</div>'


def model_images_html(comparison: Comparison, key: str | None) -> str:
    """Every pair of one model's images with people's verdict."""
    if not key:
        return ""
    if not comparison.has_images:
        return NO_IMAGES
    rows = rows_of_model(comparison.images, key).sort_values("image_id")
    cards = [_pair_card(row, [_text(row, "class_name")]) for _, row in rows.iterrows()]
    return f'<div class="cmp-cards">{"".join(cards)}</div>'


def pair_html(comparison: Comparison, row: int) -> str:
    """One pair with every metric's value and what people said."""
    image = comparison.images.iloc[row]
    lines = [
        f"<b>{_text(image, 'model')}</b>",
        f"target {target_text(image)}",
        f"{_text(image, 'class_name')} ({_text(image, 'image_id')})",
    ]
    lines += [
        f"{escape(heading(spec))} {number(comparison.analysis.evidence.scores[spec.name][row])}"
        for spec in comparison.analysis.specs
        if spec.per_image
    ]
    if not comparison.has_images:
        return f'<div class="cmp-note">{"<br>".join([*lines, verdict_html(image)])}</div>'
    return f'<div class="cmp-cards">{_pair_card(image, lines)}</div>'


def disagreement_html(comparison: Comparison, title: str, entries: Sequence[Entry]) -> str:
    """Images that a metric and people judge most differently, one way."""
    images = comparison.images
    cards = [
        _pair_card(
            images.iloc[entry.row],
            [
                escape(entry.label),
                f"target {entry.target}",
                escape(entry.class_name),
                f"metric {number(entry.value)}",
            ],
        )
        for entry in entries
    ]
    shown = f'<div class="cmp-cards">{"".join(cards)}</div>' if cards else "<p>No such image.</p>"
    return f"<h4>{escape(title)}</h4>{shown}"


def sorted_by_metric(
    comparison: Comparison, rows: pd.DataFrame, spec: MetricSpec | None
) -> pd.DataFrame:
    """`rows` of images with the metric in the column `score`, most leaking first."""
    if spec is None:
        return rows.assign(score=np.nan)
    if spec.per_image:
        scores = comparison.analysis.evidence.scores[spec.name][rows.index]
    else:
        models = comparison.analysis.models.set_index(MODEL_KEY)[spec.name]
        scores = models.reindex(pd.MultiIndex.from_frame(rows[MODEL_KEY])).to_numpy()
    return rows.assign(score=scores).sort_values(
        "score", ascending=not spec.higher_means_more_leakage, kind="stable"
    )


def verdict_html(row: pd.Series) -> str:
    """What people said of a reconstruction, such as "4 of 5 recognised"."""
    if row["n_votes"] == 0:
        return '<span class="cmp-open">no votes yet</span>'
    words = row.get("said", f"{int(row['n_recognised'])} of {int(row['n_votes'])} recognised")
    side = row.get("side", row["share"])
    kind = "cmp-yes" if side > 0.5 else "cmp-no" if side < 0.5 else "cmp-open"
    return f'<span class="{kind}">{words}</span>'


def image_source(path: str) -> str:
    """A PNG as a data: address; a file that has gone leaves an empty image with its alt text."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return ""
    return "data:image/png;base64," + base64.b64encode(content).decode()


def _links(
    view: View, name: str, endings: Sequence[str], metric: str | None, studies: Sequence[str] = ()
) -> str:
    links = "".join(
        f'<a href="{escape(address(view, name, ending, metric, studies))}" download>'
        f"{ending.upper()}</a>"
        for ending in endings
    )
    return f'<div class="cmp-files">{links}</div>'


def _reconstruction_card(row: pd.Series, spec: MetricSpec | None) -> str:
    lines = [f"<b>{_text(row, 'model')}</b>", f"target {target_text(row)}"]
    if spec is not None:
        lines.append(f"{escape(heading(spec))} {number(row['score'])}")
    return _figure([(row["reconstruction"], "reconstruction")], [*lines, verdict_html(row)])


def _pair_card(row: pd.Series, lines: Sequence[str]) -> str:
    pictures = [(row["original"], "original"), (row["reconstruction"], "reconstruction")]
    return _figure(pictures, [*lines, verdict_html(row)])


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
