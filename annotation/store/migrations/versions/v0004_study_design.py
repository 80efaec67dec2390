"""Studies have versions of their protocol, steps, balanced orders, and items that never count."""

import sqlalchemy as sa
from alembic import op

from annotation.store.types import Json, RowId, UtcDateTime

revision = "0004"
down_revision = "0003"

_STATUSES = "status IN ('counted', 'superseded', 'surplus', 'excluded'{})"
_BEFORE, _NOW = _STATUSES.format(""), _STATUSES.format(", 'quality'")
_VOTE_COLUMNS = (
    "trial_id VARCHAR(36) CONSTRAINT fk_vote_trial_id REFERENCES trial (id)",
    "protocol INTEGER DEFAULT '1' NOT NULL",
)
_VOTE_CHECKS = {
    "quality_has_trial": "status != 'quality' OR trial_id IS NOT NULL",
    "trial_has_no_slot": "trial_id IS NULL OR slot_id IS NULL",
}
_REMADE = ("ix_slot_free", "ix_slot_leased", "ix_slot_annotator_id_state")
_INDICES = (
    (
        "ix_slot_free",
        ["study_id", "cell", "k", "stimulus_id", "salt", "source_id", "state"],
        "state = 'free'",
    ),
    ("ix_slot_leased", ["study_id", "cell", "lease_until"], "state = 'leased'"),
    ("ix_slot_annotator_id_state", ["annotator_id", "state", "cell"], None),
    ("ix_slot_given", ["annotator_id", "given", "source_id"], "given IS NOT NULL"),
    ("ix_event_lost", ["annotator_id", "stimulus_id"], "kind = 'lease_lost'"),
)
# What studies made before did not do.
_AS_BEFORE = {"balanced": False, "repeat_rate": 0.0}


def upgrade() -> None:
    """Studies made before have one version, people in them are at the main step."""
    _trial()
    _protocol()
    op.add_column("study", sa.Column("version", sa.Integer(), server_default="1", nullable=False))
    op.add_column(
        "study", sa.Column("n_originals", sa.Integer(), server_default="0", nullable=False)
    )
    op.add_column("study", sa.Column("cells", Json, server_default="[]", nullable=False))
    op.add_column("stimulus", sa.Column("expected", sa.Text(), nullable=True))
    _slot()
    _annotator()
    _vote()
    _write_down_protocols()


def _trial() -> None:
    op.create_table(
        "trial",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("study_id", sa.String(length=36), nullable=False),
        sa.Column("annotator_id", sa.String(length=36), nullable=False),
        sa.Column("stimulus_id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("token", sa.String(length=36), nullable=False),
        sa.Column("original_token", sa.String(length=36), nullable=True),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("tab", sa.Text(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.CheckConstraint(
            "kind IN ('practice', 'catch', 'gold', 'repeat')", name=op.f("ck_trial_kind")
        ),
        sa.CheckConstraint("state IN ('open', 'done')", name=op.f("ck_trial_state")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_trial_study_id")),
        sa.ForeignKeyConstraint(
            ["annotator_id"], ["annotator.id"], name=op.f("fk_trial_annotator_id")
        ),
        sa.ForeignKeyConstraint(
            ["stimulus_id"], ["stimulus.id"], name=op.f("fk_trial_stimulus_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trial")),
        sa.UniqueConstraint("token", name=op.f("uq_trial_token")),
        sa.UniqueConstraint("original_token", name=op.f("uq_trial_original_token")),
    )
    columns = ["annotator_id", "kind", "ordinal"]
    op.create_index("uq_trial_annotator_id_kind_ordinal", "trial", columns, unique=True)


def _protocol() -> None:
    op.create_table(
        "protocol",
        sa.Column("id", RowId, autoincrement=True, nullable=False),
        sa.Column("study_id", sa.String(length=36), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("spec", Json, nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_protocol_study_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_protocol")),
    )
    op.create_index(
        "uq_protocol_study_id_version", "protocol", ["study_id", "version"], unique=True
    )


def _slot() -> None:
    op.add_column("slot", sa.Column("cell", sa.Integer(), server_default="0", nullable=False))
    # Spelt out, as SQLite adds a constrained column only in this way without a new table.
    op.execute(
        "ALTER TABLE slot ADD COLUMN source_id VARCHAR(36) "
        "CONSTRAINT fk_slot_source_id REFERENCES source (id)"
    )
    op.execute(
        "UPDATE slot SET source_id = (SELECT source_id FROM stimulus "
        "WHERE stimulus.id = slot.stimulus_id)"
    )
    op.add_column("slot", sa.Column("given", sa.Integer(), nullable=True))
    op.execute("UPDATE slot SET given = 0 WHERE annotator_id IS NOT NULL")
    for name, columns, condition in _INDICES:
        if name in _REMADE:
            op.drop_index(name, "slot")
        only = None if condition is None else sa.text(condition)
        op.create_index(
            name,
            "event" if name == "ix_event_lost" else "slot",
            columns,
            unique=False,
            sqlite_where=only,
            postgresql_where=only,
        )


def _annotator() -> None:
    for column in (
        sa.Column("step", sa.String(length=32), server_default="main", nullable=False),
        sa.Column("seat", sa.Integer(), server_default="0", nullable=False),
        sa.Column("check_attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("consented", UtcDateTime(), nullable=True),
        sa.Column("keep_votes", sa.Boolean(), nullable=True),
        sa.Column("external", Json, nullable=True),
        sa.Column("completion_code", sa.String(length=32), nullable=True),
    ):
        op.add_column("annotator", column)
    op.execute(
        "UPDATE annotator SET seat = (SELECT count(*) FROM annotator earlier "
        "WHERE earlier.study_id = annotator.study_id AND (earlier.created < annotator.created "
        "OR (earlier.created = annotator.created AND earlier.id < annotator.id)))"
    )
    op.create_index("uq_annotator_study_id_seat", "annotator", ["study_id", "seat"], unique=True)


def _vote() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _remake_votes()
    else:
        op.execute("ALTER TABLE vote DROP CONSTRAINT ck_vote_status")
        op.execute(f"ALTER TABLE vote ADD CONSTRAINT ck_vote_status CHECK ({_NOW})")
        for column in _VOTE_COLUMNS:
            op.execute(f"ALTER TABLE vote ADD COLUMN {column}")
        for name, condition in _VOTE_CHECKS.items():
            op.execute(f"ALTER TABLE vote ADD CONSTRAINT ck_vote_{name} CHECK ({condition})")
    only = sa.text("status = 'quality'")
    op.create_index(
        "uq_vote_quality_trial",
        "vote",
        ["trial_id"],
        unique=True,
        sqlite_where=only,
        postgresql_where=only,
    )


def _remake_votes() -> None:
    """SQLite cannot change a constraint: copy the table, as its manual describes."""
    bind = op.get_bind()
    schema = bind.exec_driver_sql(
        "SELECT type, sql FROM sqlite_master WHERE tbl_name = 'vote' AND sql IS NOT NULL"
    )
    made = [(kind, sql) for kind, sql in schema]
    (table,) = (sql for kind, sql in made if kind == "table")
    before = ", ".join(row[1] for row in bind.exec_driver_sql("PRAGMA table_info(vote)"))
    _, _, columns = table.replace(_BEFORE, _NOW, 1).partition("(")
    head, constraint, rest = columns.partition("CONSTRAINT")
    checks = "".join(
        f", CONSTRAINT ck_vote_{name} CHECK ({condition})"
        for name, condition in _VOTE_CHECKS.items()
    )
    rest = rest.rstrip().removesuffix(")") + checks
    op.execute(f"CREATE TABLE vote_new ({head}{', '.join(_VOTE_COLUMNS)}, {constraint}{rest})")
    op.execute(f"INSERT INTO vote_new ({before}) SELECT {before} FROM vote")
    op.execute("DROP TABLE vote")
    op.execute("ALTER TABLE vote_new RENAME TO vote")
    for kind, sql in made:
        if kind == "index":
            op.execute(sql)


def _write_down_protocols() -> None:
    study = sa.table(
        "study",
        sa.column("id", sa.String()),
        sa.column("spec", Json),
        sa.column("cells", Json),
        sa.column("n_items", sa.Integer()),
        sa.column("protocol", sa.String()),
        sa.column("created", UtcDateTime()),
    )
    protocol = sa.table(
        "protocol",
        *(sa.column(name) for name in ("study_id", "version", "sha256", "why", "by")),
        sa.column("spec", Json),
        sa.column("at", UtcDateTime()),
    )
    bind = op.get_bind()
    for row in bind.execute(sa.select(study)).all():
        spec = {**row.spec, **_AS_BEFORE}
        as_now = study.update().where(study.c.id == row.id)
        bind.execute(as_now.values(spec=spec, cells=[row.n_items]))
        bind.execute(
            protocol.insert().values(
                study_id=row.id,
                version=1,
                sha256=row.protocol,
                spec=spec,
                why="",
                by="",
                at=row.created,
            )
        )
