"""Inside one transaction: calls to a model that answers a study, before each and after it.

What was asked is on record before it is sent, so that a run that is killed cannot lose a call: a
budget holds over all runs on a study. A refused or malformed answer is an event and no vote; its
item goes to that annotator no more.
"""

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from annotation.design.assignment import LEFT_OUT
from annotation.domain import Annotator, SlotState, TaskItem
from annotation.store.events import note
from annotation.store.leases import Claimer, lease
from annotation.store.next_items import open_items
from annotation.store.slots import answered, set_slot
from annotation.store.tables import EventRow, SlotRow, SourceRow, StimulusRow, StudyRow

ASKED, REPLIED = "model_asked", "model_replied"


class Became(StrEnum):
    """Outcome of a call that was replied to."""

    VOTE = "vote"
    REFUSED = "refused"  # the model, or who runs it, would not answer
    MALFORMED = "malformed"  # an answer that is none of those offered
    FAILED = "failed"  # an error of the endpoint, which costs no tokens


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Calls of all runs on a study.

    Attributes:
        calls: Sent, or about to be.
        silent: Of these, without a reply that says what they cost.
        items: Different items asked about.
        votes, refused, malformed: Replies by what became of them.
        tokens_in, tokens_out: Of all replies.
        most_in: Of the reply with most.
    """

    calls: int
    silent: int
    items: int
    votes: int
    refused: int
    malformed: int
    tokens_in: int
    tokens_out: int
    most_in: int


def spent(tx: Session, study_id: str) -> Spent:
    """Return what has been asked in a study so far."""
    here = EventRow.study_id == study_id
    asked = select(func.count(), func.count(EventRow.stimulus_id.distinct()))
    calls, items = tx.execute(asked.where(here, EventRow.kind == ASKED)).one()
    became = EventRow.data["became"].as_string()
    n_in, n_out = (_number(name) for name in ("tokens_in", "tokens_out"))
    by = select(became, func.count(), func.count(n_in), func.sum(n_in), func.sum(n_out))
    rows = tx.execute(
        by.add_columns(func.max(n_in)).where(here, EventRow.kind == REPLIED).group_by(became)
    ).all()
    of = {row[0]: row[1] for row in rows}
    return Spent(
        calls=calls,
        silent=calls - sum(row[2] for row in rows),
        items=items,
        votes=of.get(Became.VOTE, 0),
        refused=of.get(Became.REFUSED, 0),
        malformed=of.get(Became.MALFORMED, 0),
        tokens_in=sum(row[3] or 0 for row in rows),
        tokens_out=sum(row[4] or 0 for row in rows),
        most_in=max((row[5] or 0 for row in rows), default=0),
    )


def _number(name: str) -> ColumnElement[int]:
    return EventRow.data[name].as_integer()


def alone(tx: Session, study_id: str) -> None:
    """Wait for other runs' transactions on a study, so that all see the same `spent`."""
    tx.execute(select(StudyRow.id).where(StudyRow.id == study_id).with_for_update(key_share=True))


def next_item(
    tx: Session, by: Claimer, tab: str, now: datetime, most_items: int | None = None
) -> TaskItem | None:
    """The item that `by` is asked about next in `tab`, reserved: the last one until it is answered.

    Args:
        most_items: The most different items of the study that may be asked about.
    """
    wanted = open_items(tx, by.annotator, 1, now)
    if most_items is not None:
        known = _asked_about(tx, by.annotator.study_id)
        if len(known) >= most_items:
            wanted = _among(tx, by.annotator, known, now)
    found = lease(tx, by, tab, wanted, 1, last_try=False)
    return found[0] if found else None


def _asked_about(tx: Session, study_id: str) -> set[str]:
    items = select(EventRow.stimulus_id).where(
        EventRow.study_id == study_id, EventRow.kind == ASKED
    )
    return {item for item in tx.scalars(items.distinct()) if item is not None}


def _among(tx: Session, annotator: Annotator, known: Container[str], now: datetime) -> list[str]:
    of = select(func.count()).where(StimulusRow.study_id == annotator.study_id)
    every = open_items(tx, annotator, tx.scalar(of) or 0, now)
    return [item for item in every if item in known]


def pictures_of(tx: Session, item: str) -> list[str]:
    """Return the SHA-256s of the pictures that an annotator is shown of an item, in order."""
    both = select(SourceRow.sha256, StimulusRow.sha256, StimulusRow.original_token)
    original, shown, beside = tx.execute(
        both.join(SourceRow, SourceRow.id == StimulusRow.source_id).where(StimulusRow.id == item)
    ).one()
    return [shown] if beside is None else [original, shown]


def asked(tx: Session, annotator: Annotator, item: str, now: datetime) -> None:
    """Say that `annotator` is about to be asked about `item`."""
    note(tx, annotator.study_id, ASKED, now, person=annotator.id, item=item)


def replied(
    tx: Session,
    annotator: Annotator,
    item: str,
    now: datetime,
    became: Became,
    tokens: tuple[int, int] | None,
) -> None:
    """Say what became of a call; `tokens`, read and written, are None where they are not known."""
    cost = {} if tokens is None else dict(zip(("tokens_in", "tokens_out"), tokens, strict=True))
    told: dict[str, Any] = {"became": became.value, **cost}
    note(tx, annotator.study_id, REPLIED, now, person=annotator.id, item=item, **told)
    if became in (Became.REFUSED, Became.MALFORMED):
        slot = answered(tx, annotator, item)
        if slot is not None:
            set_slot(tx, slot, SlotState.LEASED, lease_until=LEFT_OUT)


def held_elsewhere(tx: Session, study_id: str, tab: str, now: datetime) -> int:
    """Count the items that another run on the study holds, which may have been killed."""
    held = select(func.count()).where(
        SlotRow.study_id == study_id,
        SlotRow.state == SlotState.LEASED,
        SlotRow.lease_until > now,
        SlotRow.tab != tab,
    )
    return tx.scalar(held) or 0
