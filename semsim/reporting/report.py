"""One HTML file with everything about an analysis, which opens offline."""

import base64
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path

from semsim.analysis.result import Analysis
from semsim.errors import DataError
from semsim.images import open_picture
from semsim.reporting.export import svg
from semsim.reporting.figures import Figure, by_agreement, figures
from semsim.reporting.gallery import Entry, Gallery, gallery
from semsim.reporting.methods import (
    SIMULATED,
    SOURCES,
    Origin,
    facts,
    metric_table,
    sections,
    warnings,
)
from semsim.reporting.model_figures import heading
from semsim.reporting.notation import number
from semsim.reporting.tables import Table, tables
from semsim.reporting.writing import html

_GALLERY = 8  # entries each way
_LARGEST = 160  # pixels a side: larger pictures are made smaller for the report
_TITLES = {
    "study": "The study",
    "agreement": "Agreement",
    "metrics": "Metric by metric",
    "gallery": "Where metrics and people differ",
    "tables": "Further tables",
    "methods": "Methods",
    "settings": "Settings, weights and versions",
}
_LEADING_TABLES = ("agreement", "table1")
_STYLE = Path(__file__).with_name("report.css")


def report_html(analysis: Analysis, origin: Origin | None = None) -> str:
    """The report of an analysis as one HTML document without any outside address.

    Pictures of the gallery are read from the paths in the evidence; where there are none the
    report says so.
    """
    origin = origin or Origin()
    study = escape(analysis.evidence.name)
    mark = "Simulated votes! " if analysis.evidence.simulated else ""
    title = f"{mark}Which metric agrees with people? {study}"
    body = "".join(
        [
            f"<h1>{title}</h1>",
            _warnings(warnings(analysis, origin)),
            _contents(),
            _section("study", _facts(analysis)),
            _section("agreement", _of_study(analysis)),
            _section("metrics", _of_metrics(analysis)),
            _section("gallery", _galleries(analysis)),
            _section("tables", _rest(analysis)),
            _section("methods", _methods(analysis, origin)),
            _section("settings", _settings(analysis, origin)),
        ]
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE.read_text(encoding='utf-8')}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def _section(name: str, content: str) -> str:
    return f'<section id="{name}"><h2>{_TITLES[name]}</h2>{content}</section>'


def _contents() -> str:
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in _TITLES.items())
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def _warnings(said: Sequence[str]) -> str:
    return "".join(
        f'<p class="warning{" simulated" if text == SIMULATED else ""}" role="note">'
        f"{escape(text)}</p>"
        for text in said
    )


def _facts(analysis: Analysis) -> str:
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in facts(analysis).items()
    )
    return f"<dl>{rows}</dl>"


def _of_study(analysis: Analysis) -> str:
    shown = [_figure(one) for one in figures(analysis) if one.metric is None]
    leading = [_table(one) for one in tables(analysis) if one.name in _LEADING_TABLES]
    return "".join([*shown[:1], *leading, *shown[1:]])


def _of_metrics(analysis: Analysis) -> str:
    drawn = figures(analysis)
    parts = []
    for spec in by_agreement(analysis):
        mine = [_figure(one) for one in drawn if one.metric == spec.name]
        parts.append(f"<h3>{escape(spec.title)}</h3>{''.join(mine)}")
    return "".join(parts) or "<p>No metric has scores.</p>"


def _rest(analysis: Analysis) -> str:
    return "".join(_table(one) for one in tables(analysis) if one.name not in _LEADING_TABLES)


def _figure(figure: Figure) -> str:
    return (
        f'<figure id="{figure.stem}"><div class="semsim-scroll" tabindex="0" role="region" '
        f'aria-label="{escape(figure.title)}">{svg(figure, live=True)}</div>'
        f"{_caption(figure.title, figure.caption)}</figure>"
    )


def _table(table: Table) -> str:
    return (
        f'<figure id="table-{table.name}">{_caption(table.title, table.caption)}{html(table)}'
        "</figure>"
    )


def _caption(title: str, caption: str) -> str:
    stop = "" if title.endswith("?") else "."
    return f"<figcaption><strong>{escape(title)}{stop}</strong> {escape(caption)}</figcaption>"


def _galleries(analysis: Analysis) -> str:
    specs = [spec for spec in by_agreement(analysis) if spec.name in analysis.evidence.scores]
    found = [gallery(analysis, spec, most=_GALLERY) for spec in specs]
    if not found:
        return "<p>No metric gives a value to every image, so there is nothing to compare.</p>"
    if not any(one.has_images for one in found):
        note = "<p>The images were not at hand when this report was made: numbers only.</p>"
    else:
        note = (
            f"<p>Original left, reconstruction right. Pictures above {_LARGEST} pixels a side "
            "are made smaller for this file.</p>"
        )
    return note + "".join(_gallery(one) for one in found)


def _gallery(found: Gallery) -> str:
    title = escape(found.spec.title)
    return (
        f"<h3>{title}</h3>"
        + _cards(
            f"{title} says that it leaks, people do not recognise it", found.metric_only, found
        )
        + _cards(
            f"People recognise it, {title} says that it does not leak", found.people_only, found
        )
    )


def _cards(title: str, entries: Iterable[Entry], found: Gallery) -> str:
    cards = "".join(_card(entry, found) for entry in entries) or "<p>None.</p>"
    return f'<h4>{title}</h4><div class="cards">{cards}</div>'


def _card(entry: Entry, found: Gallery) -> str:
    pictures = _picture(entry.original, "original") + _picture(
        entry.reconstruction, "reconstruction"
    )
    return (
        f'<figure class="card">{pictures}<figcaption>{escape(entry.class_name)} '
        f"({escape(entry.image_id)})<br>{escape(entry.label)}<br>"
        f"{escape(heading(found.spec))} {number(entry.value)}, "
        f"{number(entry.human, 2)} of the votes recognise it"
        "</figcaption></figure>"
    )


def _picture(path: str | None, name: str) -> str:
    if path is None:
        return ""
    try:
        source = base64.b64encode(_small_png(Path(path))).decode()
    except DataError as error:
        return f'<p class="gone">No {name}: {escape(str(error))}</p>'
    return f'<img src="data:image/png;base64,{source}" alt="{name}">'


def _small_png(path: Path) -> bytes:
    """The picture as PNG, at most `_LARGEST` pixels a side; a small PNG is left as it is."""
    with open_picture(path) as picture:
        if picture.format == "PNG" and max(picture.size) <= _LARGEST:
            return path.read_bytes()
        smaller = picture.convert("RGB")
    smaller.thumbnail((_LARGEST, _LARGEST))
    file = io.BytesIO()
    smaller.save(file, format="PNG")
    return file.getvalue()


def _methods(analysis: Analysis, origin: Origin) -> str:
    parts = []
    for title, paragraphs in sections(analysis, origin):
        text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
        parts.append(f"<h3>{escape(title)}</h3>{text}")
    sources = "".join(f"<li>{escape(source)}</li>" for source in SOURCES)
    parts += [_table(metric_table(analysis)), f"<h3>Sources</h3><ul>{sources}</ul>"]
    return "".join(parts)


def settings_record(analysis: Analysis, origin: Origin) -> dict[str, object]:
    """Everything that decided the numbers, as it is written to JSON."""
    return {
        "study": analysis.evidence.name,
        "simulated": analysis.evidence.simulated,
        "analysis": asdict(analysis.settings),
        "protocol_headline": origin.protocol,
        "metrics": [asdict(spec) for spec in analysis.specs],
        "notes": warnings(analysis, origin),
        "weights": dict(origin.weights),
        "versions": dict(origin.versions),
    }


def _settings(analysis: Analysis, origin: Origin) -> str:
    weights = "" if origin.weights else "<p>No sha256 of weight files was given.</p>"
    record = json.dumps(settings_record(analysis, origin), indent=1, ensure_ascii=False)
    return f'{weights}<pre tabindex="0">{escape(record)}</pre>'
