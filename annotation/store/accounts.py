"""Inside one transaction: accounts, their sessions, and the links that invite people."""

import secrets
import uuid
from datetime import datetime

from sqlalchemy import Select, delete, or_, select, update
from sqlalchemy.orm import Session as Transaction
from sqlalchemy.orm import aliased

from annotation.domain import (
    IDLE,
    INVITATION,
    LONGEST_SESSION,
    Account,
    Invitation,
    Role,
    Secret,
    Session,
)
from annotation.errors import ConflictError, NotAllowedError, NotFoundError, SignInError
from annotation.store.passwords import digest
from annotation.store.tables import AccountRow, AccountSessionRow, InvitationRow, same_fields


def all_accounts(tx: Transaction) -> list[Account]:
    """Return all accounts, by name."""
    return [_value(row) for row in tx.scalars(select(AccountRow).order_by(AccountRow.name_key))]


def is_empty(tx: Transaction) -> bool:
    """Return whether there is no account yet."""
    return tx.scalar(select(AccountRow.id).limit(1)) is None


def named(tx: Transaction, name: str) -> Account | None:
    """The account of that name, whose letter case does not matter."""
    row = tx.scalar(_by_name(name))
    return None if row is None else _value(row)


def secret_of(tx: Transaction, name: str) -> Secret | None:
    """Return the password of that name; None if no account has it or it may not sign in."""
    row = tx.scalar(_by_name(name).where(AccountRow.disabled.is_(None)))
    return None if row is None else _secret(row)


def add(tx: Transaction, name: str, role: Role, secret: Secret, now: datetime) -> Account:
    """A new account; raises `ConflictError` if the name is taken."""
    if tx.scalar(_by_name(name)) is not None:
        raise ConflictError(f"Somebody is called {name!r} already; please take another name.")
    row = AccountRow(
        id=str(uuid.uuid4()),
        name=name,
        name_key=name.casefold(),
        role=role,
        password_salt=secret.salt,
        password_hash=secret.hash,
        created=now,
        disabled=None,
    )
    tx.add(row)
    tx.flush()
    return _value(row)


def put_secret(tx: Transaction, account_id: str, secret: Secret, *, keep: str = "") -> Account:
    """A new password; ends all links to another one, and sessions but that of the token `keep`."""
    row = _locked(tx, account_id)
    row.password_salt, row.password_hash = secret.salt, secret.hash
    _close_sessions(tx, account_id, keep)
    resets = (InvitationRow.account_id == account_id, InvitationRow.used.is_(None))
    tx.execute(delete(InvitationRow).where(*resets))
    return _value(row)


def put_role(tx: Transaction, account_id: str, role: Role) -> Account:
    """Another role; raises `ConflictError` for the last administrator, or `NotFoundError`."""
    others = _other_administrators(tx, account_id)
    row = _locked(tx, account_id)
    if role is not Role.ADMINISTRATOR:
        _require_another(row, others)
    row.role = role
    return _value(row)


def disable(tx: Transaction, account_id: str, now: datetime) -> Account:
    """Let a user in no more, nor whom they invited and who has not come yet.

    Raises `ConflictError` for the last administrator, `NotFoundError` for the account.
    """
    others = _other_administrators(tx, account_id)
    row = _locked(tx, account_id)
    _require_another(row, others)
    row.disabled = row.disabled or now
    _close_sessions(tx, account_id)
    theirs = or_(InvitationRow.invited_by == account_id, InvitationRow.account_id == account_id)
    tx.execute(delete(InvitationRow).where(InvitationRow.used.is_(None), theirs))
    return _value(row)


def enable(tx: Transaction, account_id: str) -> Account:
    """Let a user in again who was disabled; raises `NotFoundError` for the account."""
    row = _locked(tx, account_id)
    row.disabled = None
    return _value(row)


def require_administrator(tx: Transaction, account_id: str) -> None:
    """Raise `NotAllowedError` unless that is an administrator at this moment.

    All administrators' rows stay locked, so that no two of them can remove each other.
    """
    if account_id not in _administrators(tx):
        raise NotAllowedError("Only administrators may do this.")


def _administrators(tx: Transaction) -> list[str]:
    mine = (AccountRow.role == Role.ADMINISTRATOR, AccountRow.disabled.is_(None))
    rows = tx.scalars(select(AccountRow).where(*mine).order_by(AccountRow.id).with_for_update())
    return [row.id for row in rows]


def _other_administrators(tx: Transaction, account_id: str) -> list[str]:
    return [one for one in _administrators(tx) if one != account_id]


def _require_another(row: AccountRow, others: list[str]) -> None:
    active = row.role == Role.ADMINISTRATOR and row.disabled is None
    if active and not others:
        raise ConflictError(
            f"{row.name} is the last administrator. Make somebody else an administrator first."
        )


def open_session(tx: Transaction, name: str, proven: Secret, now: datetime) -> Session:
    """A new session for whoever has shown to know the password `proven`.

    Raises `SignInError` if that has changed meanwhile or the account is disabled.
    """
    row = tx.scalar(_by_name(name).where(AccountRow.disabled.is_(None)).with_for_update())
    if row is None or _secret(row) != proven:
        raise SignInError("This account has just been changed. Please sign in again.")
    _forget_ended_sessions(tx, now)
    token = secrets.token_urlsafe(32)
    tx.add(
        AccountSessionRow(
            token_sha256=digest(token),
            account_id=row.id,
            created=now,
            last_seen=now,
            expires=now + LONGEST_SESSION,
        )
    )
    return Session(token=token, account=_value(row))


def session_owner(tx: Transaction, token: str, now: datetime) -> tuple[Account, datetime] | None:
    """Return the account of the session `token` and when it was last seen; None if none is open."""
    found = tx.execute(
        select(AccountRow, AccountSessionRow.last_seen)
        .join(AccountSessionRow, AccountSessionRow.account_id == AccountRow.id)
        .where(
            AccountSessionRow.token_sha256 == digest(token),
            AccountSessionRow.expires > now,
            AccountSessionRow.last_seen > now - IDLE,
            AccountRow.disabled.is_(None),
        )
    ).first()
    return None if found is None else (_value(found[0]), found[1])


def see_session(tx: Transaction, token: str, now: datetime) -> None:
    """Note that a session is in use."""
    mine = AccountSessionRow.token_sha256 == digest(token)
    tx.execute(update(AccountSessionRow).where(mine).values(last_seen=now))


def close_session(tx: Transaction, token: str) -> None:
    """Forget a session; forgetting it twice is fine."""
    tx.execute(delete(AccountSessionRow).where(AccountSessionRow.token_sha256 == digest(token)))


def _close_sessions(tx: Transaction, account_id: str, keep: str = "") -> None:
    mine, other = AccountSessionRow.account_id == account_id, digest(keep)
    tx.execute(delete(AccountSessionRow).where(mine, AccountSessionRow.token_sha256 != other))


def _forget_ended_sessions(tx: Transaction, now: datetime) -> None:
    tx.execute(delete(AccountSessionRow).where(AccountSessionRow.expires <= now))
    tx.execute(delete(AccountSessionRow).where(AccountSessionRow.last_seen <= now - IDLE))


def invite(
    tx: Transaction,
    invited_by: str,
    role: Role,
    now: datetime,
    *,
    note: str = "",
    account_id: str | None = None,
) -> str:
    """The token of a new link; with `account_id` it gives that account a new password.

    Args:
        note: Whom it is for.

    Raises `NotFoundError` for the account.
    """
    if account_id is not None:
        role = Role(_locked(tx, account_id).role)
    token = secrets.token_urlsafe(32)
    tx.add(
        InvitationRow(
            token_sha256=digest(token),
            role=role,
            note=note,
            account_id=account_id,
            invited_by=invited_by,
            created=now,
            expires=now + INVITATION,
            used=None,
        )
    )
    return token


def open_invitations(tx: Transaction, now: datetime) -> list[Invitation]:
    """The links that still work, oldest first."""
    rows = tx.execute(_working(now).order_by(InvitationRow.created))
    return [_invitation(*row) for row in rows]


def invitation_of(tx: Transaction, token: str, now: datetime) -> Invitation:
    """The invitation behind a link; raises `NotFoundError` unless it still works."""
    return _found(tx, _working(now).where(InvitationRow.token_sha256 == digest(token)))


def use_invitation(tx: Transaction, token: str, now: datetime) -> Invitation:
    """The same, once: from now on the link does not work."""
    mine = InvitationRow.token_sha256 == digest(token)
    tx.scalar(select(InvitationRow).where(mine).with_for_update())  # two may come at once
    invitation = _found(tx, _working(now).where(mine))
    tx.execute(update(InvitationRow).where(mine).values(used=now))
    return invitation


def withdraw(tx: Transaction, invitation_id: str) -> None:
    """Let a link work no more; withdrawing it twice is fine."""
    mine = (InvitationRow.token_sha256 == invitation_id, InvitationRow.used.is_(None))
    tx.execute(delete(InvitationRow).where(*mine))


def _working(now: datetime) -> Select[InvitationRow, AccountRow, AccountRow]:
    # What a disabled or former administrator has handed out must not bring them back.
    inviter, target = aliased(AccountRow), aliased(AccountRow)
    return (
        select(InvitationRow, inviter, target)
        .join(inviter, inviter.id == InvitationRow.invited_by)
        .outerjoin(target, target.id == InvitationRow.account_id)
        .where(
            InvitationRow.used.is_(None),
            InvitationRow.expires > now,
            inviter.disabled.is_(None),
            inviter.role == Role.ADMINISTRATOR,
            target.disabled.is_(None),
        )
    )


def _found(tx: Transaction, query: Select[InvitationRow, AccountRow, AccountRow]) -> Invitation:
    row = tx.execute(query).first()
    if row is None:
        raise NotFoundError(
            "This link does not work, or no longer: each works once, for "
            f"{INVITATION.days} days. Ask an administrator for a new one."
        )
    return _invitation(*row)


def _invitation(row: InvitationRow, inviter: AccountRow, target: AccountRow | None) -> Invitation:
    account = None if target is None else _value(target)
    told = same_fields(row, Invitation) | {"role": Role(row.role), "invited_by": inviter.name}
    return Invitation(**told, id=row.token_sha256, account=account)


def _by_name(name: str) -> Select[AccountRow]:
    return select(AccountRow).where(AccountRow.name_key == name.casefold())


def _locked(tx: Transaction, account_id: str) -> AccountRow:
    mine = select(AccountRow).where(AccountRow.id == account_id).with_for_update()
    row = tx.scalar(mine)
    if row is None:
        raise NotFoundError(f"There is no account {account_id!r}.")
    return row


def _secret(row: AccountRow) -> Secret:
    return Secret(salt=row.password_salt, hash=row.password_hash)


def _value(row: AccountRow) -> Account:
    return Account(**same_fields(row, Account) | {"role": Role(row.role)})
