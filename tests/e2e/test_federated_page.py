"""The page Federated in a real browser: start, watch, look at what came back."""

import pytest
from e2e.science_server import ScienceServer
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.e2e
PAGE = "federated"
SLOW = 120_000  # milliseconds; two busy cores


def test_a_comparison_is_started_and_looked_at(chromium: Browser, server: ScienceServer) -> None:
    page = chromium.new_context(viewport={"width": 390, "height": 844}).new_page()
    page.set_default_timeout(SLOW)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{server.url}/studio/")
    expect(page.locator("#fed-summary")).to_contain_text("Nothing has been", timeout=SLOW)
    data = page.locator("#fed-data input")
    data.fill("symbols:train_per_class=1,test_per_class=1,size=16")
    data.press("Enter")
    page.locator("#fed-rounds input").fill("1")
    page.locator("#fed-images input").fill("2")
    page.locator("#fed-attack textarea, #fed-attack input").fill("invgrad:step=1")
    page.locator("#fed-start").click()
    expect(page.locator("#fed-trouble")).to_contain_text("no setting 'step'", timeout=SLOW)
    page.locator("#fed-attack textarea, #fed-attack input").fill("invgrad:steps=1")
    page.locator("#fed-start").click()
    expect(page.locator("#fed-status [data-state]")).to_be_visible(timeout=SLOW)
    page.reload()  # the job is not the page's
    expect(page.locator("#fed-status [data-state=done]")).to_be_visible(timeout=SLOW)
    expect(page.locator("#fed-summary")).to_contain_text("The server: no protection", timeout=SLOW)
    expect(page.locator("#fed-grid img")).to_have_count(2 * 11, timeout=SLOW)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.context.close()
    assert errors == []
