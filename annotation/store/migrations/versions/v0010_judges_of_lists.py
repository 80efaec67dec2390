"""A study keeps which judges have ranked the words of its lists."""

import sqlalchemy as sa
from alembic import op

from annotation.store.types import Json

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """One column more; of studies made before, nothing is known."""
    op.add_column("study", sa.Column("judges", Json, server_default="[]", nullable=False))
