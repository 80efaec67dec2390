"""Which items others have begun, where an index sees it, and when a session was opened."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

# Slots are taken in the order of k: an item is begun where its first one is not free any more.
_MARK = """
UPDATE slot SET begun = 1
WHERE state = 'free'
AND NOT EXISTS (SELECT 1 FROM slot AS after
                WHERE after.stimulus_id = slot.stimulus_id AND after.k = slot.k + 1)
AND NOT EXISTS (SELECT 1 FROM slot AS first
                WHERE first.stimulus_id = slot.stimulus_id AND first.k = 0 AND first.state = 'free')
"""
_NEXT = ["study_id", "cell", "salt", "stimulus_id", "source_id", "state"]
_INDICES = (("ix_slot_fresh", "k", 0), ("ix_slot_begun", "begun", 1))


def upgrade() -> None:
    """A column that is filled from the states of the slots, and three indices more."""
    begun = sa.Column("begun", sa.SmallInteger(), server_default="0", nullable=False)
    op.add_column("slot", begun)
    op.execute(_MARK)
    for name, column, value in _INDICES:
        free = sa.text(f"state = 'free' AND {column} = {value}")
        op.create_index(name, "slot", [*_NEXT, column], sqlite_where=free, postgresql_where=free)
    op.create_index("ix_session_created", "session", ["created"])
