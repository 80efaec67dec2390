"""Simulated annotators: the jury's answers, given through the same claims and votes as people's.

They are marked as simulated wherever they appear.
"""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from annotation.domain import Annotator, Answer, NoneReason, Study
from annotation.errors import StudyError
from annotation.store import Store, leases, people, reports, studies, voting
from annotation.store.next_items import open_items
from annotation.tasks.kind import NONE

BATCH = 100  # votes per transaction


def simulate(store: Store, study_id: str, n_annotators: int = 5) -> None:
    """Let the first `n_annotators` of the jury answer all items of a study made for them.

    Running it again continues where it stopped. Raises `NotFoundError`, and `StudyError` for a
    study that people answer and for more people than there are.
    """
    study = store.read(lambda tx: studies.study_of(tx, study_id))
    _refuse(study)
    said = store.read(lambda tx: reports.simulated_answers(tx, study_id))
    jurors = sorted({name for answers in said.values() for name in answers})
    if n_annotators > len(jurors):
        raise StudyError(
            f"{n_annotators} simulated annotators are requested; study {study.name!r} "
            f"has {len(jurors)}. Request at most that many."
        )
    for name in jurors[:n_annotators]:
        _answer_all(store, study, name, {item: answers[name] for item, answers in said.items()})


def _refuse(study: Study) -> None:
    if not study.spec.simulated:
        raise StudyError(
            f"Study {study.name!r} is answered by people; simulated answers go only into a study "
            "created as simulated."
        )
    if study.spec.voter:
        raise StudyError(
            f"Study {study.name!r} is answered by the model {study.spec.voter}, not by simulated "
            "annotators: add --with vlm."
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
    wanted = open_items(tx, annotator, BATCH, now)
    by = leases.claimer(tx, annotator, now)
    items = leases.lease(tx, by, "simulation", wanted, BATCH, last_try=True)
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
                version=by.version,
            ),
            now,
        )
    return len(items)
