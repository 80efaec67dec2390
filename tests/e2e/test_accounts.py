"""Accounts in a real browser: signing in and out, inviting, and what stays closed to whom."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from study_factory import write_set

from annotation.spec import StudySpec, Task
from annotation.store import Store
from annotation.store.tables import EventRow
from annotation.study.create import create_study
from e2e.account_server import AccountServer
from e2e.rules import broken_in_any_look

pytestmark = pytest.mark.e2e
SLOW = 60_000  # milliseconds; two busy cores
PASSWORD = "four words make one"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMSIM_ADMIN_PASSWORD", PASSWORD)
        patch.setenv("SEMSIM_ADMIN", "Ada")
        running = AccountServer(tmp_path_factory.mktemp("accounts"))
        running.start()
    yield running
    running.kill()


@pytest.fixture
def visit(chromium: Browser, server: AccountServer) -> Iterator[Callable[[], Page]]:
    contexts: list[BrowserContext] = []

    def visit() -> Page:
        contexts.append(chromium.new_context(base_url=server.url))
        page = contexts[-1].new_page()
        page.set_default_timeout(SLOW)
        return page

    expect.set_options(timeout=SLOW)
    yield visit
    expect.set_options(timeout=5000)
    for context in contexts:
        context.close()


def sign_in(page: Page, name: str = "Ada", password: str = PASSWORD) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_signing_in_outlives_a_restart_and_ends_when_one_signs_out(visit, server) -> None:
    page = visit()
    page.goto("/studio/overview?study=none")
    expect(page).to_have_url(re.compile(r"/login\?next="))
    assert broken_in_any_look(page) == []
    sign_in(page, password="not the password")
    expect(page.get_by_role("alert")).to_contain_text("name or the password is wrong")
    assert broken_in_any_look(page) == []
    sign_in(page)
    bar = page.get_by_role("complementary", name="Studio")
    page.get_by_role("button", name="Menu").click()  # the window is a telephone's since
    expect(bar).to_contain_text("Signed in as Ada")
    expect(page).to_have_url(f"{server.url}/studio/overview?study=none")
    assert broken_in_any_look(page, "#studio-frame") == []

    server.kill()
    server.start()
    page.reload()
    page.get_by_role("button", name="Menu").click()
    expect(bar).to_contain_text("Signed in as Ada")
    expect(page.get_by_text("No study yet")).to_be_visible()

    bar.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto("/studio/overview")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_the_side_bar_says_that_one_is_signed_out(visit, server) -> None:
    page = visit()
    page.goto("/studio/help")
    sign_in(page)
    bar = page.locator("#studio-frame")
    expect(bar).to_contain_text("Signed in as Ada")
    with page.expect_response(f"{server.url}/logout"):
        page.evaluate("() => { fetch('/logout', { method: 'POST' }); }")  # as another tab does
    expect(bar).to_have_attribute("data-lost", "You are signed out. Load the page again.")
    expect(bar).to_contain_text("Signed in as Ada")  # no page in its place
    page.reload()
    sign_in(page)
    expect(page).to_have_url(f"{server.url}/studio/help")


def test_a_researcher_is_invited_and_administers_nothing(visit) -> None:
    ada, bo = visit(), visit()
    ada.goto("/admin")
    sign_in(ada)
    ada.get_by_role("button", name="Make a link").click()
    link = ada.get_by_label("Link").input_value()
    assert broken_in_any_look(ada) == []
    bo.goto(link)
    assert broken_in_any_look(bo) == []
    bo.get_by_label("Name").fill("Bo")
    bo.get_by_label("New password").fill("five words make a few")
    bo.get_by_role("button", name="Make the account").click()
    bar = bo.get_by_role("complementary", name="Studio")
    bo.get_by_role("button", name="Menu").click()
    expect(bar).to_contain_text("Signed in as Bo")
    expect(bar.get_by_role("link", name="Accounts")).to_have_count(0)
    bo.goto("/admin")
    expect(bo.get_by_role("heading", name="Administrators only")).to_be_visible()

    ada.goto("/admin")
    assert broken_in_any_look(ada) == []
    ada.get_by_role("button", name="Disable: Bo").click()
    expect(ada.get_by_role("button", name="Enable: Bo")).to_be_visible()
    bo.goto("/studio/overview")
    expect(bo.get_by_role("heading", name="Sign in")).to_be_visible()


def test_the_page_of_ones_own_account_breaks_no_rule(visit) -> None:
    page = visit()
    page.goto("/account")
    sign_in(page)
    expect(page.get_by_role("heading", name="Ada")).to_be_visible()
    assert broken_in_any_look(page) == []
    for old, role in (("not the password", "alert"), (PASSWORD, "status")):
        page.get_by_label("Password until now").fill(old)
        page.get_by_label("New password").fill(PASSWORD)
        page.get_by_role("button", name="Change the password").click()
        expect(page.get_by_role("main").get_by_role(role)).to_be_visible()
        assert broken_in_any_look(page) == []


def test_events_say_which_account_caused_them(visit, server) -> None:
    folder = write_set(server.data / "sets" / "convnet8", model="convnet8")
    with Store(f"sqlite:///{server.data / 'studies.db'}") as store:
        spec = StudySpec(
            name="Symbols", task=Task.RECOGNITION, votes_per_item=2, list_size=8, min_rt_ms=0
        )
        study = create_study(store, spec, [folder], server.data / "images")
        page = visit()
        page.goto("/studio/overview")
        sign_in(page)
        page.get_by_role("button", name="Pause").click()
        expect(page.locator(".ov-top")).to_contain_text("paused")
        events = store.read(lambda tx: tx.query(EventRow).filter_by(study_id=study.id).all())
    assert [one.data["by"] for one in events if one.kind == "status"] == ["Ada"]


def test_the_cookie_of_an_annotator_opens_nothing_of_the_studio(visit, server) -> None:
    page = visit()
    for name in ("semsim_session", "semsim_account"):
        page.context.add_cookies([{"name": name, "value": "x", "url": server.url}])
    page.goto("/studio/overview")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    for path in ("/studio/config", "/studio/download/x/votes.csv", "/admin", "/account"):
        assert page.request.get(path, headers={"accept": "*/*"}).status == 401
