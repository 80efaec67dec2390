"""Who may reach which part of the server."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from annotation.accounts.access import ACCOUNT_COOKIE
from annotation.domain import Account, Annotator, AnnotatorStatus, Role, Step
from annotation.web.guard import (
    ANNOTATOR_COOKIE,
    FRAMED_BY,
    PROCESS,
    SMALL_BODY,
    STUDIO_BODY,
    Guard,
    is_same_origin,
    process_name,
)
from semsim.base.errors import StoreError

PAGE = {"accept": "text/html,*/*"}


def account(role: Role) -> Account:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    return Account(id=role.value, name=role.value, role=role, created=since, disabled=None)


# A session's token → whose it is.
SESSIONS = {role.value: account(role) for role in Role}
ANNA = Annotator(
    id="anna",
    study_id="study",
    name="Anna",
    simulated=False,
    status=AnnotatorStatus.ACTIVE,
    step=Step.MAIN,
    seat=0,
)
LABELLING = {"anna's": ANNA}


async def reached(request: Request) -> Response:
    if "gone" in request.query_params:
        return PlainTextResponse("gone", 404)
    if "html" in request.query_params:
        return HTMLResponse("reached", headers={"Cache-Control": "private"})
    return PlainTextResponse("reached")


def client(session: str | None = None, who=SESSIONS.get, annotator=LABELLING.get) -> TestClient:
    """A browser with that session; `who` is None for a server started with --local."""
    methods = ["GET", "POST"]
    app = Starlette(routes=[Route("/{path:path}", reached, methods=methods)])
    host = "http://lab.example.org" if who else "http://127.0.0.1:7860"
    browser = TestClient(Guard(app, who, annotator), base_url=host, follow_redirects=False)
    if session is not None:
        browser.cookies.set(ACCOUNT_COOKIE, session)
    return browser


def local() -> TestClient:
    return client(who=None)


def anna(**keywords) -> TestClient:
    """The browser of somebody who labels."""
    browser = client(**keywords)
    browser.cookies.set(ANNOTATOR_COOKIE, "anna's")
    return browser


def passes(browser: TestClient, path: str, **keywords) -> bool:
    return browser.get(path, **keywords).text == "reached"


STUDIO = ["/studio", "/studio/", "/studio/config", "/studio/download/x/y", "//studio/train"]


ADMIN = ["/admin", "/admin/", "/admin/invite", "//admin"]
AT_HOME = "http://lab.example.org"  # or a path with two slashes would name another


def statuses(paths: Iterable[str], session: str | None, method: str = "GET") -> dict[str, int]:
    """What each path of the server at `AT_HOME` answers to somebody with that session."""
    browser = client(session)
    return {path: browser.request(method, AT_HOME + path).status_code for path in paths}


def test_the_studio_is_for_people_with_an_account():
    for session, status in ((None, 401), ("made up", 401), ("researcher", 200)):
        assert statuses(STUDIO, session) == dict.fromkeys(STUDIO, status)
    assert statuses(STUDIO, "administrator") == dict.fromkeys(STUDIO, 200)
    assert all(passes(client("researcher"), AT_HOME + path) for path in STUDIO)


def test_accounts_are_for_administrators():
    for session, status in ((None, 401), ("researcher", 403), ("administrator", 200)):
        assert statuses(ADMIN, session) == dict.fromkeys(ADMIN, status)
    assert statuses(ADMIN, "researcher", "POST") == dict.fromkeys(ADMIN, 403)
    told = {path: client("researcher").get(AT_HOME + path, headers=PAGE).text for path in ADMIN}
    assert [path for path, text in told.items() if "for administrators" not in text] == []


def test_an_annotator_gets_nowhere_else():
    assert anna().get("/studio/config").status_code == 401
    assert anna().get("/admin").status_code == 401
    assert passes(anna(), "/label/worker.js")


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
    assert client().post("/studio/x").json() == {"error": "You are not signed in."}
    assert client().get("/studio/x").json() == {"error": "You are not signed in."}


def test_a_form_that_is_sent_signed_out_is_answered_by_a_page():
    reply = client().post("/studio/x", headers=PAGE)
    assert reply.status_code == 401
    assert reply.headers["content-type"].startswith("text/html")
    assert "Sign in in another tab" in reply.text


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("/studio/reconstruct/", "/studio/reconstruct"),
        ("/studio//audit/?study=x%20y", "/studio/audit?study=x%20y"),
        ("/studio/pictures/set/%C3%A4%3F/", "/studio/pictures/set/%C3%A4%3F"),
    ],
)
def test_a_slash_at_the_end_leads_to_the_page_itself(path, to):
    reply = local().get(path, headers=PAGE)
    assert (reply.status_code, reply.headers["location"]) == (307, to)
    assert passes(local(), path)  # nobody looks at it
    assert passes(local(), "/studio/", headers=PAGE)


def test_who_asks_for_the_head_alone_is_told_what_a_page_is_told_without_its_body():
    whole, head = local().get("/studio/x"), local().head("/studio/x")
    assert (whole.text, head.text) == ("reached", "")
    assert head.status_code == whole.status_code
    assert head.headers == whole.headers
    assert client().head("/studio/x").status_code == 401


def test_no_browser_keeps_a_page():
    assert local().get("/studio/x?html").headers["cache-control"] == "no-store"
    assert "cache-control" not in local().get("/studio/x").headers


def test_a_database_that_does_not_answer_opens_nothing():
    def broken(token: str) -> Account | None:
        raise StoreError("The database is gone.")

    reply = client("administrator", broken).get("/studio")
    assert (reply.status_code, reply.json()) == (503, {"error": "The database is gone."})
    page = client("administrator", broken).get("/studio", headers=PAGE)
    assert page.status_code == 503
    assert '<p class="st-lead" role="alert">The database is gone.</p>' in page.text


@pytest.mark.parametrize("path", ["/studios", "/labels", "/joined", "/api/study"])
def test_other_paths_are_not_mistaken_for_closed_ones(path):
    assert passes(client(), path)


@pytest.mark.parametrize("session", ["", "made up", "researcher"])
def test_the_labelling_page_needs_a_session_that_the_store_knows(session):
    browser = client()
    browser.cookies.set(ANNOTATOR_COOKIE, session)
    assert browser.get("/label").headers["location"] == "/signed-out"
    assert browser.get("/label/").headers["location"] == "/signed-out"
    assert browser.get("/label/worker.js").status_code == 401
    assert browser.post("/label/gradio_api/cancel").status_code == 401
    assert passes(anna(), "/label")


def test_the_labelling_page_needs_one_with_local_too():
    assert local().get("/label").headers["location"] == "/signed-out"
    assert passes(anna(who=None), "/label/")


def test_where_the_database_does_not_answer_nobody_labels():
    def broken(token: str) -> Annotator | None:
        raise StoreError("The database is gone.")

    assert anna(annotator=broken).get("/label").status_code == 503
    page = anna(annotator=broken).get("/label", headers=PAGE)
    assert page.status_code == 503
    assert "<p>The database is gone.</p>" in page.text
    assert "frame.js" not in page.text  # an annotator sees nothing of the studio


def test_the_labelling_page_gets_what_it_needs():
    needed = [f"{AT_HOME}/label{path}" for path in ("", "/", "/worker.js", "//worker.js")]
    assert [path for path in needed if not passes(anna(), path)] == []


def test_the_labelling_page_gets_nothing_else():
    paths = [
        "api/x",
        "call/x",
        "cancel",
        "component_server",
        "config",
        "deep_link",
        "dev/reload",
        "file/tmp/x.png",
        "file=/etc/passwd",
        "heartbeat/x",
        "info",
        "process_recording",
        "queue/data",
        "queue/join",
        "reset",
        "run/predict",
        "static/%2e%2e/config",
        "stream/x",
        "theme.css",
        "assets/index.js",
        "static/js/x.js",
        "worker.js/x",
        "undo-vibe-edit",
        "upload",
    ]
    asked = [
        (method, f"/label/{before}{path}")
        for path in paths
        for before in ("", "gradio_api/")
        for method in ("GET", "POST")
    ]
    browser = anna()
    told = {(method, path): browser.request(method, path).status_code for method, path in asked}
    assert told == dict.fromkeys(asked, 404)


def test_nothing_is_sent_to_the_labelling_page():
    assert anna().post("/label").status_code == 404
    assert anna().post("/label/worker.js").status_code == 404


def test_the_labelling_page_runs_no_script_but_those_of_this_server():
    policy = anna().get("/label").headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe-eval" not in policy
    assert "unsafe-eval" in local().get("/studio").headers["content-security-policy"]


def test_gradio_routes_that_no_page_needs_are_closed():
    paths = [
        "/studio/gradio_api/file=http://example.org/x",
        "/studio/gradio_api/file/tmp/x",
        "/studio/train/gradio_api/token",
        "/studio/gradio_api/proxy=http://example.org",
        "/studio/gradio_api/process_recording",
        "/studio/gradio_api/component_server",
        "/studio/gradio_api/call/v2/x",
        "/studio/monitoring/summary",
        "/studio/gradio_api/upload",
    ]
    assert statuses(paths, "researcher") == dict.fromkeys(paths, 404)


def test_gradio_routes_that_pages_need_stay_open():
    paths = [
        "/studio/gradio_api/queue/join",
        "/studio/gradio_api/run/predict",
        "/studio/gradio_api/file=/tmp/x.png",
    ]
    assert [path for path in paths if not passes(client("researcher"), path)] == []


def test_an_event_of_a_page_that_another_process_drew_is_refused_in_words():
    def sent(drawn_by: str):
        browser = client("researcher")
        return browser.post("/studio/gradio_api/run/predict", headers={PROCESS: drawn_by})

    assert sent(process_name()).text == "reached"
    refused = sent("another")
    assert refused.status_code == 409
    assert "Stickiness" in refused.json()["error"]
    assert "deploy/nginx.conf" in refused.json()["error"]


@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        ({}, True),
        ({"sec-fetch-site": "same-origin", "origin": "http://lab:1", "host": "lab:1"}, True),
        ({"origin": "http://lab:1", "host": "lab:1"}, True),
        ({"origin": "http://evil", "host": "lab"}, False),
        ({"origin": "http://lab.evil", "host": "lab"}, False),
        ({"origin": "null", "host": "lab"}, False),
        ({"origin": "http://[::1", "host": "lab"}, False),
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


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/api/vote", SMALL_BODY),
        ("/login", SMALL_BODY),
        ("/favicon.ico", SMALL_BODY),
        ("/nowhere", SMALL_BODY),
        ("/studio/gradio_api/queue/join", STUDIO_BODY),
        ("/studio/gradio_api/cancel", STUDIO_BODY),
    ],
)
def test_what_is_sent_is_small_everywhere(path, most):
    def send(content) -> TestClient:
        return client("researcher").post(path, content=content)

    assert send(b"x" * most).text == "reached"
    assert send(b"x" * (most + 1)).status_code == 413
    assert send(iter([b"x"])).status_code == 413


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "1e3", "\xb2", ""])
def test_a_length_that_is_no_number_is_too_long(length):
    headers = {"content-length": length.encode("latin-1")}
    assert client().get("/api/study", headers=headers).status_code == 413


def test_nobody_sends_files():
    form = {"file": ("x.png", b"x")}
    assert client("researcher").post("/studio/gradio_api/x", files=form).status_code == 415
    assert client().post("/login", files=form).status_code == 415


def test_addresses_have_no_control_characters():
    paths = ["/join/%00", "/api/next?tab=%00", "/studio/x%1b", "/api/image/%7F", "/join/x?a%00=1"]
    assert statuses(paths, "researcher") == dict.fromkeys(paths, 400)


def test_addresses_may_have_letters_of_all_languages():
    assert passes(client("researcher"), "/studio/people?study=%C3%84%20%E2%80%93%20%F0%9F%8E%A8")


@pytest.mark.parametrize("path", ["/", "/label", "/studio"])
def test_every_answer_carries_the_protective_headers(path):
    headers = client().get(path).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_a_server_may_be_framed_by_sites_that_its_environment_names(monkeypatch):
    """As a Space is, whose pages stand inside those of its service."""
    monkeypatch.setenv(FRAMED_BY, "https://huggingface.co")
    for path, allowed in (
        ("/studio/preview", "'self' https://huggingface.co"),
        ("/label", "https"),
    ):
        policy = client("administrator").get(path).headers["content-security-policy"]
        assert policy.rpartition("frame-ancestors ")[2].startswith(allowed)
        assert "'none'" not in policy.rpartition("frame-ancestors ")[2]


def test_scripts_are_asked_for_anew_after_an_update():
    assert client().get("/static/annotation/labeller.js").headers["cache-control"] == "no-cache"
    assert "cache-control" not in client().get("/api/study").headers


def test_files_named_by_their_content_are_kept_unless_they_failed():
    """Gradio's, some 60 of each page."""
    assert "immutable" in local().get("/studio/assets/index-Dp.js").headers["cache-control"]
    assert local().get("/studio/assets/index-Dp.js?gone").headers["cache-control"] == "no-store"


def test_a_broken_cookie_is_no_cookie():
    assert client().get("/label/x", headers={"cookie": 'a="\x01; ]=;;'}).status_code == 401


def test_who_comes_by_another_host_is_told_which_and_what_to_change():
    reply = client().post("/login", headers={"origin": "https://lab.example.net"})
    assert reply.status_code == 403
    for said in ("'https://lab.example.net'", "'lab.example.org'", "Host $http_host"):
        assert said in reply.json()["error"]
    browser = local()
    reply = browser.get("/studio/", headers={"host": "lab.example.org"})
    assert reply.status_code == 403
    assert "'lab.example.org'" in reply.json()["error"]
    assert "--local" in reply.json()["error"]
