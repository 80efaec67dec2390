"""Every address of the whole product, asked by somebody who is not signed in."""

import argparse
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from made_accounts import made_account, made_session
from starlette.routing import Mount, Route

from annotation.account_domain import Role
from annotation.guard import ANNOTATOR_COOKIE
from annotation.store import Store
from app import create_app

# What anybody may ask for: it tells nothing of any study, or checks a secret or a session itself.
OPEN = {
    ("GET", "/"): 307,
    ("GET", "/favicon.ico"): 200,
    ("GET", "/static/annotation"): 307,
    ("GET", "/signed-out"): 200,
    ("GET", "/join/{token}"): 404,
    ("POST", "/join/{token}"): 404,
    ("GET", "/login"): 200,
    ("POST", "/login"): 403,
    ("GET", "/invite/{token}"): 404,
    ("POST", "/invite/{token}"): 404,
}
SENT_TO = {"/signed-out", "/login"}  # pages that say what to do


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("routes")


@pytest.fixture(scope="module")
def store(folder):
    with Store(f"sqlite:///{folder / 'studies.db'}") as opened:
        made_account(opened, "Ada", Role.ADMINISTRATOR)
        made_account(opened, "Bo")
        yield opened


@pytest.fixture(scope="module")
def product(store, folder):
    options = argparse.Namespace(
        data_dir=folder, checkpoints=folder, device="cpu", host="0.0.0.0", local=False
    )
    return create_app(store, options)


def addresses(routes, before=""):
    """(method, path) of every route, those of mounted applications too."""
    for route in routes:
        if isinstance(route, Mount) and route.routes:
            yield from addresses(route.routes, before + route.path)
        elif isinstance(route, Mount):
            yield "GET", before + route.path
        elif isinstance(route, Route):
            for method in sorted((route.methods or set()) - {"HEAD"}):
                yield method, before + route.path
        elif hasattr(route, "original_router"):
            yield from addresses(route.original_router.routes, before)
        else:
            raise TypeError(f"{route!r} is a kind of route this test does not know.")


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
    assert len([path for _, path in found if path.startswith("/label")]) > 50
    replies = {
        (method, path): browser.request(method, filled(path)) for method, path in sorted(found)
    }
    told = {key: reply.status_code for key, reply in replies.items()}
    assert {key: told[key] for key in told if not is_shut(key[1], told[key])} == OPEN
    sent = [reply for reply in replies.values() if reply.status_code == 303]
    assert {reply.headers["location"] for reply in sent} == SENT_TO


def test_an_annotator_gets_nowhere_below_the_studio(product):
    browser = TestClient(product, follow_redirects=False)
    browser.cookies.set(ANNOTATOR_COOKIE, "x")
    mine = [(m, p) for m, p in addresses(product._app.routes) if p.startswith(("/studio", "/adm"))]
    assert {browser.request(method, filled(path)).status_code for method, path in mine} == {401}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/studio/"),
        ("GET", "/studio/people"),
        ("GET", "/studio/config"),
        ("POST", "/studio/gradio_api/queue/join"),
        ("POST", "/studio/gradio_api/run/predict"),
        ("GET", "/studio/download/x/votes.csv"),
        ("GET", "/studio/compare-files/report.html?study=x"),
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
