"""The events of a study that is deleted may go with it; the one that says so comes afterwards."""

from alembic import op

revision = "0012"
down_revision = "0011"

_REFUSED = "events are only ever added"
_OF_DELETED = "EXISTS (SELECT 1 FROM study WHERE id = OLD.study_id AND status = 'deleted')"


def upgrade() -> None:
    """Let a trigger pass the events of a deleted study."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER event_no_delete")
        op.execute(
            f"CREATE TRIGGER event_no_delete BEFORE DELETE ON event WHEN NOT {_OF_DELETED} "
            f"BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END"
        )
        return
    op.execute(
        "CREATE OR REPLACE FUNCTION event_only_added() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"BEGIN IF TG_OP = 'DELETE' AND {_OF_DELETED} THEN RETURN OLD; END IF; "
        "IF TG_OP = 'UPDATE' AND NEW.data = '{}'::jsonb "
        "AND to_jsonb(NEW) - 'data' = to_jsonb(OLD) - 'data' "
        "AND EXISTS (SELECT 1 FROM annotator "
        "WHERE id = OLD.annotator_id AND status = 'erased') THEN RETURN NEW; END IF; "
        f"RAISE EXCEPTION '{_REFUSED}'; END $$"
    )
