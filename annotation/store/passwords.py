"""Passwords, kept so that the database does not tell them (scrypt, RFC 7914), and tries of them.

Keys of tries are kept as digests and for no longer than they count, in seconds since 1970.
"""

import hashlib
import hmac
import secrets
import unicodedata
from collections.abc import Callable, Sequence

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from annotation.store.engine import LOCK
from annotation.store.tables import KnownAddressRow, PasswordTryRow

COST = 2**14  # scrypt's N: 16 MiB and some 30 ms a password


def protect(password: str | None, parallelism: int = 1) -> tuple[str | None, str | None]:
    """A fresh salt and the hash of `password`, both hexadecimal; (None, None) for None.

    Args:
        parallelism: Scrypt's p; checking a password takes that many times as long.
    """
    if password is None:
        return None, None
    salt = secrets.token_bytes(16)
    return salt.hex(), _scrypt(password, salt, parallelism).hex()


def matches(
    password: str | None, salt: str | None, hashed: str | None, parallelism: int = 1
) -> bool:
    """Return whether `password` is the one that was protected; anything opens what has none."""
    if salt is None or hashed is None:
        return True
    given = _scrypt(password or "", bytes.fromhex(salt), parallelism)
    return hmac.compare_digest(given, bytes.fromhex(hashed))


def _scrypt(password: str, salt: bytes, parallelism: int) -> bytes:
    # As every keyboard makes it: of wide letters the usual ones, an accent with its letter.
    plain = unicodedata.normalize("NFKC", password)
    return hashlib.scrypt(plain.encode(), salt=salt, n=COST, r=8, p=parallelism)


def begin_try(
    tx: Session,
    key: str,
    now: float,
    seconds: float,
    wait_after: Callable[[Sequence[float], float], float],
) -> float:
    """Note a try of `key`, unless it has to wait; returns the seconds to wait.

    Args:
        wait_after: Of the times of the tries that count, the earliest first, and of now. A try
            counts for `seconds`. Tries of one key come one after the other, from whatever server.
    """
    hashed = digest(key)
    if tx.get_bind().dialect.name == "postgresql":  # a writer of SQLite is alone as it is
        tx.execute(select(func.pg_advisory_xact_lock(LOCK, func.hashtext(hashed))))
    tx.execute(delete(PasswordTryRow).where(PasswordTryRow.expires <= now))
    tries = select(PasswordTryRow.at).where(PasswordTryRow.key_sha256 == hashed)
    wait = wait_after(tx.scalars(tries.order_by(PasswordTryRow.at)).all(), now)
    if not wait:
        tx.add(PasswordTryRow(key_sha256=hashed, at=now, expires=now + seconds))
    return wait


def forget_tries(tx: Session, key: str) -> None:
    """Delete all tries of `key`."""
    tx.execute(delete(PasswordTryRow).where(PasswordTryRow.key_sha256 == digest(key)))


def remember_address(tx: Session, key: str, now: float, seconds: float) -> None:
    """Know `key`, an account and an address, for so many seconds from now on."""
    tx.execute(delete(KnownAddressRow).where(KnownAddressRow.expires <= now))
    tx.merge(KnownAddressRow(key_sha256=digest(key), expires=now + seconds))


def is_known_address(tx: Session, key: str, now: float) -> bool:
    """Return whether `key` is still known."""
    row = tx.get(KnownAddressRow, digest(key))
    return row is not None and row.expires > now


def digest(secret: str) -> str:
    """Return the SHA-256 of a token or key in hexadecimal, which is kept in its place."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
