"""Inside one transaction: items handed out, to whoever asks first and may see them.

Locks are taken in the order that `slots` says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, exists, func, or_, select
from sqlalchemy.orm import Session

from annotation.design.assignment import Slot
from annotation.design.exposure import choose
from annotation.domain import Annotator, AnnotatorStatus, StudyStatus, TaskItem, VoteStatus
from annotation.errors import NotFoundError
from annotation.spec import StudySpec
from annotation.store.eligibility import NO_STUDY, asker_of, candidates_of, has_limits, seen_of
from annotation.store.next_items import quota_left, serves
from annotation.store.slots import (
    MY_LEASES,
    SLOT,
    extend,
    good_ends,
    hand_out,
    here,
    lock_room,
    task_items,
)
from annotation.store.studies import WRITTEN, settings_in
from annotation.store.tables import AnnotatorRow, SlotRow, StudyRow, VoteRow

# Made once, as making a statement takes longer than carrying it out.
_MINE = SLOT.alias("own")
_LAST_GIVEN = (
    select(_MINE.c.given)
    .where(_MINE.c.annotator_id == bindparam("me"), _MINE.c.given.is_not(None))
    .order_by(_MINE.c.given.desc())
    .limit(1)
)
_N_COUNTED = select(func.count()).where(
    VoteRow.annotator_id == bindparam("me"), VoteRow.status == VoteStatus.COUNTED
)
_CLAIMING = select(
    StudyRow.status,
    StudyRow.version,
    WRITTEN,
    _N_COUNTED.scalar_subquery(),
    func.coalesce(_LAST_GIVEN.scalar_subquery(), 0),
).where(StudyRow.id == bindparam("study"))
_HOLDING = (
    select(SLOT.c.stimulus_id, SLOT.c.tab, SLOT.c.lease_until)
    .where(MY_LEASES)
    .order_by(SLOT.c.given, SLOT.c.id)
)
IN_CASE = 12  # more items to choose from than wanted, as others may take some first
_BEGUN = exists().where(SlotRow.annotator_id == AnnotatorRow.id)
# How many people have answered or hold an item and were seen since, whoever asks included.
AT_WORK = (
    select(func.count())
    .select_from(AnnotatorRow)
    .where(
        AnnotatorRow.study_id == bindparam("study"),
        AnnotatorRow.status == AnnotatorStatus.ACTIVE,
        or_(
            AnnotatorRow.id == bindparam("me"),
            (AnnotatorRow.last_seen >= bindparam("since")) & _BEGUN,
        ),
    )
)


class Held(NamedTuple):
    """Tab that an item is reserved for, and the time until when."""

    tab: str
    until: datetime


@dataclass(frozen=True, kw_only=True)
class Claimer:
    """Annotator who claims items, as they are until this transaction ends.

    Attributes:
        version: Of `spec`.
        serves: Whether they are given items that count, at this step of a study that runs.
        votes: How many of theirs count.
        given: The number of the last item they were given.
        held: The items they hold, in the order they were given.
        now: The time of the transaction.
    """

    annotator: Annotator
    spec: StudySpec
    version: int
    serves: bool
    votes: int
    given: int
    held: Mapping[str, Held]
    now: datetime


def claimer(tx: Session, annotator: Annotator, now: datetime) -> Claimer:
    """`annotator` as one who claims; notes that they were here, as `here` does."""
    me = here(tx, annotator, now)
    binds, connection = {"me": annotator.id, "study": annotator.study_id}, tx.connection()
    row = connection.execute(_CLAIMING, binds).one_or_none()
    if row is None:
        raise NotFoundError(NO_STUDY.format(annotator.study_id))
    status, version, written, votes, given = row
    # Not in one with the above, of which there would be two hundred copies.
    holding = connection.execute(_HOLDING, binds)
    return Claimer(
        annotator=me,
        spec=settings_in(written, annotator.study_id),
        version=version,
        serves=status == StudyStatus.RUNNING and serves(me.status, me.step),
        votes=votes,
        given=given,
        held={item: Held(tab, until) for item, tab, until in holding},
        now=now,
    )


def lease(
    tx: Session, by: Claimer, tab: str, wanted: Sequence[str], n: int, *, last_try: bool
) -> list[TaskItem]:
    """Reserve up to `n` items for an annotator in `tab`: those they have, then of `wanted`.

    Items that another annotator is claiming at this moment are skipped. The `last_try` waits to see
    whether they still have room, and if nothing else is left moves items here from other tabs.
    Those they have are reserved for the whole of the study's `lease_seconds` again once
    `slots.EXTENDED_AFTER` of it has passed; the end that all are told is that of the first to end.
    """
    if not by.serves:
        return []
    annotator = by.annotator
    quota = quota_left(tx, annotator, by.spec)
    n = n if quota is None else min(n, quota)
    items = [item for item, held in by.held.items() if held.tab == tab][:n]
    here_already = set(items)
    new = [item for item in wanted if item not in here_already]
    free = n - len(items) if quota is None else min(n - len(items), quota - len(by.held))
    given = _room(tx, by, tab, new, free, skip_locked=not last_try)
    if last_try and not items and not given:
        items = [item for item, held in by.held.items() if held.tab != tab][:n]
    enough, until = ends = good_ends(by.now, by.spec)
    late = [one for one in items if not _lasts(by.held[one], tab, enough, until)]
    if late:
        # Somebody else may have taken over by now what had run out.
        lost = set(late).difference(extend(tx, annotator, tab, late, ends))
        items = [one for one in items if one not in lost]
    kept = [by.held[one].until for one in set(items).difference(late)]
    if given:
        k = by.spec.votes_per_item
        hand_out(tx, annotator, given, k, by.now, until=until, tab=tab, after=by.given)
    items += given
    # Of all the same, as of trials, or it would say which of them are none.
    return task_items(tx, items, min([until, *kept])) if items else []


def _lasts(held: Held, tab: str, first: datetime, last: datetime) -> bool:
    return held.tab == tab and first <= held.until <= last


def _room(
    tx: Session, by: Claimer, tab: str, wanted: Sequence[str], n: int, *, skip_locked: bool
) -> dict[str, Slot]:
    """Up to `n` of `wanted` that have room and may be shown to whom, each with its slot."""
    annotator, limited = by.annotator, has_limits(by.spec)
    if not limited:  # else what is chosen depends on all there is to choose from
        wanted = wanted[: n + IN_CASE]
    if n <= 0 or not wanted:
        return {}
    room = lock_room(tx, wanted, annotator, by.now, skip_locked=skip_locked)
    left = [item for item in wanted if item in room]
    chosen = _choose(tx, annotator, tab, left, n) if limited else left[:n]
    return {item: room[item] for item in chosen}


def _choose(tx: Session, annotator: Annotator, tab: str, items: Sequence[str], n: int) -> list[str]:
    """Asked again here, where other requests of the same person wait: limits hold in every tab."""
    asker = asker_of(tx, annotator)
    candidates = candidates_of(tx, asker, items)
    return choose(candidates, n, asker.spec, seen_of(tx, asker, candidates, tab))
