"""Signing in and accounts over HTTP, with the guard in front."""

import logging
import re
from datetime import UTC, datetime
from functools import partial

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from made_accounts import made_account, made_session

from annotation.accounts import register as accounts
from annotation.accounts.access import ACCOUNT_COOKIE, lookup
from annotation.accounts.attempts import Clock
from annotation.domain import Account, Role
from annotation.store import Store
from annotation.store import accounts as rows
from annotation.study import labelling as study
from annotation.web import account_api
from annotation.web.guard import Guard
from annotation.web.templates import fill, page, reached_at

PASSWORD = "four words make one"
WRONG = "not four words at all"
ADMIN, RESEARCHER = Role.ADMINISTRATOR, Role.RESEARCHER


@pytest.fixture(scope="module")
def secret():
    """The password as it is kept, here five times as cheap to check."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "PARALLELISM", 1)
        yield accounts.protect(PASSWORD)


@pytest.fixture
def ada(store: Store, secret) -> Account:
    now = datetime.now(UTC)
    return store.write(lambda tx: rows.add(tx, "Ada", ADMIN, secret, now))


@pytest.fixture
def bo(store: Store) -> Account:
    return made_account(store, "Bo")


@pytest.fixture
def waits() -> list[float]:
    """The seconds that people had to wait, which pass at once."""
    return []


@pytest.fixture
def clock(waits) -> Clock:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return Clock(now=lambda: sum(waits), sleep=sleep)


@pytest.fixture
def visit(store: Store, clock):
    """A new browser, signed in to the account of that name without its password."""
    app = FastAPI()
    app.include_router(account_api.router(store, clock))
    app.add_api_route("/studio/", lambda: "studio", methods=["GET"])
    guarded = Guard(app, lookup(store), partial(study.who, store))

    def visit(name: str = "", scheme: str = "http", address: str = "10.0.0.1") -> TestClient:
        client = (address, 50000)
        base = f"{scheme}://lab"
        browser = TestClient(guarded, base_url=base, follow_redirects=False, client=client)
        browser.headers["accept"] = "text/html"
        if name:
            browser.cookies.set(ACCOUNT_COOKIE, made_session(store, name), domain="lab.local")
        return browser

    return visit


def login(browser: TestClient, name: str = "Ada", password: str = PASSWORD, **more: str):
    return browser.post("/login", data={"name": name, "password": password, **more})


def names(store: Store) -> dict[str, Role]:
    return {one.name: one.role for one in accounts.list_accounts(store) if one.disabled is None}


def test_signing_in_leads_to_the_page_asked_for_and_out_again(visit, ada):
    browser = visit()
    there = browser.get("/studio/?study=7").headers["location"]
    page = browser.get(there).text
    goes_to = re.search(r'name="next" value="([^"]*)"', page)[1]
    reply = login(browser, next=goes_to)
    assert (reply.status_code, reply.headers["location"]) == (303, "/studio/?study=7")
    assert browser.get("/studio/").text == '"studio"'
    assert browser.get("/login").headers["location"] == "/studio/"
    token = browser.cookies[ACCOUNT_COOKIE]
    assert browser.post("/logout").headers["location"] == "/login"
    assert ACCOUNT_COOKIE not in browser.cookies
    assert visit().get("/studio/", headers={"cookie": f"{ACCOUNT_COOKIE}={token}"}).is_redirect


@pytest.mark.parametrize(("scheme", "secure"), [("http", False), ("https", True)])
def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(visit, ada, scheme, secure):
    cookie = login(visit(scheme=scheme)).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert ("Secure" in cookie) is secure
    assert f"Max-Age={90 * 24 * 3600}" in cookie


def test_signing_in_ends_the_session_this_browser_had(visit, ada, store):
    browser = visit()
    login(browser)
    before = browser.cookies[ACCOUNT_COOKIE]
    login(browser)
    assert accounts.who(store, before, datetime.now(UTC)) is None


def test_who_signs_in_without_cookies_is_told_why_it_did_not_work(visit, ada):
    browser = visit()
    plain = browser.get("/login")
    assert "keeps no cookies" not in plain.text
    again = browser.get("/login", headers={"referer": f"{browser.base_url}/login?next=/studio/"})
    assert "this browser keeps no cookies of this site" in again.text


def test_a_refused_sign_in_is_logged_without_whose_it_was(visit, ada, caplog):
    caplog.set_level(logging.INFO, "annotation")
    login(visit(), "Ada", WRONG)
    (line,) = [one for one in caplog.records if one.name == "annotation.web.account_api"]
    assert (line.levelname, line.getMessage()) == ("WARNING", "A sign-in was refused with 403.")
    caplog.clear()
    login(visit())
    assert caplog.records == []


def test_wrong_passwords_are_told_and_make_one_wait(visit, ada, waits):
    for name in ["Ada", "ada", " ADA ", "Ada", "\uff21da", "A\u200bda", "aDa"]:
        reply = login(visit(), name, WRONG)
        assert reply.status_code == 403
        assert accounts.WRONG in reply.text
        assert WRONG not in reply.text
    assert waits == [1]  # of the seven one was of another name
    assert login(visit()).status_code == 303
    assert waits == [1, 2]


def test_nobody_is_kept_out_by_what_others_try_elsewhere(visit, ada, waits):
    for _ in range(7):
        login(visit(address="203.0.113.7"), "Ada", WRONG)
    assert waits == [1, 2]
    assert login(visit()).status_code == 303
    assert waits == [1, 2]


def test_an_address_that_has_signed_in_before_waits_after_many_more_tries(visit, ada, bo, waits):
    login(visit())
    for _ in range(account_api.KNOWN_FREE):
        assert login(visit(), "Ada", WRONG).status_code == 403
    assert waits == []
    login(visit(), "Ada", WRONG)
    assert waits == [1]
    assert login(visit()).status_code == 303
    login(visit(), "Ada", WRONG)
    assert waits == [1, 2]  # the right one cleared those before
    for _ in range(6):
        login(visit(), "Bo", WRONG)
    assert waits == [1, 2, 1]


def test_a_restart_knows_who_has_failed_and_which_address_has_signed_in(
    store, clock, ada, bo, waits
):
    def after_a_restart(name, password, address):
        with Store(store.url) as again:
            app = FastAPI()
            app.include_router(account_api.router(again, clock))
            client = TestClient(app, follow_redirects=False, client=(address, 50000))
            return login(client, name, password).status_code

    assert after_a_restart("Ada", PASSWORD, "10.0.0.1") == 303
    for _ in range(7):
        assert after_a_restart("Ada", WRONG, "10.0.0.1") == 403
    assert waits == []
    for _ in range(7):
        assert after_a_restart("Ada", WRONG, "10.0.0.2") == 403
    assert waits == [1, 2]


def test_many_names_from_one_address_make_it_wait_a_little(visit, ada, waits):
    replies = {login(visit(), f"Nobody {n}", WRONG).status_code for n in range(23)}
    assert replies == {403}
    assert waits == [1, 2, 2]


def test_right_passwords_do_not_make_one_wait(visit, ada, waits):
    assert {login(visit()).status_code for _ in range(9)} == {303}
    assert waits == []


def test_guesses_of_the_old_password_make_one_wait(visit, ada, waits):
    browser = visit()
    login(browser)
    for _ in range(6):
        browser.post("/account", data={"old": WRONG, "password": PASSWORD})
    assert waits == [1]


def test_forms_of_other_sites_do_nothing(visit, ada, bo, store):
    for path in ("/login", "/logout", "/invite/x", "/account", f"/admin/disable/{bo.id}"):
        reply = visit("Ada").post(path, headers={"origin": "http://evil"})
        assert reply.status_code == 403
    assert "Bo" in names(store)


@pytest.mark.parametrize(
    "wanted",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "/studio\\..",
        "/studio/\nx",
        "/studios",
        "/logout",
        "",
        "javascript:alert(1)",
    ],
)
def test_nobody_is_sent_to_other_sites(wanted):
    assert account_api.own_path(wanted) == "/studio/"


@pytest.mark.parametrize("wanted", ["/studio", "/studio/people?study=a%20b&x=1", "/admin"])
def test_people_are_sent_to_pages_of_this_server(wanted):
    assert account_api.own_path(wanted) == wanted


def test_a_link_to_hand_on_says_where_it_opens():
    shown = [
        page("link.html", link=f"http://{host}/invite/x", told="A link.", days=7).body.decode()
        for host in ("127.0.0.1:80", "[::1]:7860", "127.0.0.1.example.org", "lab:7860")
    ]
    assert all('data-copy="link"' in text for text in shown)
    only = "Only this computer can open this link."
    assert [only in text for text in shown] == [True, True, False, False]
    assert "make run HOST=0.0.0.0 PORT=80<" in shown[0]
    assert "make run HOST=0.0.0.0<" in shown[1]


def test_where_others_reach_the_server_its_address_is_named_and_no_restart():
    there, link = "http://192.0.2.5:7860/studio/", "http://127.0.0.1:7860/x"
    given = {"link": link, "told": "A link.", "days": 7, "glossary": []}
    reached_at(there)
    try:
        shown = [fill("link.html", **given), fill("help.html", **given)]
    finally:
        reached_at("")
    for text in shown:
        assert "To let others in, open the studio at" in text
        assert f"<code>{there}</code>" in text
        assert "make run" not in text
    assert "make run HOST=0.0.0.0<" in fill("link.html", **given)


def test_somebody_invited_chooses_a_name_and_a_password(visit, ada, store):
    page = visit("Ada").post(
        "/admin/invite", data={"role": "researcher", "note": " Bo <of>  Bonn "}
    )
    link = re.search(r'value="(http://lab/invite/[^"]+)"', page.text)[1]
    open_links = visit("Ada").get("/admin").text
    assert link not in open_links
    assert "for Bo &lt;of&gt; Bonn, a researcher, by Ada" in open_links
    newcomer = visit()
    assert "Ada has invited you as a researcher" in newcomer.get(link).text
    for name, password, told in (("Ada", PASSWORD, "another name"), ("Bo", "short", "at least 12")):
        reply = newcomer.post(link, data={"name": name, "password": password})
        assert reply.status_code == 422
        assert told in reply.text
    reply = newcomer.post(link, data={"name": "Bo", "password": PASSWORD})
    assert reply.headers["location"] == "/studio/"
    assert newcomer.get("/studio/").status_code == 200
    assert names(store) == {"Ada": ADMIN, "Bo": RESEARCHER}
    assert visit().get(link).status_code == 404
    assert visit().post(link, data={"name": "Cleo", "password": PASSWORD}).status_code == 404
    used = visit().get(link).text
    assert "SemSim Studio" in used
    assert 'href="/login"' in used  # a way on


def test_a_note_of_an_invitation_is_as_long_as_a_name(visit, ada):
    visit("Ada").post("/admin/invite", data={"role": "researcher", "note": "x" * 100})
    assert f"for {'x' * 80}, a researcher" in visit("Ada").get("/admin").text


def test_an_administrator_changes_roles_disables_and_enables(visit, ada, bo, store):
    browser = visit("Ada")
    assert browser.post(f"/admin/administrator/{bo.id}").headers["location"] == "/admin"
    assert names(store)["Bo"] is ADMIN
    browser.post(f"/admin/researcher/{bo.id}")
    assert names(store)["Bo"] is RESEARCHER
    browser.post(f"/admin/disable/{bo.id}")
    assert "Bo" not in names(store)
    assert "Enable: Bo" in browser.get("/admin").text
    browser.post(f"/admin/enable/{bo.id}")
    assert "Bo" in names(store)


def test_the_last_administrator_is_told_why_not(visit, ada, bo, store):
    for change in ("disable", "researcher"):
        reply = visit("Ada").post(f"/admin/{change}/{ada.id}")
        assert reply.status_code == 409
        assert "last administrator" in reply.text
    assert names(store)["Ada"] is ADMIN
    offered = visit("Ada").get("/admin").text
    assert f"/admin/disable/{ada.id}" not in offered
    assert f"/admin/reset/{ada.id}" in offered
    assert f"/admin/disable/{bo.id}" in offered
    visit("Ada").post(f"/admin/administrator/{bo.id}")
    assert f"/admin/disable/{ada.id}" in visit("Ada").get("/admin").text


def test_what_does_not_exist_cannot_be_changed(visit, ada):
    assert visit("Ada").post("/admin/disable/nobody").status_code == 404
    assert visit("Ada").post("/admin/reset/nobody").status_code == 404
    assert visit("Ada").post(f"/admin/promote/{ada.id}").status_code == 404


def test_a_link_can_be_withdrawn(visit, ada, bo):
    browser = visit("Ada")
    page = browser.post(f"/admin/reset/{bo.id}").text
    link = re.search(r'value="(http://lab/invite/[^"]+)"', page)[1]
    assert "the account Bo" in visit().get(link).text
    shown = browser.get("/admin").text
    assert "/admin/withdraw/" not in shown  # a press asks first
    asks = re.search(r"/admin\?withdraw=\w+", shown)[0]
    asked = browser.get(asks).text
    assert "cannot be restored" in asked
    assert visit().get(link).status_code == 200
    browser.post(re.search(r"/admin/withdraw/\w+", asked)[0])
    assert visit().get(link).status_code == 404


def test_a_researcher_administers_nothing_even_past_the_guard(store, ada, bo):
    app = FastAPI()
    app.include_router(account_api.router(store))
    browser = TestClient(app)
    for token, status in (("", 401), (made_session(store, "Bo"), 403)):
        browser.cookies.set(ACCOUNT_COOKIE, token)
        assert browser.get("/admin").status_code == status
        for path in ("invite", f"disable/{ada.id}", f"reset/{ada.id}", "withdraw/x"):
            reply = browser.post(f"/admin/{path}", data={"role": "administrator"})
            assert reply.status_code == status


def test_somebody_changes_their_own_password(visit, ada, store):
    here, there = visit(), visit()
    login(here)
    login(there)
    reply = here.post("/account", data={"old": WRONG, "password": "five words make a few"})
    assert "old password is wrong" in reply.text
    reply = here.post("/account", data={"old": PASSWORD, "password": "short"})
    assert "at least 12" in reply.text
    reply = here.post("/account", data={"old": PASSWORD, "password": "five words make a few"})
    assert "The password is changed" in reply.text
    assert here.get("/studio/").status_code == 200
    assert there.get("/studio/").is_redirect


def test_names_are_shown_as_text(visit, ada, store):
    made_account(store, "<b>Eve</b>")
    page = visit("Ada").get("/admin").text
    assert "&lt;b&gt;Eve&lt;/b&gt;" in page
    assert "<b>Eve" not in page
    assert "<b>Eve" not in login(visit(), "<b>Eve</b>", WRONG).text


def test_forms_hold_no_control_characters(visit, ada):
    assert login(visit(), "A\0da").status_code == 422
    assert login(visit(), "Ada", "four\x1bwords make one").status_code == 422
