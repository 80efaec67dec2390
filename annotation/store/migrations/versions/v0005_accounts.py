"""Those who run studies have accounts."""

import sqlalchemy as sa
from alembic import op

from annotation.store.types import UtcDateTime

revision = "0005"
down_revision = "0004"

_ROLES = "role IN ('administrator', 'researcher')"


def upgrade() -> None:
    """Nobody has an account: the server asks for the first one when it starts."""
    op.create_table(
        "account",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=32), nullable=False),
        sa.Column("password_salt", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.Column("disabled", UtcDateTime(), nullable=True),
        sa.CheckConstraint(_ROLES, name=op.f("ck_account_role")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
        sa.UniqueConstraint("name_key", name=op.f("uq_account_name_key")),
    )
    _session()
    _invitation()


def _session() -> None:
    op.create_table(
        "account_session",
        sa.Column("token_sha256", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=36), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.Column("last_seen", UtcDateTime(), nullable=False),
        sa.Column("expires", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_account_session_account_id")
        ),
        sa.PrimaryKeyConstraint("token_sha256", name=op.f("pk_account_session")),
    )
    op.create_index(
        op.f("ix_account_session_account_id"), "account_session", ["account_id"], unique=False
    )


def _invitation() -> None:
    op.create_table(
        "invitation",
        sa.Column("token_sha256", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=32), nullable=False),
        sa.Column("account_id", sa.String(length=36), nullable=True),
        sa.Column("invited_by", sa.String(length=36), nullable=False),
        sa.Column("created", UtcDateTime(), nullable=False),
        sa.Column("expires", UtcDateTime(), nullable=False),
        sa.Column("used", UtcDateTime(), nullable=True),
        sa.CheckConstraint(_ROLES, name=op.f("ck_invitation_role")),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_invitation_account_id")
        ),
        sa.ForeignKeyConstraint(
            ["invited_by"], ["account.id"], name=op.f("fk_invitation_invited_by")
        ),
        sa.PrimaryKeyConstraint("token_sha256", name=op.f("pk_invitation")),
    )
