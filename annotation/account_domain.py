"""The values of accounts: who runs studies here, and what they may do."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from annotation.errors import AnnotationError

LONGEST_NAME = 80
SHORTEST_PASSWORD = 12
IDLE = timedelta(days=30)  # a session nobody uses for so long is over
LONGEST_SESSION = timedelta(days=90)
INVITATION = timedelta(days=7)


class Role(StrEnum):
    """Role of an account; an administrator may do all that a researcher may."""

    ADMINISTRATOR = "administrator"
    RESEARCHER = "researcher"


class AccountError(AnnotationError):
    """A name, a password or a start of the server that cannot be accepted as it is."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """User who runs studies; annotators have no account. `disabled` is since when, None if not."""

    id: str
    name: str
    role: Role
    created: datetime
    disabled: datetime | None


@dataclass(frozen=True, kw_only=True)
class Secret:
    """A password as it is kept: scrypt's salt and result, both hexadecimal."""

    salt: str
    hash: str


@dataclass(frozen=True, kw_only=True)
class Session:
    """A browser that has just signed in; `token` is told this once and kept only as a hash."""

    token: str
    account: Account


@dataclass(frozen=True, kw_only=True)
class Invitation:
    """A link to be used once: to make an account, or to give `account` a new password.

    `id` is the SHA-256 of the link's token, so that knowing it opens nothing.
    """

    id: str
    role: Role
    invited_by: str
    created: datetime
    expires: datetime
    account: Account | None
