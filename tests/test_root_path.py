"""Every page, script, form, redirect and cookie of the product below a path, as behind nginx."""

import re
from collections import deque
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from fastapi.testclient import TestClient
from helpers import ROOT
from made_accounts import made_account, made_session
from studio import addresses, compose
from study_factory import SURE, fresh_database, let_answer, write_set

import semsim.base.jobs.folders
from annotation.accounts.access import ACCOUNT_COOKIE
from annotation.domain import Role
from annotation.spec import StudySpec, Task
from annotation.store import Store
from annotation.study.create import create_study
from annotation.web.root_path import ROOT_PATH, Below
from annotation.web.root_path import rooted as human
from semsim.ui.markup import rooted as science

PREFIX = "/lab/semsim"
HOST = "http://lab.example.org"
# The first part of every address that the product has.
OWN = (
    "account|admin|api|begin|done|favicon|invite|join|label|login|logout|me|sign-out|signed-out"
    "|static|studio"
)
LOST = re.compile(rf"""["'`(=]/(?:{OWN})\b[^"'`)\s]*""")  # an address that nobody has put below
PAGE = {"accept": "text/html,*/*"}
MOST = 600  # addresses


class Found(HTMLParser):
    """Addresses of a page: what it links, draws and loads, and where its forms go."""

    def __init__(self, text):
        super().__init__()
        self.links, self.posts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "form" and given.get("method", "get") != "get":
            self.posts += [given["action"]] if given.get("action") else []
            return
        names = ("href", "src", "action", "data-from")
        self.links += [given[name] for name in names if given.get(name)]


@pytest.fixture(scope="module")
def setting():
    """That the server lies below `PREFIX`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ROOT_PATH, PREFIX)
        # A page that wants a computation does not get it: this is about addresses.
        patch.setattr(semsim.base.jobs.folders, "start", lambda job: None)
        yield


@pytest.fixture(scope="module")
def visit(setting, tmp_path_factory):
    """(address, response) of all that an administrator and then an annotator come by."""
    folder = tmp_path_factory.mktemp("below")
    with fresh_database("sqlite", folder) as url, Store(url) as store:
        made_account(store, "Ada", Role.ADMINISTRATOR)
        sets = [
            write_set(folder / "runs" / str(n), model=f"net{n}", probabilities=SURE)
            for n in range(3)
        ]
        given = {"name": "Symbols", "task": Task.RECOGNITION, "instructions": "Say what you see."}
        spec = StudySpec(**given, votes_per_item=2, min_rt_ms=0)
        study = create_study(store, spec, sets, folder / "images")
        let_answer(store, folder / "images", study, lambda one: "none", ["Anna"])
        product = Below(compose(store, folder, "0.0.0.0", local=False))
        browser = TestClient(product, base_url=HOST, follow_redirects=False)
        told = [
            browser.get(f"{PREFIX}/studio/people", headers=PAGE),
            browser.get(f"{PREFIX}/label"),
        ]
        browser.cookies.set(ACCOUNT_COOKIE, made_session(store, "Ada"))
        bar = f"/studio/frame?study={study.id}&at=overview"  # which a script asks for
        crawl(browser, [bar, "/studio/overview", "/admin", "/login"], told)
        crawl(browser, [f"/join/{study.token}"], told)
        told += [browser.post(f"{PREFIX}/join/{study.token}", data={"name": "Ben"})]
        crawl(browser, ["/begin"], told)
        told += [browser.post(f"{PREFIX}/begin", data={"step": "instructions"})]
        crawl(browser, ["/label", "/label/worker.js", "/api/study"], told)
        told += [browser.get(f"{PREFIX}/api/next?tab=t"), browser.post(f"{PREFIX}/api/link")]
        crawl(browser, told[-2].json()["items"][0]["images"], told, before="")
        told += [browser.post(f"{PREFIX}/sign-out"), browser.post(f"{PREFIX}/logout")]
    return told


def crawl(browser, starts, told, before=PREFIX):
    """Ask for everything that can be come by from `starts`, each page once."""
    asked, waiting = set(), deque(before + start for start in starts)
    while waiting and len(asked) < MOST:
        address = urldefrag(waiting.popleft()).url
        page = re.sub(r"[0-9a-f]{12,}|\d+", "n", address)  # one of each kind is enough
        if page in asked:
            continue
        asked.add(page)
        reply = browser.get(address, headers=PAGE)
        told.append(reply)
        for one in linked(reply):
            waiting.append(urljoin(address, one))
    assert len(asked) < MOST


def linked(reply):
    """Addresses on this server that a response names."""
    kind = reply.headers.get("content-type", "")
    named = [reply.headers["location"]] if "location" in reply.headers else []
    if kind.startswith("text/html"):
        named += Found(reply.text).links
    return [one for one in named if urlsplit(urljoin(HOST, one)).netloc == urlsplit(HOST).netloc
            and urlsplit(one).scheme in ("", "http")]  # fmt: skip


def path(reply):
    return reply.request.url.path


def test_the_visit_saw_what_there_is_to_see(visit):
    """Or the other tests would find nothing because nothing was asked."""
    good = {path(one).removeprefix(PREFIX) for one in visit if one.status_code == 200}
    bar = "overview pictures items people results train compare reconstruct audit split federated"
    assert {f"/studio/{page}" for page in bar.split()} <= good
    assert {"/studio/", "/studio/new", "/studio/preview", "/admin", "/account", "/label"} <= good
    assert {"/static/annotation/labeller.js", "/studio/compare/compare.js"} <= good
    assert len([one for one in good if one.startswith("/studio/download/")]) > 3
    assert any(one.startswith("/api/image/") for one in good)


def test_every_link_leads_somewhere(visit):
    # 422: a study of few votes is no good for some of the downloads, which say so.
    assert {path(one) for one in visit if one.status_code not in (200, 303, 307, 422)} == set()


def test_every_address_lies_below_the_path(visit):
    for reply in visit:
        outside = [one for one in linked(reply) if one.startswith("/") or "://" in one]
        lost = [one for one in outside if not urlsplit(one).path.startswith(f"{PREFIX}/")]
        assert lost == [], path(reply)


def test_nothing_else_on_a_page_or_in_an_answer_names_an_address_outside(visit):
    kinds = ("text/html", "application/json", "text/css")
    for reply in visit:
        if reply.headers.get("content-type", "").startswith(kinds):
            assert LOST.findall(reply.text) == [], path(reply)


def test_every_form_has_somebody_who_takes_it(visit, setting, tmp_path):
    sent = set()
    for reply in visit:
        if reply.headers.get("content-type", "").startswith("text/html"):
            sent |= {urlsplit(urljoin(path(reply), one)).path for one in Found(reply.text).posts}
    assert len(sent) > 8
    with Store(f"sqlite:///{tmp_path}/studies.db") as store:
        made_account(store, "Ada", Role.ADMINISTRATOR)
        found = addresses(compose(store, tmp_path, "0.0.0.0", local=False)._app.routes)
        takes = [re.sub(r"{[^}]*}", "[^/]+", place) for method, place in found if method == "POST"]
    for address in sent:
        assert any(re.fullmatch(PREFIX + one, address) for one in takes), address


def test_redirects_and_cookies_stay_below_the_path(visit):
    sent = [one.headers["location"] for one in visit if "location" in one.headers]
    assert {urlsplit(one).path.startswith(f"{PREFIX}/") for one in sent} == {True}
    kept = [one for reply in visit for one in reply.headers.get_list("set-cookie")]
    places = {re.search(r"Path=([^;]*)", one)[1] for one in kept}
    assert places == {f"{PREFIX}/", f"{PREFIX}/studio"}


def test_gradio_knows_the_path(visit):
    drawn = [one for one in visit if "<gradio-app" in one.text]
    assert len(drawn) > 3
    for page in drawn:
        assert f'"root":"{HOST}{PREFIX}/studio"' in page.text


@pytest.mark.parametrize("address", ["/studio/people", f"{PREFIX}/studio/people"])
def test_the_server_in_front_may_leave_the_path_or_take_it_away(setting, tmp_path, address):
    with Store(f"sqlite:///{tmp_path}/studies.db") as store:
        product = Below(compose(store, tmp_path))
        reply = TestClient(product, base_url="http://127.0.0.1").get(address)
    assert reply.status_code == 200
    assert "Nobody" in reply.text or "no study" in reply.text.lower()


def test_a_script_asks_for_nothing_outside_the_path():
    """Scripts are files and the same everywhere: they see from their own address where they are."""
    scripts = [*ROOT.glob("annotation/ui/static/*.js"), *ROOT.glob("semsim/ui/**/*.js")]
    assert len(scripts) > 20
    asks = re.compile(rf"""(?:fetch|assign|replace|register|import)\(["'`]/(?:{OWN})""")
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        assert asks.findall(text) == [], script
        kept = re.findall(rf"""(?<!rooted\()["'`]/(?:{OWN})\b[^"'`]*""", text)
        # What a message is for, and what a preview answers, is told by the part behind the path.
        assert {one for one in kept if not one[1:].startswith("/api/")} <= {"'/studio/"}, script


def test_both_halves_mean_the_same_path(monkeypatch):
    monkeypatch.delenv(ROOT_PATH, raising=False)
    assert human("/studio/") == science("/studio/") == "/studio/"
    monkeypatch.setenv(ROOT_PATH, PREFIX)
    assert human("/studio/") == science("/studio/") == f"{PREFIX}/studio/"
