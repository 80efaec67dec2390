"""Every address of the whole product, asked by everybody who might.

Which database it is makes no difference: `fuzz/test_http.py` asks all of them on both.
"""

import asyncio
import json
import shutil
import sys
import uuid
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from made_accounts import made_account, made_session
from studio import addresses, compose
from study_factory import SURE, arrived, fresh_database, write_set

from annotation.accounts.access import ACCOUNT_COOKIE
from annotation.domain import Role
from annotation.store import Store
from annotation.study.builtin import ensure_demo
from annotation.study.labelling import list_studies
from annotation.web.guard import ANNOTATOR_COOKIE

# What anybody may ask for: it tells nothing of any study, or checks a secret or a session itself.
OPEN = {
    ("GET", "/"): 307,
    ("GET", "/favicon.ico"): 200,
    ("GET", "/health"): 200,
    ("GET", "/metrics"): 403,  # looks itself who asks, as programs have no session
    ("GET", "/static/annotation"): 307,
    ("GET", "/signed-out"): 200,
    ("GET", "/join/{token}"): 404,
    ("POST", "/join/{token}"): 404,
    ("GET", "/me/{link}"): 404,
    ("POST", "/me/{link}"): 404,
    ("GET", "/login"): 200,
    ("POST", "/login"): 403,
    ("GET", "/invite/{token}"): 404,
    ("POST", "/invite/{token}"): 404,
}
SENT_TO = {"/signed-out", "/login"}  # pages that say what to do
# Everybody is led to where one signs in.
FOR_ALL = {("GET", "/sign-out"), ("POST", "/sign-out"), ("POST", "/logout")}
HELD: dict[str, object] = {"tab": "t", "items": []}
BODIES: dict[str, dict[str, object]] = {  # of requests that lack nothing but rights
    "/api/vote": {
        "id": str(uuid.UUID(int=1)),
        "item": "x",
        "answer": "x",
        "tab": "t",
        "version": 1,
    },
    "/api/undo": {"id": str(uuid.UUID(int=1))},
    "/api/heartbeat": HELD,
    "/api/release": HELD,
}
# The first part of what each may reach besides.
ANNOTATORS = {"api", "begin", "done", "label"}
RESEARCHERS = {"studio", "account"}
RIGHTS = {
    "made up": set(),
    "annotator": ANNOTATORS,
    "researcher": RESEARCHERS,
    "administrator": RESEARCHERS | {"admin"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("routes")


@pytest.fixture(scope="module")
def store(folder):
    with fresh_database("sqlite", folder) as url, Store(url) as opened:
        made_account(opened, "Ada", Role.ADMINISTRATOR)
        made_account(opened, "Bo")
        sets = [write_set(folder / "set", model="one", probabilities=SURE)]
        ensure_demo(opened, sets, folder / "images")
        yield opened


@pytest.fixture(scope="module")
def product(store, folder):
    return compose(store, folder, "0.0.0.0", local=False)


@pytest.fixture(autouse=True)
def _jobs_die_as_they_start(monkeypatch):
    monkeypatch.setattr(sys, "executable", shutil.which("true"))


def is_shut(path: str, status: int) -> bool:
    # What a request lacks is told before it is looked up who asks.
    return status in {401, 303} or (status == 422 and path.startswith("/api/"))


def filled(path: str) -> str:
    """`path` with something in the place of each parameter."""
    return "/".join("x" if part.startswith("{") else part for part in path.split("/"))


def test_nobody_gets_anywhere_without_a_session(product):
    browser = TestClient(product, follow_redirects=False, raise_server_exceptions=False)
    found = set(addresses(product._app.routes))
    assert len([path for _, path in found if path.startswith("/studio")]) > 50
    assert len([path for _, path in found if path.startswith("/label")]) == 2
    replies = {
        (method, path): browser.request(method, filled(path)) for method, path in sorted(found)
    }
    told = {key: reply.status_code for key, reply in replies.items()}
    assert {key: told[key] for key in told if not is_shut(key[1], told[key])} == OPEN
    sent = [reply for reply in replies.values() if reply.status_code == 303]
    assert {reply.headers["location"] for reply in sent} == SENT_TO
    pages = [r for r in replies.values() if r.headers.get("content-type", "").startswith("text/h")]
    assert {reply.headers["cache-control"] for reply in pages} == {"no-store"}


def cookies_of(role: str, store: Store) -> dict[str, str]:
    """What a browser of somebody of that role sends; a session of its own each time."""
    if role == "made up":
        return {ANNOTATOR_COOKIE: "made up", ACCOUNT_COOKIE: "made up"}
    if role == "annotator":
        return {ANNOTATOR_COOKIE: arrived(store, list_studies(store)[0], "Cleo").session_token}
    return {ACCOUNT_COOKIE: made_session(store, "Ada" if role == "administrator" else "Bo")}


async def answer(product, method: str, path: str, cookies: dict[str, str]) -> tuple[int, str]:
    """The status and the place sent to; not the content, as an event stream never ends."""
    began = asyncio.get_running_loop().create_future()
    body = json.dumps(BODIES[path]).encode() if path in BODIES else b""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if messages:
            return messages.pop()
        await asyncio.wait({began})
        return {"type": "http.disconnect"}

    async def send(message):
        if message["type"] == "http.response.start":
            began.set_result((message["status"], dict(message["headers"])))

    told = "; ".join(f"{name}={value}" for name, value in cookies.items())
    kind = b"application/json" if body else b"application/x-www-form-urlencoded"
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "http_version": "1.1",
        "query_string": b"tab=t" if path == "/api/next" else b"",
        "server": ("testserver", 80),
        "client": ("testclient", 1),
        "headers": [
            (b"host", b"testserver"),
            (b"cookie", told.encode()),
            (b"content-type", kind),
            (b"content-length", str(len(body)).encode()),
        ],
    }
    try:
        await product(scope, receive, send)
    except Exception:
        if not began.done():  # that Gradio stumbles when its stream is cut off is not asked here
            raise
    status, headers = began.result()
    return status, headers.get(b"location", b"").decode()


def gets_in(status: int, place: str) -> bool:
    """Whether an address did what it is for, if only to say that something is missing."""
    return status not in {401, 403} and place not in SENT_TO


@pytest.mark.parametrize("role", RIGHTS)
def test_everybody_gets_where_they_may_and_nowhere_else(product, store, role):
    found = set(addresses(product._app.routes)) - set(OPEN) - FOR_ALL

    async def all_that_let_in():
        return {
            (method, path)
            for method, path in sorted(found)
            if gets_in(*await answer(product, method, filled(path), cookies_of(role, store)))
        }

    mine = {(method, path) for method, path in found if path.split("/")[1] in RIGHTS[role]}
    got = asyncio.run(all_that_let_in())
    # Of files Gradio says itself which may be had, and "x" is none.
    some = {(m, path) for m, path in found if "gradio_api/file" in path}
    assert got <= mine
    assert got - some == mine - some


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/studio/"),
        ("GET", "/studio/people"),
        ("GET", "/studio/config"),
        ("POST", "/studio/gradio_api/queue/join"),
        ("POST", "/studio/gradio_api/run/predict"),
        ("GET", "/studio/download/x/votes.csv"),
        ("GET", "/studio/compare"),
        ("GET", "/studio/compare/part/body?study=x"),
        ("POST", "/studio/compare/act/report?study=x"),
        ("GET", "/studio/compare-files/forest.png?study=x"),
        ("GET", "/studio/compare-files/made/x/report.html"),
        ("GET", "/account"),
        ("GET", "/admin"),
        ("POST", "/admin/disable/x"),
    ],
)
def test_what_lies_behind_the_guard_asks_again(product, method, path):
    browser = TestClient(product._app, follow_redirects=False)
    body = {"json": {"data": [], "fn_index": 0, "session_hash": "x"}} if method == "POST" else {}
    assert browser.request(method, path, **body).status_code == 401
    browser.cookies.set("semsim_account", "made up")
    assert browser.request(method, path, **body).status_code == 401


def test_an_event_runs_under_the_name_of_the_account(product, store):
    browser = TestClient(product, follow_redirects=False)
    browser.cookies.set("semsim_account", made_session(store, "Bo"))
    assert browser.get("/studio/gradio_api/user").json() == "Bo"
    assert browser.get("/studio/config").json()["username"] == "Bo"
    assert browser.get("/admin").status_code == 403


HALF = b'{"email": "\\ud800"}'
NO_EVENT = b'{"data": [], "fn_index": 99999, "session_hash": "\\ud800"}'
STRANGE = [
    *(("POST", f"/studio/gradio_api/{part}", HALF) for part in ("reset", "cancel", "queue/join")),
    *(("POST", f"/studio/gradio_api/run/{part}", NO_EVENT) for part in ("predict", "x")),
    *(("GET", f"/studio/{part}/{'a' * 3000}", b"") for part in ("static", "assets")),
    ("GET", f"/static/{'a' * 3000}", b""),
    ("POST", "/studio/gradio_api/queue/join", b'{"data": 7, "fn_index": []}'),
    ("POST", "/studio/gradio_api/reset", b"[]"),
]


@pytest.mark.parametrize(("method", "path", "body"), STRANGE)
def test_what_no_page_sends_is_refused_and_breaks_nothing(product, store, method, path, body):
    browser = TestClient(product, raise_server_exceptions=False, follow_redirects=False)
    browser.cookies.set("semsim_account", made_session(store, "Bo"))
    kind = {"content-type": "application/json"} if body else {}
    reply = browser.request(method, path, content=body, headers=kind)
    assert 400 <= reply.status_code < 500
