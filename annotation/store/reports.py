"""Inside one transaction: what has been answered so far. Nothing here changes anything."""

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Row,
    ScalarSelect,
    Select,
    String,
    Text,
    and_,
    cast,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.orm import Session, aliased

from annotation.design.candidates import CandidateList
from annotation.domain import (
    Annotator,
    AnnotatorRow,
    AnnotatorStatus,
    SlotState,
    Step,
    StimulusKind,
    Study,
    StudyProgress,
    VoteStatus,
)
from annotation.errors import NotAllowedError, NotFoundError
from annotation.spec import Task
from annotation.store import catch_trials, people, tables, trials
from annotation.store.catch_trials import Caught
from annotation.store.eligibility import LEASE_LOST
from annotation.store.events import CHECKED, EXPORTED, EXTRA_VOTE, UNDONE, VOTED
from annotation.store.phases import MOVED
from annotation.store.slots import has_held
from annotation.store.studies import DELETED, WRITTEN, settings_in, study_of
from annotation.store.tables import (
    CandidateListRow,
    EventRow,
    SlotRow,
    SourceRow,
    StimulusRow,
    StudyRow,
    TrialRow,
    VoteRow,
    same_fields,
)
from annotation.tasks.kind import NONE

ACTS = (
    *("study_created", "status", "renamed", "amended", "study_deleted"),
    *(people.LINKED, people.STATUS, EXPORTED),
)
# What happens while people label, by which no earlier vote changes but the one that it names.
LABELLING = {VOTED, UNDONE, people.JOINED, people.CAME_IN, MOVED, CHECKED, LEASE_LOST, EXTRA_VOTE}
FEW = 5000  # events
TIMED = 200  # answers by which the pace of a study is known
NO_PICTURE = "The study has no such picture."
# Spelt out in the SQL: only then do the databases see that a partial index applies.
_DONE: ColumnElement[str] = literal_column(f"'{SlotState.DONE}'")
_ITEM = (
    StimulusRow.id.label("item"),
    *(StimulusRow.model, StimulusRow.attack, SourceRow.image_id, SourceRow.class_name),
    SourceRow.sha256.label("original"),
)


def study_progress(tx: Session, study_id: str) -> StudyProgress:
    """Return how many items have how many counted votes, and how far each annotator is."""
    study = study_of(tx, study_id)
    k = study.spec.votes_per_item
    votes = _votes_per_item(tx, study)
    coverage = [votes.get(n, 0) for n in range(k)]
    full = sum(items for n, items in votes.items() if n >= k)
    coverage[0] = study.n_items - sum(coverage[1:]) - full
    extra = select(func.count()).where(SlotRow.study_id == study.id, SlotRow.k == k)
    return StudyProgress(
        n_items=study.n_items,
        coverage=[*coverage, full],
        annotators=_annotator_rows(tx, study),
        extra_wanted=(tx.scalar(extra) or 0) if study.spec.extra_vote else 0,
        extra_done=sum(items for n, items in votes.items() if n > k),
    )


def _votes_per_item(tx: Session, study: Study) -> dict[int, int]:
    """Count the items by the number of their counted votes, those without any left out."""
    done = (
        select(func.count().label("votes"))
        .where(SlotRow.study_id == study.id, SlotRow.state == _DONE)
        .group_by(SlotRow.stimulus_id)
        .subquery()
    )
    counts = select(done.c.votes, func.count()).group_by(done.c.votes)
    return dict(tx.execute(counts).all())


def _annotator_rows(tx: Session, study: Study) -> list[AnnotatorRow]:
    of = {row.annotator_id: row for row in tx.execute(_summaries(study))}
    found = tx.scalars(
        select(tables.AnnotatorRow)
        .where(tables.AnnotatorRow.study_id == study.id)
        .order_by(tables.AnnotatorRow.created, tables.AnnotatorRow.name_key)
    ).all()
    caught = catch_trials.caught(tx, study)
    by_itself = catch_trials.paused_by_itself(tx, found)
    return [
        _annotator_row(
            study,
            one,
            of.get(one.id),
            caught=caught.get(one.id, Caught()),
            paused_by_itself=one.id in by_itself,
        )
        for one in found
    ]


def _summaries(study: Study) -> Select[*tuple[Any, ...]]:
    """One row an annotator with votes: the database has a hundred thousand to count."""
    return (
        select(
            VoteRow.annotator_id,
            func.count().filter(VoteRow.status == VoteStatus.COUNTED).label("counted"),
            func.count().filter(VoteRow.status == VoteStatus.EXCLUDED).label("excluded"),
            func.count().filter(VoteRow.answer != "").label("answered"),  # blank: person erased
            func.count().filter(VoteRow.answer == NONE).label("none"),
            # SQLite has no median, and ranking rows for one takes it three times as long as this.
            func.aggregate_strings(cast(VoteRow.rt_ms, String), " ").label("times"),
        )
        .join(tables.AnnotatorRow, tables.AnnotatorRow.id == VoteRow.annotator_id)
        .where(
            tables.AnnotatorRow.study_id == study.id,
            VoteRow.status.in_((VoteStatus.COUNTED, VoteStatus.EXCLUDED)),
        )
        .group_by(VoteRow.annotator_id)
    )


def _annotator_row(
    study: Study,
    person: tables.AnnotatorRow,
    votes: Row[Any] | None,
    *,
    caught: Caught,
    paused_by_itself: bool,
) -> AnnotatorRow:
    said = votes is not None and votes.answered > 0 and study.kind.has_none
    over = person.step == Step.DONE or person.completion_code is not None
    code = study.spec.completion_code or person.completion_code
    told = same_fields(person, AnnotatorRow) | {
        "status": AnnotatorStatus(person.status),
        "step": Step(person.step),
        "completion_code": code if over else None,
    }
    times = [float(rt) for rt in (votes.times or "").split()] if votes else []
    return AnnotatorRow(
        **told,
        done=votes.counted if votes else 0,
        median_rt_ms=median(times) if times else None,
        none_rate=votes.none / votes.answered if votes and said else None,
        excluded=votes.excluded if votes else 0,
        catch_answered=caught.answered,
        catch_failed=caught.failed,
        warned=0 < study.spec.catch_warn_after <= caught.failed,
        paused_by_itself=paused_by_itself,
    )


def median_rt_ms(n: int | ColumnElement[int], *where: ColumnElement[bool]) -> ScalarSelect[float]:
    """The median time of the votes of `where`, `n` of which have one; SQLite has no median."""
    times = select(VoteRow.rt_ms).where(*where, VoteRow.rt_ms.is_not(None))
    middle = times.order_by(VoteRow.rt_ms).offset((n - 1) // 2).limit(2 - n % 2).subquery()
    return select(func.avg(middle.c.rt_ms)).scalar_subquery()


def usual_rt_ms(tx: Session, task: Task) -> float | None:
    """The median time people took for an answer in all studies of a task; None before any."""
    studies = select(StudyRow.id).where(StudyRow.task == task, StudyRow.simulated.is_(False))
    where = (VoteRow.study_id.in_(studies), VoteRow.status == VoteStatus.COUNTED)
    n = tx.scalar(select(func.count(VoteRow.rt_ms)).where(*where))
    return tx.scalar(select(median_rt_ms(n, *where))) if n else None


def own_rt_ms(tx: Session, study_id: str) -> float | None:
    """The median time of up to `TIMED` answers of a study; None below a tenth of them."""
    where = (VoteRow.study_id == study_id, VoteRow.status == VoteStatus.COUNTED)
    timed = select(VoteRow.rt_ms).where(*where, VoteRow.rt_ms.is_not(None)).limit(TIMED)
    times = [rt for rt in tx.scalars(timed) if rt is not None]
    return median(times) if len(times) >= TIMED / 10 else None


def most_each(tx: Session, study: Study) -> int:
    """Count the items that one person is asked about at most, those that never count left out."""
    originals = select(func.count()).where(SourceRow.study_id == study.id)
    views = study.spec.max_views
    seen = study.n_items if views is None else views * (tx.scalar(originals) or 0)
    return min(study.n_items, seen, study.spec.items_per_person or study.n_items)


def image_of(tx: Session, annotator: Annotator, token: str) -> str:
    """Return the SHA-256 of the image behind `token`, whose item `annotator` has or had."""
    row = tx.execute(
        select(StimulusRow.id, StimulusRow.token, StimulusRow.sha256, SourceRow.sha256)
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .where(
            StimulusRow.study_id == annotator.study_id,
            or_(StimulusRow.token == token, StimulusRow.original_token == token),
        )
    ).one_or_none()
    if row is None:
        return trials.image_of(tx, annotator, token)
    item, shown_token, shown, original = row
    if not has_held(tx, annotator, item):
        raise NotAllowedError("This image belongs to an item that was not given to you.")
    return str(shown if token == shown_token else original)


def events_so_far(tx: Session, study_id: str = "") -> tuple[int, int]:
    """The number of the last thing that happened in a study, and how many have; 0 if nothing has.

    Without `study_id` those of all studies are counted.

    Together they change with everything that happens. The number alone does not: of two things
    that happen at the same time the one with the lower number may be there later.
    """
    so_far = select(func.max(EventRow.id), func.count(EventRow.id))
    asked = so_far.where(EventRow.study_id == study_id) if study_id else so_far
    last, n = tx.execute(asked).one()
    return last or 0, n


def acts(tx: Session, study_id: str | None, most: int) -> Sequence[Row[Any]]:
    """The latest events of what researchers do; of all studies where none is named.

    One row each: at, kind, data, the study's name (empty once it is deleted), the annotator's.
    """
    return tx.execute(
        select(
            *(EventRow.at, EventRow.kind, EventRow.data),
            StudyRow.name.label("study"),
            tables.AnnotatorRow.name.label("person"),
        )
        .join(StudyRow, StudyRow.id == EventRow.study_id)
        .outerjoin(tables.AnnotatorRow, tables.AnnotatorRow.id == EventRow.annotator_id)
        .where(EventRow.kind.in_(ACTS), true() if study_id is None else StudyRow.id == study_id)
        .order_by(EventRow.id.desc())
        .limit(most)
    ).all()


def voted(tx: Session) -> list[str]:
    """Return the ids of studies with counted votes, in the order that a page should open on them.

    First come those with as many votes as items or more, so that a try of a few answers does not
    hide what there is to see. Among them, answers of people come before those of programs. Then
    comes the study voted in last, on which annotators are at work.
    """
    query = (
        select(StudyRow.id)
        .join(VoteRow, VoteRow.study_id == StudyRow.id)
        .where(VoteRow.status == VoteStatus.COUNTED)
        .group_by(StudyRow.id)
        .order_by(
            (func.count() < StudyRow.n_items),
            StudyRow.simulated,
            func.max(VoteRow.server_ts).desc(),
            StudyRow.id,
        )
    )
    return list(tx.scalars(query))


def item_rows(tx: Session, study: Study) -> list[dict[str, Any]]:
    """One row a reconstruction, decoys left out, in the order they were made."""
    rows = tx.execute(
        select(
            *_ITEM,
            StimulusRow.sha256.label("reconstruction"),
            StimulusRow.attacked_sha256.label("attacked"),
        )
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .where(StimulusRow.study_id == study.id, StimulusRow.kind == StimulusKind.RECONSTRUCTION)
        .order_by(StimulusRow.model, SourceRow.image_id)
    )
    return [{**row, **constants(study)} for row in rows.mappings()]


def picture_rows(tx: Session, study: Study) -> Sequence[Row[str, str, str]]:
    """Return item, and SHA-256 of original and reconstruction, of each reconstruction."""
    shown = select(StimulusRow.id, SourceRow.sha256, StimulusRow.sha256)
    here = StimulusRow.study_id == study.id, StimulusRow.kind == StimulusKind.RECONSTRUCTION
    return tx.execute(
        shown.join(SourceRow, SourceRow.id == StimulusRow.source_id).where(*here)
    ).all()


def studies_beside(tx: Session, study: Study) -> list[str]:
    """Return the ids of studies with the same task on pictures of this one, the newest first.

    Of one that a model answers those of people, else those that a model answers.
    """
    here, there = aliased(StimulusRow), aliased(StimulusRow)
    same = select(here.id).where(
        here.study_id == study.id,
        there.study_id == StudyRow.id,
        here.sha256 == there.sha256,
        here.kind == StimulusKind.RECONSTRUCTION,
        there.kind == StimulusKind.RECONSTRUCTION,
    )
    others = select(StudyRow.id, StudyRow.simulated, WRITTEN).where(
        StudyRow.task == study.task, StudyRow.id != study.id, StudyRow.dataset == study.dataset,
        StudyRow.status != DELETED, same.exists(),
    )  # fmt: skip
    found = tx.execute(others.order_by(StudyRow.created.desc(), StudyRow.id)).all()
    return [
        name
        for name, simulated, written in found
        if (not simulated if study.spec.voter else bool(settings_in(written, name).voter))
    ]


def some_pictures(tx: Session, study_id: str, n: int) -> list[str]:
    """SHA-256s of up to `n` reconstructions of a study, the same every time (ids are random)."""
    query = (
        select(StimulusRow.sha256)
        .where(StimulusRow.study_id == study_id, StimulusRow.kind == StimulusKind.RECONSTRUCTION)
        .order_by(StimulusRow.id)
        .limit(n)
    )
    return list(tx.scalars(query))


def stimulus_rows(tx: Session, study: Study) -> list[dict[str, Any]]:
    """One row an item of any kind: what is shown, beside what, and which classes are offered."""
    rows = tx.execute(
        select(
            *_ITEM,
            StimulusRow.kind,
            StimulusRow.sha256.label("shown"),
            CandidateListRow.classes.label("candidates"),
        )
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .outerjoin(CandidateListRow, CandidateListRow.id == StimulusRow.list_id)
        .where(StimulusRow.study_id == study.id)
        .order_by(StimulusRow.model, SourceRow.image_id, StimulusRow.id)
    )
    return [dict(row) for row in rows.mappings()]


def require_picture(tx: Session, study_id: str, digest: str) -> None:
    """Raise `NotFoundError` unless the study has a picture with that SHA-256."""
    found = (
        select(literal(1)).where(row.study_id == study_id, column == digest)  # each by its index
        for row, column in (
            (StimulusRow, StimulusRow.sha256),
            (StimulusRow, StimulusRow.attacked_sha256),
            (SourceRow, SourceRow.sha256),
        )
    )
    if tx.scalar(union_all(*found).limit(1)) is None:
        raise NotFoundError(NO_PICTURE)


def candidate_lists(tx: Session, study: Study) -> list[CandidateList]:
    """The lists that its items offer; none where its task has none."""
    rows = tx.scalars(
        select(CandidateListRow)
        .join(SourceRow, SourceRow.id == CandidateListRow.source_id)
        .where(SourceRow.study_id == study.id)
        .order_by(SourceRow.image_id, CandidateListRow.id)
    )
    known = (same_fields(row, CandidateList) for row in rows)
    return [CandidateList(**one | {"classes": tuple(one["classes"])}) for one in known]


def vote_rows(tx: Session, study: Study) -> list[dict[str, Any]]:
    """One row a vote, whatever became of it, in the order they came."""
    display = cast(VoteRow.display, Text).label("display")
    rows = tx.execute(
        _votes(study, VoteRow.client_ts, display, VoteRow.views).order_by(EventRow.id)
    )
    same = constants(study)
    return [{**row, **same, "views": " ".join(row["views"]) or None} for row in rows.mappings()]


def votes_in_short(
    tx: Session, study: Study, ids: Sequence[str] | None = None
) -> tuple[Sequence[str], Sequence[Row[Any]]]:
    """Return the same in any order, as columns and tuples, without what only files tell.

    That is how each picture looked on screen, the browser's clock, and the study's `constants`; the
    column `came` has the order. With `ids`, only those votes.
    """
    query = _votes(study, EventRow.id.label("came"))
    found = tx.execute(query if ids is None else query.where(VoteRow.id.in_(ids)))
    return list(found.keys()), found.all()


def changed_votes(tx: Session, study_id: str, seen: tuple[int, int]) -> Sequence[str] | None:
    """The ids of the votes given or taken back since `events_so_far` was `seen`.

    None where other votes may have changed, an event came late under a lower number, or so much
    has happened that reading all votes is as quick.
    """
    later = EventRow.study_id == study_id, EventRow.id > seen[0]
    news = tx.execute(select(EventRow.kind, EventRow.vote_id).where(*later).limit(FEW + 1)).all()
    late = events_so_far(tx, study_id)[1] != seen[1] + len(news)
    if late or len(news) > FEW or not {kind for kind, _ in news} <= LABELLING:
        return None
    return [vote for _, vote in news if vote is not None]


def _votes(study: Study, *further: Any) -> Select[*tuple[Any, ...]]:
    people = tables.AnnotatorRow
    return (
        select(
            VoteRow.stimulus_id.label("item"),
            func.coalesce(TrialRow.kind, StimulusRow.kind).label("kind"),
            StimulusRow.model,
            StimulusRow.attack,
            SourceRow.image_id,
            SourceRow.class_name,
            StimulusRow.expected,
            StimulusRow.quality.label("stratum"),
            people.name.label("annotator"),
            people.simulated,
            VoteRow.answer,
            VoteRow.reason,
            VoteRow.recognised,
            VoteRow.rt_ms,
            VoteRow.server_ts,
            VoteRow.status,
            VoteRow.protocol,
            VoteRow.id.label("vote_id"),
            *further,
        )
        .join(StimulusRow, StimulusRow.id == VoteRow.stimulus_id)
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .outerjoin(TrialRow, TrialRow.id == VoteRow.trial_id)
        .join(people, people.id == VoteRow.annotator_id)
        .join(EventRow, (EventRow.vote_id == VoteRow.id) & (EventRow.kind == VOTED))
        .where(VoteRow.study_id == study.id)
    )


def constants(study: Study) -> dict[str, Any]:
    """Return the columns of a table of votes that are the same in all its rows."""
    return {
        "study": study.name,
        "task": study.task.value,
        "dataset": study.dataset,
        "voter": study.spec.voters,
        "votes_per_item": study.spec.votes_per_item,
        "headline": study.spec.headline.value,
    }


def simulated_answers(tx: Session, study_id: str) -> dict[str, dict[str, str]]:
    """Return each simulated annotator's answers, by item and name; only of items they are asked.

    In the order of model and image, which unlike the items' names is the same in every copy.
    """
    rows = tx.execute(
        select(StimulusRow.id, StimulusRow.simulated)
        .join(SourceRow, SourceRow.id == StimulusRow.source_id)
        .join(SlotRow, and_(SlotRow.stimulus_id == StimulusRow.id, SlotRow.k == 0))
        .where(StimulusRow.study_id == study_id)
        .order_by(StimulusRow.model, SourceRow.image_id)
    )
    return {item: answers for item, answers in rows if answers is not None}


class Counts(NamedTuple):
    """Counts of a study.

    Attributes:
        votes: How many, by every status there is.
        claims: Pictures handed out and unanswered.
    """

    votes: dict[str, int]
    claims: int


def counts(tx: Session) -> Counts:
    """Count what there is in all studies together."""
    votes = select(VoteRow.status, func.count()).group_by(VoteRow.status)
    claims = select(func.count()).where(SlotRow.state == SlotState.LEASED)
    found = {str(one): n for one, n in tx.execute(votes)}
    return Counts({one.value: found.get(one, 0) for one in VoteStatus}, tx.scalar(claims) or 0)
