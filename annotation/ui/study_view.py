"""What pages show of a study, as pure functions of domain values."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from annotation.domain import AnnotatorRow, ProtocolVersion, Study, StudyProgress, StudyStatus
from annotation.study.setting_texts import as_text
from annotation.texts import agreeing, counted
from annotation.web.downloads import DOWNLOADS
from annotation.web.root_path import rooted
from annotation.web.templates import fill


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


def votes_wanted(progress: StudyProgress) -> int:
    """K votes for each item, and one more where they were split and the study says so."""
    return progress.n_items * (len(progress.coverage) - 1) + progress.extra_wanted


def votes_done(progress: StudyProgress) -> int:
    """Counted votes so far."""
    return sum(votes * items for votes, items in enumerate(progress.coverage)) + progress.extra_done


def facts(study: Study) -> list[str]:
    """What one study is, each fact in a few words."""
    spec = study.spec
    found = [
        f"Task {study.kind.words}",
        f"data set {study.dataset}",
        f"{counted(study.n_items, 'item')} of {counted(len(study.models), 'target model')}",
        f"{counted(spec.votes_per_item, 'vote')} each",
    ]
    if study.kind.lists:
        found.append(f"up to {spec.list_size} candidates, {spec.distractors.value}")
        found.append(f"one list for each {spec.lists.value}")
    found += study.kind.terms
    guessing = sum(study.target(model).at_chance is True for model in study.models)
    if guessing:
        found.append(f"{counted(guessing, 'target model')} at chance")
    if n := study.n_decoys:
        found.append(f"{n} of them {agreeing(n, 'a decoy', 'decoys')}")
    if n := study.n_originals:
        found.append(f"{n} of them {agreeing(n, 'an original', 'originals')}")
    if study.n_failed:
        found.append(f"{counted(study.n_failed, 'failed reconstruction')} left out")
    found.append(f"headline human score: {spec.headline.value}")
    found += [f"seed {spec.seed}", f"made {study.created:%Y-%m-%d %H:%M} UTC"]
    return found


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
    if minutes < 24 * 60:
        return f"{minutes // 60} h ago"
    return f"{then:%Y-%m-%d}"


def exports_of(study_id: str) -> list[dict[str, Any]]:
    """What can be taken out of a study: links, and a sentence on each kind of file."""
    found: dict[str, dict[str, Any]] = {}
    for file, one in DOWNLOADS.items():
        one_of = found.setdefault(one.sentence, {"text": one.sentence, "links": []})
        one_of["links"].append((one.words, rooted(f"/studio/download/{study_id}/{file}")))
    return list(found.values())


def versions_table(versions: Sequence[ProtocolVersion], lists: Sequence[str] = ()) -> str:
    """Every version with what it changed, when, by whom and why; what is said of the `lists`."""
    shown = [(version, _changes(version)) for version in versions]
    return fill("versions.html", versions=shown, lists=lists)


def _changes(version: ProtocolVersion) -> str:
    return ", ".join(
        f"{name} = {as_text(getattr(version.spec, name)) or '(empty)'}" for name in version.changed
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
        StudyStatus.RUNNING: f"Whoever has the link{protected} can take part.",
        StudyStatus.PAUSED: "Paused: people keep their place and wait; nothing is handed out.",
        StudyStatus.CLOSED: "Closed: votes that still arrive are kept but do not count.",
    }
    return notes[study.status]
