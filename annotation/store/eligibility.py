"""Inside one transaction: who asks for items, and what they have been shown. Changes nothing.

An item *given* to an annotator is one whose slot they hold or held, whether or not they answered.
A gold item is given when its trial is made. Repeats show again what was given before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Subquery,
    bindparam,
    func,
    literal,
    literal_column,
    select,
    union,
)
from sqlalchemy.orm import Session

from annotation.design.assignment import LEFT_OUT, order_of
from annotation.design.exposure import Candidate, Seen, cells_in_order
from annotation.domain import Annotator, SlotState, TrialKind, VoteStatus
from annotation.errors import NotFoundError
from annotation.spec import StudySpec
from annotation.store.studies import settings_of
from annotation.store.tables import (
    AnnotatorRow,
    EventRow,
    SlotRow,
    StimulusRow,
    StudyRow,
    TrialRow,
    VoteRow,
)

LEASE_LOST = "lease_lost"
NO_STUDY = "There is no study {!r}."
_LOST: ColumnElement[str] = literal_column(f"'{LEASE_LOST}'")
HELD = (
    select(SlotRow.cell, SlotRow.state, func.count().label("n"))
    .where(SlotRow.annotator_id == bindparam("me"))
    .group_by(SlotRow.cell, SlotRow.state)
)
_NO_CELL = -1  # of a gold item, which has no slots
# Trials that may be of originals that the study asks about.
_OF_ORIGINALS = TrialRow.kind.in_((TrialKind.GOLD, TrialKind.REPEAT))


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Annotator who asks for items, and what decides which ones they may be given.

    Attributes:
        cells: Of the Latin square, in this person's order, without those they have answered wholly.
    """

    annotator: Annotator
    spec: StudySpec
    cells: tuple[int, ...]
    n_cells: int
    n_held: int  # items that wait for their answer

    @property
    def last_ks(self) -> tuple[int, ...]:
        """Values of k that the last slot of an item may have."""
        k = self.spec.votes_per_item
        return (k - 1, k) if self.spec.extra_vote else (k - 1,)

    def binds(self, now: datetime) -> dict[str, Any]:
        """Return the parameters of the prepared statements."""
        order = order_of(self.spec.seed, self.annotator.name.casefold())
        return {
            "study": self.annotator.study_id,
            "me": self.annotator.id,
            "cells": self.cells,
            "ks": self.last_ks,
            "now": now,
            "factor": order.factor,
            "offset": order.offset,
        }

    @property
    def originals(self) -> int | None:
        """The cell of the originals, None where they are no items."""
        return self.n_cells - 1 if self.spec.label_originals else None


def has_limits(spec: StudySpec) -> bool:
    """Return whether the study limits at all what one annotator may see of an original."""
    return spec.max_views is not None or spec.min_lag > 0 or spec.label_originals


def study_row(tx: Session, annotator: Annotator) -> StudyRow:
    """The study of `annotator`; raises `NotFoundError`."""
    study = tx.get(StudyRow, annotator.study_id)
    if study is None:
        raise NotFoundError(NO_STUDY.format(annotator.study_id))
    # The session forgets rows that nobody keeps, and would read this one many times.
    tx.info["study"] = study
    return study


def person_row(tx: Session, annotator: Annotator) -> AnnotatorRow | None:
    """The row of `annotator`, None if they are gone."""
    tx.info["person"] = tx.get(AnnotatorRow, annotator.id)
    return tx.info["person"]


def asker_of(tx: Session, annotator: Annotator) -> Asker:
    """Return `annotator` as one who asks for items."""
    held = tx.connection().execute(HELD, {"me": annotator.id})
    return asker_with(study_row(tx, annotator), annotator, held)


def asker_with(
    study: StudyRow, annotator: Annotator, held: Iterable[tuple[int, str, int]]
) -> Asker:
    """As `asker_of`, for whom the rows of `HELD` are known."""
    spec = settings_of(study)
    n_of = {(cell, state): n for cell, state, n in held}
    order = cells_in_order(annotator.seat, len(study.cells), originals=spec.label_originals)
    return Asker(
        annotator=annotator,
        spec=spec,
        cells=tuple(c for c in order if n_of.get((c, SlotState.DONE), 0) < study.cells[c]),
        n_cells=len(study.cells),
        n_held=sum(n for (_, state), n in n_of.items() if state == SlotState.LEASED),
    )


# ------------------------------------------------------------------ what they have been shown


def given_items(annotator: Annotator) -> Subquery:
    """Every item `annotator` was ever given, gold items too, with its original and cell."""
    columns = SlotRow.stimulus_id, SlotRow.source_id, SlotRow.cell
    held = select(*columns).where(SlotRow.annotator_id == annotator.id)
    lost = (
        select(*columns)
        .join(EventRow, EventRow.stimulus_id == SlotRow.stimulus_id)
        .where(
            EventRow.annotator_id == annotator.id,
            EventRow.kind == _LOST,
            SlotRow.k == 0,
        )
    )
    gold = (
        select(TrialRow.stimulus_id, StimulusRow.source_id, literal(_NO_CELL))
        .join(StimulusRow, StimulusRow.id == TrialRow.stimulus_id)
        .where(TrialRow.annotator_id == annotator.id, TrialRow.kind == TrialKind.GOLD)
    )
    return union(held, lost, gold).subquery()


def full_sources(given: Subquery, max_views: int) -> Select[str]:
    """Select the originals of which an annotator has seen as much as they may."""
    views = select(given.c.source_id).group_by(given.c.source_id)
    return views.having(func.count() >= max_views)


def named_sources(asker: Asker) -> Select[str]:
    """The originals that the person was asked to name, which gives them away."""
    given = given_items(asker.annotator)
    return select(given.c.source_id).where(given.c.cell == asker.originals)


def unnamed(asker: Asker) -> ColumnElement[bool]:
    """That the person has not been asked to name the original itself."""
    return SlotRow.source_id.not_in(named_sources(asker))


def waiting_sources(annotator: Annotator) -> Select[str]:
    """The originals of gold items and repeats that have no answer yet."""
    return (
        select(StimulusRow.source_id)
        .join(TrialRow, TrialRow.stimulus_id == StimulusRow.id)
        .where(TrialRow.annotator_id == annotator.id, TrialRow.state == "open", _OF_ORIGINALS)
    )


def _elsewhere(asker: Asker, tab: str) -> Select[str]:
    """The originals of what the person holds in other tabs, where they may answer it any time."""
    return select(SlotRow.source_id).where(
        SlotRow.annotator_id == asker.annotator.id,
        SlotRow.state == SlotState.LEASED,
        SlotRow.lease_until > LEFT_OUT,
        SlotRow.cell != asker.originals,
        SlotRow.tab != tab,
    )


def recent_sources(tx: Session, asker: Asker) -> tuple[str, ...]:
    """Return the originals of the last items given, as many as the lag, the latest last."""
    if asker.spec.min_lag == 0:
        return ()
    query = select(SlotRow.source_id).where(
        SlotRow.annotator_id == asker.annotator.id,
        SlotRow.given.is_not(None),
    )
    found = tx.scalars(query.order_by(SlotRow.given.desc()).limit(asker.spec.min_lag)).all()
    return tuple(reversed(found))


def last_answered(tx: Session, annotator: Annotator, n: int) -> list[tuple[str, bool]]:
    """Return the originals of the last `n` items answered, trials too, the latest last.

    With each, whether it was a gold item or a repeat. Answers taken back are none.
    """
    rows = tx.execute(
        select(StimulusRow.source_id, TrialRow.kind)
        .join(VoteRow, VoteRow.stimulus_id == StimulusRow.id)
        .outerjoin(TrialRow, TrialRow.id == VoteRow.trial_id)
        .where(VoteRow.annotator_id == annotator.id, VoteRow.status != VoteStatus.SUPERSEDED)
        .order_by(VoteRow.server_ts.desc(), VoteRow.id.desc())
        .limit(n)
    ).all()
    return [(source, kind in (TrialKind.GOLD, TrialKind.REPEAT)) for source, kind in rows[::-1]]


def near_sources(tx: Session, asker: Asker) -> frozenset[str]:
    """The originals of gold items and repeats that wait, or were answered within the lag."""
    if asker.spec.min_lag == 0:
        return frozenset()
    last = last_answered(tx, asker.annotator, asker.spec.min_lag)
    answered = (source for source, is_trial in last if is_trial)
    return frozenset([*answered, *tx.scalars(waiting_sources(asker.annotator))])


def candidates_of(tx: Session, asker: Asker, items: Sequence[str]) -> list[Candidate]:
    """`items` with their originals, in their order."""
    rows = tx.execute(
        select(SlotRow.stimulus_id, SlotRow.source_id, SlotRow.cell).where(
            SlotRow.stimulus_id.in_(items), SlotRow.k == 0
        )
    )
    found = {
        item: Candidate(item=item, source=source or "", is_original=cell == asker.originals)
        for item, source, cell in rows
    }
    return [found[item] for item in items if item in found]


def seen_of(tx: Session, asker: Asker, candidates: Sequence[Candidate], tab: str = "") -> Seen:
    """Return what `asker`, who asks in `tab`, has seen of the originals of `candidates`."""
    waiting: frozenset[str] = frozenset()
    if asker.spec.label_originals:
        unanswered: Any = union(waiting_sources(asker.annotator), _elsewhere(asker, tab))
        waiting = frozenset(tx.scalars(unanswered))
    given = given_items(asker.annotator)
    rows = tx.execute(
        select(given.c.stimulus_id, given.c.source_id, given.c.cell).where(
            given.c.source_id.in_({one.source for one in candidates})
        )
    ).all()
    views: dict[str, int] = {}
    for _, source, _ in rows:
        views[source] = views.get(source, 0) + 1
    return Seen(
        views=views,
        again=frozenset(item for item, _, _ in rows),
        named=frozenset(source for _, source, cell in rows if cell == asker.originals),
        recent=recent_sources(tx, asker),
        near=near_sources(tx, asker),
        waiting=waiting,
    )
