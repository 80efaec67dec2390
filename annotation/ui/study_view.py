"""Content of pages on a study, as pure functions of domain values."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from annotation.domain import AnnotatorRow, ProtocolVersion, Study, StudyStatus
from annotation.spec import as_text
from annotation.texts import agreeing, counted
from annotation.web.downloads import DOWNLOADS
from annotation.web.guard import framers
from annotation.web.root_path import rooted
from annotation.web.templates import fill
from semsim.base.words import jury_words, voters_words


def facts(study: Study) -> list[str]:
    """Return the facts of one study, each in a few words."""
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
    by = f" by {study.by}" if study.by else ""
    found += [f"seed {spec.seed}", f"made {study.created:%Y-%m-%d %H:%M} UTC{by}"]
    return found


def whose(study: Study, reader: str | None) -> str:
    """Return who made a study, as a sentence before a question; "" where the reader did.

    Args:
        reader: The account that asks, None without accounts.
    """
    return f"{study.by} made this study. " if study.by not in ("", reader) else ""


def people_table(people: Sequence[AnnotatorRow], now: datetime, mark: str = "") -> str:
    """Return the table of each annotator's progress; of programs where it has a `mark`."""
    return fill("study_people.html", people=people, when=when, now=now, mark=mark)


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
    """Return the downloads of a study: links, and a sentence on each kind of file."""
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


def link_note(study: Study) -> str:
    """Return what the researcher should know about the study's link."""
    if study.spec.simulated:
        who = voters_words(study.spec.voters)
        near = "" if study.spec.voter else f" {jury_words()}"
        return f"People cannot join: this study is answered by {who}.{near}"
    protected = " and the password" if study.protected else ""
    notes = {
        StudyStatus.RUNNING: f"Everybody with the link{protected} can take part.",
        StudyStatus.PAUSED: "Paused: people keep their place and wait; nothing is handed out.",
        StudyStatus.CLOSED: "Closed: votes that still arrive are kept but do not count.",
    }
    sites = framers(study.spec.framed_by)
    shows = f"Pages of {sites} may show it" if sites else "No page of another site may show it"
    return f"{notes[study.status]} {shows}."
