"""Who may reach which part of the server."""

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from annotation.guard import (
    ANNOTATOR_COOKIE,
    RESEARCHER_COOKIE,
    SMALL_BODY,
    Guard,
    is_same_origin,
    researcher_key,
)

KEY = "the-key"


async def reached(request: Request) -> PlainTextResponse:
    return PlainTextResponse("reached")


def client(key: str | None = None) -> TestClient:
    methods = ["GET", "POST"]
    app = Starlette(routes=[Route("/{path:path}", reached, methods=methods)])
    return TestClient(Guard(app, key), follow_redirects=False)


def passes(browser: TestClient, path: str, **keywords) -> bool:
    return browser.get(path, **keywords).text == "reached"


@pytest.mark.parametrize(
    "path", ["/studio", "/studio/", "/studio/config", "http://testserver//studio/train"]
)
def test_the_studio_is_open_on_loopback_and_closed_with_a_key(path):
    assert passes(client(), path)
    assert client(KEY).get(path).status_code == 401


@pytest.mark.parametrize("path", ["/studios", "/labels", "/joined", "/api/study"])
def test_other_paths_are_not_mistaken_for_closed_ones(path):
    assert passes(client(KEY), path)


def test_the_key_opens_the_studio_once_and_for_good():
    browser = client(KEY)
    reply = browser.get(f"/studio/?key={KEY}&study=7")
    assert (reply.status_code, reply.headers["location"]) == (303, "/studio/?study=7")
    assert "HttpOnly" in reply.headers["set-cookie"]
    assert KEY not in reply.headers["set-cookie"]
    assert passes(browser, "/studio/config")


def test_a_wrong_key_or_a_made_up_cookie_opens_nothing():
    assert client(KEY).get("/studio?key=other").status_code == 403
    browser = client(KEY)
    browser.cookies.set(RESEARCHER_COOKIE, KEY)
    assert browser.get("/studio").status_code == 401


def test_a_person_without_the_key_gets_a_page_that_says_what_to_do():
    reply = client(KEY).get("/studio", headers={"accept": "text/html"})
    assert "?key=" in reply.text
    assert reply.headers["content-type"].startswith("text/html")


def test_the_redirect_stays_on_this_server():
    assert client(KEY).get(f"http://testserver//studio?key={KEY}").headers["location"] == "/studio"


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
    browser = client()
    browser.cookies.set(ANNOTATOR_COOKIE, "anything")
    assert browser.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/label/gradio_api/heartbeat/x", "/studio/gradio_api/queue/join"])
def test_gradio_routes_that_pages_need_stay_open(path):
    browser = client()
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
    assert client().post("/studio/x", headers=headers).status_code == 403
    assert passes(client(), "/studio/x", headers=headers)


def test_what_annotators_send_is_small():
    assert client().post("/api/vote", content=b"x" * SMALL_BODY).text == "reached"
    assert client().post("/api/vote", content=b"x" * (SMALL_BODY + 1)).status_code == 413
    assert client().post("/api/vote", content=iter([b"x"])).status_code == 413


@pytest.mark.parametrize("path", ["/", "/label", "/studio"])
def test_every_answer_carries_the_protective_headers(path):
    headers = client(KEY).get(path).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


def test_scripts_are_asked_for_anew_after_an_update():
    assert client().get("/static/annotation/labeller.js").headers["cache-control"] == "no-cache"
    assert "cache-control" not in client().get("/api/study").headers


def test_a_broken_cookie_is_no_cookie():
    assert client().get("/label/x", headers={"cookie": 'a="\x01; ]=;;'}).status_code == 401


def test_the_researchers_key_is_made_once_and_private(tmp_path):
    key = researcher_key(tmp_path, "0.0.0.0")
    assert len(key) >= 32
    assert researcher_key(tmp_path, "0.0.0.0") == key
    assert (tmp_path / "researcher.key").stat().st_mode & 0o077 == 0


def test_whoever_reaches_a_loopback_address_needs_no_key(tmp_path):
    assert researcher_key(tmp_path, "127.0.0.1") is None
    assert not (tmp_path / "researcher.key").exists()
