"""The page Audit in a real browser: what leaks, what would change it, one picture attacked."""

import pytest
from e2e.science_server import ScienceServer
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.e2e
PAGE = "audit"
SLOW = 120_000  # milliseconds; two busy cores


def test_a_network_is_audited_changed_and_attacked(
    chromium: Browser, server: ScienceServer
) -> None:
    page = chromium.new_context(viewport={"width": 390, "height": 844}).new_page()
    page.set_default_timeout(SLOW)
    expect.set_options(timeout=SLOW)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{server.url}/studio/")
    expect(page.locator("#audit-verdict")).to_contain_text("c(M) = −2,266.5")
    expect(page.locator("#audit-figure svg")).to_be_visible()
    expect(page.locator("#audit-layers")).to_contain_text("867")
    expect(page.locator("#audit-tried")).to_contain_text("stride 2")

    page.locator("#audit-variant input").click()
    page.get_by_role("option", name="CNN3 variant 4").click()
    expect(page.locator("#audit-verdict")).to_contain_text("c(M) = −2,146")
    expect(page.locator("#audit-table")).to_contain_text("kernel")

    page.locator("#audit-size input, #audit-size textarea").first.fill("3x8")
    page.locator("#audit-show").click()
    expect(page.locator("#audit-trouble")).to_contain_text("as 3x32x32; got '3x8'")
    page.locator("#audit-size input, #audit-size textarea").first.fill("3x32x32")
    page.locator("#audit-attack").click()
    expect(page.locator("#audit-example")).to_contain_text("COPA-prior: PSNR")
    expect(page.locator("#audit-example img")).to_have_count(3)
    expect(page.locator("#audit-trouble")).to_have_text("")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert errors == []
    page.context.close()
    expect.set_options(timeout=5000)
