"""Inside one transaction: how much of a small study one person may hold, and giving it back."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import bindparam, exists, func, or_, select, update
from sqlalchemy.orm import Session

from annotation.domain import Annotator, AnnotatorStatus, SlotState
from annotation.store.slots import lock_slots, touch
from annotation.store.tables import AnnotatorRow, SlotRow

SPARE = 2  # held beyond a fair share, so that the next picture is there already
AT_HAND = 20  # as many a page shows without waiting for the network
RECENTLY = timedelta(minutes=5)  # whoever was here is still at work
# A lease is over once its end has passed, so that of a released one lies just before now.
_MOMENT = timedelta(microseconds=1)
_BEGUN = exists().where(SlotRow.annotator_id == AnnotatorRow.id)
_AT_WORK = (
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


def share(tx: Session, annotator: Annotator, n: int, left: int, now: datetime) -> int:
    """How many of the `n` items asked for `annotator` may hold, of `left` there are for them.

    A fair share if others are at work. Of more than `AT_HAND`, which are for when the network is
    gone, half of it, so that something is left for whoever joins later or is faster.
    """
    people = _at_work(tx, annotator, now - RECENTLY)
    fair = n if people == 1 else -(-left // people) + SPARE
    return min(n, fair, max(AT_HAND, left // (2 * people)))


def _at_work(tx: Session, annotator: Annotator, since: datetime) -> int:
    """How many people have answered or hold an item and were seen `since`, this one included."""
    binds = {"study": annotator.study_id, "me": annotator.id, "since": since}
    return tx.scalar(_AT_WORK, binds) or 1


def release(
    tx: Session, annotator: Annotator, tab: str, items: Sequence[str], now: datetime
) -> None:
    """Turn what `annotator` holds of `items` in `tab` into leases that have run out."""
    touch(tx, annotator, now)
    lock_slots(tx, items)
    tx.execute(
        update(SlotRow)
        .where(
            SlotRow.annotator_id == annotator.id,
            SlotRow.state == SlotState.LEASED,
            SlotRow.tab == tab,
            SlotRow.stimulus_id.in_(items),
        )
        .values(lease_until=now - _MOMENT)
    )
