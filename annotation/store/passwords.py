"""Passwords, kept so that the database does not tell them (scrypt, RFC 7914)."""

import hashlib
import hmac
import secrets
import unicodedata

COST = 2**14  # scrypt's N: 16 MiB and some 30 ms a password


def protect(password: str | None, parallelism: int = 1) -> tuple[str | None, str | None]:
    """A fresh salt and the hash of `password`, both hexadecimal; (None, None) for None.

    parallelism: scrypt's p; checking a password takes that many times as long.
    """
    if password is None:
        return None, None
    salt = secrets.token_bytes(16)
    return salt.hex(), _scrypt(password, salt, parallelism).hex()


def matches(
    password: str | None, salt: str | None, digest: str | None, parallelism: int = 1
) -> bool:
    """Return whether `password` is the one that was protected; anything opens what has none."""
    if salt is None or digest is None:
        return True
    given = _scrypt(password or "", bytes.fromhex(salt), parallelism)
    return hmac.compare_digest(given, bytes.fromhex(digest))


def _scrypt(password: str, salt: bytes, parallelism: int) -> bytes:
    # As every keyboard makes it: of wide letters the usual ones, an accent with its letter.
    plain = unicodedata.normalize("NFKC", password)
    return hashlib.scrypt(plain.encode(), salt=salt, n=COST, r=8, p=parallelism)
