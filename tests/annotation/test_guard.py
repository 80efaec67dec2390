"""Who may reach which part of the server."""

from datetime import UTC, datetime

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from annotation.account_access import ACCOUNT_COOKIE
from annotation.account_domain import Account, Role
from annotation.errors import StoreError
from annotation.guard import ANNOTATOR_COOKIE, SMALL_BODY, Guard, is_same_origin

PAGE = {"accept": "text/html,*/*"}


def account(role: Role) -> Account:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    return Account(id=role.value, name=role.value, role=role, created=since, disabled=None)


# A session's token → whose it is.
SESSIONS = {role.value: account(role) for role in Role}


async def reached(request: Request) -> PlainTextResponse:
    return PlainTextResponse("reached")


def client(session: str | None = None, who=SESSIONS.get) -> TestClient:
    """A browser with that session; `who` is None for a server started with --local."""
    methods = ["GET", "POST"]
    app = Starlette(routes=[Route("/{path:path}", reached, methods=methods)])
    host = "http://lab.example.org" if who else "http://127.0.0.1:7860"
    browser = TestClient(Guard(app, who), base_url=host, follow_redirects=False)
    if session is not None:
        browser.cookies.set(ACCOUNT_COOKIE, session)
    return browser


def local() -> TestClient:
    return client(who=None)


def passes(browser: TestClient, path: str, **keywords) -> bool:
    return browser.get(path, **keywords).text == "reached"


STUDIO = ["/studio", "/studio/", "/studio/config", "/studio/download/x/y", "//studio/train"]


@pytest.mark.parametrize("path", STUDIO)
def test_the_studio_is_for_people_with_an_account(path):
    path = f"http://lab.example.org{path}"
    assert client().get(path).status_code == 401
    assert client("made up").get(path).status_code == 401
    assert passes(client("researcher"), path)
    assert passes(client("administrator"), path)


@pytest.mark.parametrize("path", ["/admin", "/admin/", "/admin/invite", "//admin"])
def test_accounts_are_for_administrators(path):
    path = f"http://lab.example.org{path}"
    assert client().get(path).status_code == 401
    assert client("researcher").get(path).status_code == 403
    assert "Administrators only" in client("researcher").get(path, headers=PAGE).text
    assert client("researcher").post(path).status_code == 403
    assert passes(client("administrator"), path)


def test_an_annotator_gets_nowhere_else():
    browser = client()
    browser.cookies.set(ANNOTATOR_COOKIE, "researcher")
    assert browser.get("/studio/config").status_code == 401
    assert browser.get("/admin").status_code == 401
    assert passes(browser, "/label/config")


def test_with_local_everything_is_open():
    assert all(passes(local(), path) for path in ("/studio", "/studio/config", "/api/study"))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:7860", "[::1]:7860", "LOCALHOST"])
def test_with_local_the_server_answers_under_loopback_names(host):
    assert passes(local(), "/studio", headers={"host": host})


@pytest.mark.parametrize("host", ["evil.example.org", "127.0.0.1.example.org", "10.0.0.7", "[", ""])
def test_with_local_a_foreign_name_that_leads_here_opens_nothing(host):
    assert local().get("/studio", headers={"host": host}).status_code == 403


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/studio/results?study=7&x=%C3%A4", "%2Fstudio%2Fresults%3Fstudy%3D7%26x%3D%25C3%25A4"),
        ("//studio", "%2Fstudio"),
        ("/admin", "%2Fadmin"),
    ],
)
def test_a_page_asks_people_to_sign_in_and_remembers_where_they_were(path, wanted):
    reply = client().get(f"http://lab.example.org{path}", headers=PAGE)
    assert (reply.status_code, reply.headers["location"]) == (303, f"/login?next={wanted}")


def test_only_pages_send_people_to_sign_in():
    assert client().post("/studio/x", headers=PAGE).status_code == 401
    assert client().get("/studio/x").json() == {"error": "You are not signed in."}


def test_a_database_that_does_not_answer_opens_nothing():
    def broken(token: str) -> Account | None:
        raise StoreError("The database is gone.")

    reply = client("administrator", broken).get("/studio")
    assert (reply.status_code, reply.json()) == (503, {"error": "The database is gone."})


@pytest.mark.parametrize("path", ["/studios", "/labels", "/joined", "/api/study"])
def test_other_paths_are_not_mistaken_for_closed_ones(path):
    assert passes(client(), path)


def test_the_labelling_page_needs_a_session_cookie():
    assert client().get("/label").headers["location"] == "/signed-out"
    assert client().get("/label/").headers["location"] == "/signed-out"
    assert client().get("/label/config").status_code == 401
    browser = client()
    browser.cookies.set(ANNOTATOR_COOKIE, "anything")
    assert passes(browser, "/label/config")


@pytest.mark.parametrize(
    "path",
    [
        "/label/gradio_api/upload",
        "/label/gradio_api/queue/join",
        "/label/gradio_api/call/x",
        "/label/gradio_api/file=/etc/passwd",
        "/studio/gradio_api/file=http://example.org/x",
        "/studio/train/gradio_api/token",
        "/studio/gradio_api/proxy=http://example.org",
        "/studio/monitoring/summary",
        "/studio/gradio_api/upload",
    ],
)
def test_gradio_routes_that_no_page_needs_are_closed(path):
    browser = client("researcher")
    browser.cookies.set(ANNOTATOR_COOKIE, "anything")
    assert browser.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/label/gradio_api/heartbeat/x", "/studio/gradio_api/queue/join"])
def test_gradio_routes_that_pages_need_stay_open(path):
    browser = client("researcher")
    browser.cookies.set(ANNOTATOR_COOKIE, "anything")
    assert passes(browser, path)


@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        ({}, True),
        ({"sec-fetch-site": "same-origin", "origin": "http://lab:1", "host": "lab:1"}, True),
        ({"origin": "http://lab:1", "host": "lab:1"}, True),
        ({"origin": "http://evil", "host": "lab"}, False),
        ({"origin": "http://lab.evil", "host": "lab"}, False),
        ({"origin": "null", "host": "lab"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site", "origin": "http://lab", "host": "lab"}, False),
    ],
)
def test_which_requests_come_from_our_own_pages(headers, ours):
    assert is_same_origin(headers) is ours


def test_other_sites_may_look_but_not_change_anything():
    headers = {"origin": "http://evil"}
    browser = client("administrator")
    assert browser.post("/studio/x", headers=headers).status_code == 403
    assert browser.post("/login", headers=headers).status_code == 403
    assert passes(browser, "/studio/x", headers=headers)


def test_what_annotators_send_is_small():
    assert client().post("/api/vote", content=b"x" * SMALL_BODY).text == "reached"
    assert client().post("/api/vote", content=b"x" * (SMALL_BODY + 1)).status_code == 413
    assert client().post("/api/vote", content=iter([b"x"])).status_code == 413
    assert client().post("/login", content=b"x" * (SMALL_BODY + 1)).status_code == 413


@pytest.mark.parametrize("path", ["/", "/label", "/studio"])
def test_every_answer_carries_the_protective_headers(path):
    headers = client().get(path).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


def test_scripts_are_asked_for_anew_after_an_update():
    assert client().get("/static/annotation/labeller.js").headers["cache-control"] == "no-cache"
    assert "cache-control" not in client().get("/api/study").headers


def test_a_broken_cookie_is_no_cookie():
    assert client().get("/label/x", headers={"cookie": 'a="\x01; ]=;;'}).status_code == 401
