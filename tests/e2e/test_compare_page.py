"""Compare in a real browser: five tabs that fit, a choice that changes what depends on it alone."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

pytestmark = pytest.mark.e2e
PAGE = "compare"


def at(server, query: str = "") -> str:
    return f"{server.url}/studio/compare?{query}"


def test_a_press_on_a_row_is_the_metric_everywhere(page: Page, server) -> None:
    page.goto(at(server, "tab=answer"))
    before = page.locator("#cmp-forest").inner_html()
    page.locator(".cmp-forest tbody tr", has_text=re.compile("^MSE")).locator("td").first.click()
    expect(page.locator("#cmp-side h2")).to_have_text("MSE")
    assert page.locator("#cmp-forest tbody tr[aria-current] th").inner_text() == "MSE"
    strip = re.compile(r' aria-current="true"')
    assert strip.sub("", page.locator("#cmp-forest").inner_html()) == strip.sub("", before)
    page.locator("#cmp-tab-disagreements").click()
    expect(page.locator("#cmp-grid-metric")).to_have_value("mse")
    page.locator("#cmp-tab-metric").click()
    expect(page.locator("#cmp-metric")).to_have_value("mse")
    page.reload()  # the address has it
    expect(page.locator("#cmp-metric")).to_have_value("mse")
    page.go_back()
    expect(page.locator("#cmp-tab-disagreements")).to_have_attribute("aria-current", "page")


def test_what_is_asked_is_of_the_study_shown_and_can_be_asked_again(page: Page, server) -> None:
    """Another page may have chosen another meanwhile."""
    page.goto(at(server))
    shown = page.locator(".cmp-head").get_attribute("data-study")
    assert shown
    with page.expect_request(re.compile("part/panel")) as asked:
        page.locator("#cmp-tab-files").click()
    assert f"study={shown}" in asked.value.url
    expect(page).to_have_url(re.compile(f"study={shown}"))

    # What failed there can be pressed again.
    page.route(re.compile("act/report"), lambda route: route.abort())
    make = page.locator("[data-act=report]")
    make.click()
    expect(page.locator("#studio-toasts")).to_contain_text("The studio does not answer")
    expect(make).to_be_enabled()
    page.unroute(re.compile("act/report"))
    page.route(
        re.compile("act/report"),
        lambda route: route.fulfill(status=422, json={"error": "The disk is full."}),
    )
    make.click()
    expect(page.locator("#studio-toasts")).to_contain_text("The disk is full.")
    expect(make).to_be_enabled()


def test_a_metric_opened_in_another_tab_leaves_this_page_as_it_is(page: Page, server) -> None:
    page.goto(at(server, "tab=answer"))
    shown, before = page.locator("#cmp-side h2").inner_text(), page.url
    link = page.locator(".cmp-forest tbody tr:not([aria-current]) a").first
    with page.context.expect_page() as opened:
        link.click(modifiers=["ControlOrMeta"])
    expect(opened.value.locator("#cmp-side h2")).not_to_have_text(shown)
    assert page.url == before
    expect(page.locator("#cmp-side h2")).to_have_text(shown)


def test_the_old_answer_stays_and_can_be_used_until_the_new_one_is_there(page, server) -> None:
    page.goto(at(server, "tab=answer"))

    held = list[Route]()
    page.route(re.compile("part/body"), lambda route: held.append(route), times=1)
    page.locator("#cmp-rule").focus()
    page.locator("#cmp-rule").select_option("mean-response")
    expect(page.locator("#cmp-body")).to_have_attribute("aria-busy", "true")
    expect(page.locator("#cmp-forest")).to_be_visible()
    page.locator("#cmp-row-2").click(trial=True)  # nothing lies over it
    for route in held:
        route.continue_()
    expect(page.locator("#cmp-body")).not_to_have_attribute("aria-busy", "true")
    expect(page.locator("#cmp-body")).to_contain_text("The protocol fixed 'Majority of votes'")
    expect(page.locator("#cmp-rule")).to_be_focused()


def test_pictures_are_walked_by_keys(page: Page, server) -> None:
    page.goto(at(server, "tab=disagreements&metric=mse"))
    looks = page.locator("#cmp-grid button[data-row]")
    expect(looks.first).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(looks.nth(0)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(looks.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    dialog = page.locator("#cmp-pair")
    expect(dialog).to_be_visible()
    first = dialog.locator("figcaption").inner_text()
    page.keyboard.press("ArrowRight")
    expect(dialog.locator("figcaption")).not_to_have_text(first)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    shown = page.locator("#cmp-grid .cmp-model")
    model, every = shown.first.inner_text(), shown.count()
    page.locator("#cmp-grid-model").select_option(label=model)
    expect(shown).not_to_have_count(every)
    assert set(shown.all_inner_texts()) == {model}


def test_where_nobody_answers_no_other_picture_stands_for_the_one_asked_for(page, server) -> None:
    page.goto(at(server, "tab=disagreements&metric=mse"))
    looks, dialog = page.locator("#cmp-grid button[data-row]"), page.locator("#cmp-pair")
    pairs = re.compile("part/pair")
    told = page.locator("#studio-toasts").get_by_text("The studio does not answer.")
    page.route(pairs, lambda route: route.abort())
    looks.first.click()
    expect(told).to_have_count(1)
    expect(dialog).to_be_hidden()
    page.unroute(pairs)
    looks.first.click()
    expect(dialog).to_be_visible()
    first = dialog.locator("figcaption").inner_text()
    page.route(pairs, lambda route: route.abort())
    with page.expect_event("requestfailed"):
        page.keyboard.press("ArrowRight")
    expect(dialog.locator("figcaption")).to_have_text(first, use_inner_text=True)
    page.unroute(pairs)
    page.keyboard.press("ArrowRight")
    expect(dialog.locator("figcaption")).not_to_have_text(first, use_inner_text=True)
    page.keyboard.press("ArrowLeft")
    expect(dialog.locator("figcaption")).to_have_text(first, use_inner_text=True)


def test_a_point_tells_what_it_is_and_shows_its_pictures(page: Page, server) -> None:
    page.goto(at(server, "tab=metric&metric=mse"))
    page.locator("#cmp-drawn circle[data-key]").nth(4).focus()
    expect(page.locator(".cmp-tip")).to_contain_text(": MSE 0.")
    model = page.locator(".cmp-tip").inner_text().partition(":")[0]
    page.keyboard.press("Enter")
    expect(page.locator("#cmp-model option:checked")).to_have_text(model)
    expect(page.locator("#cmp-pictures figure")).to_have_count(12)
    expect(page.locator("#cmp-drawn [data-chosen]")).to_have_count(1)
    expect(page.locator("#cmp-drawn [data-chosen]")).to_have_attribute(
        "aria-label", re.compile(f"^{re.escape(model)}: ")
    )


def test_own_scores_are_kept_and_removed_once_somebody_is_sure(page: Page, server) -> None:
    page.goto(f"{server.url}/studio/pictures/scores?study=1")
    table = "model,image_id,mine\nnet0/way0,000,0.5\n"
    file = {"name": "own.csv", "mimeType": "text/csv", "buffer": table.encode()}
    page.locator("[data-input=files]").set_input_files(file)
    page.get_by_label("Direction of mine").select_option("lower")
    page.get_by_role("button", name="Keep these scores").click()
    told, listed = page.locator("#studio-toasts"), page.get_by_role("button", name="Remove")
    expect(told).to_contain_text("1 metric kept: 1 of")
    for answer, left in (("Back", 1), ("Remove", 0)):
        listed.click()
        page.get_by_role("dialog").get_by_role("button", name=answer).click()
        expect(listed).to_have_count(left)
    expect(told).to_contain_text("mine is removed.")


def test_the_report_prints_on_twelve_pages_and_loses_nothing(page: Page, server, tmp_path) -> None:
    """Fourteen models and all metrics; made by a job, handed over by itself.

    Twice nobody answers how far it is.
    """
    away = iter((True, True))
    page.route(
        re.compile("part/made"),
        lambda route: route.abort() if next(away, False) else route.continue_(),
    )
    page.goto(at(server, "tab=files"))
    with page.expect_download() as waiting:
        page.locator("[data-act=report]").click()
        expect(page.locator("#cmp-made [role=progressbar]")).to_be_visible()
    report = tmp_path / "report.html"
    waiting.value.save_as(report)
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 703, "height": 1000})  # 186 mm: A4 without its margins
    ends = "[...document.querySelectorAll('table, svg')].map(e => e.getBoundingClientRect().right)"
    assert max(page.evaluate(ends)) <= 704
    assert next(away, None) is None
    printed = page.pdf(format="A4", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= 12
