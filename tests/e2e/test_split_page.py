"""The page Split inference in a real browser: choose, start, see what leaks."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.e2e
PAGE = "split"
SLOW = 120_000  # milliseconds; two busy cores


def test_an_experiment_is_chosen_run_and_looked_at(phone: Page) -> None:
    expect(phone.locator("#split-result")).to_contain_text("No experiment has been run here yet")
    for title in ("Fixed noise", "Ensembler", "Adaptive, aligned"):
        phone.get_by_label(title, exact=True).uncheck()
    phone.get_by_text("More: cuts").click()
    for item, settings in (
        ("digits", {"size": "12", "count": "90"}),
        ("small:width=16", {"width": "2", "h": "3"}),
    ):
        for name, value in settings.items():
            phone.locator(f'[data-item="{item}"] [data-setting="{name}"]').fill(value)
    phone.locator("#split-start").click()
    expect(phone.locator("#split-trouble")).to_contain_text("4 units")
    phone.locator('[data-item="small:width=16"] [data-setting="h"]').fill("1")
    phone.locator("#split-start").click()
    expect(phone.locator("#split-status [data-state=done]")).to_be_visible()
    expect(phone.locator("#split-result .st-lead")).to_contain_text("defence")
    expect(phone.locator("#split-result")).to_contain_text("Without any feature")
    expect(phone.locator("#split-result img").nth(2)).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
