"""What the People page shows, as pure functions of domain values. Every text is escaped."""

from collections.abc import Sequence
from datetime import datetime
from html import escape

from annotation.domain import AnnotatorRow, AnnotatorStatus, Step, Study
from annotation.ui.study_view import when
from annotation.ui.words import counted
from annotation.votes.exclusion import Effect, ModelRate

NO_STUDY = (
    '<p class="st-empty">There is no study yet. <a href="/studio/">Make one on the page '
    "Studies</a>; its people appear here.</p>"
)
BACKUPS = (
    "The name is replaced by a pseudonym and taken out of the database for good. Backups and "
    "files that were downloaded before still hold it."
)
_NUMBERS = ("Votes", "Median time", "None")
_NOTES = {
    AnnotatorStatus.ACTIVE: "Gets items and may vote.",
    AnnotatorStatus.PAUSED: "Gets no items and may not vote for now. The votes so far count.",
    AnnotatorStatus.EXCLUDED: (
        "Gets no items and may not vote. No vote counts; others are asked in their place."
    ),
    AnnotatorStatus.ERASED: "The name is gone. What is left stands under this pseudonym.",
}
_BY_ITSELF = (
    "Nobody paused them: too many catch trials were failed. Resume lets them go on and fail as "
    "many again."
)
_STEPS = {
    Step.CONSENT: "Has not agreed yet.",
    Step.INSTRUCTIONS: "Is reading the instructions.",
    Step.PRACTICE: "Is practising.",
    Step.CHECK: "Is answering the questions on the instructions.",
    Step.DONE: "Is done.",
    Step.DECLINED: "Did not consent.",
    Step.FAILED: "Did not pass the questions on the instructions; you can let them in.",
}


def choice(study: Study) -> tuple[str, str]:
    """A study in the list to choose from, as (label, id)."""
    mark = ", simulated" if study.spec.simulated else ""
    return f"{study.name} ({study.status.value}{mark}, {study.created:%Y-%m-%d})", study.id


def people_table(study: Study, people: Sequence[AnnotatorRow], chosen: str, now: datetime) -> str:
    """Everybody in a study, the one called `chosen` marked."""
    if not people:
        return _nobody(study)
    heads = "".join(
        f'<th scope="col"{" class=st-number" if name in _NUMBERS else ""}>{name}</th>'
        for name in ("Annotator", "Status", "Step", *_NUMBERS, "Last seen")
    )
    rows = "".join(_row(person, person.name == chosen, now) for person in people)
    return (
        '<div class="st-scroll" role="region" aria-label="People" tabindex="0">'
        '<table class="st-table" aria-label="People">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _nobody(study: Study) -> str:
    if study.spec.simulated:
        return (
            '<p class="st-empty">Nobody has answered yet. This study is answered by simulated '
            "annotators; they appear here once they have been let loose on it.</p>"
        )
    link = f"/join/{escape(study.token)}"
    return (
        '<p class="st-empty">Nobody has joined yet. People join through the link of the study, '
        f'<a href="{link}">{link}</a>, and appear here when they have signed in.</p>'
    )


def _row(person: AnnotatorRow, chosen: bool, now: datetime) -> str:
    mark = ' aria-current="true"' if chosen else ""
    name = escape(person.name)
    pace = "–" if person.median_rt_ms is None else f"{person.median_rt_ms / 1000:.1f} s"
    none = "–" if person.none_rate is None else f"{person.none_rate:.0%}"
    excluded = f" + {person.excluded:,} excluded" if person.excluded else ""
    numbers = "".join(
        f'<td class="st-number">{cell}</td>' for cell in (f"{person.done:,}{excluded}", pace, none)
    )
    return (
        f'<tr{mark}><td><button type="button" class="st-pick" data-person="{name}">{name}</button>'
        f"{_warning(person)}</td><td>{chips(person)}</td><td>{person.step.value}</td>{numbers}"
        f"<td>{when(person.last_seen, now)}</td></tr>"
    )


def chips(person: AnnotatorRow) -> str:
    """Somebody's status, and whether they are simulated."""
    status = person.status.value
    kind = "running" if person.status is AnnotatorStatus.ACTIVE else status
    simulated = (
        ' <span class="st-chip" data-kind="simulated">simulated</span>' if person.simulated else ""
    )
    by_itself = " by itself" if person.paused_by_itself else ""
    return f'<span class="st-chip" data-kind="{kind}">{status}{by_itself}</span>{simulated}'


def _warning(person: AnnotatorRow) -> str:
    if not person.warned:
        return ""
    return f' <span class="st-chip" data-kind="warning">{_caught(person)}</span>'


def _caught(person: AnnotatorRow) -> str:
    return f"failed {person.catch_failed:,} of {counted(person.catch_answered, 'catch trial')}"


def person_head(person: AnnotatorRow) -> str:
    """Name and marks of one person, and what their status means."""
    facts = [_NOTES[person.status], _STEPS.get(person.step, "")]
    if person.paused_by_itself:
        facts.append(_BY_ITSELF)
    if person.catch_answered:
        facts.append(f"{_caught(person).capitalize()}.")
    if person.completion_code:
        facts.append(f"Completion code: {person.completion_code}.")
    if person.keep_votes is not None:
        agreed = "agreed" if person.keep_votes else "did not agree"
        facts.append(f"They {agreed} that their answers are kept if they are erased.")
    marks = chips(person) + _warning(person)
    return (
        f'<div class="st-head"><h2>{escape(person.name)}</h2>{marks}</div>'
        f'<p class="st-facts">{escape(" ".join(filter(None, facts)))}</p>'
    )


def effect(effect: Effect) -> str:
    """What an exclusion would do, in sentences and as rates before and after."""
    facts = [
        f"{counted(effect.n_votes, 'vote')} would count no more.",
        f"{counted(effect.n_short, 'item')} would no longer have all votes and be given to others.",
        f"{counted(effect.n_undecided, 'majority label')} would become undecided, "
        f"{effect.n_flipped:,} would become the opposite.",
        effect.ranking or "The ranking of the models would stay as it is.",
    ]
    listed = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
    name = escape(effect.annotator)
    return (
        f'<h3 class="st-title">What excluding {name} would do</h3>'
        f'<ul class="st-facts">{listed}</ul>{_rates(effect.models)}'
        '<p class="st-facts">Nothing is deleted: who is included again gets their votes back where '
        "nobody else has voted meanwhile.</p>"
    )


def _rates(models: Sequence[ModelRate]) -> str:
    heads = "".join(
        f'<th scope="col"{" class=st-number" if number else ""}>{name}</th>'
        for name, number in (("Model", False), ("Recognised now", True), ("Then", True))
    )
    rows = "".join(
        f"<tr><td>{escape(one.model)}</td>"
        f'<td class="st-number">{_rate(one.before, one.decided_before)}</td>'
        f'<td class="st-number">{_rate(one.after, one.decided_after)}</td></tr>'
        for one in models
    )
    return (
        '<div class="st-scroll" role="region" aria-label="Rates before and after" tabindex="0">'
        '<table class="st-table" aria-label="Rates before and after">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _rate(rate: float | None, decided: int) -> str:
    return "no item decided" if rate is None else f"{rate:.1%} of {decided:,} decided"
