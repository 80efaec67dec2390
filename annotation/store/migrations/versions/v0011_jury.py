"""An item keeps what each simulated annotator says of it, no longer what they say it from."""

import sqlalchemy as sa
from alembic import op

from annotation.store.types import Json

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Simulated votes that were given stay; studies that lack some have to be made anew."""
    op.add_column("stimulus", sa.Column("simulated", Json, nullable=True))
    op.drop_column("stimulus", "probabilities")
