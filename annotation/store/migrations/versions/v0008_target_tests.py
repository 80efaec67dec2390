"""A study keeps how good the attacked models were at their own task."""

import sqlalchemy as sa
from alembic import op

from annotation.store.types import Json

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """One column more; of studies made before, nothing is known."""
    column = sa.Column("targets", Json, server_default="{}", nullable=False)
    op.add_column("study", column)
