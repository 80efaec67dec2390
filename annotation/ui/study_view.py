"""What the Studies page shows, as pure functions of domain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import plotly.graph_objects as go

from annotation.design.feasibility import feasibility, load_before
from annotation.domain import AnnotatorRow, Study, StudyProgress, StudyStatus
from annotation.spec import StudySpec
from annotation.texts import counted
from annotation.web.downloads import DOWNLOADS
from annotation.web.templates import fill

SECONDS_PER_VOTE = 3.0  # what a practised person takes, where nobody has answered yet
BAR_COLOUR = "#23949a"


def current(known: Sequence[Study], chosen: str) -> Study | None:
    """The study with the id or name `chosen`, else the newest answered by people, else the newest.

    known: newest first. None where there is no study.
    """
    order = sorted(
        known, key=lambda study: (chosen not in (study.id, study.name), study.spec.simulated)
    )
    return order[0] if order else None


def choice(study: Study) -> tuple[str, str]:
    """A study in a list to choose from, as (label, id); that votes are simulated is said once."""
    told = not study.spec.simulated or "simulated" in study.name.lower()
    mark = "" if told else ", simulated"
    return f"{study.name} ({study.status.value}{mark}, {study.created:%Y-%m-%d})", study.id


def studies_table(rows: Sequence[tuple[Study, StudyProgress]], chosen: str, note: str = "") -> str:
    """`note`, and all studies, newest first, the one with id `chosen` marked."""
    shown = [(study, votes_done(progress), votes_wanted(progress)) for study, progress in rows]
    return fill("studies.html", rows=shown, chosen=chosen, note=note)


def chips(study: Study) -> str:
    """The study's status, and whether its annotators are simulated."""
    return fill("chips.html", study=study)


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
        facts.append(f"up to {spec.list_size} candidates, {spec.distractors.value}")
        facts.append(f"one list for each {spec.lists.value}")
    facts += study.kind.terms
    guessing = sum(study.target(model).at_chance is True for model in study.models)
    if guessing:
        facts.append(f"{counted(guessing, 'target model')} at chance")
    if study.n_decoys:
        facts.append(f"{study.n_decoys} of them decoys")
    if study.n_originals:
        facts.append(f"{study.n_originals} of them originals")
    if study.n_failed:
        facts.append(f"{study.n_failed} failed reconstructions left out")
    facts.append(f"headline human score: {spec.headline.value}")
    facts += [f"seed {spec.seed}", f"made {study.created:%Y-%m-%d %H:%M} UTC"]
    return fill("study_head.html", study=study, facts=facts)


def people_table(people: Sequence[AnnotatorRow], now: datetime) -> str:
    """How far each annotator is."""
    return fill("study_people.html", people=people, when=when, now=now)


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
    return fill("downloads.html", study=study_id, downloads=DOWNLOADS)


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
    work = "Choose at least one reconstruction set to see how large the study is."
    return fill("preview.html", work=work, people="", note="")


def preview(size: Size, seconds: float = SECONDS_PER_VOTE, note: str = "") -> str:
    """What a study of that size means in items, votes, people and their time, `seconds` a vote.

    note: what else to know before it is made.
    """
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
        f"{duration(votes * seconds)} of work in all at {seconds:.2g} seconds a "
        "vote."
    )
    found = feasibility(size.spec, load, size.people)
    enough = found.annotators_enough is not None and size.people >= found.annotators_enough
    people = f"{found.people}; {counted(size.people, 'is', 'are')} expected. {found.risk}"
    return fill("preview.html", work=work, people=people, enough=enough, note=note)


def made(name: str, notes: Sequence[str], people: str) -> str:
    """What is said of a study once it is made: what planning found, and how many people it takes.

    notes: sentences on what its lists are drawn from and what they tell.
    """
    return fill(
        "preview.html", work=f"{name} is made.", note=" ".join(notes), people=people, enough=True
    )


def duration(seconds: float) -> str:
    """A span of work the way people say it."""
    minutes = seconds / 60
    if minutes < 90:
        return counted(max(1, round(minutes)), "minute")
    return f"{minutes / 60:,.1f} hours"


def problems(text: str) -> str:
    """What has to be put right, one line each; nothing if `text` is empty."""
    return fill("problems.html", lines=[line for line in text.splitlines() if line.strip()])


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
