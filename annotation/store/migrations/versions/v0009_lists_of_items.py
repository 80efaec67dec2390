"""An item names the list that it offers, so that items of one original may offer different ones."""

import re

from alembic import op

revision = "0009"
down_revision = "0008"

_ONE_EACH = "uq_candidate_list_source_id"


def upgrade() -> None:
    """Items there are offer the list of their original, as before."""
    if op.get_bind().dialect.name == "sqlite":
        _remake_lists()
    else:
        op.drop_constraint(_ONE_EACH, "candidate_list")
    # Spelt out, as SQLite adds a constrained column only in this way without a new table.
    op.execute(
        "ALTER TABLE stimulus ADD COLUMN list_id VARCHAR(36) "
        "CONSTRAINT fk_stimulus_list_id REFERENCES candidate_list (id)"
    )
    op.execute(
        "UPDATE stimulus SET list_id = (SELECT candidate_list.id FROM candidate_list "
        "WHERE candidate_list.source_id = stimulus.source_id)"
    )
    op.create_index("ix_candidate_list_source_id", "candidate_list", ["source_id"])


def _remake_lists() -> None:
    """SQLite cannot drop a constraint: copy the table, as its manual describes."""
    (sql,) = (
        op.get_bind()
        .exec_driver_sql(
            "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'candidate_list'"
        )
        .one()
    )
    copy = re.sub(rf",\s*CONSTRAINT {_ONE_EACH} UNIQUE \(source_id\)", "", sql)
    op.execute(copy.replace("TABLE candidate_list", "TABLE candidate_list_copy", 1))
    op.execute("INSERT INTO candidate_list_copy SELECT * FROM candidate_list")
    op.execute("DROP TABLE candidate_list")
    op.execute("ALTER TABLE candidate_list_copy RENAME TO candidate_list")
