"""Make all tables of `annotation.store.tables` in an empty database, and the triggers of events.

Before the first tag this follows the tables: nothing is compatible, and stores are made anew. The
tag freezes it: it gets the tables of that day spelt out, and changes come as migrations.
"""

from alembic import op

from annotation.store.tables import Table

revision = "0001"
down_revision = None

_REFUSED = "events are only ever added"
_ERASED = "EXISTS (SELECT 1 FROM annotator WHERE id = OLD.annotator_id AND status = 'erased')"
_DELETED = "EXISTS (SELECT 1 FROM study WHERE id = OLD.study_id AND status = 'deleted')"


def upgrade() -> None:
    """Make the tables, then their triggers."""
    bound = op.get_bind()
    Table.metadata.create_all(bound, checkfirst=False)
    refuse = _sqlite_refuses if bound.dialect.name == "sqlite" else _postgresql_refuses
    refuse()


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
