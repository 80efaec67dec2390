"""The page Federated in a real browser: start, watch, look at what came back."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.e2e
PAGE = "federated"
SLOW = 120_000  # milliseconds; two busy cores


def test_a_comparison_is_started_and_looked_at(phone: Page) -> None:
    expect(phone.locator("#fed-summary")).to_contain_text("Nothing has been")
    data = phone.locator("#fed-data input")
    data.fill("symbols:train_per_class=1,test_per_class=1,size=16")
    data.press("Enter")
    phone.locator("#fed-rounds input").fill("1")
    phone.locator("#fed-images input").fill("2")
    phone.locator("#fed-attack textarea, #fed-attack input").fill("invgrad:step=1")
    phone.locator("#fed-start").click()
    expect(phone.locator("#fed-trouble")).to_contain_text("no setting 'step'")
    phone.locator("#fed-attack textarea, #fed-attack input").fill("invgrad:steps=1")
    phone.locator("#fed-start").click()
    expect(phone.locator("#fed-status [data-state]")).to_be_visible()
    phone.reload()  # the job is not the page's
    expect(phone.locator("#fed-status [data-state=done]")).to_be_visible()
    expect(phone.locator("#fed-summary")).to_contain_text("The server: no protection")
    expect(phone.locator("#fed-grid img")).to_have_count(2 * 11)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
