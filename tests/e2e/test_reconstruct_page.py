"""The page Reconstruct in a real browser: plan, start, watch, look at what came back."""

import re
from pathlib import Path

import pytest
from made_pictures import blocky
from playwright.sync_api import Page, Route, expect
from studio import Server

from semsim.base.sets.imports import places_of
from semsim.importers import AUTO, plan_import
from semsim.importers.import_folder import carry_out

pytestmark = pytest.mark.e2e
PAGE = "reconstruct"


RING = """box => {
  const look = getComputedStyle(box);
  return [look.outlineStyle, look.outlineWidth, look.boxShadow].join(' ');
}"""


def test_every_box_to_tick_shows_the_focus(page: Page) -> None:
    boxes = page.locator(".lab-form input:is([type=checkbox], [type=radio]):enabled:visible")
    expect(boxes.first).to_be_visible()
    page.keyboard.press("Tab")  # who uses the keyboard
    for box in boxes.all():
        plain = box.evaluate(RING)
        box.focus()
        assert box.evaluate(RING) != plain
        page.locator("h1").evaluate("() => document.activeElement.blur()")


def test_a_campaign_is_planned_run_and_looked_at(page: Page) -> None:
    cards = page.locator("#rec-cards")
    first = cards.get_by_role("button").first
    expect(first).to_have_text(re.compile("See it work(?!.*took)", re.DOTALL))  # none ran here
    expect(page.locator("td.lab-on")).to_have_count(2)  # one model, trained in two ways
    page.get_by_role("button", name="All 14 models and 13 trainings").click()
    page.get_by_label("Tiny", exact=True).check()
    page.get_by_label("Small, smooth", exact=True).uncheck()
    page.get_by_label("Gradient noised", exact=True).uncheck()
    page.get_by_label("Cropped and mirrored", exact=True).check()
    expect(page.locator("td.lab-on")).to_have_count(2)
    page.get_by_label("With a natural-image prior").uncheck()
    page.get_by_label("Inverting Gradients").check()
    page.get_by_text("More: how models are trained").click()
    for item, settings in (
        ("symbols", {"train_per_class": "1", "test_per_class": "1"}),
        ("cnn-small", {"width": "4", "activation": "tanh"}),
        ("invgrad", {"steps": "20"}),
    ):
        for name, value in settings.items():
            field = page.locator(f'[data-item="{item}"] [data-setting="{name}"]')
            field.select_option(value) if name == "activation" else field.fill(value)
    page.locator("#rec-images").fill("0")
    page.locator("#rec-start").click()
    expect(page.locator("#rec-trouble")).to_contain_text("at least one image")
    page.locator("#rec-images").fill("2")
    page.locator('[name="train.epochs"]').fill("1")
    page.locator("#rec-plan").click()
    expect(page.locator("#rec-outlook")).to_contain_text("4 pictures to attack")
    expect(page.locator("#rec-outlook")).to_contain_text("Time: about")
    wide = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 900})  # it stands below the buttons there
    assert page.locator("#rec-outlook").bounding_box()["width"] > 200
    page.set_viewport_size(wide)

    page.locator("#rec-start").click()
    expect(page.locator("#rec-status [data-state]")).to_be_visible()
    page.reload()  # the job is not the page's
    page.get_by_role("tab", name="Running").click()
    expect(page.locator("#rec-status [data-state=done]")).to_be_visible()
    expect(page.locator("#rec-sets")).to_contain_text("2 of 2 done")
    expect(page.locator("#rec-strip img")).to_have_count(8)
    expect(page.locator("#rec-status")).to_contain_text("Done, took ")
    page.get_by_role("tab", name="Results").click()
    expect(page.locator("#rec-verdict")).to_contain_text("of 4 pictures")
    expect(page.locator("#rec-result")).to_contain_text("4 ok / 0 failed")
    pictures = page.locator("#rec-grid td img")
    expect(pictures).to_have_count(4)
    for picture in pictures.all():
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 32
    expect(page.locator("#rec-grid th img")).to_have_count(2)


def test_a_card_fills_the_form_and_the_address_chooses_pictures_brought_in(
    page: Page, server: Server, tmp_path: Path
) -> None:
    page.get_by_role("button", name="The demo's grid").click()
    expect(page.locator("td.lab-on")).to_have_count(2 * 7)
    expect(page.locator("#rec-images")).to_have_value("12")
    expect(page.locator("#rec-outlook")).to_contain_text("14 targets")
    expect(page.get_by_label("CIFAR-100")).to_be_disabled()
    assert page.evaluate("document.documentElement.scrollHeight") <= 1.5 * 768

    for number in range(10):
        blocky(tmp_path / "own" / ("cat", "dog")[number % 2] / f"{number}.png", number)
    carry_out(plan_import(AUTO, tmp_path / "own", "own"), places_of("own", server.data))
    page.goto(f"{server.url}/studio/{PAGE}?pictures=own")
    expect(page.get_by_label("own", exact=True)).to_be_checked()
    expect(page.get_by_label("Drawn symbols", exact=True)).not_to_be_checked()
    expect(page.locator(".lab-choice", has_text="10 pictures of 2 classes")).to_be_visible()
    page.locator("#rec-images").fill("1")
    page.locator("#rec-plan").click()
    expect(page.locator("#rec-outlook")).to_contain_text("2 pictures to attack")
    page.get_by_text("More: how models are trained").click()
    own = page.locator('[data-of="datasets"]')
    expect(own.get_by_role("heading")).to_contain_text("own")
    root = str((server.data / "pictures/own").resolve())
    expect(own.locator('[data-setting="root"]')).to_have_value(root)
    page.get_by_role("button", name="See it work").click()
    expect(page.get_by_label("own", exact=True)).not_to_be_checked()


def test_a_data_set_that_cannot_be_fetched_says_why(page: Page) -> None:
    told = {"error": "The database does not answer."}
    toasts = page.locator("#studio-toasts")
    nobody = toasts.get_by_text("The studio does not answer. Try again.")
    fetch = page.locator("[data-fetch=cifar100]")

    def fails(route: Route) -> None:
        route.fulfill(status=502, body="<html>Bad gateway</html>")

    def says_why(route: Route) -> None:
        route.fulfill(status=503, json=told)

    for away in (lambda route: route.abort(), fails):
        page.route("**/fetch/*", away, times=1)
        fetch.click()
        expect(nobody).to_be_visible()
        expect(fetch).to_be_enabled()
        toasts.evaluate("(all) => all.replaceChildren()")
    page.route("**/fetch/*", says_why)
    fetch.click()
    expect(page.locator("[data-why=cifar100]")).to_have_text(told["error"])


def test_settings_that_do_not_come_come_when_they_are_opened_again_and_weights_are_the_models(
    page: Page,
) -> None:
    page.route("**/settings?*", lambda route: route.abort())
    more = page.get_by_text("More: how models are trained")
    more.click()
    said = page.get_by_text("The settings did not come. Open them again.")
    expect(said).to_be_visible()
    steps = page.locator('[data-item="symbols"] [data-setting="train_per_class"]')
    expect(steps).to_have_count(0)
    more.click()
    page.unroute("**/settings?*")
    more.click()
    expect(steps).to_be_visible()

    page.get_by_role("button", name="All 14 models and 13 trainings").click()
    page.get_by_label("From torchvision", exact=True).check()
    model, weights = (
        page.locator(f'[data-item="torchvision"] select[data-setting="{name}"]')
        for name in ("model", "weights")
    )
    choices = weights.locator("option:not([disabled])")
    expect(choices).to_have_text(["none", "DEFAULT", "IMAGENET1K_V1"])
    model.select_option("resnet50")
    expect(choices).to_have_text(["none", "DEFAULT", "IMAGENET1K_V1", "IMAGENET1K_V2"])
    weights.select_option("IMAGENET1K_V2")
    model.select_option("shufflenet_v2_x0_5")
    expect(weights).to_have_value("")  # it has no second ones
    expect(choices).to_have_text(["none", "DEFAULT", "IMAGENET1K_V1"])
