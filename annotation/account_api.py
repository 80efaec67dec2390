"""Signing in and accounts over HTTP: plain pages and forms, each handler checking who asks.

Every route is a plain function run in a thread, and replies only after the commit.
"""

import re
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Form, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from pydantic import AfterValidator

from annotation import account_pages as pages
from annotation import accounts
from annotation.account_access import ACCOUNT_COOKIE
from annotation.account_domain import LONGEST_SESSION, Account, AccountError, Role, Session
from annotation.attempts import Attempts
from annotation.errors import (
    AnnotationError,
    ConflictError,
    NotAllowedError,
    NotFoundError,
    SignInError,
)
from annotation.guard import LOGIN, is_same_origin
from annotation.signin import message_page
from annotation.store import Store
from annotation.texts import fit

HOME = "/studio/"
WAIT = "Too many wrong passwords. Wait a minute, then try again."
# Where one may be sent after signing in: pages behind it, on this server.
_OWN = re.compile(r"/(studio|admin|account)([/?][\w/?=&%.+,:@~-]*)?", re.ASCII)
_STATUS = {SignInError: 403, NotAllowedError: 403, NotFoundError: 404, ConflictError: 409}

T = TypeVar("T")
Text = Annotated[str, Form(), AfterValidator(fit)]


def router(store: Store) -> APIRouter:
    """The routes of accounts. Not for a server started with --local, which has none."""
    api = _Accounts(store=store)
    routes = APIRouter(route_class=_Route, include_in_schema=False)
    for path, get in (
        (LOGIN, api.login_page),
        ("/invite/{token}", api.invitation_page),
        ("/account", api.account_page),
        ("/admin", api.admin_page),
    ):
        routes.add_api_route(path, get, methods=["GET"])
    for path, post in (
        (LOGIN, api.login),
        ("/logout", api.logout),
        ("/invite/{token}", api.accept),
        ("/account", api.change_password),
        ("/admin/invite", api.invite),
        ("/admin/withdraw/{invitation_id}", api.withdraw),
        ("/admin/reset/{account_id}", api.reset),
        ("/admin/{change}/{account_id}", api.change),
    ):
        routes.add_api_route(
            path, post, methods=["POST"], dependencies=[Depends(_require_same_origin)]
        )
    return routes


class _Route(APIRoute):
    """Says what went wrong on a page where no handler did."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except AnnotationError as error:
                return _html(message_page("That did not work", str(error)), 503)

        return handle_errors


def own_path(wanted: str) -> str:
    """`wanted` if it is a page of ours behind the sign-in, else the studio."""
    return wanted if _OWN.fullmatch(wanted) else HOME


def _require_same_origin(request: Request) -> None:
    if not is_same_origin(request.headers):
        raise HTTPException(403, "This request comes from another site.")


@dataclass(frozen=True, kw_only=True)
class _Accounts:
    """The routes of accounts, over one store."""

    store: Store
    # By address, by name: each for itself, so that neither many names nor many addresses help.
    addresses: Attempts = field(default_factory=lambda: Attempts(limit=10))
    names: Attempts = field(default_factory=Attempts)

    def login_page(self, request: Request, next: str = HOME) -> Response:
        goes_to = own_path(next)
        if self._account(request) is not None:
            return RedirectResponse(goes_to, 303)
        return _html(pages.login_page(goes_to=goes_to))

    def login(
        self, request: Request, name: Text = "", password: Text = "", next: Text = HOME
    ) -> Response:
        goes_to = own_path(next)
        try:
            session = self._tried(
                request, name, lambda: accounts.sign_in(self.store, name, password, _now())
            )
        except (SignInError, _TooManyError) as error:
            page = pages.login_page(goes_to=goes_to, name=name, problem=str(error))
            return _html(page, 429 if isinstance(error, _TooManyError) else 403)
        accounts.sign_out(self.store, _token(request))  # whoever was signed in here before
        return _signed_in(request, session, goes_to)

    def logout(self, request: Request) -> Response:
        accounts.sign_out(self.store, _token(request))
        response = RedirectResponse(LOGIN, 303)
        response.delete_cookie(ACCOUNT_COOKIE)
        return response

    def invitation_page(self, token: str) -> Response:
        try:
            invited = accounts.invitation(self.store, token, _now())
        except NotFoundError as error:
            return _no_such_link(error)
        return _html(pages.invitation_page(invited, token))

    def accept(
        self, request: Request, token: str, name: Text = "", password: Text = ""
    ) -> Response:
        try:
            session = accounts.accept(self.store, token, name, password, _now())
        except NotFoundError as error:
            return _no_such_link(error)
        except (AccountError, ConflictError) as error:
            invited = accounts.invitation(self.store, token, _now())
            page = pages.invitation_page(invited, token, name=name, problem=str(error))
            return _html(page, 422)
        accounts.sign_out(self.store, _token(request))
        return _signed_in(request, session, HOME)

    def account_page(self, request: Request) -> Response:
        return _html(pages.account_page(self._required(request)))

    def change_password(self, request: Request, old: Text = "", password: Text = "") -> Response:
        me, keep = self._required(request), _token(request)
        try:
            self._tried(
                request,
                me.name,
                lambda: accounts.change_password(self.store, me, old, password, keep=keep),
            )
        except (SignInError, AccountError, _TooManyError) as error:
            status = 429 if isinstance(error, _TooManyError) else 422
            return _html(pages.account_page(me, problem=str(error)), status)
        return _html(pages.account_page(me, done="The password is changed."))

    def admin_page(self, request: Request) -> Response:
        return self._admin_page(self._administrator(request))

    def invite(self, request: Request, role: Annotated[Role, Form()]) -> Response:
        me = self._administrator(request)
        return self._told(
            request, me, lambda: accounts.invite(self.store, role, _now(), by=me), role
        )

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
            **{role.value: self._role_change(account_id, role, me) for role in Role},
        }
        if change not in changes:
            raise HTTPException(404, f"There is no change {change!r}.")
        return self._changed(me, changes[change])

    def _role_change(self, account_id: str, role: Role, me: Account) -> Callable[[], Any]:
        return lambda: accounts.change_role(self.store, account_id, role, by=me)

    def _changed(self, me: Account, change: Callable[[], Any]) -> Response:
        try:
            change()
        except AnnotationError as error:
            return self._admin_page(me, error)
        return RedirectResponse("/admin", 303)

    def _told(
        self, request: Request, me: Account, make: Callable[[], str], role: Role | None = None
    ) -> Response:
        try:
            link = f"{request.base_url}invite/{make()}"
        except AnnotationError as error:
            return self._admin_page(me, error)
        what = "somebody choose a new password" if role is None else f"somebody in as {role}"
        return _html(pages.link_page(link, f"This link lets {what}."))

    def _admin_page(self, me: Account, error: AnnotationError | None = None) -> Response:
        everybody = accounts.list_accounts(self.store)
        links = accounts.open_invitations(self.store, _now())
        page = pages.admin_page(me, everybody, links, str(error or ""))
        return _html(page, 200 if error is None else _STATUS.get(type(error), 400))

    def _tried(self, request: Request, name: str, work: Callable[[], T]) -> T:
        """`work`, unless there were too many failures of that address or under that name."""
        failed = False
        address, key, now = _address(request), " ".join(name.split()).casefold(), time.monotonic()
        if not self.addresses.begin(address, now):
            raise _TooManyError(WAIT)
        if not self.names.begin(key, now):
            raise _TooManyError(WAIT)
        try:
            return work()
        except SignInError:
            failed = True
            raise
        finally:
            if not failed:
                self.addresses.forgive(address)
                self.names.forgive(key)

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


class _TooManyError(Exception):
    """Too many wrong passwords of that address or under that name."""


def _signed_in(request: Request, session: Session, goes_to: str) -> Response:
    response = RedirectResponse(goes_to, 303)
    response.set_cookie(
        ACCOUNT_COOKIE,
        session.token,
        max_age=int(LONGEST_SESSION.total_seconds()),  # the server ends it earlier if unused
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return response


def _no_such_link(error: NotFoundError) -> Response:
    return _html(message_page("No such link", str(error)), 404)


def _html(page: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(page, status, headers={"Cache-Control": "no-store"})


def _token(request: Request) -> str:
    return request.cookies.get(ACCOUNT_COOKIE, "")


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _now() -> datetime:
    return datetime.now(UTC)
