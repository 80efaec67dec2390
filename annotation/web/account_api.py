"""Signing in and accounts over HTTP: plain pages and forms, each handler checking who asks.

Every route replies only after the commit. What asks for a password may have to wait before it
takes a thread; all others are plain functions run in one.
"""

import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Form, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import AfterValidator
from starlette.concurrency import run_in_threadpool

from annotation.accounts import register as accounts
from annotation.accounts.access import ACCOUNT_COOKIE
from annotation.accounts.attempts import CLOCK, Attempts, Clock, TooManyError, place_of
from annotation.domain import (
    INVITATION,
    LONGEST_SESSION,
    SHORTEST_PASSWORD,
    Account,
    Invitation,
    Role,
    Session,
)
from annotation.errors import (
    AccountError,
    ConflictError,
    NotFoundError,
    SignInError,
)
from annotation.store import Store, passwords
from annotation.study import activity
from annotation.texts import fit
from annotation.web.api import STATUS_OF, routes
from annotation.web.guard import LOGIN, Cookie, is_same_origin, keep, why_foreign
from annotation.web.root_path import rooted
from annotation.web.templates import page
from semsim.base.errors import SemsimError

HOME = "/studio/"
NO_COOKIES = (
    "If you have just signed in, this browser keeps no cookies of this site. Allow them, in a "
    "private window too, and sign in again."
)
# Wrong passwords of one address under all names together; what it asks for costs much.
ADDRESS_FREE, ADDRESS_LONGEST, ADDRESS_CROWD = 20, 2.0, 20
ADDRESS_KNOWN_SECONDS = 180 * 24 * 3600.0  # from the last time somebody signed in from it
KNOWN_FREE = 50  # wrong passwords of an account from such an address before the first wait
# Where one may be sent after signing in: pages behind it, on this server.
log = logging.getLogger(__name__)
_OWN = re.compile(r"/(studio|admin|account)([/?][\w/?=&%.+,:@~-]*)?", re.ASCII)
Text = Annotated[str, Form(), AfterValidator(fit)]


def router(store: Store, clock: Clock = CLOCK) -> APIRouter:
    """The routes of accounts. Not for a server started with --local, which has none."""
    api = _Accounts(store=store, tries=_Tries(store, clock))
    return routes(
        get={
            LOGIN: api.login_page,
            "/invite/{token}": api.invitation_page,
            "/account": api.account_page,
            "/admin": api.admin_page,
            "/admin/activity": api.activity,
        },
        post={
            LOGIN: api.login,
            "/logout": api.logout,
            "/invite/{token}": api.accept,
            "/account": api.change_password,
            "/admin/invite": api.invite,
            "/admin/withdraw/{invitation_id}": api.withdraw,
            "/admin/reset/{account_id}": api.reset,
            "/admin/{change}/{account_id}": api.change,
        },
        checked=[Depends(_require_same_origin)],
    )


def own_path(wanted: str) -> str:
    """`wanted` if it is a page of ours behind the sign-in, else the studio."""
    return wanted if _OWN.fullmatch(wanted) else HOME


def _require_same_origin(request: Request) -> None:
    if not is_same_origin(request.headers):
        raise HTTPException(403, why_foreign(request.headers))


@dataclass(frozen=True, kw_only=True)
class _Accounts:
    """The routes of accounts, over one store."""

    store: Store
    tries: "_Tries"

    def login_page(self, request: Request, next: str = HOME) -> Response:
        goes_to = own_path(next)
        if self._account(request) is not None:
            return RedirectResponse(rooted(goes_to), 303)
        again = urlsplit(request.headers.get("referer", "")).path == rooted(LOGIN)
        return page("login.html", goes_to=goes_to, name="", problem=NO_COOKIES if again else "")

    async def login(
        self, request: Request, name: Text = "", password: Text = "", next: Text = HOME
    ) -> Response:
        goes_to, address = own_path(next), _address(request)

        def sign_in() -> Session:
            session = accounts.sign_in(self.store, name, password, _now())
            accounts.sign_out(self.store, _token(request))  # whoever was signed in here before
            return session

        try:
            known = await run_in_threadpool(self.tries.is_known, name, address)
            async with self.tries.turn(name, address, known=known):
                session = await run_in_threadpool(sign_in)
        except (SignInError, TooManyError) as error:
            status = 429 if isinstance(error, TooManyError) else 403
            log.warning("A sign-in was refused with %d.", status)  # whose is nobody's business
            return page("login.html", status, goes_to=goes_to, name=name, problem=str(error))
        await run_in_threadpool(self.tries.remember, name, address)
        return _signed_in(request, session, goes_to)

    def logout(self, request: Request) -> Response:
        accounts.sign_out(self.store, _token(request))
        response = RedirectResponse(rooted(LOGIN), 303)
        response.delete_cookie(ACCOUNT_COOKIE, path=rooted("/"))
        response.headers["Clear-Site-Data"] = '"cache"'  # pictures that a browser may keep
        return response

    def invitation_page(self, token: str) -> Response:
        try:
            invited = accounts.invitation(self.store, token, _now())
        except NotFoundError as error:
            return _no_such_link(error)
        return _invitation_page(invited, token)

    def accept(
        self, request: Request, token: str, name: Text = "", password: Text = ""
    ) -> Response:
        try:
            session = accounts.accept(self.store, token, name, password, _now())
        except NotFoundError as error:
            return _no_such_link(error)
        except (AccountError, ConflictError) as error:
            invited = accounts.invitation(self.store, token, _now())
            return _invitation_page(invited, token, 422, name=name, problem=str(error))
        accounts.sign_out(self.store, _token(request))
        return _signed_in(request, session, HOME)

    def account_page(self, request: Request) -> Response:
        return _account_page(self._required(request))

    async def change_password(
        self, request: Request, old: Text = "", password: Text = ""
    ) -> Response:
        me, keep = await run_in_threadpool(self._required, request), _token(request)

        def change() -> None:
            accounts.change_password(self.store, me, old, password, keep=keep)

        try:
            async with self.tries.turn(me.name, _address(request)):
                await run_in_threadpool(change)
        except (SignInError, AccountError, TooManyError) as error:
            status = 429 if isinstance(error, TooManyError) else 422
            return _account_page(me, status, problem=str(error))
        return _account_page(me, done="The password is changed.")

    def admin_page(self, request: Request, withdraw: str = "") -> Response:
        """Return the page of all accounts and open links.

        Args:
            withdraw: The link to ask about.
        """
        return self._admin_page(self._administrator(request), asked=withdraw)

    def invite(self, request: Request, role: Annotated[Role, Form()], note: Text = "") -> Response:
        me = self._administrator(request)
        make = partial(accounts.invite, self.store, role, _now(), note=note, by=me)
        return self._told(request, me, make, role)

    def reset(self, request: Request, account_id: str) -> Response:
        me = self._administrator(request)
        return self._told(
            request, me, lambda: accounts.invite_to_reset(self.store, account_id, _now(), by=me)
        )

    def withdraw(self, request: Request, invitation_id: str) -> Response:
        me = self._administrator(request)
        return self._changed(me, lambda: accounts.withdraw(self.store, invitation_id, by=me))

    def change(self, request: Request, change: str, account_id: str) -> Response:
        me = self._administrator(request)
        changes: dict[str, Callable[[], Any]] = {
            "disable": lambda: accounts.disable(self.store, account_id, _now(), by=me),
            "enable": lambda: accounts.enable(self.store, account_id, by=me),
            **{
                role.value: partial(accounts.change_role, self.store, account_id, role, by=me)
                for role in Role
            },
        }
        if change not in changes:
            raise HTTPException(404, f"There is no change {change!r}.")
        return self._changed(me, changes[change])

    def _changed(self, me: Account, change: Callable[[], Any]) -> Response:
        try:
            change()
        except SemsimError as error:
            return self._admin_page(me, error)
        return RedirectResponse(rooted("/admin"), 303)

    def _told(
        self, request: Request, me: Account, make: Callable[[], str], role: Role | None = None
    ) -> Response:
        try:
            link = f"{request.base_url}invite/{make()}"
        except SemsimError as error:
            return self._admin_page(me, error)
        what = "somebody choose a new password" if role is None else f"somebody in as {role}"
        told = f"This link lets {what}."
        return page("link.html", link=link, told=told, days=INVITATION.days)

    def activity(self) -> Response:
        acts = activity.activity(self.store)
        return page("activity.html", title="Activity", study=None, acts=acts, most=activity.MOST)

    def _admin_page(
        self, me: Account, error: SemsimError | None = None, asked: str = ""
    ) -> Response:
        return page(
            "admin.html",
            200 if error is None else STATUS_OF.get(type(error), 400),
            me=me,
            everybody=accounts.list_accounts(self.store),
            open_links=accounts.open_invitations(self.store, _now()),
            roles=list(Role),
            problem=str(error or ""),
            asked=asked,
        )

    def _account(self, request: Request) -> Account | None:
        return accounts.who(self.store, _token(request), _now())

    def _required(self, request: Request) -> Account:
        account = self._account(request)
        if account is None:
            raise HTTPException(401, "You are not signed in.")
        return account

    def _administrator(self, request: Request) -> Account:
        account = self._required(request)
        if account.role is not Role.ADMINISTRATOR:
            raise HTTPException(403, "This is for administrators.")
        return account


class _Tries:
    """Tries of passwords, and the waits before a password is looked at.

    Counted by name and address, so that a visitor who knows names cannot keep their owners out.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._names = Attempts(store, "name", clock=clock)
        self._addresses = Attempts(
            store,
            "address",
            free=ADDRESS_FREE,
            longest=ADDRESS_LONGEST,
            crowd=ADDRESS_CROWD,
            clock=clock,
        )
        self._known = Attempts(store, "known", free=KNOWN_FREE, clock=clock)

    @asynccontextmanager
    async def turn(self, name: str, address: str, *, known: bool = False) -> AsyncIterator[None]:
        """Hold one try; raises `TooManyError` where too many are under way.

        Args:
            known: From an address that `is_known`. It waits later, and only for tries of the same
                name and address.
        """
        key = _key(name, address)
        if known:
            async with self._known.turn(key):
                yield
            return
        async with self._names.turn(key), self._addresses.turn(address):
            yield

    def is_known(self, name: str, address: str) -> bool:
        """Return whether a user has signed in to that account from that address."""
        key, now = _key(name, address), self._clock.now()
        return self._store.read(lambda tx: passwords.is_known_address(tx, key, now))

    def remember(self, name: str, address: str) -> None:
        """Remember that a user has signed in to that account from that address."""
        key, now = _key(name, address), self._clock.now()
        self._store.write(
            lambda tx: passwords.remember_address(tx, key, now, ADDRESS_KNOWN_SECONDS)
        )


def _key(name: str, address: str) -> str:
    return f"{accounts.name_key(name)}\n{address}"


def _signed_in(request: Request, session: Session, goes_to: str) -> Response:
    response = RedirectResponse(rooted(goes_to), 303)
    lasts = int(LONGEST_SESSION.total_seconds())  # the server ends it earlier if unused
    keep(response, request, Cookie(ACCOUNT_COOKIE, session.token, lasts))
    return response


def _no_such_link(error: NotFoundError) -> Response:
    return page("message.html", 404, title="No such link", text=str(error), back=LOGIN)


def _invitation_page(
    invited: Invitation, token: str, status: int = 200, name: str = "", problem: str = ""
) -> Response:
    told = {"name": name, "problem": problem, "shortest": SHORTEST_PASSWORD}
    return page("invitation.html", status, invitation=invited, token=token, **told)


def _account_page(me: Account, status: int = 200, problem: str = "", done: str = "") -> Response:
    told = {"problem": problem, "done": done, "shortest": SHORTEST_PASSWORD}
    return page("own_account.html", status, account=me, **told)


def _token(request: Request) -> str:
    return request.cookies.get(ACCOUNT_COOKIE, "")


def _address(request: Request) -> str:
    return place_of(request.client.host if request.client else "")


def _now() -> datetime:
    return datetime.now(UTC)
