"""Inside one transaction: showings that never count, and the answers to them.

A trial belongs to one annotator, so the lock of that annotator's row, which every caller has by
`slots.touch`, is all the order there needs to be. To a browser a trial looks like any item: same
fields, names and addresses of the same form, made while slots are reserved.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise
from typing import Any

from sqlalchemy import Row, Select, bindparam, func, insert, literal, or_, select, union_all, update
from sqlalchemy.orm import Session

from annotation.design import quality
from annotation.design.exposure import Candidate, fits
from annotation.design.quality import Schedule
from annotation.domain import (
    Annotator,
    AnnotatorProgress,
    AnnotatorStatus,
    Step,
    StimulusKind,
    StudyStatus,
    TaskItem,
    TrialKind,
    VoteStatus,
)
from annotation.errors import NotAllowedError, NotFoundError
from annotation.spec import StudySpec
from annotation.store.eligibility import (
    Asker,
    asker_of,
    has_limits,
    last_answered,
    person_row,
    seen_of,
    study_row,
)
from annotation.store.leases import Claimer
from annotation.store.next_items import LEASED
from annotation.store.slots import MY_LEASES, SHOWN, SLOT, classes_in, touch
from annotation.store.studies import settings_of
from annotation.store.tables import (
    AnnotatorRow,
    ProtocolRow,
    SlotRow,
    SourceRow,
    StimulusRow,
    StudyRow,
    Table,
    TrialRow,
    VoteRow,
)

OPEN, DONE = "open", "done"
# In this order where several are due at the same place.
MIXED = (TrialKind.CATCH, TrialKind.GOLD, TrialKind.REPEAT)
_REPEATABLE = (StimulusKind.RECONSTRUCTION, StimulusKind.DECOY)
# Made once, as making a statement takes longer than most take.
_TRIAL = Table.metadata.tables["trial"]
_ADD = insert(_TRIAL)
_MOVE = (
    update(_TRIAL)
    .where(_TRIAL.c.id.in_(bindparam("moved", expanding=True)))
    .values(tab=bindparam("for_tab"))
)
_KNOWN = (
    select(_TRIAL)
    .where(_TRIAL.c.annotator_id == bindparam("me"), _TRIAL.c.kind.in_(MIXED))
    .order_by(_TRIAL.c.kind, _TRIAL.c.ordinal)
)
_TABS = select(SLOT.c.tab).where(MY_LEASES, SLOT.c.lease_until >= bindparam("now")).distinct()


def _answered() -> Select[str, str, str, str, str]:
    """Select the items of an annotator's counted votes, then those that wait in a tab."""
    number = func.row_number()
    votes = select(
        VoteRow.stimulus_id,
        literal(0).label("part"),
        number.over(order_by=(VoteRow.server_ts, VoteRow.id)).label("number"),
    ).where(VoteRow.annotator_id == bindparam("me"), VoteRow.status == VoteStatus.COUNTED)
    coming = select(
        SLOT.c.stimulus_id, literal(1), number.over(order_by=(SLOT.c.given, SLOT.c.id))
    ).where(MY_LEASES, SLOT.c.tab == bindparam("tab"))
    earlier = union_all(votes, coming).subquery()
    return (
        select(
            StimulusRow.id,
            StimulusRow.source_id,
            StimulusRow.model,
            StimulusRow.kind,
            SourceRow.image_id,
        )
        .join(earlier, earlier.c.stimulus_id == StimulusRow.id)
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .order_by(earlier.c.part, earlier.c.number)
    )


_ANSWERED = _answered()


def due(
    tx: Session, by: Claimer, tab: str, items: Sequence[TaskItem], n: int, now: datetime
) -> list[TaskItem]:
    """`items` reserved for `tab`, with the trials that are due put in where they belong; up to `n`.

    Trials that wait for an answer are given again to the tab that had them, or to another when no
    item is reserved for that one any more. What finds no room stays reserved and comes next time.
    Where no gold item or repeat keeps the limits of the study, none is given.
    """
    if not items and not by.serves:
        return []
    annotator, spec, votes = by.annotator, by.spec, by.votes
    schedules = schedules_of(tx, annotator, spec, by.version)
    connection = tx.connection()
    known = connection.execute(_KNOWN, {"me": annotator.id}).all()
    there = {(trial.kind, trial.ordinal) for trial in known}
    maker = _Maker(
        tx=tx, spec=spec, annotator=annotator, tab=tab, now=now, known=known, schedules=schedules
    )
    for kind, schedule in schedules.items():
        for ordinal in range(schedule.due(votes), schedule.due(votes + len(items))):
            if (kind, ordinal) not in there:
                maker.draw(kind, ordinal, items, _index(schedule, ordinal, votes, items))
    waiting: list[Any] = [*(trial for trial in known if trial.state == OPEN), *maker.made]
    if not waiting:
        return list(items)
    elsewhere: set[str] = set()
    if {held.tab for held in by.held.values()} - {tab}:  # those for which items are reserved now
        elsewhere = set(connection.scalars(_TABS, {"me": annotator.id, "now": now}))
    given = [trial for trial in waiting if trial.tab not in elsewhere - {tab}]
    moved = [trial.id for trial in given if trial.tab != tab]
    if moved:
        connection.execute(_MOVE, {"moved": moved, "for_tab": tab})
    places = [
        _index(schedules[TrialKind(trial.kind)], trial.ordinal, votes, items) for trial in given
    ]
    # As of the items, or it would tell them from trials.
    until = items[0].lease_until if items else now + timedelta(seconds=spec.lease_seconds)
    return _mixed(items, places, task_items(tx, given, until))[:n]


def _index(schedule: Schedule, ordinal: int, votes: int, items: Sequence[TaskItem]) -> int:
    """Return the index in `items` before which a trial belongs, after `votes` votes."""
    return min(max(schedule.place(ordinal) - votes, 0), len(items))


def _mixed(
    items: Sequence[TaskItem], places: Sequence[int], trials: Sequence[TaskItem]
) -> list[TaskItem]:
    """Each trial before the item with the number it has in `places`."""
    numbered = [(place, 0, trial) for place, trial in zip(places, trials, strict=True)]
    numbered += [(number, 1, item) for number, item in enumerate(items)]
    return [item for _, _, item in sorted(numbered, key=lambda one: one[:2])]


def practice(tx: Session, annotator: Annotator, tab: str, n: int, now: datetime) -> list[TaskItem]:
    """Up to `n` practice items that wait for an answer, in the order of showing.

    Empty unless the study runs, and `annotator` is active and at that step.
    """
    touch(tx, annotator, now)
    study, person = _study_and_person(tx, annotator)
    if not _takes_part(study, person, Step.PRACTICE):
        return []
    stimuli, spec = _stimuli_of(tx, study.id, StimulusKind.PRACTICE), settings_of(study)
    own = (TrialRow.annotator_id == annotator.id, TrialRow.kind == TrialKind.PRACTICE)
    trials: list[Any] = list(tx.scalars(select(TrialRow).where(*own).order_by(TrialRow.ordinal)))
    maker = _Maker(tx=tx, spec=spec, annotator=annotator, tab=tab, now=now)
    for ordinal in range(len(trials), len(stimuli)):
        maker.add(TrialKind.PRACTICE, ordinal, stimuli[ordinal])
    trials += maker.made
    until = now + timedelta(seconds=spec.lease_seconds)
    return task_items(tx, [trial for trial in trials if trial.state == OPEN][:n], until)


def with_trials(
    tx: Session,
    asker: Asker,
    progress: AnnotatorProgress,
    found: Sequence[tuple[str, int, str]],
) -> AnnotatorProgress:
    """`progress` with the trials done, and with those that are open or still to come.

    Args:
        found: Kind, ordinal and state of their trials but for practice. Those whose place is over
            without an item that kept the limits come no more.
    """
    spec = asker.spec
    if not found and not any(quality.rate_of(spec, kind) for kind in MIXED):
        return progress
    finished = sum(state == DONE for *_, state in found)
    left = len(found) - finished
    version = study_row(tx, asker.annotator).version
    for kind, schedule in schedules_of(tx, asker.annotator, spec, version).items():
        now, end = schedule.due(progress.done), schedule.due(progress.done + progress.left)
        shown = [ordinal for one, ordinal, _ in found if one == kind]
        to_come = end - now - sum(now <= ordinal < end for ordinal in shown)
        left += _possible(tx, asker.annotator.study_id, kind, to_come, len(shown))
    return replace(progress, trials_done=finished, trials_left=left)


def _possible(tx: Session, study_id: str, kind: TrialKind, n: int, n_shown: int) -> int:
    """Count those of `n` trials that there are items for, after `n_shown` of their kind.

    Catch items come again, gold items do not.
    """
    if kind is TrialKind.GOLD and n:
        return min(n, len(_stimuli_of(tx, study_id, StimulusKind.GOLD)) - n_shown)
    if kind is TrialKind.CATCH and n and not n_shown:
        return n if _stimuli_of(tx, study_id, StimulusKind.CATCH) else 0
    return n


def image_of(tx: Session, annotator: Annotator, token: str) -> str:
    """Return the SHA-256 of the image behind the token of a trial.

    Raises `NotFoundError` for an unknown token, `NotAllowedError` for another annotator's trial.
    """
    row = tx.execute(
        select(TrialRow, StimulusRow.sha256, SourceRow.sha256)
        .join(StimulusRow, StimulusRow.id == TrialRow.stimulus_id)
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .where(
            TrialRow.study_id == annotator.study_id,
            or_(TrialRow.token == token, TrialRow.original_token == token),
        )
    ).one_or_none()
    if row is None:
        raise NotFoundError("There is no such image in this study.")
    trial, shown, original = row
    if trial.annotator_id != annotator.id:
        raise NotAllowedError("This image belongs to an item that was not given to you.")
    return str(shown if token == trial.token else original)


def _study_and_person(tx: Session, annotator: Annotator) -> tuple[StudyRow, AnnotatorRow]:
    study, person = study_row(tx, annotator), person_row(tx, annotator)
    if person is None:
        raise NotFoundError("You are not part of this study (any more). Open its link again.")
    return study, person


def _takes_part(study: StudyRow, person: AnnotatorRow, step: Step) -> bool:
    return (study.status, person.status, person.step) == (
        StudyStatus.RUNNING,
        AnnotatorStatus.ACTIVE,
        step,
    )


@dataclass(frozen=True, kw_only=True)
class _Maker:
    """Makes trials for one annotator in one tab, who has those `known`.

    Attributes:
        made: The new ones, in order; they are in the database, and rows of no session.
    """

    tx: Session
    spec: StudySpec
    annotator: Annotator
    tab: str
    now: datetime
    known: Sequence[Row[Any]] = ()
    schedules: Mapping[TrialKind, Schedule] = field(default_factory=dict)
    made: list[TrialRow] = field(default_factory=list)

    def draw(self, kind: TrialKind, ordinal: int, items: Sequence[TaskItem], index: int) -> None:
        """Make one to be shown before the item with number `index`, none if nothing fits there."""
        stimulus = self._drawn(kind, ordinal, [item.item for item in items], index)
        if stimulus is not None:
            self.add(kind, ordinal, stimulus)

    def _drawn(self, kind: TrialKind, ordinal: int, items: Sequence[str], index: int) -> str | None:
        spec, seat = self.spec, self.annotator.seat
        if kind is TrialKind.CATCH:
            number = quality.drawn(spec, seat, ordinal, len(self._catch))
            return None if number is None else self._catch[number]
        known = self._gold if kind is TrialKind.GOLD else self._repeatable(ordinal)
        # What comes next must not show the same item again.
        there: list[Any] = [*self.known, *self.made]
        shown = {one.stimulus_id for one in there if one.kind == kind}
        known = [one for one in known if one.item not in shown]
        free = _fitting(self.tx, spec, self.annotator, known, items, index)
        if kind is TrialKind.REPEAT:
            return quality.repeated(spec, seat, ordinal, free)
        return free[0] if free else None

    def add(self, kind: TrialKind, ordinal: int, stimulus: str) -> None:
        """Make one of that stimulus."""
        trial: dict[str, Any] = {
            "id": secrets.token_hex(16),
            "study_id": self.annotator.study_id,
            "annotator_id": self.annotator.id,
            "stimulus_id": stimulus,
            "kind": kind,
            "ordinal": ordinal,
            "token": secrets.token_hex(16),
            "original_token": secrets.token_hex(16) if self.spec.kind.beside else None,
            "state": OPEN,
            "tab": self.tab,
            "created": self.now,
        }
        # At once: what comes next must keep its distance from it.
        self.tx.connection().execute(_ADD, trial)
        self.made.append(TrialRow(**trial))

    # What several trials of one claim are drawn from is asked for once.

    @cached_property
    def _catch(self) -> list[str]:
        return _stimuli_of(self.tx, self.annotator.study_id, StimulusKind.CATCH)

    @cached_property
    def _gold(self) -> list[Candidate]:
        return _gold_items(self.tx, self.spec, self.annotator)

    @cached_property
    def _answered(self) -> Sequence[Row[str, str, str, str, str]]:
        """The items of their votes that count, then those that wait in the tab, in that order."""
        binds = {"me": self.annotator.id, "tab": self.tab}
        return self.tx.connection().execute(_ANSWERED, binds).all()

    def _repeatable(self, ordinal: int) -> list[Candidate]:
        """The items answered at least `spec.repeat_lag` other votes before the place of a repeat.

        What waits for an answer in the tab will have been answered by then, in the order it was
        given.
        """
        place = self.schedules[TrialKind.REPEAT].place(ordinal)
        before = self._answered[: max(0, place - self.spec.repeat_lag)]
        ordered = sorted(before, key=lambda row: (row.model, row.image_id, row.kind))
        return [
            Candidate(item=row.id, source=row.source_id)
            for row in ordered
            if row.kind in _REPEATABLE
        ]


def task_items(
    tx: Session, trials: Sequence[TrialRow | Row[Any]], until: datetime
) -> list[TaskItem]:
    """Return what a browser is sent about `trials`, in their order."""
    binds = {"items": [trial.stimulus_id for trial in trials]}
    rows = tx.connection().execute(SHOWN, binds).all()
    classes = {row.id: classes_in(row.classes) for row in rows}
    return [
        TaskItem(
            item=trial.id,
            images=tuple(token for token in (trial.original_token, trial.token) if token),
            candidates=classes[trial.stimulus_id],
            lease_until=until,
            practice=trial.kind == TrialKind.PRACTICE,
        )
        for trial in trials
    ]


# ------------------------------------------------------------------ what they may show


def _gold_items(tx: Session, spec: StudySpec, annotator: Annotator) -> list[Candidate]:
    """All gold items, in the order of their annotator."""
    stimuli = _stimuli_of(tx, annotator.study_id, StimulusKind.GOLD)
    rows = select(StimulusRow.id, StimulusRow.source_id).where(
        StimulusRow.study_id == annotator.study_id, StimulusRow.kind == StimulusKind.GOLD
    )
    source = dict(tx.execute(rows).all())
    order = quality.gold_order(spec, annotator.seat, len(stimuli))
    return [Candidate(item=stimuli[n], source=source[stimuli[n]]) for n in order]


def _fitting(
    tx: Session,
    spec: StudySpec,
    annotator: Annotator,
    known: Sequence[Candidate],
    items: Sequence[str],
    index: int,
) -> list[str]:
    """Those `known` that may be shown before the item with number `index` of `items`.

    All limits are kept: items and trials before and after count, and those of other tabs, which may
    come at any moment.
    """
    if not known or not has_limits(spec):
        return [one.item for one in known]
    asker = asker_of(tx, annotator)
    own = (SlotRow.annotator_id == annotator.id, SlotRow.state == LEASED)
    rows = tx.execute(select(SlotRow.stimulus_id, SlotRow.source_id).where(*own))
    held = dict(rows.all())
    answered = [one for one, _ in last_answered(tx, annotator, spec.min_lag)]
    soon = [held[item] for item in items[index : index + spec.min_lag]]
    elsewhere = [source for item, source in held.items() if item not in items]
    seen = seen_of(tx, asker, known)
    seen = replace(
        seen,
        recent=(*answered, *(held[item] for item in items[:index])),
        near=seen.near.union(soon, elsewhere),
    )
    return [one.item for one in known if fits(one, spec, seen)]


def _stimuli_of(tx: Session, study_id: str, kind: StimulusKind) -> list[str]:
    """The items of a kind: clear ones, then by quality; the same order in every copy of a study."""
    rows = tx.execute(
        select(
            StimulusRow.id,
            StimulusRow.quality,
            StimulusRow.shown_image_id,
            StimulusRow.model,
            StimulusRow.sha256,
            SourceRow.image_id,
        )
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .where(StimulusRow.study_id == study_id, StimulusRow.kind == kind)
    )
    ordered = sorted(rows, key=lambda row: (-1 if row[1] is None else row[1], *row[2:]))
    return [row[0] for row in ordered]


# ------------------------------------------------------------------ when they are shown


def schedules_of(
    tx: Session, annotator: Annotator, spec: StudySpec, version: int
) -> Mapping[TrialKind, Schedule]:
    """The schedule of each of `MIXED` for `annotator`; `spec` are the settings of that version."""
    versions = [(spec, 0)] if version == 1 else _versions(tx, annotator)
    return {kind: quality.schedule(kind, annotator.seat, *versions) for kind in MIXED}


def _versions(tx: Session, annotator: Annotator) -> Sequence[tuple[StudySpec, int]]:
    """The settings that brought other trials, each with how many votes that count came before."""
    query = select(ProtocolRow).where(ProtocolRow.study_id == annotator.study_id)
    rows = tx.scalars(query.order_by(ProtocolRow.version)).all()
    known = [(settings_of(row), row.at) for row in rows]
    others = [
        (spec, _votes_before(tx, annotator, at))
        for (before, _), (spec, at) in pairwise(known)
        if any(quality.rhythm(spec, kind) != quality.rhythm(before, kind) for kind in MIXED)
    ]
    return [(known[0][0], 0), *others]


def _votes_before(tx: Session, annotator: Annotator, moment: datetime) -> int:
    # Of items, as one that was answered again later has been given before all the same; none that
    # became surplus, as trials are due by votes that count.
    query = select(func.count(VoteRow.stimulus_id.distinct())).where(
        VoteRow.annotator_id == annotator.id,
        VoteRow.trial_id.is_(None),
        VoteRow.status != VoteStatus.SURPLUS,
        VoteRow.server_ts < moment,
    )
    return tx.scalar(query) or 0
