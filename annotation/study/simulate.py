"""Simulated annotators: what people might answer, computed from a classifier's probabilities.

They exist so that the product can be tried before people have labelled anything. They answer
through the same claims and votes as people and are marked as simulated wherever they appear.
"""

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from annotation.domain import NONE, Annotator, Answer, NoneReason, Study
from annotation.errors import StudyError
from annotation.store import Store, people, reports, slots, studies, voting

BATCH = 100  # votes per transaction
SMALLEST = 1e-6  # probability of classes the classifier did not list


@dataclass(frozen=True, kw_only=True)
class Person:
    """How one simulated annotator sees: `temperature` flattens the classifier's opinion, `noise`
    is the spread added to its logits, below `strictness` of certainty the answer is none.
    """

    name: str
    temperature: float
    noise: float
    strictness: float


def cast(n: int, rng: np.random.Generator) -> list[Person]:
    """`n` people who differ in how sharply they see and how sure they want to be.

    The ranges make them answer none about as often, and about as unequally, as the annotators
    whose votes were published with the SemSim paper: 19 % to 51 %.
    """
    return [
        Person(
            name=f"Simulated {number + 1}",
            temperature=float(rng.uniform(0.9, 1.5)),
            noise=float(rng.uniform(0.3, 0.9)),
            strictness=float(rng.uniform(0.45, 0.8)),
        )
        for number in range(n)
    ]


def respond(
    person: Person,
    probabilities: Mapping[str, float],
    candidates: Sequence[str],
    rng: np.random.Generator,
) -> str:
    """The candidate `person` finds most likely, or "none" if no candidate seems likely enough.

    `probabilities` by class are restricted to `candidates` and renormalised.
    """
    logits = np.array([math.log(max(probabilities.get(c, 0.0), SMALLEST)) for c in candidates])
    logits = logits / person.temperature + rng.normal(0.0, person.noise, len(candidates))
    certainty = np.exp(logits - logits.max())
    certainty /= certainty.sum()
    best = int(certainty.argmax())
    return candidates[best] if certainty[best] >= person.strictness else NONE


def simulate(store: Store, study_id: str, n_annotators: int = 5, seed: int = 0) -> None:
    """Let `n_annotators` simulated people answer all items of a study that was made for them.

    Running it again continues where it stopped. Raises `NotFoundError`, and `StudyError` for a
    study that people answer, and for the pair task.
    """
    study = store.read(lambda tx: studies.study_of(tx, study_id))
    _refuse(study)
    stimuli = store.read(lambda tx: reports.stimuli(tx, study_id))
    for number, person in enumerate(cast(n_annotators, np.random.default_rng(seed))):
        rng = np.random.default_rng([seed, number])
        answers = {
            item: respond(person, stimuli[item].probabilities, stimuli[item].candidates, rng)
            for item in stimuli
        }
        _answer_all(store, study, person, answers)


def _refuse(study: Study) -> None:
    if not study.spec.simulated:
        raise StudyError(
            f"Study {study.name!r} is answered by people; simulated answers go only into a study "
            "created as simulated."
        )
    if not study.kind.simulated:
        raise StudyError(
            "Simulated annotators can only name classes: a classifier's probabilities do not say "
            "whether two images show the same. Expected a recognition study."
        )


def _answer_all(store: Store, study: Study, person: Person, answers: Mapping[str, str]) -> None:
    now = datetime.now(UTC)
    annotator = store.write(
        lambda tx: people.annotator_named(tx, study.id, person.name, now, simulated=True)
    )
    while store.write(lambda tx: _answer_some(tx, annotator, answers)):
        pass


def _answer_some(tx: Any, annotator: Annotator, answers: Mapping[str, str]) -> int:
    now = datetime.now(UTC)
    wanted = slots.open_items(tx, annotator, BATCH, now)
    items = slots.lease(tx, annotator, "simulation", wanted, BATCH, now, last_try=True)
    for item in items:
        answer = answers[item.item]
        voting.record(
            tx,
            annotator,
            Answer(
                id=str(uuid.uuid4()),
                item=item.item,
                answer=answer,
                reason=NoneReason.CANNOT_MAKE_OUT if answer == NONE else None,
                tab="simulation",
            ),
            now,
        )
    return len(items)
