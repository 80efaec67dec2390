"""The page Federated in a real browser: start, watch, look at what came back."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.e2e
PAGE = "federated"
SLOW = 120_000  # milliseconds; two busy cores


def test_a_comparison_is_started_and_looked_at(phone: Page) -> None:
    expect(phone.locator("#fed-summary")).to_contain_text("Nothing has been")
    phone.get_by_label("Drawn symbols").check()
    phone.get_by_text("More: attack").click()
    for item, settings in (
        ("symbols", {"train_per_class": "1", "test_per_class": "1", "size": "16"}),
        ("invgrad:steps=300,tv=0.002", {"steps": "1"}),
    ):
        for name, value in settings.items():
            phone.locator(f'[data-item="{item}"] [data-setting="{name}"]').fill(value)
    phone.locator('[name="rounds"]').fill("1")
    phone.locator('[name="images"]').fill("1")
    phone.locator("#fed-start").click()
    expect(phone.locator("#fed-trouble")).to_contain_text("Images each is 1")
    phone.locator('[name="images"]').fill("2")
    phone.locator("#fed-start").click()
    expect(phone.locator("#fed-status [data-state]")).to_be_visible()
    phone.reload()  # the job is not the page's
    expect(phone.locator("#fed-status [data-state=done]")).to_be_visible()
    expect(phone.locator("#fed-summary .st-lead")).to_contain_text(
        "Plain training", ignore_case=True
    )
    arms = 1 + 2 + 4  # originals, the yardsticks, and those that are ticked
    expect(phone.locator("#fed-grid img")).to_have_count(2 * (arms - 1))  # LeNet: none solved
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
