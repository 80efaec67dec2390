"""Accounts that requests carry, asked of the database anew each time.

`annotation.web.guard.Guard` asks in front of everything; what lies behind it asks again, so that a
hole in one place opens nothing.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool

from annotation.account_domain import Account
from annotation.accounts import register as accounts
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
        account = await run_in_threadpool(who, request.cookies.get(ACCOUNT_COOKIE, ""))
        return None if account is None else account.name

    return name


def account_name(who: Who | None) -> Callable[[Request], str | None]:
    """The name of the account that a request carries; None without any, or without accounts."""

    def name(request: Request) -> str | None:
        account = who(request.cookies.get(ACCOUNT_COOKIE, "")) if who else None
        return None if account is None else account.name

    return name
