"""A figure of four cases: one reconstruction for each combination of two verdicts."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import pandas as pd

from semsim.base.errors import DataError
from semsim.base.metric_spec import MetricSpec
from semsim.base.picture_files import read_pixels
from semsim.base.stats.analysis import Analysis
from semsim.base.stats.verdict import recognised_by, vote_counts
from semsim.reporting import canvas
from semsim.reporting.canvas import Drawn
from semsim.reporting.gallery import GalleryImage, four_cases, way_words
from semsim.reporting.model_figures import closer
from semsim.reporting.notation import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WORDS = 30.0  # mm of text below the pictures
_LINE = 4.0  # mm a further line of a heading
_LETTERS = 30  # of a line


def case_figure(analysis: Analysis, spec: MetricSpec, others: Sequence[MetricSpec] = ()) -> Drawn:
    """Draw original and reconstruction of `four_cases` of `spec`, with votes and values below.

    Args:
        others: Further metrics whose values are printed.

    Raises:
        DataError: Where no image is at hand or people and the metric have judged none.
    """
    shown = [spec, *(other for other in others if other.name != spec.name)]
    rows = [_row(analysis, way, entry, shown) for way, entry in four_cases(analysis, spec).items()]
    if not rows:
        raise DataError(
            f"No reconstruction has both votes and a value of {spec.title}, and two sides to show."
        )
    people = analysis.evidence.voters if analysis.evidence.simulated else "annotators"
    return Drawn(
        title=f"Four cases: {people} and {spec.title}",
        caption=(
            f"Left: original. Right: reconstruction. From {analysis.evidence.name}. Selected by "
            "rule: where both agree, the image that both rank nearest to one end; otherwise the "
            f"largest gap of ranks between {people} and {spec.title}. Each case has another "
            "original, and a target model above chance where there is one."
        ),
        frame=pd.DataFrame(rows),
        paint=_paint,
        name="cases",
        metric=spec.name,
    )


def _row(
    analysis: Analysis, way: str, entry: GalleryImage, shown: Sequence[MetricSpec]
) -> dict[str, Any]:
    evidence = analysis.evidence
    for path in (entry.original, entry.reconstruction):
        if path is None or not Path(path).is_file():
            raise DataError(
                f"The images are not at hand ({entry.image_id} of {entry.label}): give the table "
                "of labels that names their files, where these files are."
            )
    said = recognised_by(evidence, analysis.settings.headline)
    yes, votes = (int(counts[entry.row]) for counts in vote_counts(said))
    of_model = f" ({evidence.model})" if evidence.model else " simulated"
    who = of_model if evidence.simulated else ""
    return {
        "way": way_words(way, shown[0].title, voters=evidence.voters),
        "image_id": entry.image_id,
        "model": entry.label.partition(" · ")[0].replace("/", " / "),
        "target": entry.target,
        "original": entry.original,
        "reconstruction": entry.reconstruction,
        "people": f"recognised by {yes} of {votes}{who}",
        "metrics": [
            (spec.title, number(_value(analysis, spec, entry.row), 2), closer(spec))
            for spec in shown
        ],
    }


def _value(analysis: Analysis, spec: MetricSpec, row: int) -> float:
    scores = analysis.evidence.scores.get(spec.name)
    return float("nan") if scores is None else float(scores[row])


def _paint(frame: pd.DataFrame, width: float) -> "Figure":
    across = 2 if width < canvas.NARROW else 4
    down = -(-len(frame) // across)
    heads = [wrap(way[:1].upper() + way[1:], _LETTERS) for way in frame["way"]]
    lines = max(map(len, heads))
    figure = canvas.blank(width, down * (width / across / 2 + _WORDS + _LINE * (lines - 1)))
    grid = figure.subfigures(down, across, squeeze=False)
    for place, part in enumerate(grid.flat):
        part.patch.set_facecolor("none")
        if place < len(frame):  # as many lines above each, so that pictures stay alike
            head = "\n".join([*heads[place], *[" "] * (lines - len(heads[place]))])
            _paint_case(part, frame.iloc[place], head)
    return figure


def _paint_case(part: Any, row: pd.Series, head: str) -> None:
    axes = part.subplots(1, 2)
    for one, which in zip(axes, ("original", "reconstruction"), strict=True):
        _picture(one, row[which])
        one.set_title(which, fontsize=canvas.SMALL, color=canvas.INK, loc="left")
    values = [f"{title} {value}" for title, value, _ in row["metrics"]]
    part.suptitle(head, fontsize=canvas.TEXT + 1, color=canvas.INK)
    part.supxlabel(
        "\n".join(
            [
                row["people"],
                *(" · ".join(values[start : start + 2]) for start in range(0, len(values), 2)),
                *wrap(row["model"], _LETTERS)[:2],
                *wrap(row["target"] and f"target {row['target']}", _LETTERS),
            ]
        ),
        fontsize=canvas.TEXT,
        color=canvas.INK,
    )


def _picture(axes: "Axes", path: str) -> None:
    axes.set_axis_off()
    axes.imshow(read_pixels(Path(path)), interpolation="nearest")
