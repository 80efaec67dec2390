"""Reconstructions know the image that was really attacked."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add a column that is empty for every study made before."""
    op.add_column("stimulus", sa.Column("attacked_sha256", sa.String(length=64), nullable=True))
