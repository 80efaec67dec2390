"""Wrong passwords, and addresses that have signed in before, lie in the database."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Two tables of digests; neither holds a name, an address or a password."""
    op.create_table(
        "password_try",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key_sha256", sa.String(length=64), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("expires", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_password_try")),
    )
    for column in ("key_sha256", "expires"):
        op.create_index(op.f(f"ix_password_try_{column}"), "password_try", [column])
    op.create_table(
        "known_address",
        sa.Column("key_sha256", sa.String(length=64), nullable=False),
        sa.Column("expires", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key_sha256", name=op.f("pk_known_address")),
    )
