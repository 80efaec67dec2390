"""One HTML file with everything about an analysis, which opens offline."""

import base64
import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from semsim.base.errors import DataError
from semsim.base.metric_spec import MetricSpec
from semsim.base.picture_files import opened_picture, upright
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.evidence import Ratings
from semsim.base.storage.places import files_of
from semsim.base.words import capital
from semsim.images import png_of
from semsim.reporting import methods
from semsim.reporting.answer import answer_of
from semsim.reporting.export import svg
from semsim.reporting.figures import by_agreement, figure
from semsim.reporting.gallery import gallery
from semsim.reporting.glossary import glossary
from semsim.reporting.methods import Origin
from semsim.reporting.model_figures import closer, heading
from semsim.reporting.notation import number
from semsim.reporting.svg import Point, plane
from semsim.reporting.tables import BACKBONES, Table, ranks, table
from semsim.reporting.writing import TEMPLATES, html

_GALLERY = 3  # entries each way
_DRAWN = ("forest", "order", "auc", "matrix")
_SHOWN = (
    *("agreement", "order", "leads", "differences", "auc", "rules", "backbones", "models"),
    "ceiling",
)
# Terms of the report that a student cannot know.
TERMS = (
    *("recognised", "human ceiling", "rho", "tau", "AUC", "held out", "target model", "at chance"),
    *(
        "SemSim",
        "initial weights",
        "shuffled votes",
        "PSNR",
        "SSIM",
        "LPIPS",
        "FID",
        "distractor model",
        "leniency",
    ),
)
_ELSEWHERE = "τ and the counts stand in tables/{}.csv, where everything is written."
_LETTERS = 125  # of a line on A4 in the size tables are printed in
_BETWEEN = 3  # letters of room a column takes besides its text
_WIDEST = 26  # letters from which a cell is broken into lines
_LARGEST = 160  # pixels a side: larger pictures are made smaller for the report
_STYLE = files_of("semsim.reporting") / "report.css"


def report_html(analysis: Analysis, origin: Origin | None = None) -> str:
    """The report of an analysis as one HTML document without any outside address.

    Pictures of the gallery are read from the paths in the evidence; where there are none the
    report says so.
    """
    origin = origin or Origin()
    evidence, specs = analysis.evidence, by_agreement(analysis)
    mark = f"{capital(evidence.mark)}! " if evidence.simulated else ""
    record = json.dumps(settings_record(analysis, origin), indent=1, ensure_ascii=False)
    judged = [spec for spec in specs if spec.name in evidence.scores]
    content = {
        "title": f"{mark}Which metric agrees with people? {evidence.name}",
        "style": _STYLE.read_text(encoding="utf-8"),
        "simulated": methods.by_programs(evidence),
        "warnings": methods.warnings(analysis, origin),
        "answer": answer_of(analysis),
        "facts": methods.facts(analysis),
        "figures": {name: figure(analysis, name) for name in _DRAWN},
        "tables": _fitted(analysis),
        "planes": [(spec, _plane(analysis, spec)) for spec in specs],
        "ranks": in_blocks(ranks(analysis)),
        "galleries": [gallery(analysis, spec, most=_GALLERY, per_original=1) for spec in judged],
        "largest": _LARGEST,
        "methods": methods.sections(analysis, origin),
        "metric_table": methods.metric_table(analysis),
        "weights": origin.weights,
        "words": {term: glossary()[term] for term in TERMS},
        "record": record,
        "voters": evidence.voters,
    }
    tools = {
        **{"svg": svg, "html": html, "heading": heading, "number": number, "embedded": _embedded},
        **{"closer": closer, "people": partial(_people, evidence.ratings)},
    }
    return TEMPLATES.get_template("report.html.jinja").render(**content, **tools) + "\n"


def _fitted(analysis: Analysis) -> dict[str, list[Table]]:
    """The tables of the report by name, each in parts that fit on paper."""
    found = {name: table(analysis, name) for name in _SHOWN}
    values = {name: name for name in map(str, found["auc"].cells) if name.startswith("ρ")}
    found["auc"] = turned(found["auc"], "Metric", "Scope", {"AUC [95%]": "", **values})
    found["rules"] = turned(
        found["rules"],
        "Metric",
        "Human score",
        {"ρ": ""},
        "Signed ρ of each metric when people are summed up in other ways; the headline score is "
        f"'{analysis.score_title}'. {_ELSEWHERE.format('rules')}",
    )
    found["backbones"] = turned(
        found["backbones"],
        "Metric",
        "Backbone left out",
        {"ρ": "without"},
        f"Signed ρ over the models that remain. {BACKBONES} {_ELSEWHERE.format('backbones')}",
    )
    return {name: in_blocks(one) for name, one in found.items()}


def in_blocks(table: Table, letters: int = _LETTERS) -> list[Table]:
    """The table in parts that are narrow enough; each begins with its first column again."""
    widths = [_width(table.cells.iloc[:, place]) for place in range(table.cells.shape[1])]
    parts: list[list[int]] = [[]]
    for place in range(1, len(widths)):
        if parts[-1] and widths[0] + sum(widths[one] for one in (*parts[-1], place)) > letters:
            parts.append([])
        parts[-1].append(place)
    return [_part(table, [0, *places]) for places in parts] if widths else [table]


def turned(
    table: Table, rows: str, columns: str, values: dict[str, str], caption: str | None = None
) -> Table:
    """A row for each text of the column `rows`, a column for each of the column `columns`.

    Args:
        values: Which columns of cells are kept, by what is put before their new headings.
        caption: Instead of the table's, where that tells of columns that are not kept.
    """
    cells = table.cells.reset_index(drop=True)
    if cells.empty:
        return table
    kept = {
        " ".join(filter(None, (before, str(text)))): (own, column)
        for text, own in cells.groupby(columns, sort=False)
        for column, before in values.items()
    }
    names = list(dict.fromkeys(cells[rows]))
    wide = pd.DataFrame(
        {heading: own.set_index(rows)[column] for heading, (own, column) in kept.items()},
        index=names,
    ).fillna("–")
    wide.insert(0, rows, wide.index)
    best = {
        (names.index(cells.at[row, rows]), place)
        for place, (own, column) in enumerate(kept.values(), start=1)
        for row in own.index
        if (row, list(cells).index(column)) in table.best
    }
    return replace(
        table,
        cells=wide.reset_index(drop=True),
        best=frozenset(best),
        caption=table.caption if caption is None else caption,
    )


def _width(column: pd.Series) -> int:
    heading = max(map(len, str(column.name).split()), default=0)
    longest = max((len(str(text)) for text in column), default=0)
    return max(heading, min(longest, _WIDEST)) + _BETWEEN


def _part(table: Table, places: list[int]) -> Table:
    at = {place: new for new, place in enumerate(places)}
    best = frozenset((row, at[place]) for row, place in table.best if place in at)
    return replace(table, cells=table.cells.iloc[:, places], best=best)


def _plane(analysis: Analysis, spec: MetricSpec) -> str:
    """Draw a metric of each model against its human score, small and without names."""
    models = analysis.models
    values = models.get(spec.name, pd.Series(np.nan, index=models.index))
    pairs = zip(values.astype(float), models["human"].astype(float), strict=True)
    points = [Point(x=x, y=y) for x, y in pairs]
    people = f"{analysis.evidence.voters} recognise"
    return plane(points, heading(spec), people, f"Models by {spec.title}", live=False)


def _people(ratings: Ratings | None, share: float) -> str:
    """Return people's verdict on a picture of the gallery: a share or a mean rating."""
    if ratings is None:
        return f"{share:.0%} recognise it"
    return f"mean rating {number(ratings.of(share), 2)}"


def _embedded(path: str | None) -> tuple[str, str]:
    """A picture of the gallery in base64, or why there is none; both empty without a path."""
    if path is None:
        return "", ""
    try:
        return base64.b64encode(_small_png(Path(path))).decode(), ""
    except DataError as error:
        return "", str(error)


def _small_png(path: Path) -> bytes:
    """The picture as PNG, at most `_LARGEST` pixels a side; a small PNG is left as it is."""
    with opened_picture(path) as picture:
        if picture.format == "PNG" and max(picture.size) <= _LARGEST:
            return path.read_bytes()
        return png_of(np.asarray(upright(picture)), _LARGEST)


def settings_record(analysis: Analysis, origin: Origin) -> dict[str, object]:
    """Everything that decided the numbers, as it is written to JSON."""
    return {
        "study": analysis.evidence.name,
        "simulated": analysis.evidence.simulated,
        "voters": analysis.evidence.voters,
        "analysis": asdict(analysis.settings),
        "protocol_headline": origin.protocol,
        "metrics": [asdict(spec) for spec in analysis.specs],
        "notes": methods.warnings(analysis, origin),
        "weights": dict(origin.weights),
        "versions": dict(origin.versions),
    }
