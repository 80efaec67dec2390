"""The page Split inference in a real browser: choose, start, see what leaks."""

import pytest
from e2e.science_server import ScienceServer
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.e2e
PAGE = "split"
SLOW = 120_000  # milliseconds; two busy cores


def test_an_experiment_is_chosen_run_and_looked_at(
    chromium: Browser, server: ScienceServer
) -> None:
    page = chromium.new_context(viewport={"width": 390, "height": 844}).new_page()
    page.set_default_timeout(SLOW)
    expect.set_options(timeout=SLOW)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{server.url}/studio/")
    expect(page.locator("#split-result")).to_contain_text("No experiment has been run here yet")
    for group, kept in (("defences", "none"), ("attacks", "Adaptive, all bodies")):
        for box in page.locator(f"#split-{group} label:has(input:checked)").all()[::-1]:
            if box.inner_text().strip() != kept:
                box.locator("input").uncheck()
    for field, text in (("dataset", "digits:size=12,count=90"), ("network", "small:width=2")):
        page.locator(f"#split-{field} input").fill(text)
        page.locator(f"#split-{field} input").press("Enter")
    page.locator("#split-h input").fill("3")
    page.locator("#split-start").click()
    expect(page.locator("#split-trouble")).to_contain_text("4 units")
    page.locator("#split-h input").fill("1")
    page.locator("#split-start").click()
    expect(page.locator("#split-status [data-state=done]")).to_be_visible()
    expect(page.locator("#split-result")).to_contain_text("Without any feature")
    expect(page.locator("#split-result img").nth(2)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert errors == []
    page.context.close()
    expect.set_options(timeout=5000)
