"""What the Studies page shows, as pure functions of domain values. Every text is escaped."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

import plotly.graph_objects as go

from annotation.design.feasibility import Feasibility, feasibility, load_before
from annotation.domain import AnnotatorRow, Study, StudyProgress, StudySpec, StudyStatus
from annotation.ui.words import counted
from annotation.web.downloads import DOWNLOADS

SECONDS_PER_VOTE = 3.0  # what a practised person takes
BAR_COLOUR = "#23949a"


def current(known: Sequence[Study], chosen: str) -> Study | None:
    """The study with the id or name `chosen`, else the newest answered by people, else the newest.

    known: newest first. None where there is no study.
    """
    order = sorted(
        known, key=lambda study: (chosen not in (study.id, study.name), study.spec.simulated)
    )
    return order[0] if order else None


def studies_table(rows: Sequence[tuple[Study, StudyProgress]], chosen: str, note: str = "") -> str:
    """`note`, and all studies, newest first, the one with id `chosen` marked."""
    above = f'<p class="st-empty" role="status">{escape(note)}</p>' if note else ""
    if not rows:
        return above or (
            '<p class="st-empty">No study yet. Make one below from the reconstruction sets in the '
            "data folder.</p>"
        )
    body = "".join(_study_row(study, progress, study.id == chosen) for study, progress in rows)
    head = _heads(("Study", False), ("Status", False), ("Task", False), ("Items", True))
    return above + _table("Studies", head + _heads(("Votes", True), ("Progress", False)), body)


def _study_row(study: Study, progress: StudyProgress, chosen: bool) -> str:
    done, wanted = votes_done(progress), votes_wanted(progress)
    mark = ' aria-current="true"' if chosen else ""
    name = (
        f'<button type="button" class="st-pick" data-study="{escape(study.id)}">'
        f"{escape(study.name)}</button>"
    )
    return (
        f"<tr{mark}><td>{name}</td><td>{chips(study)}</td>"
        f"<td>{study.task.value}</td>{_number(study.n_items)}"
        f"{_number(f'{done} / {wanted}')}<td>{_bar(study.name, done, wanted)}</td></tr>"
    )


def chips(study: Study) -> str:
    """The study's status, and whether its annotators are simulated."""
    status = study.status.value
    simulated = (
        ' <span class="st-chip" data-kind="simulated">simulated</span>'
        if study.spec.simulated
        else ""
    )
    return f'<span class="st-chip" data-kind="{status}">{status}</span>{simulated}'


def votes_wanted(progress: StudyProgress) -> int:
    """K votes for each item, and one more where they were split and the study says so."""
    return progress.n_items * (len(progress.coverage) - 1) + progress.extra_wanted


def votes_done(progress: StudyProgress) -> int:
    """Counted votes so far."""
    return sum(votes * items for votes, items in enumerate(progress.coverage)) + progress.extra_done


def study_head(study: Study) -> str:
    """Name, marks and settings of one study."""
    spec = study.spec
    facts = [
        f"Task {study.kind.words}",
        f"data set {study.dataset}",
        f"{counted(study.n_items, 'item')} of {counted(len(study.models), 'target model')}",
        f"{counted(spec.votes_per_item, 'vote')} each",
    ]
    if study.kind.lists:
        facts.append(f"up to {spec.list_size} candidates")
    if study.n_decoys:
        facts.append(f"{study.n_decoys} of them decoys")
    if study.n_originals:
        facts.append(f"{study.n_originals} of them originals")
    if study.n_failed:
        facts.append(f"{study.n_failed} failed reconstructions left out")
    facts.append(f"headline human score: {spec.headline.value}")
    facts += [f"seed {spec.seed}", f"made {study.created:%Y-%m-%d %H:%M} UTC"]
    return (
        f'<div class="st-head"><h2>{escape(study.name)}</h2>{chips(study)}</div>'
        f'<p class="st-facts">{escape(" · ".join(facts))}</p>'
    )


def people_table(people: Sequence[AnnotatorRow], now: datetime) -> str:
    """How far each annotator is."""
    if not people:
        return (
            '<p class="st-empty">Nobody has joined yet. Send people the link above; they appear '
            "here when they sign in.</p>"
        )
    head = _heads(("Annotator", False), ("Votes", True), ("Median time", True))
    head += _heads(("None", True), ("Last seen", False))
    return _table("Annotators", head, "".join(_person_row(row, now) for row in people))


def _person_row(row: AnnotatorRow, now: datetime) -> str:
    pace = "–" if row.median_rt_ms is None else f"{row.median_rt_ms / 1000:.1f} s"
    none = "–" if row.none_rate is None else f"{row.none_rate:.0%}"
    mark = ' <span class="st-chip" data-kind="simulated">simulated</span>' if row.simulated else ""
    return (
        f"<tr><td>{escape(row.name)}{mark}</td>{_number(row.done)}{_number(pace)}{_number(none)}"
        f"<td>{when(row.last_seen, now)}</td></tr>"
    )


def when(then: datetime, now: datetime) -> str:
    """A past moment in words that change at most once a minute."""
    minutes = int((now - then).total_seconds() // 60)
    if minutes < 1:
        return "just now"
    if minutes < 60:
        return f"{minutes} min ago"
    return f"{then:%Y-%m-%d %H:%M} UTC"


def coverage_figure(progress: StudyProgress) -> go.Figure:
    """How many items have 0, 1, … K votes, as bars."""
    votes = [str(n) for n in range(len(progress.coverage))]
    bars = go.Bar(
        x=votes,
        y=progress.coverage,
        text=progress.coverage,
        textposition="outside",
        cliponaxis=False,
        marker_color=BAR_COLOUR,
        hovertemplate="%{y} items with %{x} votes<extra></extra>",
    )
    figure = go.Figure(bars)
    figure.update_layout(
        title={"text": "Items by number of votes", "font": {"size": 15}},
        xaxis={"title": "votes", "type": "category"},
        yaxis={"title": "items", "rangemode": "tozero"},
        margin={"l": 55, "r": 15, "t": 50, "b": 50},
        height=300,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif"},
    )
    return figure


def downloads(study_id: str) -> str:
    """Links to everything the study has collected."""
    links = "".join(
        f'<li><a href="/studio/download/{escape(study_id)}/{file}" download>'
        f"{escape(one.words)}</a></li>"
        for file, one in DOWNLOADS.items()
    )
    return f'<h3 class="st-title">Download</h3><ul class="st-downloads">{links}</ul>'


@dataclass(frozen=True, kw_only=True)
class Size:
    """What decides how much work a study is, and how often people meet the same original.

    n_reconstructions, n_decoys, n_originals: without those set aside. people: how many are expected
    to take part.
    """

    spec: StudySpec
    n_reconstructions: int
    n_decoys: int
    n_originals: int
    n_models: int
    people: int


def preview_nothing() -> str:
    """What to do before a preview can be given."""
    return _preview("Choose at least one reconstruction set to see how large the study is.")


def preview(size: Size) -> str:
    """What a study of that size means in items, votes, people and their time."""
    load = load_before(
        size.spec,
        n_reconstructions=size.n_reconstructions,
        n_originals=size.n_originals,
        n_models=size.n_models,
        n_decoys=size.n_decoys,
    )
    votes = load.n_items * size.spec.votes_per_item
    decoys = f" and {counted(size.n_decoys, 'decoy')}" if size.n_decoys else ""
    originals = f" and {counted(size.n_originals, 'original')}" if size.spec.label_originals else ""
    work = (
        f"{counted(size.n_reconstructions, 'reconstruction')} of "
        f"{counted(size.n_models, 'target model')}{decoys}{originals}: "
        f"{counted(load.n_items, 'item')}. With "
        f"{counted(size.spec.votes_per_item, 'vote')} each that is {counted(votes, 'vote')}, about "
        f"{duration(votes * SECONDS_PER_VOTE)} of work in all at {SECONDS_PER_VOTE:g} seconds a "
        "vote."
    )
    return _preview(work) + _people_needed(feasibility(size.spec, load, size.people), size.people)


def _people_needed(found: Feasibility, people: int) -> str:
    enough = found.annotators_enough is not None and people >= found.annotators_enough
    words = f"{found.people}; {counted(people, 'is', 'are')} expected. {found.risk}"
    return f'<p class="st-preview" data-enough="{str(enough).lower()}">{escape(words)}</p>'


def duration(seconds: float) -> str:
    """A span of work the way people say it."""
    minutes = seconds / 60
    if minutes < 90:
        return counted(max(1, round(minutes)), "minute")
    return f"{minutes / 60:,.1f} hours"


def problems(text: str) -> str:
    """What has to be put right, one line each; nothing if `text` is empty."""
    lines = [escape(line) for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    if len(lines) == 1:
        return f'<div class="st-problem" role="alert"><p>{lines[0]}</p></div>'
    listed = "".join(f"<li>{line}</li>" for line in lines)
    return f'<div class="st-problem" role="alert"><ul>{listed}</ul></div>'


def link_note(study: Study) -> str:
    """What the researcher should know about the study's link."""
    if study.spec.simulated:
        return "People cannot join: this study is answered by simulated annotators."
    protected = " and the password" if study.protected else ""
    notes = {
        StudyStatus.RUNNING: f"Whoever has this link{protected} can take part.",
        StudyStatus.PAUSED: "Paused: people keep their place and wait; nothing is handed out.",
        StudyStatus.CLOSED: "Closed: votes that still arrive are kept but do not count.",
    }
    return notes[study.status]


def _preview(text: str) -> str:
    return f'<p class="st-preview" role="status">{escape(text)}</p>'


def _heads(*columns: tuple[str, bool]) -> str:
    return "".join(
        f'<th scope="col"{" class=st-number" if is_number else ""}>{name}</th>'
        for name, is_number in columns
    )


def _table(name: str, head: str, body: str) -> str:
    return (
        f'<div class="st-scroll" role="region" aria-label="{name}" tabindex="0">'
        f'<table class="st-table" aria-label="{name}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _number(value: object) -> str:
    return f'<td class="st-number">{value}</td>'


def _bar(name: str, done: int, wanted: int) -> str:
    share = 100 * done / wanted if wanted else 0
    return (
        f'<div class="st-bar" role="progressbar" aria-label="{escape(name)}" aria-valuemin="0" '
        f'aria-valuemax="{wanted}" aria-valuenow="{done}"><i style="width:{share:.1f}%"></i></div>'
    )
