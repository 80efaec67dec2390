"""The page Reconstruct in a real browser: plan, start, watch, look at what came back."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.e2e
PAGE = "reconstruct"
SLOW = 120_000  # milliseconds; two busy cores
TARGET = "cnn-small:width=4,activation=tanh"


def test_a_campaign_is_planned_run_and_looked_at(page: Page) -> None:
    expect(page.locator("#rec-sets")).to_contain_text("No campaign has been started here yet")
    for group, more in (
        ("datasets", "symbols:train_per_class=1,test_per_class=1"),
        ("architectures", TARGET),
        ("attacks", "invgrad:steps=20"),
    ):
        for box in page.locator(f"#rec-{group} input:checked").all()[::-1]:
            box.uncheck()
        if not page.locator(f"#rec-more-{group} textarea").is_visible():
            page.get_by_text("More, written as text").click()
        page.locator(f"#rec-more-{group} textarea").fill(more)
    page.locator("#rec-images input").fill("0")
    page.locator("#rec-start").click()
    expect(page.locator("#rec-trouble")).to_contain_text("at least one image")
    page.locator("#rec-images input").fill("2")
    page.locator("#rec-training input, #rec-training textarea").fill("epochs=1")
    page.locator("#rec-plan").click()
    expect(page.locator("#rec-outlook")).to_contain_text("4 images to attack")
    expect(page.locator("#rec-outlook")).to_contain_text("Time: about")

    page.locator("#rec-start").click()
    expect(page.locator("#rec-status [data-state]")).to_be_visible()
    page.reload()  # the job is not the page's
    expect(page.locator("#rec-status [data-state=done]")).to_be_visible()
    expect(page.locator("#rec-result")).to_contain_text("4 ok / 0 failed")
    expect(page.locator("#rec-sets")).to_contain_text("2 of 2 done")
    pictures = page.locator("#rec-grid td img")
    expect(pictures).to_have_count(4)
    for picture in pictures.all():
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 32
    expect(page.locator("#rec-grid th img")).to_have_count(2)


def test_the_page_fits_a_phone(phone: Page) -> None:
    expect(phone.locator("#rec-sets")).not_to_be_empty()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
