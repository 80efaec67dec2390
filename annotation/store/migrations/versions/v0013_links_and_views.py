"""Personal links to come back with, and which views of a picture a vote was given after."""

import sqlalchemy as sa
from alembic import op

from annotation.store.types import Json, UtcDateTime

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """One table and one column more; people there were have no link until they are given one."""
    op.create_table(
        "personal_link",
        sa.Column("token_sha256", sa.String(64), nullable=False),
        sa.Column("annotator_id", sa.String(36), nullable=False),
        sa.Column("created", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("token_sha256", name="pk_personal_link"),
        sa.ForeignKeyConstraint(
            ["annotator_id"], ["annotator.id"], name="fk_personal_link_annotator_id"
        ),
    )
    op.create_index("ix_personal_link_annotator_id", "personal_link", ["annotator_id"])
    op.add_column("vote", sa.Column("views", Json, server_default="[]", nullable=False))
