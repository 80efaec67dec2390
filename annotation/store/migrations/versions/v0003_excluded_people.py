"""Annotators can be paused, excluded and erased; their votes can be excluded."""

from alembic import op

revision = "0003"
down_revision = "0002"

_STATUSES = "status IN ('counted', 'superseded', 'surplus'{})"
_BEFORE, _NOW = _STATUSES.format(""), _STATUSES.format(", 'excluded'")
_REFUSED = "events are only ever added"


def upgrade() -> None:
    """Everybody there is takes part; no vote is excluded."""
    # Spelt out, as SQLite adds a constrained column only in this way without a new table.
    op.execute(
        "ALTER TABLE annotator ADD COLUMN status VARCHAR(32) DEFAULT 'active' NOT NULL "
        "CONSTRAINT ck_annotator_status "
        "CHECK (status IN ('active', 'paused', 'excluded', 'erased'))"
    )
    if op.get_bind().dialect.name == "sqlite":
        _remake_votes()
        _let_sqlite_blank_events()
    else:
        op.execute("ALTER TABLE vote DROP CONSTRAINT ck_vote_status")
        op.execute(f"ALTER TABLE vote ADD CONSTRAINT ck_vote_status CHECK ({_NOW})")
        _let_postgresql_blank_events()


def _remake_votes() -> None:
    """SQLite cannot change a constraint: copy the table, as its manual describes."""
    schema = op.get_bind().exec_driver_sql(
        "SELECT type, sql FROM sqlite_master WHERE tbl_name = 'vote' AND sql IS NOT NULL"
    )
    made = [(kind, sql) for kind, sql in schema]
    (table,) = (sql for kind, sql in made if kind == "table")
    op.execute(table.replace("TABLE vote", "TABLE vote_copy", 1).replace(_BEFORE, _NOW, 1))
    op.execute("INSERT INTO vote_copy SELECT * FROM vote")
    op.execute("DROP TABLE vote")
    op.execute("ALTER TABLE vote_copy RENAME TO vote")
    for kind, sql in made:
        if kind == "index":
            op.execute(sql)


def _let_sqlite_blank_events() -> None:
    columns = ("id", "study_id", "kind", "annotator_id", "stimulus_id", "vote_id", "at")
    same = " AND ".join(f"NEW.{column} IS OLD.{column}" for column in columns)
    op.execute("DROP TRIGGER event_no_update")
    op.execute(
        f"CREATE TRIGGER event_no_update BEFORE UPDATE ON event WHEN NOT ({same} "
        "AND NEW.data = '{}' AND EXISTS (SELECT 1 FROM annotator "
        "WHERE id = OLD.annotator_id AND status = 'erased')) "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END"
    )


def _let_postgresql_blank_events() -> None:
    op.execute(
        "CREATE OR REPLACE FUNCTION event_only_added() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN IF TG_OP = 'UPDATE' AND NEW.data = '{}'::jsonb "
        "AND to_jsonb(NEW) - 'data' = to_jsonb(OLD) - 'data' "
        "AND EXISTS (SELECT 1 FROM annotator "
        "WHERE id = OLD.annotator_id AND status = 'erased') THEN RETURN NEW; END IF; "
        f"RAISE EXCEPTION '{_REFUSED}'; END $$"
    )
