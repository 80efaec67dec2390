"""Inside one transaction: what a trial may show somebody. Changes nothing."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import func, select, union_all
from sqlalchemy.orm import Session

from annotation.design import quality
from annotation.design.exposure import Candidate, fits
from annotation.domain import Annotator, StimulusKind, StudySpec, TrialKind, VoteStatus
from annotation.store.askers import asker_of, has_limits, last_answered, seen_of
from annotation.store.openings import LEASED
from annotation.store.tables import SlotRow, SourceRow, StimulusRow, TrialRow, VoteRow

_REPEATABLE = (StimulusKind.RECONSTRUCTION, StimulusKind.DECOY)


def n_counted(tx: Session, annotator: Annotator) -> int:
    """How many votes of somebody count."""
    query = select(func.count()).where(
        VoteRow.annotator_id == annotator.id, VoteRow.status == VoteStatus.COUNTED
    )
    return tx.scalar(query) or 0


def gold_items(tx: Session, spec: StudySpec, annotator: Annotator) -> list[Candidate]:
    """All gold items, in the order of their annotator."""
    stimuli = stimuli_of(tx, annotator.study_id, StimulusKind.GOLD)
    rows = select(StimulusRow.id, StimulusRow.source_id).where(
        StimulusRow.study_id == annotator.study_id, StimulusRow.kind == StimulusKind.GOLD
    )
    source = dict(tx.execute(rows).all())
    order = quality.gold_order(spec, annotator.seat, len(stimuli))
    return [Candidate(item=stimuli[n], source=source[stimuli[n]]) for n in order]


def answered_items(
    tx: Session, spec: StudySpec, annotator: Annotator, tab: str, ordinal: int
) -> list[Candidate]:
    """The items answered at least `spec.repeat_lag` other votes before the place of a repeat.

    What waits for an answer in `tab` will have been answered by then, in the order it was given.
    """
    before = quality.place(spec, TrialKind.REPEAT, annotator.seat, ordinal) - spec.repeat_lag
    votes = (
        select(VoteRow.stimulus_id)
        .where(VoteRow.annotator_id == annotator.id, VoteRow.status == VoteStatus.COUNTED)
        .order_by(VoteRow.server_ts, VoteRow.id)
        .limit(before)
        .subquery()
    )
    coming = (
        select(SlotRow.stimulus_id)
        .where(SlotRow.annotator_id == annotator.id, SlotRow.state == LEASED, SlotRow.tab == tab)
        .order_by(SlotRow.given, SlotRow.id)
        .limit(max(0, before - n_counted(tx, annotator)))
        .subquery()
    )
    earlier = union_all(select(votes), select(coming)).subquery()
    answered = tx.execute(
        select(StimulusRow.id, StimulusRow.source_id)
        .join(earlier, earlier.c.stimulus_id == StimulusRow.id)
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .where(StimulusRow.kind.in_(_REPEATABLE))
        .order_by(StimulusRow.model, SourceRow.image_id, StimulusRow.kind)
    )
    return [Candidate(item=item, source=source) for item, source in answered]


def shown_items(tx: Session, annotator: Annotator, kind: TrialKind) -> set[str]:
    """The items that trials of a kind have shown to somebody."""
    own = (TrialRow.annotator_id == annotator.id, TrialRow.kind == kind)
    return set(tx.scalars(select(TrialRow.stimulus_id).where(*own)))


def fitting(
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
    held = {item: source or "" for item, source in rows}
    answered = [one for one, _ in last_answered(tx, annotator, spec.min_lag)]
    soon = [held[item] for item in items[index : index + spec.min_lag]]
    elsewhere = [source for item, source in held.items() if item not in items]
    seen = seen_of(tx, asker, known)
    seen = replace(
        seen,
        recent=(*answered, *(held[item] for item in items[:index])),
        near=seen.near.union(soon, elsewhere),
    )
    return [one.item for one in known if fits(one, asker.limits, seen)]


def stimuli_of(tx: Session, study_id: str, kind: StimulusKind) -> list[str]:
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
