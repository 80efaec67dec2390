"""The page Split inference in a real browser: choose, start, see what leaks."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.e2e
PAGE = "split"
SLOW = 120_000  # milliseconds; two busy cores


def test_an_experiment_is_chosen_run_and_looked_at(phone: Page) -> None:
    expect(phone.locator("#split-result")).to_contain_text("No experiment has been run here yet")
    for group, kept in (("defences", "none"), ("attacks", "Adaptive, all bodies")):
        for box in phone.locator(f"#split-{group} label:has(input:checked)").all()[::-1]:
            if box.inner_text().strip() != kept:
                box.locator("input").uncheck()
    for field, text in (("dataset", "digits:size=12,count=90"), ("network", "small:width=2")):
        phone.locator(f"#split-{field} input").fill(text)
        phone.locator(f"#split-{field} input").press("Enter")
    phone.locator("#split-h input").fill("3")
    phone.locator("#split-start").click()
    expect(phone.locator("#split-trouble")).to_contain_text("4 units")
    phone.locator("#split-h input").fill("1")
    phone.locator("#split-start").click()
    expect(phone.locator("#split-status [data-state=done]")).to_be_visible()
    expect(phone.locator("#split-result")).to_contain_text("Without any feature")
    expect(phone.locator("#split-result img").nth(2)).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
