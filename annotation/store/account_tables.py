"""The tables of accounts: who runs studies. Annotators are in `tables`."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Double, ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from annotation.store.tables import Id, Table, Word
from annotation.store.types import UtcDateTime

_ROLES = "role IN ('administrator', 'researcher')"


class AccountRow(Table):
    """One administrator or researcher; never deleted, since events name them."""

    __tablename__ = "account"
    __table_args__ = (CheckConstraint(_ROLES, name="role"),)

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    name_key: Mapped[str] = mapped_column(Text, unique=True)
    role: Mapped[str] = mapped_column(Word)
    password_salt: Mapped[str] = mapped_column(Text)
    password_hash: Mapped[str] = mapped_column(Text)
    created: Mapped[datetime] = mapped_column(UtcDateTime)
    disabled: Mapped[datetime | None] = mapped_column(UtcDateTime)


class AccountSessionRow(Table):
    """A signed-in browser; whoever reads this table cannot sign in with it."""

    __tablename__ = "account_session"

    token_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    account_id: Mapped[str] = mapped_column(ForeignKey("account.id"), index=True)
    created: Mapped[datetime] = mapped_column(UtcDateTime)
    last_seen: Mapped[datetime] = mapped_column(UtcDateTime)
    expires: Mapped[datetime] = mapped_column(UtcDateTime)


class InvitationRow(Table):
    """A link to be used once; with `account_id` it gives that account a new password."""

    __tablename__ = "invitation"
    __table_args__ = (CheckConstraint(_ROLES, name="role"),)

    token_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    role: Mapped[str] = mapped_column(Word)
    account_id: Mapped[str | None] = mapped_column(ForeignKey("account.id"))
    invited_by: Mapped[str] = mapped_column(ForeignKey("account.id"))
    created: Mapped[datetime] = mapped_column(UtcDateTime)
    expires: Mapped[datetime] = mapped_column(UtcDateTime)
    used: Mapped[datetime | None] = mapped_column(UtcDateTime)


class PasswordTryRow(Table):
    """One try of a password that was wrong or is under way; deleted when it no longer counts."""

    __tablename__ = "password_try"

    id: Mapped[int] = mapped_column(primary_key=True)
    key_sha256: Mapped[str] = mapped_column(String(64), index=True)
    at: Mapped[float] = mapped_column(Double)  # seconds since 1970, as is `expires`
    expires: Mapped[float] = mapped_column(Double, index=True)


class KnownAddressRow(Table):
    """An address that somebody has signed in from to an account; the key is a digest of both."""

    __tablename__ = "known_address"

    key_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    expires: Mapped[float] = mapped_column(Double)
