"""The first tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from annotation.store.types import Json, RowId, UtcDateTime

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make all tables in an empty database."""
    _study()
    _annotator()
    _source()
    _candidate_list()
    _session()
    _stimulus()
    _slot()
    _vote()
    _event()
    _events_are_only_ever_added()


def _only(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def _study() -> None:
    op.create_table(
        "study",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("task", sa.String(length=32), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("token", sa.String(length=36), nullable=False),
        sa.Column("seed", RowId, nullable=False),
        sa.Column("votes_per_item", sa.Integer(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("spec", Json, nullable=False),
        sa.Column("password_salt", sa.Text(), nullable=True),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("models", Json, nullable=False),
        sa.Column("images", sa.Text(), nullable=False),
        sa.Column("n_items", sa.Integer(), nullable=False),
        sa.Column("n_decoys", sa.Integer(), nullable=False),
        sa.Column("n_failed", sa.Integer(), nullable=False),
        sa.Column("protocol", sa.String(length=64), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study")),
        sa.UniqueConstraint("token", name=op.f("uq_study_token")),
    )


def _annotator() -> None:
    op.create_table(
        "annotator",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("study_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.Column("last_seen", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_annotator_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_annotator")),
    )
    op.create_index(
        "uq_annotator_study_id_name_key", "annotator", ["study_id", "name_key"], unique=True
    )


def _source() -> None:
    op.create_table(
        "source",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("study_id", sa.String(length=36), nullable=False),
        sa.Column("image_id", sa.Text(), nullable=False),
        sa.Column("class_name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_source_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source")),
    )
    op.create_index("uq_source_study_id_image_id", "source", ["study_id", "image_id"], unique=True)


def _candidate_list() -> None:
    op.create_table(
        "candidate_list",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("source_id", sa.String(length=36), nullable=False),
        sa.Column("classes", Json, nullable=False),
        sa.Column("true_position", sa.Integer(), nullable=False),
        sa.Column("true_rank", sa.Integer(), nullable=True),
        sa.Column("forced", sa.Boolean(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["source.id"], name=op.f("fk_candidate_list_source_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_candidate_list")),
        sa.UniqueConstraint("source_id", name=op.f("uq_candidate_list_source_id")),
    )


def _session() -> None:
    op.create_table(
        "session",
        sa.Column("token_sha256", sa.String(length=64), nullable=False),
        sa.Column("annotator_id", sa.String(length=36), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["annotator_id"], ["annotator.id"], name=op.f("fk_session_annotator_id")
        ),
        sa.PrimaryKeyConstraint("token_sha256", name=op.f("pk_session")),
    )
    op.create_index(op.f("ix_session_annotator_id"), "session", ["annotator_id"], unique=False)


def _stimulus() -> None:
    op.create_table(
        "stimulus",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("study_id", sa.String(length=36), nullable=False),
        sa.Column("source_id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("attack", sa.Text(), nullable=False),
        sa.Column("shown_image_id", sa.Text(), nullable=False),
        sa.Column("shown_class", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("token", sa.String(length=36), nullable=False),
        sa.Column("original_token", sa.String(length=36), nullable=True),
        sa.Column("quality", sa.Integer(), nullable=True),
        sa.Column("probabilities", Json, nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_stimulus_source_id")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_stimulus_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stimulus")),
        sa.UniqueConstraint("original_token", name=op.f("uq_stimulus_original_token")),
        sa.UniqueConstraint("token", name=op.f("uq_stimulus_token")),
    )
    op.create_index("ix_stimulus_study_id", "stimulus", ["study_id"], unique=False)


def _slot() -> None:
    op.create_table(
        "slot",
        sa.Column("id", RowId, autoincrement=True, nullable=False),
        sa.Column("study_id", sa.String(length=36), nullable=False),
        sa.Column("stimulus_id", sa.String(length=36), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("salt", RowId, nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("annotator_id", sa.String(length=36), nullable=True),
        sa.Column("lease_until", UtcDateTime(), nullable=True),
        sa.Column("tab", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "(state = 'free') = (annotator_id IS NULL)", name=op.f("ck_slot_holder")
        ),
        sa.CheckConstraint(
            "(state = 'leased') = (lease_until IS NOT NULL)", name=op.f("ck_slot_lease")
        ),
        sa.CheckConstraint("state IN ('free', 'leased', 'done')", name=op.f("ck_slot_state")),
        sa.ForeignKeyConstraint(
            ["annotator_id"], ["annotator.id"], name=op.f("fk_slot_annotator_id")
        ),
        sa.ForeignKeyConstraint(["stimulus_id"], ["stimulus.id"], name=op.f("fk_slot_stimulus_id")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_slot_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_slot")),
    )
    op.create_index("ix_slot_annotator_id_state", "slot", ["annotator_id", "state"], unique=False)
    op.create_index(
        "ix_slot_free",
        "slot",
        ["study_id", "k", "stimulus_id", "salt", "state"],
        unique=False,
        **_only("state = 'free'"),
    )
    op.create_index(
        "ix_slot_leased",
        "slot",
        ["study_id", "lease_until"],
        unique=False,
        **_only("state = 'leased'"),
    )
    op.create_index(
        "uq_slot_stimulus_id_annotator_id", "slot", ["stimulus_id", "annotator_id"], unique=True
    )
    op.create_index("uq_slot_stimulus_id_k", "slot", ["stimulus_id", "k"], unique=True)


def _vote() -> None:
    op.create_table(
        "vote",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("study_id", sa.String(length=36), nullable=False),
        sa.Column("stimulus_id", sa.String(length=36), nullable=False),
        sa.Column("slot_id", RowId, nullable=True),
        sa.Column("annotator_id", sa.String(length=36), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=True),
        sa.Column("recognised", sa.Boolean(), nullable=False),
        sa.Column("rt_ms", sa.Double(), nullable=True),
        sa.Column("client_ts", UtcDateTime(), nullable=True),
        sa.Column("server_ts", UtcDateTime(), nullable=False),
        sa.Column("display", Json, nullable=False),
        sa.Column("tab", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.CheckConstraint(
            "status != 'counted' OR slot_id IS NOT NULL", name=op.f("ck_vote_counted_has_slot")
        ),
        sa.CheckConstraint(
            "status IN ('counted', 'superseded', 'surplus')", name=op.f("ck_vote_status")
        ),
        sa.ForeignKeyConstraint(
            ["annotator_id"], ["annotator.id"], name=op.f("fk_vote_annotator_id")
        ),
        sa.ForeignKeyConstraint(["slot_id"], ["slot.id"], name=op.f("fk_vote_slot_id")),
        sa.ForeignKeyConstraint(["stimulus_id"], ["stimulus.id"], name=op.f("fk_vote_stimulus_id")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_vote_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vote")),
    )
    op.create_index("ix_vote_annotator_id_status", "vote", ["annotator_id", "status"], unique=False)
    op.create_index("ix_vote_study_id_server_ts", "vote", ["study_id", "server_ts"], unique=False)
    op.create_index(
        "uq_vote_counted_annotator",
        "vote",
        ["stimulus_id", "annotator_id"],
        unique=True,
        **_only("status = 'counted'"),
    )
    op.create_index(
        "uq_vote_counted_slot", "vote", ["slot_id"], unique=True, **_only("status = 'counted'")
    )


def _event() -> None:
    op.create_table(
        "event",
        sa.Column("id", RowId, autoincrement=True, nullable=False),
        sa.Column("study_id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("annotator_id", sa.String(length=36), nullable=True),
        sa.Column("stimulus_id", sa.String(length=36), nullable=True),
        sa.Column("vote_id", sa.String(length=36), nullable=True),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("data", Json, nullable=False),
        sa.ForeignKeyConstraint(
            ["annotator_id"], ["annotator.id"], name=op.f("fk_event_annotator_id")
        ),
        sa.ForeignKeyConstraint(
            ["stimulus_id"], ["stimulus.id"], name=op.f("fk_event_stimulus_id")
        ),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_event_study_id")),
        sa.ForeignKeyConstraint(["vote_id"], ["vote.id"], name=op.f("fk_event_vote_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    op.create_index(
        "ix_event_stimulus_id_annotator_id", "event", ["stimulus_id", "annotator_id"], unique=False
    )
    op.create_index("ix_event_study_id", "event", ["study_id"], unique=False)
    op.create_index("uq_event_vote_id_kind", "event", ["vote_id", "kind"], unique=True)


def _events_are_only_ever_added() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for action in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER event_no_{action.lower()} BEFORE {action} ON event "
                "BEGIN SELECT RAISE(ABORT, 'events are only ever added'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION event_only_added() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'events are only ever added'; END $$"
    )
    op.execute(
        "CREATE TRIGGER event_only_added BEFORE UPDATE OR DELETE ON event "
        "FOR EACH ROW EXECUTE FUNCTION event_only_added()"
    )
