"""Accounts in a real browser: their pages break no rule, and a page says that one is signed out."""

import re
from collections.abc import Iterator

import pytest
from made_accounts import made_account, made_session
from playwright.sync_api import Page, expect

from annotation.accounts.access import ACCOUNT_COOKIE
from e2e.account_server import AccountServer
from e2e.rules import broken_in_any_look

pytestmark = pytest.mark.e2e
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
def ada(page: Page, server, store) -> Page:
    """A page of somebody who administers and is signed in."""
    cookie = {"name": ACCOUNT_COOKIE, "value": made_session(store, "Ada"), "url": server.url}
    page.context.add_cookies([cookie])
    return page


def sign_in(page: Page, name: str = "Ada", password: str = PASSWORD) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_signing_in_breaks_no_rule(page: Page, server) -> None:
    page.goto(f"{server.url}/studio/overview?study=none")
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
    bar.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_the_side_bar_says_that_one_is_signed_out(ada: Page, server) -> None:
    ada.goto(f"{server.url}/studio/help")
    bar = ada.locator("#studio-frame")
    expect(bar).to_contain_text("Signed in as Ada")
    with ada.expect_response(f"{server.url}/logout"):
        ada.evaluate("() => { fetch('/logout', { method: 'POST' }); }")  # as another tab does
    expect(bar).to_have_attribute("data-lost", "You are signed out. Load the page again.")
    expect(bar).to_contain_text("Signed in as Ada")  # no page in its place
    ada.reload()
    expect(ada.get_by_role("heading", name="Sign in")).to_be_visible()


def test_inviting_and_being_invited_break_no_rule(ada: Page, server, store) -> None:
    made_account(store, "Bo")
    ada.goto(f"{server.url}/admin")
    expect(ada.get_by_role("button", name="Disable: Bo")).to_be_visible()
    ada.get_by_role("button", name="Make a link").click()
    link = ada.get_by_label("Link").input_value()
    assert broken_in_any_look(ada) == []
    ada.context.clear_cookies()
    ada.goto(link)
    expect(ada.get_by_role("button", name="Make the account")).to_be_visible()
    assert broken_in_any_look(ada) == []


def test_the_page_of_ones_own_account_breaks_no_rule(ada: Page, server) -> None:
    ada.goto(f"{server.url}/account")
    expect(ada.get_by_role("heading", name="Ada")).to_be_visible()
    assert broken_in_any_look(ada) == []
    for old, role in (("not the password", "alert"), (PASSWORD, "status")):
        ada.get_by_label("Current password").fill(old)
        ada.get_by_label("New password").fill(PASSWORD)
        ada.get_by_role("button", name="Change the password").click()
        expect(ada.get_by_role("main").get_by_role(role)).to_be_visible()
        assert broken_in_any_look(ada) == []
