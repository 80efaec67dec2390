"""The use cases of accounts: who may run studies here. Each is one transaction.

What only administrators may do takes `by`, who does it, and checks in the same transaction that
they still are one; None is the command line of the machine itself, which may do everything.
"""

import unicodedata
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, TypeVar

from annotation.domain import LONGEST_NAME, SHORTEST_PASSWORD, Account, Role, Secret, Session
from annotation.errors import AccountError, ConflictError, NotFoundError, SignInError
from annotation.store import Store, accounts, passwords, reading, writing

T = TypeVar("T")

WRONG = "The name or the password is wrong."
# OWASP's least for scrypt with N = 2**14 and r = 8.
PARALLELISM = 5
# Looked at in place of the password of a name that does not exist, so that it takes as long.
_NOBODY = Secret(salt="00" * 16, hash="00" * 64)
SEEN_EVERY = timedelta(hours=1)  # a session in use is noted this often, not at each request


def _administering(work: Callable[..., T]) -> Callable[..., T]:
    """`work` as a use case that takes `by`."""

    @wraps(work)
    def use_case(store: Store, *args: Any, by: Account | None, **kwargs: Any) -> T:
        def checked(tx: Any) -> T:
            if by is not None:
                accounts.require_administrator(tx, by.id)
            return work(tx, *args, **kwargs)

        return store.write(checked)

    return use_case


disable, enable = _administering(accounts.disable), _administering(accounts.enable)
change_role, withdraw = _administering(accounts.put_role), _administering(accounts.withdraw)
_invite = _administering(accounts.invite)
list_accounts = reading(accounts.all_accounts)
open_invitations = reading(accounts.open_invitations)
invitation = reading(accounts.invitation_of)
sign_out = writing(accounts.close_session)


def has_accounts(store: Store) -> bool:
    """Return whether there is any account."""
    return not store.read(accounts.is_empty)


def find_account(store: Store, name: str) -> Account:
    """The account of that name, whose letter case does not matter; raises `NotFoundError`."""
    found = store.read(lambda tx: accounts.named(tx, _plain(name)))
    if found is None:
        known = ", ".join(repr(one.name) for one in list_accounts(store)) or "(no accounts)"
        raise NotFoundError(f"Nobody is called {name!r}. There are: {known}.")
    return found


def add_account(store: Store, name: str, password: str, role: Role, now: datetime) -> Account:
    """A new account; for the command line.

    Raises `AccountError` for an unusable name or password, `ConflictError` for a name taken.
    """
    name, secret = tidy(name), protect(password)
    return store.write(lambda tx: accounts.add(tx, name, role, secret, now))


def add_first_administrator(store: Store, name: str, password: str, now: datetime) -> Account:
    """The first account there is; raises like `add_account`, `ConflictError` if not the first."""
    name, secret = tidy(name), protect(password)

    def add(tx: Any) -> Account:
        if not accounts.is_empty(tx):
            raise ConflictError("There are accounts already; sign in with one of them.")
        return accounts.add(tx, name, Role.ADMINISTRATOR, secret, now)

    return store.write(add)


def sign_in(store: Store, name: str, password: str, now: datetime) -> Session:
    """A session for whoever knows the password.

    Raises `SignInError`, which does not tell whether the name exists; nor does the time it takes.
    """
    name = _plain(name)
    secret = store.read(lambda tx: accounts.secret_of(tx, name))
    # Outside of any transaction: a password takes long to check, on purpose.
    if not _matches(password, secret or _NOBODY) or secret is None:
        raise SignInError(WRONG)
    return store.write(lambda tx: accounts.open_session(tx, name, secret, now))


def who(store: Store, token: str, now: datetime) -> Account | None:
    """Return the account of the session `token`; None if it is of none or has ended."""
    if not token:
        return None
    found = store.read(lambda tx: accounts.session_owner(tx, token, now))
    if found is None:
        return None
    account, last_seen = found
    if now - last_seen > SEEN_EVERY:
        store.write(lambda tx: accounts.see_session(tx, token, now))
    return account


def change_password(store: Store, account: Account, old: str, new: str, *, keep: str) -> Account:
    """A new password for oneself; ends all sessions but the one of the token `keep`.

    Raises `SignInError` if `old` is wrong, `AccountError` if `new` cannot be accepted.
    """
    secret = store.read(lambda tx: accounts.secret_of(tx, account.name))
    if not _matches(old, secret or _NOBODY) or secret is None:
        raise SignInError("The old password is wrong.")
    return _put_password(store, account, new, keep)


def set_password(store: Store, account: Account, new: str) -> Account:
    """Set a new password for a user who lost theirs; for the command line. Ends all sessions."""
    return _put_password(store, account, new, "")


def _put_password(store: Store, account: Account, new: str, keep: str) -> Account:
    secret = protect(new)
    return store.write(lambda tx: accounts.put_secret(tx, account.id, secret, keep=keep))


def invite(store: Store, role: Role, now: datetime, *, by: Account, note: str = "") -> str:
    """Return the token of a link that makes an account of that role, once, in 7 days.

    Args:
        note: Whom it is for, in up to `LONGEST_NAME` letters; more are cut off.
    """
    return _invite(store, by.id, role, now, note=_plain(note)[:LONGEST_NAME], by=by)


def invite_to_reset(store: Store, account_id: str, now: datetime, *, by: Account) -> str:
    """Return the token of a link with which a user gives themselves a new password.

    Until then the old one holds. Raises `NotFoundError` for the account.
    """
    role = Role.RESEARCHER  # the account has its own
    return _invite(store, by.id, role, now, account_id=account_id, by=by)


def accept(store: Store, token: str, name: str, password: str, now: datetime) -> Session:
    """Make the account of an invitation, or give its account the password; signs in.

    `name` is only for a new account. Raises `NotFoundError` for the link, `AccountError` and
    `ConflictError` for the name and the password; the link then works on.
    """
    invited = invitation(store, token, now)
    name = tidy(name) if invited.account is None else invited.account.name
    secret = protect(password)

    def use(tx: Any) -> Session:
        used = accounts.use_invitation(tx, token, now)
        if used.account is None:
            accounts.add(tx, name, used.role, secret, now)
        else:
            accounts.put_secret(tx, used.account.id, secret)
        return accounts.open_session(tx, name, secret, now)

    return store.write(use)


def tidy(name: str) -> str:
    """A name as it is kept; raises `AccountError` if it is empty, too long or unprintable."""
    plain = _plain(name)
    if not plain or len(plain) > LONGEST_NAME or not plain.isprintable():
        raise AccountError(
            f"Please give a name of 1 to {LONGEST_NAME} printable letters; got {len(plain)}."
        )
    return plain


def name_key(name: str) -> str:
    """Return the form by which names are compared: letter case, width and spaces do not matter."""
    return _plain(name).casefold()


def protect(password: str) -> Secret:
    """A password as it is kept; raises `AccountError` if it is easy to guess.

    Length is what counts (NIST SP 800-63B, 5.1.1); nothing is asked of kinds of characters.
    """
    plain = unicodedata.normalize("NFKC", password)
    if len(plain) < SHORTEST_PASSWORD:
        raise AccountError(
            f"Please take a password of at least {SHORTEST_PASSWORD} characters, such as four "
            f"words; got {len(plain)}."
        )
    if len(set(plain)) < SHORTEST_PASSWORD // 2:
        raise AccountError("Please take a password with more different characters in it.")
    salt, digest = passwords.protect(plain, PARALLELISM)
    return Secret(salt=salt or "", hash=digest or "")


def _matches(password: str, secret: Secret) -> bool:
    return passwords.matches(password, secret.salt, secret.hash, PARALLELISM)


def _plain(name: str) -> str:
    # PostgreSQL refuses to look for a text with a zero in it.
    return " ".join(unicodedata.normalize("NFKC", name).replace("\0", "").split())
