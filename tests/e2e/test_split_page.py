"""The page Split inference in a real browser: choose, start, see what leaks."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.e2e
PAGE = "split"


def test_an_experiment_is_chosen_run_and_looked_at(phone: Page) -> None:
    phone.get_by_role("tab", name="Running").click()
    expect(phone.locator("#split-strip")).to_contain_text("No experiment has been run here yet")
    phone.locator("#split-strip").get_by_role("button", name="Choose what to run").click()
    expect(phone.locator("#split-form td.lab-on")).to_have_count(2)
    phone.get_by_label("Fixed noise", exact=True).uncheck()
    expect(phone.locator("#split-form td.lab-on")).to_have_count(1)
    expect(phone.get_by_label("Nothing", exact=True)).to_be_disabled()
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
    strip = phone.locator("#split-strip img")
    expect(strip).to_have_count(2 * 8)
    assert strip.nth(1).evaluate("image => image.decode().then(() => image.naturalWidth)") == 12
    phone.get_by_role("tab", name="Results").click()
    # Two numbers stand in one paragraph each: what can be judged first, then the statistic.
    expect(phone.locator("#split-verdict .st-lead")).to_contain_text("Not trained enough")
    expect(phone.locator("#split-verdict")).to_contain_text("without a defence")
    expect(phone.locator("#split-result")).to_contain_text("Without any feature")
    expect(phone.get_by_role("link", name="Make a study of these")).to_be_visible()
    expect(phone.locator("#split-grid img").nth(2)).to_be_visible()
