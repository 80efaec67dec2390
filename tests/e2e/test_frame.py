"""The frame in a real browser: the study in hand, light and dark, the drawer, questions, words."""

import re

import pytest
from helpers import until
from playwright.sync_api import Page, expect

from e2e.rules import broken_rules

pytestmark = pytest.mark.e2e
SETS = {"resnet20-4": 4}


def test_the_study_chosen_stays_through_pages_and_reloads_and_the_side_bar_with_it(
    page: Page, server, new_study
) -> None:
    one, other = new_study(name="One"), new_study(name="Other")
    page.goto(f"{server.url}/studio/help?study={one.id}")
    chosen = page.get_by_label("Current study")
    expect(chosen).to_have_value(one.id)
    chosen.select_option("Other")
    expect(page).to_have_url(f"{server.url}/studio/help?study={other.id}")
    page.get_by_role("link", name="People").click()
    expect(page).to_have_url(f"{server.url}/studio/people?study={other.id}")
    page.goto(f"{server.url}/studio/help")  # not in the address, and still in hand
    expect(chosen).to_have_value(other.id)
    with page.expect_request(re.compile("/studio/frame")) as asked:
        pass
    assert f"study={other.id}" in asked.value.url  # another tab may choose another meanwhile


def test_light_or_dark_is_kept(page: Page, server) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(f"{server.url}/studio/help")
    ink = "getComputedStyle(document.querySelector('.st-page')).color"
    light = page.evaluate(ink)
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate(ink) != light
    page.reload()
    assert page.evaluate(ink) != light
    page.goto(f"{server.url}/studio/people")  # drawn by Gradio, which follows the system
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.evaluate("document.body.classList.contains('dark')")


def test_the_side_bar_is_a_drawer_on_a_telephone(phone: Page, server) -> None:
    phone.goto(f"{server.url}/studio/help")
    bar = phone.get_by_role("complementary", name="Studio")
    opener = phone.get_by_role("button", name="Menu")
    expect(bar).to_have_count(0)  # nor does the Tab key find it
    opener.click()
    expect(bar).to_be_visible()
    expect(opener).to_have_attribute("aria-expanded", "true")
    for colours in ("light", "dark"):
        phone.emulate_media(color_scheme=colours)
        assert broken_rules(phone) == []
    phone.keyboard.press("Escape")
    expect(bar).to_have_count(0)


def test_what_is_pressed_before_a_script_has_come_is_done_when_it_has(
    page: Page, server, new_study
) -> None:
    study, held = new_study(), []
    page.route("**/overview.js", lambda route: held.append(route))
    page.goto(f"{server.url}/studio/overview?study={study.id}", wait_until="commit")
    page.get_by_role("button", name="Pause").click()
    until(lambda: page.title() and held)
    expect(page.locator(".ov-top")).to_contain_text("running")
    held[0].continue_()
    expect(page.locator(".ov-top")).to_contain_text("paused")


def test_what_cannot_be_undone_is_typed_first(page: Page, server) -> None:
    page.goto(f"{server.url}/studio/help")
    page.evaluate(
        """() => { window.answer = null;
        studio.ask({ title: 'Delete it?', type: 'Mine', yes: 'Delete' })
            .then((said) => { window.answer = said; }); }"""
    )
    delete = page.get_by_role("button", name="Delete")
    expect(delete).to_be_disabled()
    assert broken_rules(page, "dialog") == []
    page.get_by_label("Type Mine to go on").fill("mine")
    expect(delete).to_be_disabled()
    page.keyboard.press("Enter")
    assert page.evaluate("window.answer") is None
    page.get_by_label("Type Mine to go on").fill("Mine")
    page.keyboard.press("Enter")
    page.wait_for_function("window.answer === true")
    page.evaluate("() => { studio.ask({ title: 'Sure?' }).then((said) => { answer = said; }); }")
    page.keyboard.press("Escape")
    page.wait_for_function("window.answer === false")
    page.evaluate("() => { studio.ask({ title: 'Sure?' }).then((said) => { answer = [said]; }); }")
    page.get_by_role("button", name="Back").click()
    page.wait_for_function("window.answer[0] === false")
    page.evaluate("studio.tell('Done: <b>it</b>')")
    expect(page.get_by_role("status").filter(has_text="Done: <b>it</b>")).to_be_visible()


def test_a_word_is_explained_where_it_stands_also_in_a_list(page: Page, server) -> None:
    page.goto(f"{server.url}/studio/help")
    page.evaluate(
        """() => document.querySelector('h1').insertAdjacentHTML(
        'afterend', '<p><span data-term="rho">ρ</span> and <span data-term="none">x</span></p>')"""
    )
    more = page.get_by_role("button", name="What rho means")
    more.click()
    expect(page.get_by_role("note")).to_contain_text("Spearman")
    assert broken_rules(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("note")).to_have_count(0)
    expect(page.locator(".st-more")).to_have_count(1)  # what no entry explains has no (i)

    # It stays in the list that scrolls it.
    before = page.evaluate(
        """() => {
            document.querySelector('h1').insertAdjacentHTML('afterend',
            '<div id="list" style="height: 5rem; overflow-y: auto"><p style="height: 900rem"></p>'
            + '<p><span data-term="rho">ρ</span></p></div>');
            return document.documentElement.scrollHeight;
        }"""
    )
    expect(page.locator("#list .st-more")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollHeight") == before


def test_the_side_bar_covers_nothing_and_a_page_has_its_title(page: Page, server) -> None:
    page.goto(f"{server.url}/nope")
    expect(page.locator("#studio-frame a")).not_to_have_count(0)
    bar, head = (page.locator(one).bounding_box() for one in ("#studio-frame", "h1"))
    assert bar["x"] + bar["width"] <= head["x"]
    page.goto(f"{server.url}/studio/people")
    expect(page).to_have_title("People · SemSim Studio")


def test_a_newcomer_answers_after_two_clicks_and_compares_after_one(
    chromium, server, new_study
) -> None:
    new_study()
    for clicked, address in (("Open as annotator", "preview"), ("Compare the metrics", "compare")):
        with chromium.new_context() as fresh:  # nothing is known of whoever comes
            page = fresh.new_page()
            page.goto(f"{server.url}/studio/")
            page.get_by_role("link", name=clicked).click()
            page.wait_for_url(f"**/studio/{address}*")
            if address == "preview":
                expect(page.locator(".sl-pictures img").first).to_be_visible()
                page.locator(".sl-answers button").first.click()
                expect(page.locator(".sl-count")).to_contain_text("1 of")
