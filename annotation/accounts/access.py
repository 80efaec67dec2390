"""Accounts that requests carry, asked of the database anew each time.

`annotation.web.guard.Guard` asks in front of everything; what lies behind it asks again, so that a
hole in one place opens nothing. The first account is made when the server starts: asked for, or
taken from the environment.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from getpass import getpass
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool

from annotation.accounts import register as accounts
from annotation.domain import SHORTEST_PASSWORD, Account
from annotation.errors import AccountError, ConflictError
from annotation.store import Store
from semsim.base.storage.places import checkout

ACCOUNT_COOKIE = "semsim_account"
_USUAL_PORT = 7860
LOOPBACK = ("127.0.0.1", "localhost", "::1")  # this machine, as it calls itself
# Whose session a cookie's value is, None if nobody's.
Who = Callable[[str], Account | None]


def way_in(link: str) -> str:
    """Return the command that lets others in, where this machine alone opens `link`; else ""."""
    there = urlsplit(link)
    if there.hostname not in LOOPBACK:
        return ""
    port = there.port or 80
    if checkout():
        return "make run HOST=0.0.0.0" + (f" PORT={port}" if port != _USUAL_PORT else "")
    return "semsim-studio serve --host 0.0.0.0" + (f" --port {port}" if port != _USUAL_PORT else "")


def lookup(store: Store) -> Who:
    """Asks `store`, at the time it is now."""
    return lambda token: accounts.who(store, token, datetime.now(UTC))


def required(who: Who) -> Callable[[Request], None]:
    """Return the dependency of a route that only people with an account may use."""

    def check(request: Request) -> None:
        if who(request.cookies.get(ACCOUNT_COOKIE, "")) is None:
            raise HTTPException(401, "You are not signed in.")

    return check


def user_name(who: Who) -> Callable[[Request], Awaitable[str | None]]:
    """Return what Gradio calls before each of its events; handlers see the name as their user's."""

    async def name(request: Request) -> str | None:
        return await run_in_threadpool(account_name(who), request)

    return name


def account_name(who: Who | None) -> Callable[[Request], str | None]:
    """The name of the account that a request carries; None without any, or without accounts."""

    def name(request: Request) -> str | None:
        account = who(request.cookies.get(ACCOUNT_COOKIE, "")) if who else None
        return None if account is None else account.name

    return name


NAME, PASSWORD = "SEMSIM_ADMIN", "SEMSIM_ADMIN_PASSWORD"
NO_ACCOUNT = (
    "Nobody has an account yet, and there is nobody to ask here. Start once in a terminal; or set "
    f"{PASSWORD} to a password of at least {SHORTEST_PASSWORD} characters (and {NAME} to a name, "
    'else it is "admin"); or run: semsim-studio accounts add NAME --role administrator, '
    "with the --data-dir or --database of the server if it has one. "
    "Alone on this machine, no account is needed: start with --local."
)


def who_may_enter(store: Store, host: str, *, local: bool) -> Who | None:
    """Return the lookup of a session's account; None if the server asks for none (--local).

    Makes the first account if there is none. Raises `AccountError` if `local` and others would
    reach the server, or if there is no account and no way to make one.
    """
    if local:
        require_loopback(host)
        return None
    ask = input if sys.stdin.isatty() else None
    ensure_administrator(store, os.environ, ask, getpass)
    return lookup(store)


def require_loopback(host: str) -> None:
    """Raise `AccountError` if a server started with --local would be reached by others."""
    if host not in LOOPBACK:
        raise AccountError(
            f"--local lets everybody in who reaches the server, so it listens on this machine "
            f"only ({', '.join(LOOPBACK)}), not on {host!r}. Leave --host away, or --local."
        )


def ensure_administrator(
    store: Store,
    environment: Mapping[str, str],
    ask: Callable[[str], str] | None,
    ask_secret: Callable[[str], str],
) -> None:
    """Make the first account where there is none; there is never a password by default.

    `ask` and `ask_secret` put a question to the person at the terminal; without one, `ask` is
    None. Raises `AccountError` if `ask` is None and the environment holds no password, or for
    a name or password that cannot be accepted.
    """
    if accounts.has_accounts(store):
        return
    if PASSWORD in environment:
        name, password = environment.get(NAME, "admin"), environment[PASSWORD]
    elif ask is not None:
        name, password = _asked(ask, ask_secret)
    else:
        raise AccountError(NO_ACCOUNT)
    try:
        accounts.add_first_administrator(store, name, password, datetime.now(UTC))
    except ConflictError:
        return  # another server has just done the same


def _asked(ask: Callable[[str], str], ask_secret: Callable[[str], str]) -> tuple[str, str]:
    name = ask("Nobody has an account yet. Name of the first administrator [admin]: ") or "admin"
    return name, new_password(ask_secret)


def new_password(ask_secret: Callable[[str], str]) -> str:
    """A password asked for twice; raises `AccountError` if the two differ."""
    password = ask_secret(f"Password, at least {SHORTEST_PASSWORD} characters: ")
    if ask_secret("The same again: ") != password:
        raise AccountError("The two passwords are not the same; nothing was changed.")
    return password
