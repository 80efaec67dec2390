"""What handing out the next items reads of one person lies in indices alone."""

from alembic import op

revision = "0006"
down_revision = "0005"

_REMADE = (
    (
        "slot",
        "ix_slot_annotator_id_state",
        "ix_slot_held",
        ["annotator_id", "state", "cell", "stimulus_id"],
    ),
    (
        "vote",
        "ix_vote_annotator_id_status",
        "ix_vote_given",
        ["annotator_id", "status", "rt_ms"],
    ),
)


def upgrade() -> None:
    """Two indices get a column more, for counting what is left and for the median time."""
    for table, before, now, columns in _REMADE:
        op.drop_index(before, table_name=table)
        op.create_index(now, table, columns)
