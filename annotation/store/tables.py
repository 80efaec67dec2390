"""The tables. Rules that must never be broken are constraints here, not code elsewhere.

No over-count: a slot has at most one counted vote and an item exactly K slots, or one more where
the K votes were split and the study asks for an extra vote then. No second vote: an annotator has
at most one slot and one counted vote on an item.
"""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from annotation.errors import UnfitError

# The same on SQLite and PostgreSQL.
Json = JSON().with_variant(JSONB(), "postgresql")
# SQLite counts rows by itself only for a column declared exactly INTEGER PRIMARY KEY.
RowId = BigInteger().with_variant(Integer(), "sqlite")


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time stored as UTC; SQLite keeps no zone, so it is put back on the way out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """UTC going in; raises `UnfitError` for a time without a zone or before year 1 in UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise UnfitError(f"Times need a time zone; got {value.isoformat()} without one.")
        try:
            return value.astimezone(UTC)
        except OverflowError:
            raise UnfitError(
                f"Times must lie in the years 1 to 9999 in UTC; got {value.isoformat()}."
            ) from None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """UTC coming out."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Table(DeclarativeBase):
    """Base of all tables; constraint names follow one scheme so that migrations know them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


Id = String(36)
Word = String(32)


def _where(condition: str) -> dict[str, Any]:
    """Return what lets an index hold only some rows, in either database."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


def same_fields(row: Any, kind: Any) -> dict[str, Any]:
    """Return what a row holds of the fields of the dataclass `kind`, as it lies there."""
    return {one.name: getattr(row, one.name) for one in fields(kind) if hasattr(row, one.name)}


class StudyRow(Table):
    """One study and the settings it was frozen with."""

    __tablename__ = "study"

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    task: Mapped[str] = mapped_column(Word)
    status: Mapped[str] = mapped_column(Word)
    token: Mapped[str] = mapped_column(Id, unique=True)
    seed: Mapped[int] = mapped_column(RowId)
    votes_per_item: Mapped[int]
    simulated: Mapped[bool]
    spec: Mapped[dict[str, Any]] = mapped_column(Json)
    password_salt: Mapped[str | None] = mapped_column(Text)
    password_hash: Mapped[str | None] = mapped_column(Text)
    dataset: Mapped[str] = mapped_column(Text)
    models: Mapped[list[str]] = mapped_column(Json)
    targets: Mapped[dict[str, Any]] = mapped_column(Json)  # tests, by model
    judges: Mapped[list[str]] = mapped_column(Json)  # SHA-256 of weights
    n_items: Mapped[int]
    n_decoys: Mapped[int]
    n_originals: Mapped[int]
    n_failed: Mapped[int]
    cells: Mapped[list[int]] = mapped_column(Json)  # items in each cell
    protocol: Mapped[str] = mapped_column(String(64))
    version: Mapped[int]
    created: Mapped[datetime] = mapped_column(UtcDateTime)
    by: Mapped[str] = mapped_column(Text)  # the account that made it, "" without accounts


class ProtocolRow(Table):
    """One version of a study's settings: the first when it was made, then one a change."""

    __tablename__ = "protocol"
    __table_args__ = (Index("uq_protocol_study_id_version", "study_id", "version", unique=True),)

    id: Mapped[int] = mapped_column(RowId, primary_key=True, autoincrement=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("study.id"))
    version: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64))
    spec: Mapped[dict[str, Any]] = mapped_column(Json)
    why: Mapped[str] = mapped_column(Text)
    by: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime] = mapped_column(UtcDateTime)


class SourceRow(Table):
    """One original image of a study."""

    __tablename__ = "source"
    __table_args__ = (
        Index("uq_source_study_id_image_id", "study_id", "image_id", unique=True),
        Index("ix_source_sha256", "sha256", "study_id"),
    )

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("study.id"))
    image_id: Mapped[str] = mapped_column(Text)
    class_name: Mapped[str] = mapped_column(Text)
    sha256: Mapped[str] = mapped_column(String(64))


class CandidateListRow(Table):
    """The classes offered by items of one original: by all of them, or by one alone."""

    __tablename__ = "candidate_list"

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    source_id: Mapped[str] = mapped_column(ForeignKey("source.id"), index=True)
    classes: Mapped[list[str]] = mapped_column(Json)
    true_position: Mapped[int]
    true_rank: Mapped[int | None]  # by the independent classifier, 1 = first
    forced: Mapped[bool]  # the classifier alone would have left the true class out
    sha256: Mapped[str] = mapped_column(String(64))


class StimulusRow(Table):
    """One item: a reconstruction, and in the pair task the original it is shown beside.

    `source_id` is the original the question is about; for a decoy `shown_image_id` and
    `shown_class` tell whose reconstruction is shown instead. The attacked image, where it is
    known, has no address: no annotator is shown it.
    """

    __tablename__ = "stimulus"
    __table_args__ = (
        Index("ix_stimulus_study_id", "study_id"),
        Index("ix_stimulus_sha256", "sha256", "study_id"),
        Index("ix_stimulus_attacked_sha256", "attacked_sha256", "study_id"),
    )

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("study.id"))
    source_id: Mapped[str] = mapped_column(ForeignKey("source.id"))
    kind: Mapped[str] = mapped_column(Word)
    model: Mapped[str] = mapped_column(Text)
    attack: Mapped[str] = mapped_column(Text)
    shown_image_id: Mapped[str] = mapped_column(Text)
    shown_class: Mapped[str] = mapped_column(Text)
    sha256: Mapped[str] = mapped_column(String(64))
    attacked_sha256: Mapped[str | None] = mapped_column(String(64))
    token: Mapped[str] = mapped_column(Id, unique=True)  # address of the reconstruction
    original_token: Mapped[str | None] = mapped_column(Id, unique=True)
    list_id: Mapped[str | None] = mapped_column(ForeignKey("candidate_list.id"))
    quality: Mapped[int | None]  # stratum, 0 = closest to its own original
    expected: Mapped[str | None] = mapped_column(Text)  # the answer, where it is known beforehand
    simulated: Mapped[dict[str, str] | None] = mapped_column(Json)  # answers, by juror


class AnnotatorRow(Table):
    """One person in one study, whose name no other annotator there has."""

    __tablename__ = "annotator"
    __table_args__ = (
        Index("uq_annotator_study_id_name_key", "study_id", "name_key", unique=True),
        Index("uq_annotator_study_id_seat", "study_id", "seat", unique=True),
        CheckConstraint("status IN ('active', 'paused', 'excluded', 'erased')", name="status"),
    )

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("study.id"))
    name: Mapped[str] = mapped_column(Text)
    name_key: Mapped[str] = mapped_column(Text)
    simulated: Mapped[bool]
    status: Mapped[str] = mapped_column(Word)
    step: Mapped[str] = mapped_column(Word)
    seat: Mapped[int]  # how many had joined before
    check_attempts: Mapped[int]
    consented: Mapped[datetime | None] = mapped_column(UtcDateTime)
    keep_votes: Mapped[bool | None]  # whether votes may be kept when the person is erased
    external: Mapped[dict[str, str] | None] = mapped_column(Json)  # ids of a recruiting service
    completion_code: Mapped[str | None] = mapped_column(Word)  # made when they are done first
    created: Mapped[datetime] = mapped_column(UtcDateTime)
    last_seen: Mapped[datetime] = mapped_column(UtcDateTime)
    link_by: Mapped[str | None] = mapped_column(Text)  # whose link let them in; None once vouched


class SessionRow(Table):
    """A signed-in browser; whoever reads this table cannot sign in with it."""

    __tablename__ = "session"

    token_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    annotator_id: Mapped[str] = mapped_column(ForeignKey("annotator.id"), index=True)
    created: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class PersonalLinkRow(Table):
    """A person's own link to come back with; who reads this table cannot come in by it."""

    __tablename__ = "personal_link"

    token_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    annotator_id: Mapped[str] = mapped_column(ForeignKey("annotator.id"), index=True)
    created: Mapped[datetime] = mapped_column(UtcDateTime)
    made_by: Mapped[str | None] = mapped_column(Text)  # an account; None: the annotator


class SlotRow(Table):
    """Room for the k-th vote on an item. Slots of an item are taken in the order of k."""

    __tablename__ = "slot"
    __table_args__ = (
        Index("uq_slot_stimulus_id_k", "stimulus_id", "k", unique=True),
        Index("uq_slot_stimulus_id_annotator_id", "stimulus_id", "annotator_id", unique=True),
        Index(
            "ix_slot_free",
            "study_id",
            "cell",
            "k",
            "stimulus_id",
            # The rest so that what is left for somebody is counted without touching the table.
            "salt",
            "source_id",
            "state",
            **_where("state = 'free'"),
        ),
        # What is handed out next: items nobody has had, and those others have begun.
        *(
            Index(
                f"ix_slot_{name}",
                "study_id",
                "cell",
                "salt",
                "stimulus_id",
                "source_id",
                "state",
                column,
                **_where(f"state = 'free' AND {column} = {value}"),
            )
            for name, column, value in (("fresh", "k", 0), ("begun", "begun", 1))
        ),
        Index("ix_slot_leased", "study_id", "cell", "lease_until", **_where("state = 'leased'")),
        Index("ix_slot_done", "study_id", "stimulus_id", **_where("state = 'done'")),
        Index("ix_slot_held", "annotator_id", "state", "cell", "stimulus_id"),
        Index("ix_slot_given", "annotator_id", "given", "source_id", **_where("given IS NOT NULL")),
        CheckConstraint("state IN ('free', 'leased', 'done')", name="state"),
        CheckConstraint("(state = 'free') = (annotator_id IS NULL)", name="holder"),
        CheckConstraint("(state = 'leased') = (lease_until IS NOT NULL)", name="lease"),
    )

    id: Mapped[int] = mapped_column(RowId, primary_key=True, autoincrement=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("study.id"))
    stimulus_id: Mapped[str] = mapped_column(ForeignKey("stimulus.id"))
    k: Mapped[int]
    salt: Mapped[int] = mapped_column(RowId)  # of the item; annotators' orders come from it
    cell: Mapped[int]  # of the Latin square (annotation.design.exposure)
    source_id: Mapped[str] = mapped_column(ForeignKey("source.id"))  # of the item
    state: Mapped[str] = mapped_column(Word)
    annotator_id: Mapped[str | None] = mapped_column(ForeignKey("annotator.id"))
    # Of an item's last slot: 1 once its first one is taken. No boolean, which each database spells
    # differently, so that no partial index would apply.
    begun: Mapped[int] = mapped_column(SmallInteger)
    given: Mapped[int | None]  # the how many-th item it was for who has it now, from 1
    lease_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    tab: Mapped[str] = mapped_column(Text)


class TrialRow(Table):
    """One showing of an item that never counts, to one annotator, under a name of its own.

    A repeat has a name and an image address of its own, so that it looks like a new item.
    """

    __tablename__ = "trial"
    __table_args__ = (
        Index("uq_trial_annotator_id_kind_ordinal", "annotator_id", "kind", "ordinal", unique=True),
        CheckConstraint("kind IN ('practice', 'catch', 'gold', 'repeat')", name="kind"),
        CheckConstraint("state IN ('open', 'done')", name="state"),
    )

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("study.id"))
    annotator_id: Mapped[str] = mapped_column(ForeignKey("annotator.id"))
    stimulus_id: Mapped[str] = mapped_column(ForeignKey("stimulus.id"))
    kind: Mapped[str] = mapped_column(Word)
    ordinal: Mapped[int]  # the how many-th of its kind for this annotator, from 0
    token: Mapped[str] = mapped_column(Id, unique=True)  # address of what is shown
    original_token: Mapped[str | None] = mapped_column(Id, unique=True)
    state: Mapped[str] = mapped_column(Word)
    tab: Mapped[str] = mapped_column(Text)
    created: Mapped[datetime] = mapped_column(UtcDateTime)


class VoteRow(Table):
    """One answer, kept for ever; only its status changes, and an erased person's is blanked."""

    __tablename__ = "vote"
    __table_args__ = (
        Index("uq_vote_counted_slot", "slot_id", unique=True, **_where("status = 'counted'")),
        Index(
            "uq_vote_counted_annotator",
            "stimulus_id",
            "annotator_id",
            unique=True,
            **_where("status = 'counted'"),
        ),
        # With all that pages count, which then touch no row.
        Index("ix_vote_study_id_server_ts", "study_id", "server_ts", "status"),
        Index("ix_vote_given", "annotator_id", "status", "rt_ms", "answer"),
        Index("uq_vote_quality_trial", "trial_id", unique=True, **_where("status = 'quality'")),
        CheckConstraint(
            "status IN ('counted', 'superseded', 'surplus', 'excluded', 'quality')", name="status"
        ),
        CheckConstraint("status != 'counted' OR slot_id IS NOT NULL", name="counted_has_slot"),
        CheckConstraint("status != 'quality' OR trial_id IS NOT NULL", name="quality_has_trial"),
        CheckConstraint("trial_id IS NULL OR slot_id IS NULL", name="trial_has_no_slot"),
    )

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("study.id"))
    stimulus_id: Mapped[str] = mapped_column(ForeignKey("stimulus.id"))
    slot_id: Mapped[int | None] = mapped_column(ForeignKey("slot.id"))
    trial_id: Mapped[str | None] = mapped_column(ForeignKey("trial.id"))
    annotator_id: Mapped[str] = mapped_column(ForeignKey("annotator.id"))
    answer: Mapped[str] = mapped_column(Text)
    reason: Mapped[str | None] = mapped_column(Word)
    recognised: Mapped[bool]
    rt_ms: Mapped[float | None]
    client_ts: Mapped[datetime | None] = mapped_column(UtcDateTime)
    server_ts: Mapped[datetime] = mapped_column(UtcDateTime)
    display: Mapped[dict[str, Any]] = mapped_column(Json)
    views: Mapped[list[str]] = mapped_column(Json)  # looked at
    tab: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(Word)
    protocol: Mapped[int]  # version it was shown under


class EventRow(Table):
    """One event, kept in order; rows are only ever added (a trigger refuses anything else).

    The one exception: what an erased person said or is called may be blanked, data to {}.
    """

    __tablename__ = "event"
    __table_args__ = (
        Index("uq_event_vote_id_kind", "vote_id", "kind", unique=True),
        Index("ix_event_stimulus_id_annotator_id", "stimulus_id", "annotator_id"),
        Index("ix_event_study_id", "study_id"),
        Index("ix_event_lost", "annotator_id", "stimulus_id", **_where("kind = 'lease_lost'")),
    )

    id: Mapped[int] = mapped_column(RowId, primary_key=True, autoincrement=True)
    study_id: Mapped[str] = mapped_column(ForeignKey("study.id"))
    kind: Mapped[str] = mapped_column(Word)
    annotator_id: Mapped[str | None] = mapped_column(ForeignKey("annotator.id"))
    stimulus_id: Mapped[str | None] = mapped_column(ForeignKey("stimulus.id"))
    vote_id: Mapped[str | None] = mapped_column(ForeignKey("vote.id"))
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    data: Mapped[dict[str, Any]] = mapped_column(Json)


# ------------------------------------------------------------------ accounts: who runs studies

_ROLES = "role IN ('administrator', 'researcher')"


class AccountRow(Table):
    """One administrator or researcher; never deleted, since events name them."""

    __tablename__ = "account"
    __table_args__ = (CheckConstraint(_ROLES, name="role"),)

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    name_key: Mapped[str] = mapped_column(Text, unique=True)
    role: Mapped[str] = mapped_column(Word)
    password_salt: Mapped[str] = mapped_column(Text)
    password_hash: Mapped[str] = mapped_column(Text)
    created: Mapped[datetime] = mapped_column(UtcDateTime)
    disabled: Mapped[datetime | None] = mapped_column(UtcDateTime)


class AccountSessionRow(Table):
    """A signed-in browser; whoever reads this table cannot sign in with it."""

    __tablename__ = "account_session"

    token_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("account.id"), index=True)
    created: Mapped[datetime] = mapped_column(UtcDateTime)
    last_seen: Mapped[datetime] = mapped_column(UtcDateTime)
    expires: Mapped[datetime] = mapped_column(UtcDateTime)


class InvitationRow(Table):
    """A link to be used once; with `account_id` it gives that account a new password."""

    __tablename__ = "invitation"
    __table_args__ = (CheckConstraint(_ROLES, name="role"),)

    token_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    role: Mapped[str] = mapped_column(Word)
    note: Mapped[str] = mapped_column(Text)  # whom it is for
    account_id: Mapped[str | None] = mapped_column(ForeignKey("account.id"))
    invited_by: Mapped[str] = mapped_column(ForeignKey("account.id"))
    created: Mapped[datetime] = mapped_column(UtcDateTime)
    expires: Mapped[datetime] = mapped_column(UtcDateTime)
    used: Mapped[datetime | None] = mapped_column(UtcDateTime)


class PasswordTryRow(Table):
    """One try of a password that was wrong or is under way; deleted when it no longer counts."""

    __tablename__ = "password_try"

    id: Mapped[int] = mapped_column(primary_key=True)
    key_sha256: Mapped[str] = mapped_column(String(64), index=True)
    at: Mapped[float] = mapped_column(Double)  # seconds since 1970, as is `expires`
    expires: Mapped[float] = mapped_column(Double, index=True)


class KnownAddressRow(Table):
    """An address from which a user signed in to an account; the key is a digest of both."""

    __tablename__ = "known_address"

    key_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    expires: Mapped[float] = mapped_column(Double)
