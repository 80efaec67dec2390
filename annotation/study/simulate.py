"""Simulated annotators: the jury's answers, given through the same claims and votes as people's.

They are marked as simulated wherever they appear.
"""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from annotation.domain import Annotator, Answer, NoneReason, Study
from annotation.errors import StudyError
from annotation.store import Store, claims, openings, people, reports, studies, voting
from annotation.tasks.kind import NONE
from annotation.texts import counted

BATCH = 100  # votes per transaction


def simulate(store: Store, study_id: str, n_annotators: int = 5) -> None:
    """Let the first `n_annotators` of the jury answer all items of a study made for them.

    Running it again continues where it stopped. Raises `NotFoundError`, and `StudyError` for a
    study that people answer, for tasks that ask for no class, for more people than there are and
    for a jury that lacks answers.
    """
    study = store.read(lambda tx: studies.study_of(tx, study_id))
    _refuse(study)
    said = store.read(lambda tx: reports.simulated_answers(tx, study_id))
    jurors = sorted({name for answers in said.values() for name in answers})
    if n_annotators > len(jurors):
        raise StudyError(
            f"{n_annotators} simulated annotators are asked for; the jury of study {study.name!r} "
            f"has {len(jurors)}. Ask for no more, or create the study anew from sets that have a "
            "jury.parquet."
        )
    asked = jurors[:n_annotators]
    lacking = study.n_items - sum(answers.keys() >= set(asked) for answers in said.values())
    if lacking:  # earlier versions made studies of sets whose jury had not seen every picture
        raise StudyError(
            f"The jury of study {study.name!r} lacks what somebody says of {lacking} of the "
            f"{counted(study.n_items, 'item')}. Let it see every picture of the sets "
            "(`semsim-studio demo jury`) and create the study anew from them."
        )
    for name in asked:
        _answer_all(store, study, name, {item: answers[name] for item, answers in said.items()})


def _refuse(study: Study) -> None:
    if not study.spec.simulated:
        raise StudyError(
            f"Study {study.name!r} is answered by people; simulated answers go only into a study "
            "created as simulated."
        )
    if not study.kind.simulated:
        raise StudyError(
            "Simulated annotators can only name classes: what a classifier sees does not say "
            "whether two images show the same, or how much of one is in the other. Expected a "
            "recognition study."
        )


def _answer_all(store: Store, study: Study, name: str, answers: Mapping[str, str]) -> None:
    now = datetime.now(UTC)
    annotator = store.write(
        lambda tx: people.annotator_named(tx, study.id, name, now, simulated=True)
    )
    while store.write(lambda tx: _answer_some(tx, annotator, answers)):
        pass


def _answer_some(tx: Any, annotator: Annotator, answers: Mapping[str, str]) -> int:
    now = datetime.now(UTC)
    wanted = openings.open_items(tx, annotator, BATCH, now)
    by = claims.claimer(tx, annotator, now)
    items = claims.lease(tx, by, "simulation", wanted, BATCH, now, last_try=True)
    for item in items:
        answer = answers[item.item]
        voting.record(
            tx,
            by.annotator,
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
