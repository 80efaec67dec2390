"""The tabs of Compare as HTML: the answer, disagreements, one metric, files."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.columns import ATTACKER
from semsim.base.metric_spec import controlled, is_start
from semsim.base.plain_names import plain_name
from semsim.base.stats.agreement import best_first
from semsim.base.stats.evidence import model_key
from semsim.base.words import counted
from semsim.comparison.seen_originals import ALL
from semsim.metrics import MetricSpec
from semsim.people import SOURCES
from semsim.reporting import figures, tables
from semsim.reporting.answer import answer_of, remarks_of
from semsim.reporting.gallery import METRIC_ONLY, PEOPLE_ONLY, GalleryImage, entries, judged_by_both
from semsim.reporting.gallery import disagreements as differing
from semsim.reporting.methods import by_programs, warnings
from semsim.reporting.model_figures import agreement_words, closer, heading, heading_in_words
from semsim.reporting.notation import (
    attacker_text,
    noted,
    number,
    rank_text,
    reason,
    target_text,
)
from semsim.reporting.ranked_figure import most_divided, ranked_rows
from semsim.reporting.svg import Mark, Point, axis_of, line, plane, words_of_ends
from semsim.ui import ScienceContext
from semsim.ui.compare_data import (
    Comparison,
    is_import,
    model_choices,
    rows_of_model,
    source_of,
)
from semsim.ui.compare_files import (
    address,
    made_address,
    made_file,
    made_job,
    missing_weights,
    newest_people,
)
from semsim.ui.compare_view import HTML, Asked, image_source, unavailable, weights
from semsim.ui.jobpanel import JobView

_PAGE = 12  # pictures of a list on one page
_MOST_POINTS = 2000  # drawn in a browser; more take long and hide each other
_JITTER = 0.035  # of the share of votes, so that equal answers do not hide each other
WAYS = {PEOPLE_ONLY: "missed", METRIC_ONLY: "alarms"}
_ORIGINALS = 6  # on one page
_MOST_PLACES = 96  # reconstructions of them: more would take more than a screen and a half
_SIGNS = {"recognised": "✓", "not recognised": "✗", "undecided": "?"}
_SIDES = {"recognised": "leaked", "not recognised": "private", "undecided": "open"}
_SHOWN = {"models": "Models", "ranks": "Ranks", "images": "Single images", "originals": "Originals"}


@dataclass(frozen=True, kw_only=True)
class Card:
    """Pictures of a reconstruction and what is said of it.

    Attributes:
        pictures: (name, address).
        model: "" where it goes without saying.
        verdict: (kind, words) of those who voted, called `who`.
        facts: (name, words).
    """

    row: int
    title: str
    model: str
    pictures: Sequence[tuple[str, str]]
    who: str
    verdict: tuple[str, str]
    facts: Sequence[tuple[str, str]]


def answer(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """The sentence with the answer, every metric's agreement, and the chosen one beside it."""
    analysis = comparison.analysis
    chosen = comparison.spec(asked.metric)
    table = best_first(analysis.agreement)
    ceiling = analysis.ceiling
    band = (_float(ceiling.rho_low), _float(ceiling.rho_high))
    axis = axis_of([*table["rho_bw_low"], *table["rho"], band[0]])
    rows = [
        _forest_row(row, axis, band) | {"at": at} for at, (_, row) in enumerate(table.iterrows())
    ]
    limit = _forest_ceiling(comparison, axis)
    found = answer_of(analysis)
    found = replace(found, beside=(*_of_which_originals(comparison), *found.beside))
    said = by_programs(analysis.evidence)
    notes = [text for text in warnings(analysis, comparison.origin) if text != said]
    name = "" if chosen is None else chosen.name
    return HTML.answer(
        found, notes, _families(rows), limit, axis, asked, name, side(context, comparison, asked)
    )


def _of_which_originals(comparison: Comparison) -> list[str]:
    """That not all originals count, where they do not: other pages have other numbers then."""
    name = comparison.view.unseen_by
    if name == ALL or not (name or comparison.n_held_out):
        return []
    who = f"SemSim ({name}) has not" if name else "no SemSim here has"
    counting = comparison.analysis.evidence.images[["dataset", "image_id"]].drop_duplicates()
    every = counted(comparison.n_originals, "original")
    return [f"All this is on the {len(counting):,} of {every} that {who} seen; Results counts all."]


def _forest_row(
    row: pd.Series, axis: tuple[float, float], band: tuple[float, float]
) -> dict[str, Any]:
    mark = Mark(value=row["rho"], low=row["rho_bw_low"], high=row["rho_bw_high"])
    return {
        **{"name": row["metric"], "title": row["title"], "control": is_start(row["metric"])},
        "drawn": line([mark], axis, band),
        **{"rho": number(row["rho"], 2), "tau": number(row["tau"], 2)},
        "ends": words_of_ends(row["rho_bw_low"], row["rho_bw_high"]) + noted(row["rho_note"]),
        "why": reason(row["undefined"]) or "",
    }


def _families(rows: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each row that is no control with the controls of the same SemSim, in order of the rows."""
    own = {row["name"] for row in rows if not row["control"]}
    of = {row["name"]: controlled(row["name"]) for row in rows if row["control"]}
    heads = [row for row in rows if of.get(row["name"]) not in own]
    return [(row, [one for one in rows if of.get(one["name"]) == row["name"]]) for row in heads]


def _forest_ceiling(comparison: Comparison, axis: tuple[float, float]) -> object:
    """Return the agreement of people among themselves as a last row; None where it is unknown."""
    found = comparison.analysis.ceiling
    if found.rho is None:
        return None
    low, high = _float(found.rho_low), _float(found.rho_high)
    mark = Mark(value=found.rho, low=low, high=high, kind="people")
    return {
        "drawn": line([mark], axis),
        **{"rho": number(found.rho, 2), "tau": number(_float(found.tau), 2)},
        **{"ends": words_of_ends(low, high) + noted(found.rho_note), "why": ""},
        "who": comparison.voters,
    }


def side(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """The chosen metric beside the answer: its models, and what must be known of it."""
    spec = comparison.spec(asked.metric)
    if spec is None:
        return ""
    drawn = _models_plane(comparison, spec, "")
    said = remarks_of(comparison.analysis, spec)
    return HTML.side(spec.title, agreement_words(comparison.analysis, spec), drawn, said, asked)


def disagreements(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """Pictures that a metric and people judge most differently."""
    return HTML.disagreements(grid(context, comparison, asked))


def grid(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """The filters, and the pictures they leave."""
    if not comparison.n_votes:
        return HTML.note("This study has labels and no votes; disagreements need votes.")
    specs = [spec for spec in _ranked(comparison) if spec.per_image]
    spec = _chosen(specs, asked.metric)
    if spec is None:
        return HTML.note("No metric gives a value to a single picture.")
    if not comparison.has_images:
        return no_pictures(context, asked)
    ways = differing(comparison.analysis, spec)
    counts = {WAYS[way]: len(rows) for way, rows in ways.items()}
    way = asked.way if asked.way in counts else max(counts, key=lambda one: (counts[one] > 0, one))
    rows = next(rows for who, rows in ways.items() if WAYS[who] == way)
    judged = judged_by_both(comparison.analysis, spec)
    models = model_choices(comparison.analysis)
    model = _kept(asked.model, models)
    if model:
        own = rows_of_model(comparison.images, model).index
        rows, judged = (some[some["row"].isin(own)] for some in (rows, judged))
    pages = _pages(asked.start, len(rows))
    found = entries(comparison.analysis, rows.iloc[pages["start"] :][:_PAGE])
    cards = [
        _card(comparison, entry.row, [_on_card(spec, _standing(spec, entry, rows))])
        for entry in found
    ]
    return HTML.grid(
        cards,
        asked,
        {"spec": spec, "specs": specs, "way": way, "counts": counts},
        {"models": models, "model": model},
        {**pages, "judged": len(judged)},
        comparison.voters,
    )


def _on_card(spec: MetricSpec, words: str) -> tuple[str, str]:
    """Return what a card says of a picture's metric, with the way that is closer in words."""
    return "metric" if spec.yes_or_no else f"metric, {closer(spec)}", words


def _standing(spec: MetricSpec, entry: GalleryImage, rows: pd.DataFrame) -> str:
    """The value of the metric, and of how many of the pictures it sees less."""
    if spec.yes_or_no:
        return "yes" if entry.value > 1 / 2 else "no"
    share = rows.loc[rows["row"] == entry.row, "metric_share"].iloc[0]
    return f"{number(entry.value)}, above {share:.0%}"


def pair(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """One reconstruction, large, with what every metric says of it."""
    images = comparison.images
    if not asked.row.isdecimal() or int(asked.row) >= len(images):
        return HTML.note("This picture is gone. Load the page again.")
    row = int(asked.row)
    values = [
        (heading_in_words(spec), number(comparison.analysis.evidence.scores[spec.name][row]))
        for spec in _ranked(comparison)
        if spec.per_image
    ]
    image = images.iloc[row]
    facts = [("target", target_text(image)), ("attacker", attacker_text(image))]
    facts += [("picture", str(image["image_id"]))]
    return HTML.pair(_card(comparison, row, facts), values)


def one_metric(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """A metric's models, ranks, single images or originals, and pictures of the chosen model."""
    spec = comparison.spec(asked.metric)
    if spec is None:
        return HTML.note("No metric has scores yet.")
    shown = asked.shown if asked.shown in _SHOWN else "models"
    if shown == "ranks":
        drawn = _ranks(comparison, spec)
    elif shown == "images":
        drawn = _images_plane(comparison, spec)
    elif shown == "originals":
        drawn = _originals(context, comparison, spec, asked)
    else:
        drawn = _models_plane(comparison, spec, _model_of(comparison, asked))
    words = agreement_words(comparison.analysis, spec)
    specs = _ranked(comparison)
    beside = "" if shown == "originals" else pictures(context, comparison, asked)
    return HTML.one_metric(asked, spec, specs, shown, _SHOWN.items(), words, drawn, beside)


def no_pictures(context: ScienceContext, asked: Asked) -> str:
    """Return the words in place of pictures, and the button that fetches them where one can."""
    source = source_of(asked.study)
    known = SOURCES[source] if source else None
    job = newest_people(context, source) if source else None
    return HTML.no_pictures(
        known if known is not None and known.files else None, job and JobView.of(job)
    )


def pictures(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """The pictures of the chosen model, or of the image that was pressed, page by page."""
    spec = comparison.spec(asked.metric)
    if not comparison.has_images:
        return no_pictures(context, asked)
    models = model_choices(comparison.analysis)
    model = _model_of(comparison, asked)
    rows = rows_of_model(comparison.images, model).sort_values("image_id")
    pages = _pages(asked.start, len(rows))
    here = rows.iloc[pages["start"] :][:_PAGE]
    per_image = spec is not None and spec.per_image
    cards = []
    for row in here.index:
        facts = []
        if spec is not None and per_image:
            value = comparison.analysis.evidence.scores[spec.name][row]
            facts.append(_on_card(spec, number(value)))
        cards.append(_card(comparison, int(row), facts, model_named=False))
    first = rows.iloc[0] if len(rows) else pd.Series()
    known = first.get(ATTACKER)
    target = target_text(first) if len(rows) else ""
    target += "" if known is None or pd.isna(known) else f", attacker {known}"
    return HTML.pictures(cards, asked, models, model, target, pages)


def files(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """The report, everything at once, and every figure and table by itself."""
    view, spec = comparison.view, comparison.spec(asked.metric)
    names = [] if spec is None else figures.names_of(comparison.analysis, spec)
    metric = None if spec is None else spec.name
    drawn = [
        (one.title, [(kind, address(view, one.name, kind, one.metric)) for kind in _DRAWN])
        for one in (figures.figure(comparison.analysis, name, metric) for name in names)
    ]
    printed = [
        (one.title, [(kind, address(view, one.name, kind)) for kind in ("csv", "tex", "md")])
        for one in tables.tables(comparison.analysis)
    ]
    made_here = made(context, comparison, asked)
    fetch = weights(context, missing_weights(context))
    own = "" if is_import(asked.study) else asked.study  # scores are added to studies alone
    return HTML.files(made_here, drawn, printed, unavailable(comparison), fetch, own)


_DRAWN = ("png", "svg", "csv")  # what a figure can be had as


def made(context: ScienceContext, comparison: Comparison, asked: Asked) -> str:
    """The report and everything at once: asked for, being made, or there to be had."""
    found: list[dict[str, Any]] = []
    for what, (title, words) in _MADE.items():
        job = made_job(context, comparison, what)
        name = "" if job is None else made_file(job)
        facts = None if name or job is None else JobView.of(job)
        where = made_address(job.id, name) if job is not None and name else ""
        found.append({"what": what, "title": title, "words": words, "job": facts, "address": where})
    live = any(one["job"] is not None and one["job"].live for one in found)
    return HTML.made(found, live)


_MADE = {
    "report": (
        "Report",
        "One HTML file with the answer, figures, tables, pictures and methods. It opens offline "
        "and prints on A4.",
    ),
    "everything": (
        "Everything",
        "A ZIP with the report, each figure as PNG, SVG and CSV, each table as CSV, LaTeX and "
        "Markdown.",
    ),
}


def _models_plane(comparison: Comparison, spec: MetricSpec, model: str) -> str:
    """A point a model: what the metric says of it against what people say."""
    models = comparison.analysis.models
    points = [
        Point(
            x=_float(row.get(spec.name)),
            y=_float(row["human"]),
            key=model_key(row),
            tip=f"{plain_name(row['label'])}: {spec.title} {number(_float(row.get(spec.name)))}, "
            f"{comparison.voters} {number(row['human'], 2)}, target {target_text(row)}",
            x_ends=(_float(row.get(f"{spec.name}:low")), _float(row.get(f"{spec.name}:high"))),
            y_ends=(_float(row["human_low"]), _float(row["human_high"])),
            chosen=model_key(row) == model,
        )
        for _, row in models.iterrows()
    ]
    title = f"Models by {comparison.voters} and by {spec.title}"
    axis = f"{heading(spec)}, mean of a model"
    return plane(points, axis, f"{comparison.voters} recognise", title, True)


def _images_plane(comparison: Comparison, spec: MetricSpec) -> str:
    """A point a reconstruction with votes and a finite value, moved a little along the share."""
    if not spec.per_image:
        return HTML.note(f"{spec.title} scores whole sets, not single pictures.")
    images = comparison.images
    values = comparison.analysis.evidence.scores[spec.name]
    rows = np.flatnonzero(images["share"].notna().to_numpy() & np.isfinite(values))
    rng = np.random.default_rng(0)
    if len(rows) > _MOST_POINTS:
        rows = np.sort(rng.choice(rows, _MOST_POINTS, replace=False))
    moved = rng.uniform(-_JITTER, _JITTER, len(rows))
    said = " recognised it" if comparison.analysis.evidence.ratings is None else ""
    points = [
        Point(
            x=float(values[row]),
            y=float(images["share"].iloc[row] + by),
            key=f"row:{row}",
            tip=f"{images['class_name'].iloc[row]}, {images['model'].iloc[row]}: {spec.title} "
            f"{number(values[row])}, {_verdict(images.iloc[row], True)[1]}{said}",
        )
        for row, by in zip(rows, moved, strict=True)
    ]
    if not points:
        return HTML.note("No reconstruction has both votes and a score yet.")
    words = comparison.analysis.evidence.response_words
    title = f"Single images by {comparison.voters} and {spec.title}"
    drawn = plane(points, heading(spec), words, title, True)
    total = int((images["share"].notna().to_numpy() & np.isfinite(values)).sum())
    left = f"{len(rows):,} of {total:,} pictures, drawn at random." if total > len(rows) else ""
    return f"{drawn}{HTML.note(left)}" if left else drawn


def _ranks(comparison: Comparison, spec: MetricSpec) -> str:
    """The rank of each model by people and by the metric, with the range of both."""
    table = comparison.analysis.stability
    people = table[table["measure"] == "people"].sort_values("rank", kind="stable")
    mine = table[table["measure"] == spec.name].set_index("model_key")
    axis = (1.0, float(max(len(people), 2)))
    models = [row for _, row in comparison.analysis.models.iterrows()]
    targets = {model_key(row): target_text(row) for row in models}
    attackers = {model_key(row): attacker_text(row) for row in models}
    rows = []
    for _, row in people.iterrows():
        own = mine.loc[row["model_key"]] if row["model_key"] in mine.index else None
        marks = [Mark(value=row["rank"], low=row["low"], high=row["high"], kind="people")]
        if own is not None:
            marks.append(Mark(value=own["rank"], low=own["low"], high=own["high"]))
        rows.append(
            {
                **{"key": row["model_key"], "label": row["label"], "drawn": line(marks, axis)},
                "target": targets[row["model_key"]],
                "attacker": attackers[row["model_key"]],
                "people": rank_text(row["rank"]),
                "metric": rank_text(math.nan if own is None else own["rank"]),
            }
        )
    return HTML.ranks(rows, spec.title, int(axis[1]), comparison.voters)


def _originals(
    context: ScienceContext, comparison: Comparison, spec: MetricSpec, asked: Asked
) -> str:
    """The originals people are most divided about first, some on a page from number `start` on."""
    if not spec.per_image:
        return HTML.note(f"{spec.title} scores whole sets, not single pictures.")
    if not comparison.has_images:
        return no_pictures(context, asked)
    rows = ranked_rows(comparison.analysis, spec)
    order = most_divided(rows, rows["original"].nunique())
    longest = max(rows["original"].value_counts(), default=1)
    pages = _pages(asked.start, len(order), max(1, min(_ORIGINALS, _MOST_PLACES // longest)))
    shown = order[pages["start"] :][: pages["step"]]
    lines = [_ranked_line(comparison, rows[rows["original"] == name]) for name in shown]
    return HTML.originals(lines, heading(spec), pages, comparison.voters)


def _pages(start: int, total: int, step: int = _PAGE) -> dict[str, int]:
    """Return where a page of a list begins, the last one at most, and both lengths."""
    return {"start": min(start, max(0, total - 1) // step * step), "total": total, "step": step}


def _ranked_line(comparison: Comparison, part: pd.DataFrame) -> dict[str, Any]:
    """An original and its reconstructions, as the template has them."""
    images = comparison.images
    first = images.iloc[int(part["row"].iloc[0])]
    places = [
        {
            "row": int(row["row"]),
            "model": str(row["model"]),
            "address": image_source(images["reconstruction"].iloc[int(row["row"])]),
            "value": number(row["value"], 3),
            "mark": row["mark"],
            "sign": _SIGNS[row["mark"]],
            "side": "open" if comparison.study.simulated else _SIDES[row["mark"]],
        }
        for row in part.to_dict("records")
    ]
    address = image_source(first["original"])
    return {"title": str(first["class_name"]), "address": address, "places": places}


def _card(
    comparison: Comparison, row: int, facts: Sequence[tuple[str, str]], model_named: bool = True
) -> Card:
    image = comparison.images.iloc[row]
    return Card(
        row=row,
        title=str(image["class_name"]),
        model=str(image["model"]) if model_named else "",
        pictures=[(name, image_source(image[name])) for name in ("original", "reconstruction")],
        who="program" if comparison.study.simulated else "people",
        verdict=_verdict(image, comparison.study.simulated),
        facts=facts,
    )


def _verdict(row: pd.Series, simulated: bool) -> tuple[str, str]:
    """Return the side of a reconstruction and the words on it, such as "4 of 5"."""
    side = "leaked" if row["side"] > 0.5 else "private" if row["side"] < 0.5 else "open"
    # A program is no witness of what leaks.
    return "open" if simulated else side, str(row["said"])


def _ranked(comparison: Comparison) -> list[MetricSpec]:
    return figures.by_agreement(comparison.analysis)


def _chosen(specs: Sequence[MetricSpec], name: str) -> MetricSpec | None:
    return next((spec for spec in specs if spec.name == name), specs[0] if specs else None)


def _model_of(comparison: Comparison, asked: Asked) -> str:
    """The chosen model, else the one of which people recognise most."""
    models = comparison.analysis.models
    ordered = models.sort_values("human", ascending=False, kind="stable")
    best = model_key(ordered.iloc[0]) if len(ordered) else ""
    return _kept(asked.model, model_choices(comparison.analysis)) or best


def _kept(value: str, choices: Sequence[tuple[str, str]]) -> str:
    return value if value in {choice for _, choice in choices} else ""


def _float(value: Any) -> float:
    return math.nan if value is None or pd.isna(value) else float(value)
