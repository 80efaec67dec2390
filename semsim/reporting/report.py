"""One HTML file with everything about an analysis, which opens offline."""

import base64
import io
import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

from semsim.analysis.evidence import Ratings
from semsim.analysis.result import Analysis
from semsim.errors import DataError
from semsim.images import open_picture
from semsim.reporting import methods
from semsim.reporting.export import svg
from semsim.reporting.figures import by_agreement, figures
from semsim.reporting.gallery import gallery
from semsim.reporting.methods import Origin
from semsim.reporting.model_figures import heading
from semsim.reporting.notation import number
from semsim.reporting.tables import tables
from semsim.reporting.writing import TEMPLATES, html

_GALLERY = 8  # entries each way
_LARGEST = 160  # pixels a side: larger pictures are made smaller for the report
_STYLE = Path(__file__).with_name("report.css")


def report_html(analysis: Analysis, origin: Origin | None = None) -> str:
    """The report of an analysis as one HTML document without any outside address.

    Pictures of the gallery are read from the paths in the evidence; where there are none the
    report says so.
    """
    origin = origin or Origin()
    evidence, specs = analysis.evidence, by_agreement(analysis)
    mark = "Simulated votes! " if evidence.simulated else ""
    record = json.dumps(settings_record(analysis, origin), indent=1, ensure_ascii=False)
    judged = [spec for spec in specs if spec.name in evidence.scores]
    content = {
        "title": f"{mark}Which metric agrees with people? {evidence.name}",
        "style": _STYLE.read_text(encoding="utf-8"),
        "simulated": methods.SIMULATED,
        "warnings": methods.warnings(analysis, origin),
        "facts": methods.facts(analysis),
        "specs": specs,
        "figures": figures(analysis),
        "tables": tables(analysis),
        "galleries": [gallery(analysis, spec, most=_GALLERY) for spec in judged],
        "largest": _LARGEST,
        "methods": methods.sections(analysis, origin),
        "metric_table": methods.metric_table(analysis),
        "sources": methods.SOURCES,
        "weights": origin.weights,
        "record": record,
    }
    tools = {
        **{"svg": svg, "html": html, "heading": heading, "number": number, "embedded": _embedded},
        "people": partial(_people, evidence.ratings),
    }
    return TEMPLATES.get_template("report.html.jinja").render(**content, **tools) + "\n"


def _people(ratings: Ratings | None, share: float) -> str:
    """What people said of a picture of the gallery."""
    if ratings is None:
        return f"{number(share, 2)} of the votes recognise it"
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
    with open_picture(path) as picture:
        if picture.format == "PNG" and max(picture.size) <= _LARGEST:
            return path.read_bytes()
        smaller = picture.convert("RGB")
    smaller.thumbnail((_LARGEST, _LARGEST))
    file = io.BytesIO()
    smaller.save(file, format="PNG")
    return file.getvalue()


def settings_record(analysis: Analysis, origin: Origin) -> dict[str, object]:
    """Everything that decided the numbers, as it is written to JSON."""
    return {
        "study": analysis.evidence.name,
        "simulated": analysis.evidence.simulated,
        "analysis": asdict(analysis.settings),
        "protocol_headline": origin.protocol,
        "metrics": [asdict(spec) for spec in analysis.specs],
        "notes": methods.warnings(analysis, origin),
        "weights": dict(origin.weights),
        "versions": dict(origin.versions),
    }
