"""The page Audit in a real browser: what leaks, what would change it, one picture attacked."""

import re

import pytest
from helpers import until
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.e2e
PAGE = "audit"


def test_a_network_is_audited_changed_and_attacked(phone: Page) -> None:
    expect(phone.locator("#audit-verdict")).to_contain_text("c(M) = −2,266.5")
    expect(phone.locator("#audit-figure svg")).to_be_visible()
    expect(phone.locator("#audit-layers")).to_contain_text("867")
    expect(phone.locator("#audit-tried")).to_contain_text("stride 2")

    phone.locator("#audit-variant input").click()
    phone.get_by_role("option", name="CNN3 variant 4").click()
    expect(phone.locator("#audit-verdict")).to_contain_text("c(M) = −2,146")
    expect(phone.locator("#audit-table")).to_contain_text("kernel")

    phone.locator("#audit-height input").fill("")
    phone.locator("#audit-show").click()
    expect(phone.locator("#audit-trouble")).to_contain_text("height is a whole number from 1")
    phone.locator("#audit-height input").fill("32")
    phone.locator("#audit-attack").click()
    expect(phone.locator("#audit-example")).to_contain_text("COPA-prior: PSNR")
    expect(phone.locator("#audit-example img")).to_have_count(3)
    expect(phone.locator("#audit-trouble")).to_have_text("")


# One of the scripts without which Gradio draws nothing.
SCRIPT = re.compile(r"/assets/Blocks-[\w-]+\.js")
LOST = "A part of this page has not come."


def test_a_page_of_which_a_script_did_not_come_is_loaded_again(context, server) -> None:
    """As where a busy database refuses one request of sixty; nobody has filled in anything yet."""
    page, refused = context.new_page(), []
    page.route(SCRIPT, lambda one: refused.append(one.fulfill(status=503)), times=1)
    page.goto(f"{server.url}/studio/audit")
    expect(page.locator("#audit-show")).to_be_visible()
    assert len(refused) == 1
    expect(page.locator("#studio-toasts")).not_to_contain_text(LOST)


def test_a_page_of_which_a_script_never_comes_says_so(context, server) -> None:
    page, refused = context.new_page(), []
    page.route(SCRIPT, lambda one: refused.append(one.abort()))
    page.goto(f"{server.url}/studio/audit")
    lost = page.locator("#studio-lost")
    expect(lost).to_contain_text(LOST)
    assert len(refused) == 4  # and no more: it does not go on for ever
    page.unroute(SCRIPT)
    lost.get_by_role("button", name="Reload").click()
    expect(page.locator("#audit-show")).to_be_visible()
    expect(lost).to_have_count(0)


def test_a_page_that_takes_a_minute_says_so_until_it_is_there(context, server) -> None:
    page, held = context.new_page(), []
    page.clock.install()
    page.route(SCRIPT, held.append)
    page.goto(f"{server.url}/studio/audit", wait_until="commit")
    until(lambda: page.title() and held)
    late = page.locator("#studio-late")
    expect(late).to_have_count(0)
    page.clock.run_for(61_000)
    expect(late).to_contain_text(LOST)
    held[0].continue_()
    expect(page.locator("#audit-show")).to_be_visible()
    expect(late).to_have_count(0)
