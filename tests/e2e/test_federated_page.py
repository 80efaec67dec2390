"""The page Federated in a real browser: start, watch, look at what came back."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.e2e
PAGE = "federated"


def test_a_comparison_is_started_and_looked_at(phone: Page) -> None:
    phone.get_by_role("tab", name="Results").click()
    expect(phone.locator("#fed-verdict")).to_contain_text("Nothing has been")
    phone.locator("#fed-verdict").get_by_role("button", name="Choose what to run").click()
    phone.get_by_role("button", name="Each kind of party").click()
    expect(phone.locator('[name="rounds"]')).to_have_value("50")
    expect(phone.locator("#fed-outlook")).to_contain_text("2 trainings of 50 rounds")
    phone.get_by_label("Drawn symbols").check()
    phone.get_by_text("More: masks").click()
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
    phone.get_by_role("tab", name="Running").click()
    expect(phone.locator("#fed-status [data-state=done]")).to_be_visible()
    arms = 2 + 3  # the yardsticks, and those that are ticked; LeNet starts with nothing to solve
    expect(phone.locator("#fed-strip figure")).to_have_count(8)
    expect(phone.locator("#fed-sets")).to_contain_text("done")
    phone.get_by_role("tab", name="Results").click()
    expect(phone.locator("#fed-verdict .st-lead")).to_contain_text(
        "Plain training", ignore_case=True
    )
    expect(phone.locator("#fed-grid img")).to_have_count(2 * (1 + arms))
    expect(phone.get_by_role("link", name="Make a study of these")).to_be_visible()
