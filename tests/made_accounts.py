"""Accounts and sessions without the cost of a password."""

from datetime import UTC, datetime, timedelta
from typing import Any

from annotation.domain import Account, Role, Secret, Session
from annotation.store import Store, accounts

SECRET = Secret(salt="00" * 16, hash="11" * 64)  # of no password anybody knows


def made_account(store: Store, name: str, role: Role = Role.RESEARCHER) -> Account:
    """A new account nobody can sign in to."""
    return store.write(lambda tx: accounts.add(tx, name, role, SECRET, datetime.now(UTC)))


def made_session(store: Store, name: str, ago: timedelta = timedelta(0)) -> str:
    """The token of a session of the account of that name, opened some time `ago`."""
    then = datetime.now(UTC) - ago
    return store.write(lambda tx: _opened(tx, name, then)).token


def _opened(tx: Any, name: str, then: datetime) -> Session:
    secret = accounts.secret_of(tx, name)
    if secret is None:
        raise LookupError(f"Nobody is called {name!r}.")
    return accounts.open_session(tx, name, secret, then)
