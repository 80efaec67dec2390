"""The page Audit in a real browser: c(M), what would change it, examples attacked."""

import re

import pytest
from helpers import until
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.e2e
PAGE = "audit"


def test_a_network_is_audited_changed_and_attacked(phone: Page) -> None:
    expect(phone.locator("#audit-lead")).to_contain_text("Attack an example to see whether")
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
    expect(phone.locator("#audit-lead")).to_contain_text("A reference classifier recognises")
    expect(phone.locator("#audit-example")).to_contain_text("COPA-prior")
    expect(phone.locator("#audit-example img")).to_have_count(12)
    expect(phone.locator("#audit-trouble")).to_have_text("")


# Gradio draws nothing without either; a browser asks twice for a script, and once for its style.
SCRIPT, STYLE = (re.compile(rf"/assets/Blocks-[\w-]+\.{one}") for one in ("js", "css"))
LOST = "A part of this page has not come."


def counted(page):
    """The times that `page` is loaded."""
    loads = []
    page.on("domcontentloaded", lambda one: loads.append(one.url))
    return loads


@pytest.mark.parametrize(("part", "times"), [(STYLE, 1), (SCRIPT, 2)])
def test_a_page_of_which_a_part_did_not_come_is_loaded_again(context, server, part, times) -> None:
    """As where a busy database refuses one request of sixty; nobody has filled in anything yet."""
    page = context.new_page()
    loads = counted(page)
    page.route(part, lambda one: one.fulfill(status=503), times=times)
    page.goto(f"{server.url}/studio/audit")
    expect(page.locator("#audit-show")).to_be_visible()
    assert len(loads) == 2
    expect(page.locator("#studio-toasts")).not_to_contain_text(LOST)


def test_a_page_of_which_a_part_never_comes_says_so(context, server) -> None:
    page = context.new_page()
    loads = counted(page)
    network = context.new_cdp_session(page)  # a route would have everything fetched anew
    network.send("Network.enable")
    network.send("Network.setBlockedURLs", {"urls": ["*/assets/Blocks-*.css"]})
    page.goto(f"{server.url}/studio/audit")
    lost = page.locator("#studio-lost")
    expect(lost).to_contain_text(LOST)
    assert len(loads) == 4  # and no more: it does not go on for ever
    network.send("Network.setBlockedURLs", {"urls": []})
    lost.get_by_role("button", name="Reload").click()
    expect(page.locator("#audit-show")).to_be_visible()
    expect(lost).to_have_count(0)


def test_a_page_that_takes_a_minute_says_so_until_it_is_there(chromium, server) -> None:
    with chromium.new_context() as alone:  # its clock is set
        page, held = alone.new_page(), []
        page.clock.install()
        page.route(STYLE, lambda one: held.append(one))
        page.goto(f"{server.url}/studio/audit", wait_until="commit")
        until(lambda: page.evaluate("1") and held)
        late = page.locator("#studio-late")
        expect(late).to_have_count(0)
        page.clock.run_for(61_000)
        expect(late).to_contain_text(LOST)
        for one in held:
            one.continue_()
        expect(page.locator("#audit-show")).to_be_visible()
        expect(late).to_have_count(0)
