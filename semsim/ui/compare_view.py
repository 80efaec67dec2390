"""The Compare page as HTML: pure functions of a `Comparison`. Every text is escaped."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from semsim.analysis.evidence import MODEL_KEY
from semsim.metrics import MetricSpec
from semsim.reporting import canvas
from semsim.reporting.canvas import Drawn
from semsim.reporting.export import svg
from semsim.reporting.gallery import Entry
from semsim.reporting.methods import SIMULATED, warnings
from semsim.reporting.model_figures import heading
from semsim.reporting.notation import number, target_text
from semsim.reporting.tables import Table
from semsim.reporting.writing import html
from semsim.ui.compare_data import Comparison, View, rows_of_model
from semsim.ui.compare_files import address
from semsim.ui.markup import pieces, png_address

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

_HTML = pieces("compare.html")
_DRAWN = ("png", "svg", "csv")  # what a figure can be had as
_Card = tuple[list[tuple[str, str]], Sequence[str]]
NO_STUDY, NO_CHOICE, NO_IMAGES = _HTML.no_study(), _HTML.no_choice(), _HTML.no_images()


def notice_html(comparison: Comparison) -> str:
    """What a reader must know before any number: simulated votes, none, few models and so on."""
    said = [text for text in warnings(comparison.analysis, comparison.origin) if text != SIMULATED]
    return _HTML.notice(comparison, said)


def figure_html(figure: Drawn, view: View) -> str:
    """A figure in the page's colours, its caption, and links to its files."""
    files = _files(view, figure.name, _DRAWN, figure.metric)
    return _HTML.figure(figure, svg(figure, live=True), files)


def links_html(view: View, name: str, metric: str | None = None) -> str:
    """Links to the files of a figure."""
    return _HTML.links(_files(view, name, _DRAWN, metric))


def files_html(view: View) -> str:
    """Links to the report and to everything at once, and how to make both without the page."""
    return _HTML.files(address(view, "report", "html"), address(view, "everything", "zip"))


def table_html(table: Table, view: View, studies: Sequence[str] = ()) -> str:
    """A table that scrolls sideways on a narrow screen, and links to its files."""
    files = _files(view, table.name, ("csv", "tex", "md"), None, studies)
    return _HTML.table(table, html(table), files)


def bare_html(names: Sequence[str]) -> str:
    """Which of the chosen studies have no scores; empty where all have some."""
    return _HTML.bare(names) if names else ""


def folded_html(title: str, content: str) -> str:
    """Something long behind its title, opened by a press."""
    return _HTML.folded(title, content)


def of_sets_html(spec: MetricSpec) -> str:
    """Said where single images are shown, of a metric that has no value for one."""
    return _HTML.of_sets(spec.title)


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
    shared: dict[str, list[str]] = {}
    for title, reason in reasons:
        shared.setdefault(reason, []).append(title)
    return _HTML.unavailable(shared.items()) if shared else ""


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
    original = _card(first, [_HTML.bold("Original", f": {first['class_name']}")], ("original",))
    return _HTML.cards([original, *(_reconstruction_card(row, spec) for _, row in rows.iterrows())])


def model_images_html(comparison: Comparison, key: str | None) -> str:
    """Every pair of one model's images with people's verdict."""
    if not key:
        return ""
    if not comparison.has_images:
        return NO_IMAGES
    rows = rows_of_model(comparison.images, key).sort_values("image_id")
    return _HTML.cards([_pair_card(row, [row["class_name"]]) for _, row in rows.iterrows()])


def pair_html(comparison: Comparison, row: int) -> str:
    """One pair with every metric's value and what people said."""
    image = comparison.images.iloc[row]
    lines = [
        _HTML.bold(image["model"]),
        f"target {target_text(image)}",
        f"{image['class_name']} ({image['image_id']})",
    ]
    lines += [
        f"{heading(spec)} {number(comparison.analysis.evidence.scores[spec.name][row])}"
        for spec in comparison.analysis.specs
        if spec.per_image
    ]
    if not comparison.has_images:
        return _HTML.note([*lines, verdict_html(image)])
    return _HTML.cards([_pair_card(image, lines)])


def disagreement_html(comparison: Comparison, title: str, entries: Sequence[Entry]) -> str:
    """Images that a metric and people judge most differently, one way."""
    images = comparison.images
    cards = [
        _pair_card(
            images.iloc[entry.row],
            [
                entry.label,
                f"target {entry.target}",
                entry.class_name,
                f"metric {number(entry.value)}",
            ],
        )
        for entry in entries
    ]
    return _HTML.disagreement(title, cards)


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
        return _HTML.verdict("open", "no votes yet")
    words = row.get("said", f"{int(row['n_recognised'])} of {int(row['n_votes'])} recognised")
    side = row.get("side", row["share"])
    return _HTML.verdict("yes" if side > 0.5 else "no" if side < 0.5 else "open", words)


def image_source(path: str) -> str:
    """A PNG as a data: address; a file that has gone leaves an empty image with its alt text."""
    try:
        return png_address(Path(path).read_bytes())
    except OSError:
        return ""


def _files(
    view: View, name: str, endings: Sequence[str], metric: str | None, studies: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Where a drawing's files are, and what each is called."""
    return [(address(view, name, one, metric, studies), one.upper()) for one in endings]


def _reconstruction_card(row: pd.Series, spec: MetricSpec | None) -> _Card:
    lines = [_HTML.bold(row["model"]), f"target {target_text(row)}"]
    if spec is not None:
        lines.append(f"{heading(spec)} {number(row['score'])}")
    return _card(row, [*lines, verdict_html(row)], ("reconstruction",))


def _pair_card(row: pd.Series, lines: Sequence[str]) -> _Card:
    return _card(row, [*lines, verdict_html(row)], ("original", "reconstruction"))


def _card(row: pd.Series, lines: Sequence[str], names: Sequence[str]) -> _Card:
    """Pictures of a row side by side, and the lines below them."""
    return [(name, image_source(row[name])) for name in names], lines
