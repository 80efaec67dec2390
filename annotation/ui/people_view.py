"""What the People page shows, as pure functions of domain values."""

from collections.abc import Sequence

from annotation.domain import AnnotatorRow, AnnotatorStatus, Step, Study
from annotation.texts import counted
from annotation.votes.exclusion import Effect
from annotation.web.templates import fill

BACKUPS = (
    "The name is replaced by a pseudonym and taken out of the database for good. Backups, files "
    "that were downloaded before and the votes that trainings and reports were made of still hold "
    "it."
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
_BY_LINK = (
    "Votes are left out since a personal link that {} made was opened: whoever holds it can answer "
    "in this name. Include counts them, where there is still room, and those to come."
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


_TAKING_PART = (AnnotatorStatus.ACTIVE, AnnotatorStatus.PAUSED)


def lead(study: Study, people: Sequence[AnnotatorRow]) -> str:
    """How many take part, how much they have done, and who needs a look."""
    if not people:
        return ""
    votes, done = sum(one.done for one in people), sum(one.step is Step.DONE for one in people)
    who = "simulated annotator" if study.spec.simulated else "annotator"
    said = f"{counted(len(people), who)}, {counted(votes, 'vote')}"
    said += f", {done:,} done" if done else ""
    warned = sum(one.warned for one in people)
    failing = f" {warned:,} of them failed catch trials and should be looked at." if warned else ""
    return f"{said}.{failing}"


def caught(person: AnnotatorRow) -> str:
    """How many catch trials somebody failed."""
    return f"failed {person.catch_failed:,} of {counted(person.catch_answered, 'catch trial')}"


def person_facts(person: AnnotatorRow) -> list[str]:
    """What the status of one person means, and what else is known of them."""
    facts = [_NOTES[person.status], _STEPS.get(person.step, "")]
    if person.link_by is not None:
        facts.append(_BY_LINK.format(person.link_by))
    if person.paused_by_itself:
        facts.append(_BY_ITSELF)
    if person.catch_answered:
        facts.append(f"{caught(person).capitalize()}.")
    if person.completion_code:
        facts.append(f"Completion code: {person.completion_code}.")
    if person.keep_votes is not None:
        agreed = "agreed" if person.keep_votes else "did not agree"
        facts.append(f"They {agreed} that their answers are kept if they are erased.")
    return [fact for fact in facts if fact]


def may(person: AnnotatorRow) -> tuple[str, ...]:
    """What can be done to somebody: pause, resume, exclude, include, let-in, link, erase."""
    status = person.status
    makes_sense = {
        "pause": status is AnnotatorStatus.ACTIVE,
        "resume": status is AnnotatorStatus.PAUSED,
        "include": status is AnnotatorStatus.EXCLUDED
        or (status is AnnotatorStatus.ACTIVE and person.link_by is not None),
        "let-in": person.step is Step.FAILED and status in _TAKING_PART,
        "exclude": status in _TAKING_PART,
        "link": status is not AnnotatorStatus.ERASED and not person.simulated,
        "erase": True,  # again: of votes that were kept, or of traces in the files
    }
    return tuple(name for name, one in makes_sense.items() if one)


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
