"""What the People page shows, as pure functions of domain values."""

from collections.abc import Sequence
from datetime import datetime

from annotation.domain import AnnotatorRow, AnnotatorStatus, Step, Study
from annotation.texts import counted
from annotation.ui.study_view import when
from annotation.votes.exclusion import Effect
from annotation.web.templates import fill

NO_STUDY = (
    '<p class="st-empty">There is no study yet. <a href="/studio/">Make one on the page '
    "Studies</a>; its people appear here.</p>"
)
BACKUPS = (
    "The name is replaced by a pseudonym and taken out of the database for good. Backups and "
    "files that were downloaded before still hold it."
)
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


def people_table(study: Study, people: Sequence[AnnotatorRow], chosen: str, now: datetime) -> str:
    """Everybody in a study, the one called `chosen` marked."""
    told = {"failed": _caught, "when": when, "now": now}
    return fill("people.html", study=study, people=people, chosen=chosen, **told)


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
    return fill("person_head.html", person=person, failed=_caught(person), facts=facts)


def effect(effect: Effect) -> str:
    """What an exclusion would do, in sentences and as rates before and after."""
    facts = [
        f"{counted(effect.n_votes, 'vote')} would count no more.",
        f"{counted(effect.n_short, 'item')} would no longer have all votes and be given to others.",
        f"{counted(effect.n_undecided, 'majority label')} would become undecided, "
        f"{effect.n_flipped:,} would become the opposite.",
        effect.ranking or "The ranking of the models would stay as it is.",
    ]
    return fill("effect.html", effect=effect, facts=facts)
