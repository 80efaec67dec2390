"""The page Audit in a real browser: c(M), what would change it, examples attacked."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.e2e
PAGE = "audit"


def test_a_network_is_audited_changed_and_attacked(phone: Page) -> None:
    expect(phone.locator("#audit-lead")).to_contain_text("Nothing is known of what can be")
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
