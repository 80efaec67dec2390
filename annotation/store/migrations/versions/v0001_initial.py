"""Make all tables in an empty database.

Spelt out once more, so that this stays what it is when `annotation.store.tables` goes on. Names of
constraints and indices that are not given here come from its naming scheme.
"""

from functools import partial
from typing import Any

import sqlalchemy as sa
from alembic import op

from annotation.store.types import Json, RowId, UtcDateTime

revision = "0001"
down_revision = None

_Id, _Word, _Digest = sa.String(36), sa.String(32), sa.String(64)
_ROLES = "role IN ('administrator', 'researcher')"
_REFUSED = "events are only ever added"
_ERASED = "EXISTS (SELECT 1 FROM annotator WHERE id = OLD.annotator_id AND status = 'erased')"
_DELETED = "EXISTS (SELECT 1 FROM study WHERE id = OLD.study_id AND status = 'deleted')"

_column = partial(sa.Column, nullable=False)
_maybe = partial(sa.Column, nullable=True)


def upgrade() -> None:
    """Make tables in the order in which they refer to each other, then their triggers."""
    for make in (_study, _account, _source, _annotator, _stimulus, _slot, _trial, _vote, _event):
        make()
    refuse = _sqlite_refuses if op.get_bind().dialect.name == "sqlite" else _postgresql_refuses
    refuse()


def _key(kind: Any = _Id, name: str = "id", **how: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, **how)


def _of(table: str, name: str = "", **how: Any) -> sa.Column[Any]:
    """A column that refers to a row of `table`."""
    kind = RowId if table == "slot" else _Id
    return _column(name or f"{table}_id", kind, sa.ForeignKey(f"{table}.id"), **how)


def _index(name: str, *columns: str, only: str | None = None, unique: bool = False) -> sa.Index:
    where = None if only is None else sa.text(only)
    return sa.Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)


def _study() -> None:
    op.create_table(
        "study",
        _key(),
        _column("name", sa.Text),
        _column("task", _Word),
        _column("status", _Word),
        _column("token", _Id, unique=True),
        _column("seed", RowId),
        _column("votes_per_item", sa.Integer),
        _column("simulated", sa.Boolean),
        _column("spec", Json),
        _maybe("password_salt", sa.Text),
        _maybe("password_hash", sa.Text),
        _column("dataset", sa.Text),
        _column("models", Json),
        _column("targets", Json),
        _column("judges", Json),
        _column("n_items", sa.Integer),
        _column("n_decoys", sa.Integer),
        _column("n_originals", sa.Integer),
        _column("n_failed", sa.Integer),
        _column("cells", Json),
        _column("protocol", _Digest),
        _column("version", sa.Integer),
        _column("created", UtcDateTime),
    )
    op.create_table(
        "protocol",
        _key(RowId),
        _of("study"),
        _column("version", sa.Integer),
        _column("sha256", _Digest),
        _column("spec", Json),
        _column("why", sa.Text),
        _column("by", sa.Text),
        _column("at", UtcDateTime),
        _index("uq_protocol_study_id_version", "study_id", "version", unique=True),
    )


def _account() -> None:
    op.create_table(
        "account",
        _key(),
        _column("name", sa.Text),
        _column("name_key", sa.Text, unique=True),
        _column("role", _Word),
        _column("password_salt", sa.Text),
        _column("password_hash", sa.Text),
        _column("created", UtcDateTime),
        _maybe("disabled", UtcDateTime),
        sa.CheckConstraint(_ROLES, name="role"),
    )
    op.create_table(
        "account_session",
        _key(_Digest, "token_sha256"),
        _of("account", index=True),
        _column("created", UtcDateTime),
        _column("last_seen", UtcDateTime),
        _column("expires", UtcDateTime),
    )
    op.create_table(
        "invitation",
        _key(_Digest, "token_sha256"),
        _column("role", _Word),
        _of("account", nullable=True),
        _of("account", "invited_by"),
        _column("created", UtcDateTime),
        _column("expires", UtcDateTime),
        _maybe("used", UtcDateTime),
        sa.CheckConstraint(_ROLES, name="role"),
    )
    op.create_table(
        "password_try",
        _key(sa.Integer),
        _column("key_sha256", _Digest, index=True),
        _column("at", sa.Double),
        _column("expires", sa.Double, index=True),
    )
    op.create_table("known_address", _key(_Digest, "key_sha256"), _column("expires", sa.Double))


def _source() -> None:
    op.create_table(
        "source",
        _key(),
        _of("study"),
        _column("image_id", sa.Text),
        _column("class_name", sa.Text),
        _column("sha256", _Digest),
        _index("uq_source_study_id_image_id", "study_id", "image_id", unique=True),
    )
    op.create_table(
        "candidate_list",
        _key(),
        _of("source", index=True),
        _column("classes", Json),
        _column("true_position", sa.Integer),
        _maybe("true_rank", sa.Integer),
        _column("forced", sa.Boolean),
        _column("sha256", _Digest),
    )


def _annotator() -> None:
    op.create_table(
        "annotator",
        _key(),
        _of("study"),
        _column("name", sa.Text),
        _column("name_key", sa.Text),
        _column("simulated", sa.Boolean),
        _column("status", _Word),
        _column("step", _Word),
        _column("seat", sa.Integer),
        _column("check_attempts", sa.Integer),
        _maybe("consented", UtcDateTime),
        _maybe("keep_votes", sa.Boolean),
        _maybe("external", Json),
        _maybe("completion_code", _Word),
        _column("created", UtcDateTime),
        _column("last_seen", UtcDateTime),
        sa.CheckConstraint("status IN ('active', 'paused', 'excluded', 'erased')", name="status"),
        _index("uq_annotator_study_id_name_key", "study_id", "name_key", unique=True),
        _index("uq_annotator_study_id_seat", "study_id", "seat", unique=True),
    )
    op.create_table(
        "session",
        _key(_Digest, "token_sha256"),
        _of("annotator", index=True),
        _column("created", UtcDateTime, index=True),
    )
    op.create_table(
        "personal_link",
        _key(_Digest, "token_sha256"),
        _of("annotator", index=True),
        _column("created", UtcDateTime),
    )


def _stimulus() -> None:
    op.create_table(
        "stimulus",
        _key(),
        _of("study"),
        _of("source"),
        _column("kind", _Word),
        _column("model", sa.Text),
        _column("attack", sa.Text),
        _column("shown_image_id", sa.Text),
        _column("shown_class", sa.Text),
        _column("sha256", _Digest),
        _maybe("attacked_sha256", _Digest),
        _column("token", _Id, unique=True),
        _maybe("original_token", _Id, unique=True),
        _of("candidate_list", "list_id", nullable=True),
        _maybe("quality", sa.Integer),
        _maybe("expected", sa.Text),
        _maybe("simulated", Json),
        _index("ix_stimulus_study_id", "study_id"),
    )


def _slot() -> None:
    place = ("study_id", "cell", "salt", "stimulus_id", "source_id", "state")
    op.create_table(
        "slot",
        _key(RowId),
        _of("study"),
        _of("stimulus"),
        _column("k", sa.Integer),
        _column("salt", RowId),
        _column("cell", sa.Integer),
        _of("source"),
        _column("state", _Word),
        _of("annotator", nullable=True),
        _column("begun", sa.SmallInteger),
        _maybe("given", sa.Integer),
        _maybe("lease_until", UtcDateTime),
        _column("tab", sa.Text),
        sa.CheckConstraint("state IN ('free', 'leased', 'done')", name="state"),
        sa.CheckConstraint("(state = 'free') = (annotator_id IS NULL)", name="holder"),
        sa.CheckConstraint("(state = 'leased') = (lease_until IS NOT NULL)", name="lease"),
        _index("uq_slot_stimulus_id_k", "stimulus_id", "k", unique=True),
        _index("uq_slot_stimulus_id_annotator_id", "stimulus_id", "annotator_id", unique=True),
        _index(
            "ix_slot_free",
            *("study_id", "cell", "k", "stimulus_id", "salt", "source_id", "state"),
            only="state = 'free'",
        ),
        _index("ix_slot_fresh", *place, "k", only="state = 'free' AND k = 0"),
        _index("ix_slot_begun", *place, "begun", only="state = 'free' AND begun = 1"),
        _index("ix_slot_leased", "study_id", "cell", "lease_until", only="state = 'leased'"),
        _index("ix_slot_held", "annotator_id", "state", "cell", "stimulus_id"),
        _index("ix_slot_given", "annotator_id", "given", "source_id", only="given IS NOT NULL"),
    )


def _trial() -> None:
    op.create_table(
        "trial",
        _key(),
        _of("study"),
        _of("annotator"),
        _of("stimulus"),
        _column("kind", _Word),
        _column("ordinal", sa.Integer),
        _column("token", _Id, unique=True),
        _maybe("original_token", _Id, unique=True),
        _column("state", _Word),
        _column("tab", sa.Text),
        _column("created", UtcDateTime),
        sa.CheckConstraint("kind IN ('practice', 'catch', 'gold', 'repeat')", name="kind"),
        sa.CheckConstraint("state IN ('open', 'done')", name="state"),
        _index(
            *("uq_trial_annotator_id_kind_ordinal", "annotator_id", "kind", "ordinal"), unique=True
        ),
    )


def _vote() -> None:
    op.create_table(
        "vote",
        _key(),
        _of("study"),
        _of("stimulus"),
        _of("slot", nullable=True),
        _of("trial", nullable=True),
        _of("annotator"),
        _column("answer", sa.Text),
        _maybe("reason", _Word),
        _column("recognised", sa.Boolean),
        _maybe("rt_ms", sa.Double),
        _maybe("client_ts", UtcDateTime),
        _column("server_ts", UtcDateTime),
        _column("display", Json),
        _column("views", Json),
        _column("tab", sa.Text),
        _column("status", _Word),
        _column("protocol", sa.Integer),
        sa.CheckConstraint(
            "status IN ('counted', 'superseded', 'surplus', 'excluded', 'quality')", name="status"
        ),
        sa.CheckConstraint("status != 'counted' OR slot_id IS NOT NULL", name="counted_has_slot"),
        sa.CheckConstraint("status != 'quality' OR trial_id IS NOT NULL", name="quality_has_trial"),
        sa.CheckConstraint("trial_id IS NULL OR slot_id IS NULL", name="trial_has_no_slot"),
        _index("uq_vote_counted_slot", "slot_id", only="status = 'counted'", unique=True),
        _index(
            *("uq_vote_counted_annotator", "stimulus_id", "annotator_id"),
            only="status = 'counted'",
            unique=True,
        ),
        _index("uq_vote_quality_trial", "trial_id", only="status = 'quality'", unique=True),
        _index("ix_vote_study_id_server_ts", "study_id", "server_ts"),
        _index("ix_vote_given", "annotator_id", "status", "rt_ms"),
    )


def _event() -> None:
    op.create_table(
        "event",
        _key(RowId),
        _of("study"),
        _column("kind", _Word),
        _of("annotator", nullable=True),
        _of("stimulus", nullable=True),
        _of("vote", nullable=True),
        _column("at", UtcDateTime),
        _column("data", Json),
        _index("uq_event_vote_id_kind", "vote_id", "kind", unique=True),
        _index("ix_event_stimulus_id_annotator_id", "stimulus_id", "annotator_id"),
        _index("ix_event_study_id", "study_id"),
        _index("ix_event_lost", "annotator_id", "stimulus_id", only="kind = 'lease_lost'"),
    )


# Events are only ever added. An erased person's may be blanked; a deleted study's may go with it.


def _sqlite_refuses() -> None:
    columns = ("id", "study_id", "kind", "annotator_id", "stimulus_id", "vote_id", "at")
    same = " AND ".join(f"NEW.{column} IS OLD.{column}" for column in columns)
    blanked = f"{same} AND NEW.data = '{{}}' AND {_ERASED}"
    for action, allowed in (("UPDATE", f"({blanked})"), ("DELETE", _DELETED)):
        op.execute(
            f"CREATE TRIGGER event_no_{action.lower()} BEFORE {action} ON event "
            f"WHEN NOT {allowed} BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END"
        )


def _postgresql_refuses() -> None:
    op.execute(
        "CREATE FUNCTION event_only_added() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"BEGIN IF TG_OP = 'DELETE' AND {_DELETED} THEN RETURN OLD; END IF; "
        "IF TG_OP = 'UPDATE' AND NEW.data = '{}'::jsonb "
        "AND to_jsonb(NEW) - 'data' = to_jsonb(OLD) - 'data' "
        f"AND {_ERASED} THEN RETURN NEW; END IF; RAISE EXCEPTION '{_REFUSED}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER event_only_added BEFORE UPDATE OR DELETE ON event "
        "FOR EACH ROW EXECUTE FUNCTION event_only_added()"
    )
