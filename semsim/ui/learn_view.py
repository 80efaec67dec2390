"""What the page Train SemSim draws: plain values in, HTML and Plotly figures out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import urlencode

import plotly.graph_objects as go

from semsim.jobs.folders import JobState
from semsim.learning.advice import expectation
from semsim.learning.card import HEADS, table_rows
from semsim.learning.controls import verdict_of
from semsim.learning.diagnostics import last_by_epoch
from semsim.learning.evaluation import auc_of
from semsim.learning.orders import Facts
from semsim.learning.splits import Counts, HoldOut
from semsim.learning.triplets import Inventory, JudgedOriginal
from semsim.metrics.provenance import START, WEIGHT_OF
from semsim.progress import Progress
from semsim.ui.jobpanel import when
from semsim.words import agreeing, counted

SIMULATED = (
    '<span style="background:#fde68a;color:#713f12;border-radius:.3rem;padding:0 .4rem;'
    'font-size:.85em;font-weight:600">simulated</span>'
)
_TABLE = "border-collapse:collapse;width:100%"
_CELL = (
    "text-align:left;padding:.3rem .6rem;border:0;"
    "border-bottom:1px solid var(--border-color-primary)"
)
_SHOWN_IDS = 12  # originals named in a list before the rest is only counted
_CURVE_POINTS = 600  # more than a curve has pixels
_GREY = "#7a7a7a"  # read on white and on black alike
_LINES = {"plus": "#2563eb", "minus": "#ea580c"}
_EMPTY_TRAININGS = "No SemSim has been trained here yet. The first one will be listed here."
_STATE_WORDS = {
    JobState.QUEUED: "waiting",
    JobState.RUNNING: "running",
    JobState.DONE: "done",
    JobState.FAILED: "failed",
    JobState.STOPPED: "stopped, can be resumed",
    JobState.LOST: "interrupted, can be resumed",
}


@dataclass(frozen=True, kw_only=True)
class TrainingRow:
    """One line of the list of trainings.

    result: empty until it is done. promoted: whether it is the SemSim of this workspace.
    """

    created: str
    facts: Facts
    state: JobState
    result: Mapping[str, Any]
    promoted: bool = False


def stock_html(inventory: Inventory, simulated: bool) -> str:
    """How many originals of a study can be learned from, and what the others lack."""
    usable = len(inventory.usable)
    parts = [
        f"<p><strong>{usable} of {counted(inventory.n_originals, 'original')}</strong> "
        f"{agreeing(usable, 'has', 'have')} both a reconstruction people recognise and one they do "
        f"not, which makes {counted(inventory.n_triplets, 'triplet')}.</p>"
    ]
    lacking = (
        ("no unrecognisable reconstruction", inventory.only_recognisable),
        ("no recognisable reconstruction", inventory.only_unrecognisable),
        ("no reconstruction on which a majority agrees yet", inventory.undecided),
    )
    rows = [_lacking_html(words, originals) for words, originals in lacking if originals]
    if rows:
        parts.append(f"<ul>{''.join(rows)}</ul>")
    if not inventory.usable:
        parts.append(
            "<p>There is nothing to learn from yet. Collect more votes on the page Studies, or "
            "add reconstructions from stronger and weaker attacks to the study.</p>"
        )
    if simulated:
        parts.append(
            f"<p>{SIMULATED} These votes were made by a program, not by people. A SemSim trained "
            "on them shows how the page works and says nothing about people.</p>"
        )
    return "".join(parts)


def split_html(counts: Counts, hold_out: HoldOut) -> str:
    """What is left to learn from and what it will be judged by, and what both lack."""
    training = counts.training
    parts = [
        f"<p>It will learn from <strong>{counted(training.n_triplets, 'triplet')} of "
        f"{counted(len(training.usable), 'original')}</strong> and be judged by "
        f"{escape(hold_out.words)}: "
        f"<strong>{counts.recognisable} recognisable and {counts.unrecognisable} "
        f"unrecognisable</strong> reconstructions of "
        f"{counted(counts.n_test_originals, 'original')} by "
        f"{counted(counts.n_test_models, 'model')}.</p>"
    ]
    expected = expectation(counts)
    if expected:
        parts.append(f"<p>{escape(expected)}</p>")
    if counts.lacking:
        items = "".join(f"<li>{escape(what)}</li>" for what in counts.lacking)
        parts.append(f"<p>What is missing:</p><ul>{items}</ul>")
    return "".join(parts)


def judged_html(judged: Mapping[str, Any], title: str) -> str:
    """Every metric on the same images, as a table with 95 % intervals."""
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(name)}</th>' for name in HEADS)
    rows = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in cells) + "</tr>"
        for cells in table_rows(judged)
    )
    table = f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    away = "".join(
        f"<li>{escape(name)} is left out: {escape(why.split(';')[0])}</li>"
        for name, why in judged["left_out"].items()
    )
    return (
        f"<p><strong>{escape(title)}</strong>: "
        f"{counted(judged['n_images'], 'reconstruction')} of "
        f"{counted(judged['n_originals'], 'original')} by "
        f"{counted(judged['n_models'], 'model')}, 95 % intervals.</p>"
        f'<div style="overflow-x:auto" tabindex="0" role="region" '
        f'aria-label="{escape(title)}">{table}</div>' + (f"<ul>{away}</ul>" if away else "")
    )


def result_html(result: Mapping[str, Any], studies: Mapping[str, str]) -> str:
    """What a finished training made, how good it is on held-out originals, and where it lies.

    studies: names by id of those it learned from; each gets a link to Compare.
    """
    trained_on = SIMULATED + " votes" if result["simulated"] else "people's votes"
    parts = [
        f"<p><strong>{escape(result['name'])}</strong> is trained on {trained_on}: "
        f"{counted(result['n_triplets'], 'triplet')} of "
        f"{counted(result['n_originals'], 'original')}, "
        f"{counted(result['epochs'], 'epoch')}.</p>",
        *_validation(result),
        *_weights(result["results"]),
        *_judged(result),
        f"<p>Checkpoint: <code>{escape(result['checkpoint'])}</code></p>",
        *(f'<p role="alert">⚠ {escape(warning)}</p>' for warning in result["warnings"]),
        f"<p>{_compare_links(result['name'], studies)}</p>",
    ]
    return "".join(parts)


def _judged(result: Mapping[str, Any]) -> list[str]:
    """The tables of a training that was judged; none of one from before there were any."""
    if "held_out" not in result:
        return []
    unseen = f"Held out: {result['split']['words']}"
    sentences = verdict_of(result["held_out"]).sentences
    said = "".join(f"<li>{escape(words)}</li>" for words in sentences)
    return [
        f'<ul class="learn-verdict">{said}</ul>',
        judged_html(result["held_out"], unseen),
        "<details><summary>In sample: what it learned from, no measure of its worth</summary>"
        f"{judged_html(result['in_sample'], 'In sample')}</details>",
    ]


def lost_html(name: str, lost: str) -> str:
    """What is said before a SemSim that lost becomes the one of the workspace."""
    return (
        f'<p role="alert">⚠ On what was held out, {escape(name)} lost to '
        f"<strong>{escape(lost)}</strong>. It is not the SemSim of this workspace yet. Use it all "
        "the same?</p>"
    )


def _compare_links(semsim: str, studies: Mapping[str, str]) -> str:
    words, queries = "Use it in Compare", [{"study": study, "semsim": semsim} for study in studies]
    if len(queries) < 2:
        return _compare_link(words, queries[0] if queries else {"semsim": semsim})
    links = map(_compare_link, studies.values(), queries)
    return f"{words}: {', '.join(links)}"


def _compare_link(words: str, query: Mapping[str, str]) -> str:
    return f'<a href="compare?{escape(urlencode(query))}">{escape(words)}</a>'


def trainings_html(rows: Sequence[TrainingRow]) -> str:
    """All trainings, newest first, as a table."""
    if not rows:
        return f"<p>{_EMPTY_TRAININGS}</p>"
    names = (
        *("Started (UTC)", "Name", "Study", "State", "Held out"),
        *("AUC", "of MSE", "of SSIM", "of its start"),
    )
    head = "".join(f'<th scope="col" style="{_CELL}">{name}</th>' for name in names)
    body = "".join(_training_html(row) for row in rows)
    table = f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto">{table}</div>'


def loss_figure(history: Sequence[Progress], job_id: str) -> go.Figure:
    """The loss of each batch against epochs."""
    points = _thinned(_own_course(history))
    figure = _figure("Loss", "loss", job_id)
    figure.add_scatter(
        x=[p.values["epoch"] for p in points],
        y=[p.values["loss"] for p in points],
        mode="lines",
        name="loss of a batch",
        line={"color": _LINES["plus"], "width": 1.5},
    )
    return figure


def distance_figure(history: Sequence[Progress], job_id: str) -> go.Figure:
    """Mean distance to recognisable (d+) and unrecognisable (d−) ones, each epoch.

    Solid on training originals, dashed on those held out.
    """
    epochs = last_by_epoch([p.values for p in history])
    figure = _figure("Mean distance to the original", "distance", job_id)
    if epochs:
        figure.update_yaxes(range=[0, 1.15 * _highest(epochs)])
    curves = (
        ("d_plus", "d+ recognisable", "plus", "solid"),
        ("d_minus", "d− unrecognisable", "minus", "solid"),
        ("validation_d_plus", "d+ held out", "plus", "dash"),
        ("validation_d_minus", "d− held out", "minus", "dash"),
    )
    for key, name, colour, dash in curves:
        known = [row for row in epochs if key in row]
        if known:
            figure.add_scatter(
                x=[row["epoch"] for row in known],
                y=[row[key] for row in known],
                mode="lines+markers",
                name=name,
                line={"color": _LINES[colour], "dash": dash},
            )
    return figure


def auc_figure(history: Sequence[Progress], job_id: str) -> go.Figure:
    """AUC of the images of the originals kept for validation, each epoch; 0.5 is chance."""
    epochs = [row for row in last_by_epoch([p.values for p in history]) if "validation_auc" in row]
    figure = _figure("AUC on originals kept for validation", "AUC", job_id)
    figure.update_yaxes(range=[0, 1.05])
    figure.add_hline(y=0.5, line={"color": _GREY, "dash": "dot"})
    figure.add_scatter(
        x=[row["epoch"] for row in epochs],
        y=[row["validation_auc"] for row in epochs],
        mode="lines+markers",
        name="AUC, all originals together",
        line={"color": _LINES["plus"], "dash": "dash"},
    )
    return figure


def has_course(figure: go.Figure) -> bool:
    """Whether a figure has a curve: a mixed SemSim is fitted at once and has none."""
    return any(len(curve.x or ()) > 1 for curve in figure.data)


def _lacking_html(words: str, originals: Sequence[JudgedOriginal]) -> str:
    ids = [original.image_id for original in originals[:_SHOWN_IDS]]
    rest = len(originals) - len(ids)
    named = ", ".join(escape(i) for i in ids) + (f" and {rest} more" if rest else "")
    return f"<li>{counted(len(originals), 'has', 'have')} {words}: {named}</li>"


def _validation(result: Mapping[str, Any]) -> list[str]:
    """What the originals kept for validation say; nothing where only the test has any."""
    nothing = "validation_accuracy" not in result["results"] and "held_out" in result
    return [] if nothing else [f"<p>{_held_out_words(result['results'])}</p>"]


def _weights(results: Mapping[str, float]) -> list[str]:
    """How much each block of a mixed SemSim counts; nothing of another's."""
    found = [(key.removeprefix(WEIGHT_OF), results[key]) for key in results if WEIGHT_OF in key]
    if not found:
        return []
    said = ", ".join(f"{name} {weight:.2f}" for name, weight in found)
    return [f"<p>What counts, where 1 is what it counted before any vote: {said}.</p>"]


def _held_out_words(results: Mapping[str, float]) -> str:
    accuracy = results.get("validation_accuracy")
    if accuracy is None:
        return "No original was held out, so nothing is known about images it has not seen."
    return (
        f"On {counted(round(results['n_held_out']), 'original')} it never saw, the recognisable "
        f"reconstruction is nearer to the original in <strong>{accuracy:.0%}</strong> of "
        "triplets (guessing gives 50%)."
    )


def _training_html(row: TrainingRow) -> str:
    badge = f" {SIMULATED}" if row.facts.simulated else ""
    warned = " ⚠" if row.result.get("warnings") else ""
    judged = row.result.get("held_out")
    compared = ("semsim", "mse", "ssim", f"semsim:{row.facts.name}.{START}")
    numbers = [None if judged is None else auc_of(judged, metric) for metric in compared]
    cells = (
        escape(when(row.created)),
        escape(row.facts.name) + warned + (" ★" if row.promoted else ""),
        escape(row.facts.study) + badge,
        _STATE_WORDS[row.state],
        escape(row.result.get("split", {}).get("hold_out", "")),
        *("" if number is None else f"{number:.2f}" for number in numbers),
    )
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _own_course(history: Sequence[Progress]) -> list[Progress]:
    """Reports of batches, without what a stop undid and a resume did again."""
    course: list[Progress] = []
    for point in history:
        if "loss" not in point.values or "d_plus" in point.values:
            continue
        while course and course[-1].done >= point.done:
            course.pop()
        course.append(point)
    return course


def _thinned(points: list[Progress]) -> list[Progress]:
    step = -(-len(points) // _CURVE_POINTS) or 1
    return points[::step]


def _highest(epochs: Sequence[Mapping[str, float]]) -> float:
    """The top of the axis: in the first epochs, before batch normalisation's averages have
    settled, held-out distances may be far above it and would flatten all else."""
    trained = [row[key] for row in epochs for key in ("d_plus", "d_minus")]
    held_out = [epochs[-1].get(key, 0.0) for key in ("validation_d_plus", "validation_d_minus")]
    return max(*trained, *held_out)


def _figure(title: str, y: str, job_id: str) -> go.Figure:
    axis = {"gridcolor": "rgba(122,122,122,.25)", "zeroline": False, "rangemode": "tozero"}
    return go.Figure(
        layout={
            "title": {"text": title, "font": {"size": 14}},
            "xaxis": {**axis, "title": {"text": "epoch"}},
            "yaxis": {**axis, "title": {"text": y}},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": _GREY},
            "legend": {"orientation": "h", "y": -0.25},
            "margin": {"l": 50, "r": 10, "t": 40, "b": 40},
            "height": 300,
            "uirevision": job_id,  # a zoom outlives the next look
        }
    )
