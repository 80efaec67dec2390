"""Inside one transaction: studies, their settings, and the items they consist of."""

import hashlib
import json
import secrets
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Table as SqlTable
from sqlalchemy import Text, cast, delete, func, insert, literal, or_, select, text
from sqlalchemy.orm import Session

from annotation.design import jury
from annotation.design.assignment import salts
from annotation.design.study_plan import PlannedItem, StudyPlan, list_key
from annotation.domain import (
    ProtocolVersion,
    SlotState,
    StimulusKind,
    Study,
    StudyStatus,
    TargetTest,
)
from annotation.errors import ConflictError, NotFoundError, StudyError
from annotation.spec import StudySpec, Task
from annotation.store import passwords
from annotation.store.engine import RESTORE, author, batches
from annotation.store.events import note
from annotation.store.tables import (
    CandidateListRow,
    ProtocolRow,
    SlotRow,
    SourceRow,
    StimulusRow,
    StudyRow,
    Table,
    VoteRow,
    same_fields,
)
from semsim.base.errors import StoreError

# As they lie there, for `settings_in`: nothing is taken apart that is known already.
WRITTEN = cast(StudyRow.spec, Text)
_STORED = {one.name for one in fields(StudySpec)} - {"password"}  # which is kept as a hash


def settings_of(row: StudyRow | ProtocolRow) -> StudySpec:
    """Return the settings in `row`; raises `StoreError` for a damaged row."""
    study = row.id if isinstance(row, StudyRow) else row.study_id
    return settings_in(json.dumps(row.spec), study)


def settings_in(written: str, study: str) -> StudySpec:
    """The settings that `WRITTEN` gives of a study; raises `StoreError` as `settings_of` does."""
    try:
        return _made_of(written)
    except (StudyError, AttributeError, TypeError, ValueError) as error:
        raise StoreError(
            f"The settings of the study {study} in the database cannot be read: {error}. {RESTORE}"
        ) from error


@lru_cache(maxsize=256)  # every vote asks, and checking them takes longer than finding them
def _made_of(values: str) -> StudySpec:
    found = json.loads(values)
    if other := sorted(_STORED ^ set(found)):
        raise StudyError(f"they lack, or should not have, {', '.join(other)}")
    return StudySpec(**found)


DELETED = "deleted"  # status of a row that is all that is left of a study
# Items that a rate is of, which are chosen when a study is made.
_MADE_ONCE = {
    "catch_rate": (StimulusKind.CATCH, "catch trials"),
    "gold_rate": (StimulusKind.GOLD, "gold items"),
}


def add_study(tx: Session, plan: StudyPlan, now: datetime) -> Study:
    """Store a planned study with all its items and K free slots for each."""
    row = _study_row(plan, now)
    row.by = author(tx).get("by", "")
    tx.add(row)
    tx.flush()
    source_ids = {original.image_id: str(uuid.uuid4()) for original in plan.originals}
    _insert(tx, SourceRow, _sources(plan, row.id, source_ids))
    list_ids = {key: str(uuid.uuid4()) for key in plan.candidates}
    _insert(tx, CandidateListRow, _lists(plan, list_ids, source_ids))
    stimuli = list(_stimuli(plan, row.id, source_ids, list_ids))
    _insert(tx, StimulusRow, iter(stimuli))
    _add_slots(tx, plan, row.id, stimuli[: len(plan.items)])
    if tx.get_bind().dialect.name == "postgresql":
        # Or its planner takes the slots for a few until it looks by itself, which may be never,
        # and handing out the first items takes minutes.
        tx.execute(text(f"ANALYZE {StimulusRow.__tablename__}, {SlotRow.__tablename__}"))
    _add_version(tx, row, "", now)
    note(tx, row.id, "study_created", now, protocol=plan.protocol, n_failed=plan.n_failed)
    return _value(row)


def _study_row(plan: StudyPlan, now: datetime) -> StudyRow:
    spec = asdict(plan.spec)
    in_cell = Counter(plan.cells)
    salt, digest = passwords.protect(spec.pop("password"))
    return StudyRow(
        id=str(uuid.uuid4()),
        name=plan.spec.name,
        task=plan.spec.task,
        status=StudyStatus.RUNNING,
        token=secrets.token_urlsafe(16),
        seed=plan.spec.seed,
        votes_per_item=plan.spec.votes_per_item,
        simulated=plan.spec.simulated,
        spec=spec,
        password_salt=salt,
        password_hash=digest,
        dataset=plan.dataset,
        models=list(plan.models),
        targets={model: asdict(test) for model, test in plan.targets.items()},
        judges=list(plan.judges),
        n_items=len(plan.items),
        n_decoys=sum(item.kind is StimulusKind.DECOY for item in plan.items),
        n_originals=sum(item.kind is StimulusKind.ORIGINAL for item in plan.items),
        n_failed=plan.n_failed,
        cells=[in_cell[cell] for cell in range(plan.n_cells)],
        protocol=plan.protocol,
        version=1,
        created=now,
    )


def _insert(tx: Session, table: type[Table], rows: Iterator[dict[str, Any]]) -> None:
    for batch in batches(rows):  # a study may have a hundred thousand slots
        tx.execute(insert(table), batch)


def _sources(plan: StudyPlan, study: str, ids: dict[str, str]) -> Iterator[dict[str, Any]]:
    for original in plan.originals:
        yield {
            "id": ids[original.image_id],
            "study_id": study,
            "image_id": original.image_id,
            "class_name": original.class_name,
            "sha256": original.sha256,
        }


def _lists(
    plan: StudyPlan, ids: dict[str, str], sources: dict[str, str]
) -> Iterator[dict[str, Any]]:
    about = {list_key(plan.spec, item): item.image_id for item in (*plan.items, *plan.quality)}
    for key, candidates in plan.candidates.items():
        yield {
            "id": ids[key],
            "source_id": sources[about.get(key, key)],  # an original that is set aside has no item
            **vars(candidates),
            "sha256": candidates.sha256,
        }


def _stimuli(
    plan: StudyPlan, study: str, ids: dict[str, str], lists: dict[str, str]
) -> Iterator[dict[str, Any]]:
    for item in (*plan.items, *plan.quality):
        yield {
            "id": secrets.token_hex(16),
            "study_id": study,
            "source_id": ids[item.image_id],
            "kind": item.kind,
            "model": item.shown.model,
            "attack": item.shown.attack,
            "shown_image_id": item.shown.image_id,
            "shown_class": item.shown.class_name,
            "sha256": item.shown.sha256,
            "attacked_sha256": item.shown.attacked_sha256,
            "token": secrets.token_hex(16),
            "original_token": secrets.token_hex(16) if plan.spec.kind.beside else None,
            "list_id": lists.get(list_key(plan.spec, item)),
            "quality": item.quality,
            "expected": item.expected,
            "simulated": _answers(plan, item),
        }


def _answers(plan: StudyPlan, item: PlannedItem) -> dict[str, str] | None:
    """Return what each simulated annotator answers of an item; None where they are not asked."""
    if not plan.spec.simulated or plan.spec.voter or not item.shown.jury:
        return None
    return jury.answers(item.shown.jury, plan.candidates[list_key(plan.spec, item)].classes)


def _add_slots(tx: Session, plan: StudyPlan, study: str, stimuli: Sequence[dict[str, Any]]) -> None:
    """K free slots for each of `stimuli`; the database makes the others from the first."""
    _insert(tx, SlotRow, _first_slots(plan, study, stimuli))
    slot = Table.metadata.tables[SlotRow.__tablename__]
    same = [column for column in slot.c if column.name not in ("id", "k")]
    for k in range(1, plan.spec.votes_per_item):
        first = select(*same, literal(k)).where(slot.c.study_id == study, slot.c.k == 0)
        names = [*(column.name for column in same), "k"]
        tx.execute(insert(slot).from_select(names, first.order_by(slot.c.id)))


def _first_slots(
    plan: StudyPlan, study: str, stimuli: Sequence[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    salts_of = salts(plan.spec.seed, len(stimuli))
    for stimulus, salt, cell in zip(stimuli, salts_of, plan.cells, strict=True):
        yield {
            "study_id": study,
            "stimulus_id": stimulus["id"],
            "source_id": stimulus["source_id"],
            "k": 0,
            "salt": salt,
            "cell": cell,
            "begun": 0,
            "state": SlotState.FREE,
            "tab": "",
        }


def all_studies(tx: Session) -> list[Study]:
    """All studies, newest first."""
    query = select(StudyRow).where(StudyRow.status != DELETED)
    query = query.order_by(StudyRow.created.desc(), StudyRow.id)
    return [_value(row) for row in tx.scalars(query)]


def study_of(tx: Session, study_id: str) -> Study:
    """One study; raises `NotFoundError`."""
    return _value(_row(tx, study_id))


def asking_about(
    tx: Session, dataset: str, model: str, attack: str, image_id: str
) -> list[tuple[str, str]]:
    """(name, SHA-256 of the picture) of each study with that reconstruction, by name."""
    chosen = (
        select(StudyRow.name, StimulusRow.sha256)
        .join(StimulusRow, StimulusRow.study_id == StudyRow.id)
        .where(
            StudyRow.dataset == dataset,
            StimulusRow.kind == StimulusKind.RECONSTRUCTION,
            StimulusRow.model == model,
            StimulusRow.attack == attack,
            StimulusRow.shown_image_id == image_id,
        )
        .order_by(StudyRow.name, StudyRow.id)
    )
    return [(name, digest) for name, digest in tx.execute(chosen)]


def one_of_each(tx: Session, study_id: str) -> list[tuple[str, str, str, str]]:
    """(model, attack, image, SHA-256 of the picture) of one reconstruction of each model."""
    here = (
        StimulusRow.study_id == study_id,
        StimulusRow.kind == StimulusKind.RECONSTRUCTION,
    )
    image = func.min(StimulusRow.shown_image_id).label("image")
    first = select(StimulusRow.model, image).where(*here).group_by(StimulusRow.model).subquery()
    chosen = (
        select(
            StimulusRow.model,
            StimulusRow.attack,
            StimulusRow.shown_image_id,
            StimulusRow.sha256,
        )
        .join(
            first,
            (first.c.model == StimulusRow.model) & (first.c.image == StimulusRow.shown_image_id),
        )
        .where(*here)
    )
    return [(model, attack, one, digest) for model, attack, one, digest in tx.execute(chosen)]


def study_of_token(tx: Session, token: str) -> Study:
    """The study a join link leads to; raises `NotFoundError`."""
    return _value(_row_of_token(tx, token))


@dataclass(frozen=True)
class Invited:
    """The study of a join link, and salt and hash of its password; None for an open one's."""

    study: Study
    salt: str | None = field(repr=False)
    digest: str | None = field(repr=False)


def invited(tx: Session, token: str) -> Invited:
    """As `study_of_token`, with what a password is checked by."""
    row = _row_of_token(tx, token)
    return Invited(_value(row), row.password_salt, row.password_hash)


def put_status(tx: Session, study_id: str, status: StudyStatus, now: datetime) -> Study:
    """Run, pause or close a study."""
    row = _locked(tx, study_id)
    if row.status != status:
        note(tx, study_id, "status", now, before=row.status, after=status)
        row.status = status
    return _value(row)


def rename(tx: Session, study_id: str, name: str, now: datetime) -> Study:
    """Call a study otherwise; raises `NotFoundError`."""
    row = _locked(tx, study_id)
    if row.name != name:
        note(tx, study_id, "renamed", now, before=row.name, after=name)
        row.name, row.spec = name, {**row.spec, "name": name}
    return _value(row)


def amend(
    tx: Session,
    study_id: str,
    change: Callable[[StudySpec], StudySpec],
    why: str,
    now: datetime,
) -> Study:
    """The study with the settings that `change` makes of those it has, as a new version.

    Raises `NotFoundError`, `ConflictError` if the study is closed, what `change` raises, and
    `StudyError` for more items of a kind that the study was made without.
    """
    row = _locked(tx, study_id)
    if row.status == StudyStatus.CLOSED:
        raise ConflictError("The study is closed; its settings can no longer change.")
    before = settings_of(row)
    after = change(before)
    _refuse_without_items(tx, study_id, before, after)
    spec = asdict(after)
    del spec["password"]
    row.spec, row.version = spec, row.version + 1
    row.protocol = _sha256_of_version(_versions(tx, study_id)[0].sha256, spec)
    _add_version(tx, row, why, now)
    changed = {
        name: {"before": getattr(before, name), "after": spec[name]}
        for name in _changed(before, after)
    }
    note(tx, study_id, "amended", now, version=row.version, why=why, changed=changed)
    return _value(row)


def _add_version(tx: Session, row: StudyRow, why: str, now: datetime) -> None:
    """Keep the settings that a study has now as a version of its protocol."""
    by = author(tx).get("by", "")
    told = {"version": row.version, "sha256": row.protocol, "spec": row.spec}
    tx.add(ProtocolRow(study_id=row.id, why=why, by=by, at=now, **told))


def _refuse_without_items(tx: Session, study_id: str, before: StudySpec, after: StudySpec) -> None:
    for name, (kind, called) in _MADE_ONCE.items():
        if getattr(after, name) <= getattr(before, name):
            continue
        of_kind = (StimulusRow.study_id == study_id, StimulusRow.kind == kind)
        if tx.scalar(select(StimulusRow.id).where(*of_kind).limit(1)) is None:
            raise StudyError(
                f"{name} cannot be raised: this study has no {called}, which are made with a study "
                f"or never. Make a new study with a {name} above 0."
            )


def _sha256_of_version(first: str, spec: dict[str, Any]) -> str:
    """The hash of the first version stands for the items and lists, which never change."""
    content = json.dumps({"first": first, "spec": spec}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _changed(before: StudySpec, after: StudySpec) -> tuple[str, ...]:
    # Neither is part of a change of settings: a study is renamed without one.
    names = (one.name for one in fields(StudySpec) if one.name not in ("name", "password"))
    return tuple(name for name in names if getattr(before, name) != getattr(after, name))


def _versions(tx: Session, study_id: str) -> list[ProtocolRow]:
    query = select(ProtocolRow).where(ProtocolRow.study_id == study_id)
    return list(tx.scalars(query.order_by(ProtocolRow.version)))


def protocol_versions(tx: Session, study_id: str) -> list[ProtocolVersion]:
    """All versions of a study's settings, the first one first; raises `NotFoundError`."""
    _row(tx, study_id)
    rows = _versions(tx, study_id)
    specs = [settings_of(row) for row in rows]
    return [
        ProtocolVersion(
            **same_fields(row, ProtocolVersion) | {"spec": spec}, changed=_changed(before, spec)
        )
        for row, before, spec in zip(rows, [specs[0], *specs], specs, strict=False)
    ]


def _locked(tx: Session, study_id: str) -> StudyRow:
    """As `_row`, which only this transaction can change."""
    return _row(tx, study_id, with_for_update={"key_share": True})


def _row(tx: Session, study_id: str, **how: Any) -> StudyRow:
    row = tx.get(StudyRow, study_id, **how)
    if row is None or row.status == DELETED:
        raise NotFoundError(f"There is no study {study_id!r}.")
    return row


def _row_of_token(tx: Session, token: str) -> StudyRow:
    row = tx.scalar(select(StudyRow).where(StudyRow.token == token))
    if row is None or row.status == DELETED:
        raise NotFoundError("This link leads to no study. Ask whoever sent it for a new one.")
    return row


def _value(row: StudyRow) -> Study:
    turned = {
        "task": Task(row.task),
        "status": StudyStatus(row.status),
        "spec": settings_of(row),
        "models": tuple(row.models),
        "targets": {model: TargetTest(**test) for model, test in row.targets.items()},
        "judges": tuple(row.judges),
    }
    return Study(**same_fields(row, Study) | turned, protected=row.password_hash is not None)


def delete_study(tx: Session, study_id: str, now: datetime) -> int:
    """Delete everything of a study; returns how many votes it had. Raises `NotFoundError`.

    What stays is its row, which says that it is deleted, and one event, which says who did it,
    when, and how many votes went. The study cannot be found any more.
    """
    row = _row(tx, study_id, with_for_update=True)
    votes = tx.scalar(select(func.count()).where(VoteRow.study_id == study_id)) or 0
    before: dict[str, Any] = {"name": row.name, "votes": votes, "protocol": row.protocol}
    row.status = DELETED
    tx.flush()  # only the events of a deleted study may go
    belongs: dict[str, Any] = {
        StudyRow.__tablename__: select(StudyRow.id).where(StudyRow.id == study_id)
    }
    tables = [one for one in Table.metadata.sorted_tables if one.name != StudyRow.__tablename__]
    for table in tables:
        found = _belonging(table, belongs)
        if found is not None:
            belongs[table.name] = found
    for table in reversed(tables):
        if table.name in belongs:
            key = next(iter(table.primary_key.columns))
            tx.execute(delete(table).where(key.in_(belongs[table.name])))
    row.name, row.spec = "", {}
    row.models, row.targets, row.judges, row.cells = [], {}, [], []
    row.password_salt = row.password_hash = None
    note(tx, study_id, "study_deleted", now, **before)
    return votes


def _belonging(table: SqlTable, belongs: dict[str, Any]) -> Any:
    """Select the keys of a table's rows that belong to the study; None where none can."""
    if "study_id" in table.columns:
        of: list[Any] = [table.columns["study_id"].in_(belongs[StudyRow.__tablename__])]
    else:
        of = [
            key.parent.in_(belongs[key.column.table.name])
            for key in table.foreign_keys
            if key.column.table.name in belongs
        ]
    if not of:
        return None
    return select(next(iter(table.primary_key.columns))).where(or_(*of))
