"""Inside one transaction: tries of a password by key, and who has signed in from where before.

Keys are kept as digests and for no longer than they count. Times are seconds since 1970.
"""

import hashlib
from collections.abc import Callable, Sequence

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from annotation.store.tables import KnownAddressRow, PasswordTryRow

_LOCK = 726_002  # any number but that of `migrate.LOCK`


def begin(
    tx: Session,
    key: str,
    now: float,
    seconds: float,
    wait_after: Callable[[Sequence[float], float], float],
) -> float:
    """Note a try of `key`, unless it has to wait; returns the seconds to wait.

    wait_after: of the times of the tries that count, the earliest first, and of now. A try counts
    for `seconds`. Tries of one key come one after the other, from whatever server.
    """
    digest = _digest(key)
    if tx.get_bind().dialect.name == "postgresql":  # a writer of SQLite is alone as it is
        tx.execute(select(func.pg_advisory_xact_lock(_LOCK, func.hashtext(digest))))
    tx.execute(delete(PasswordTryRow).where(PasswordTryRow.expires <= now))
    tries = select(PasswordTryRow.at).where(PasswordTryRow.key_sha256 == digest)
    wait = wait_after(tx.scalars(tries.order_by(PasswordTryRow.at)).all(), now)
    if not wait:
        tx.add(PasswordTryRow(key_sha256=digest, at=now, expires=now + seconds))
    return wait


def forget(tx: Session, key: str) -> None:
    """Delete all tries of `key`."""
    tx.execute(delete(PasswordTryRow).where(PasswordTryRow.key_sha256 == _digest(key)))


def remember_address(tx: Session, key: str, now: float, seconds: float) -> None:
    """Know `key`, an account and an address, for so many seconds from now on."""
    tx.execute(delete(KnownAddressRow).where(KnownAddressRow.expires <= now))
    tx.merge(KnownAddressRow(key_sha256=_digest(key), expires=now + seconds))


def is_known_address(tx: Session, key: str, now: float) -> bool:
    """Return whether `key` is still known."""
    row = tx.get(KnownAddressRow, _digest(key))
    return row is not None and row.expires > now


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
