"""The way of one person through a study by keyboard alone, in a real browser on a real server."""

import re
from datetime import UTC, datetime

import pytest
from helpers import until
from playwright.sync_api import Page, Request, Route, expect
from study_factory import questions_for

from annotation.domain import Study
from annotation.store import Store
from annotation.study import labelling as studies
from annotation.study import participants as people
from annotation.study.exports import export_votes
from annotation.study.participant_flow import completion_code_of
from e2e.label_server import LabelServer
from e2e.rules import Look, broken_rules, put_on

pytestmark = pytest.mark.e2e
LAST = "fetch('/signed-out').then((reply) => reply.text())"  # a request after all others
FULL = {
    "title": "Small pictures",
    "consent": "Taking part is voluntary. You may stop at any time.",
    "practice": 2,
    "set_aside": 2,
    "check": True,
    "items_per_person": 3,
    "completion_url": "https://panel.example/finish?cc={code}",
}
SETS = {"resnet20-4": 16}
AGAIN = "Some answers do not match the instructions"
# 1366 × 768 at 200%, and a telephone, which is also 1366 px at 350%.
LOOKS = (Look(683, 384, "light"), Look(390, 844, "dark"))


def press_tab_to(page: Page, selector: str) -> None:
    """Move the focus by the Tab key until it is on `selector`."""
    for _ in range(40):
        if page.evaluate("(wanted) => document.activeElement?.matches(wanted)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the Tab key never reaches {selector}")


def choose(page: Page, name: str, value: str) -> None:
    """Answer one question by keyboard: Tab to its radio buttons, then arrow keys."""
    press_tab_to(page, f'input[name="{name}"]')
    page.keyboard.press("Space")
    for _ in range(3):
        if page.evaluate("document.activeElement.value") == value:
            return
        page.keyboard.press("ArrowDown")
    raise AssertionError(f"{name} has no option {value}")


def answer_questions(page: Page, store: Store, *, wrong: str = "") -> None:
    annotator = studies.who(store, cookie(page))
    assert annotator is not None
    for one in questions_for(store, annotator):
        other = next(option for option, _ in one.options if option != one.right)
        choose(page, one.name, other if one.name == wrong else one.right)
    page.keyboard.press("Enter")


def cookie(page: Page) -> str:
    return next(one["value"] for one in page.context.cookies() if one["name"] == "semsim_session")


def heading(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


def test_the_whole_way_by_keyboard_with_a_reload_at_every_step(
    page, server, store, new_study
) -> None:
    study = new_study(**FULL)
    page.goto(f"{server.url}/join/{study.token}")
    expect(page.locator("#name")).to_be_focused()  # or the first letters go nowhere
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")

    heading(page, "Before you take part")
    expect(page.locator(".steps")).to_contain_text("Step 1 of 5: Consent")
    page.reload()
    press_tab_to(page, "#keep")
    page.keyboard.press("Space")
    press_tab_to(page, 'button[value="yes"]')
    page.keyboard.press("Enter")

    heading(page, "Your task")
    page.reload()
    press_tab_to(page, "button")
    page.keyboard.press("Enter")

    banner = page.locator(".sl-banner")
    expect(banner).to_have_text("Practice: these answers do not count · Step 3 of 5")
    expect(page.locator(".sl-pictures img")).to_be_visible()
    page.keyboard.press("1")
    told = page.locator(".sl-told")
    expect(told).to_contain_text("The answer is “")
    page.keyboard.press("2")  # on to the next; no answer to it
    expect(told).to_be_hidden()
    page.reload()
    expect(page.locator(".sl-count")).to_contain_text("1 of 2")
    expect(page.locator(".sl-pictures img")).to_be_visible()
    page.keyboard.press("1")
    expect(told).to_contain_text("Press Enter")
    page.keyboard.press("Enter")

    heading(page, "A few questions")
    page.reload()
    answer_questions(page, store, wrong="guess")
    expect(page.get_by_role("alert")).to_contain_text(AGAIN)
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text(AGAIN)
    answer_questions(page, store)

    expect(page.locator(".sl-pictures img")).to_be_visible()
    expect(banner).to_be_hidden()
    page.keyboard.press("1")
    expect(page.locator(".sl-status")).to_have_text("Saved ✓")
    page.reload()
    expect(page.locator(".sl-count")).to_contain_text("1 of 3")
    expect(page.locator(".sl-pictures img")).to_be_visible()
    page.keyboard.press("2")
    page.keyboard.press("3")

    code = until_code(store, study)
    expect(page.locator(".sl-code")).to_contain_text(code)
    press_tab_to(page, ".sl-link")
    page.keyboard.press("Enter")
    heading(page, "All done, thank you!")
    page.reload()
    expect(page.locator("#code")).to_have_text(code)
    press_tab_to(page, "[data-copy]")
    page.keyboard.press("Enter")
    expect(page.locator(".copied")).not_to_be_empty()
    link = page.get_by_role("link", name="Go on to finish")
    assert link.get_attribute("href") == f"https://panel.example/finish?cc={code}"

    votes = export_votes(store, study.id)
    assert votes["status"].value_counts().to_dict() == {"counted": 3, "quality": 2}


def until_code(store: Store, study: Study) -> str:
    until(lambda: completion_code_of(store, study.id, "Ada") is not None)
    return str(completion_code_of(store, study.id, "Ada"))


def test_somebody_sent_by_a_service_presses_one_button(page, server, store, new_study) -> None:
    study = new_study(consent="Voluntary.")
    ids = "PROLIFIC_PID=5f1e&STUDY_ID=60aa&SESSION_ID=61bb"
    page.goto(f"{server.url}/join/{study.token}?{ids}")
    expect(page.locator("input:visible")).to_have_count(0)
    page.get_by_role("button", name="Start").click()
    heading(page, "Before you take part")
    page.get_by_role("button", name="I do not take part").click()
    heading(page, "That is all right")
    page.goto(f"{server.url}/label")  # no way round
    heading(page, "That is all right")
    page.get_by_role("button", name="I have changed my mind").click()
    heading(page, "Before you take part")


def start(page: Page, server: LabelServer, study: Study, name: str = "Ada") -> None:
    page.goto(f"{server.url}/join/{study.token}")
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".sl-pictures img").first).to_be_visible()


def test_a_closed_page_leaves_its_items_to_others(context, server, store, new_study) -> None:
    study = new_study(votes_per_item=1)
    first, second = context.new_page(), context.browser.new_context().new_page()
    start(first, server, study)
    second.goto(f"{server.url}/join/{study.token}")
    second.get_by_label("Your name").fill("Ben")
    second.get_by_role("button", name="Start").click()
    expect(second.locator(".sl-message h2")).to_have_text("Nothing free right now")
    first.close()
    expect(second.locator(".sl-pictures img")).to_be_visible()
    second.context.close()


def test_a_page_left_open_holds_its_items_only_while_somebody_is_there(
    own, server, new_study
) -> None:
    study, asked = new_study(), list[str]()
    own.clock.install()
    start(own, server, study)
    own.on("request", lambda request: asked.append(request.url))
    with own.expect_request("**/api/heartbeat"):
        own.clock.run_for("01:00")
    own.clock.fast_forward("11:00")
    own.evaluate(LAST)
    asked.clear()
    own.clock.run_for("05:00")
    own.evaluate(LAST)
    assert [one.rpartition("/")[2] for one in asked] == ["signed-out"]
    with own.expect_request("**/api/heartbeat"), own.expect_request("**/api/next*"):
        own.mouse.move(20, 20)
    own.keyboard.press("1")
    expect(own.locator(".sl-status")).to_have_text("Saved ✓")


def test_an_undo_whose_reply_got_lost_is_settled_though_the_person_was_paused(
    page, server, store, new_study
) -> None:
    study = new_study()
    start(page, server, study)
    page.keyboard.press("1")
    expect(page.locator(".sl-status")).to_have_text("Saved ✓")
    undone: list[str] = []

    def lose_first(route: Route, request: Request) -> None:
        undone.append(request.url)
        if len(undone) > 1:
            route.continue_()
            return
        route.fetch()
        people.pause(store, study.id, "Ada", datetime.now(UTC))
        route.abort()

    page.route("**/api/undo", lose_first)
    page.keyboard.press("Backspace")
    expect(page.locator(".sl-message h2")).to_have_text("Your part is paused")
    until(lambda: page.locator("semsim-labeller").get_attribute("data-unsaved") == "0")
    assert len(undone) == 2
    assert list(export_votes(store, study.id)["status"]) == ["superseded"]


def test_practice_goes_on_for_whoever_was_signed_out_meanwhile(
    context, page, server, new_study
) -> None:
    study = new_study(practice=2, set_aside=2)
    page.goto(f"{server.url}/join/{study.token}")
    page.get_by_label("Your name").fill("Ada")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Go on").click()
    expect(page.locator(".sl-pictures img")).to_be_visible()
    cookies = context.cookies()
    context.clear_cookies()
    page.keyboard.press("1")
    expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
    context.add_cookies(cookies)
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    expect(page.locator(".sl-pictures img")).to_be_visible()
    expect(page.locator(".sl-message")).to_be_hidden()


def test_no_page_on_the_way_breaks_a_rule_or_is_too_wide(page, server, store, new_study) -> None:
    study = new_study(**FULL)
    page.goto(f"{server.url}/join/{study.token}?participant=Ada")
    is_well(page)
    page.get_by_role("button", name="Start").click()
    heading(page, "Before you take part")
    is_well(page)
    for name in ("I do not take part", None, "I agree"):  # back by the one button there is
        with page.expect_navigation():
            page.get_by_role("button", name=name).click()
        is_well(page)
    page.get_by_role("button", name="Go on").click()
    for number in range(2):
        expect(page.locator(".sl-pictures img")).to_be_visible()
        page.locator(".sl-grid button:visible").first.click()
        expect(page.locator(".sl-go-on")).to_be_visible()
        if number == 0:
            is_well(page)
        page.locator(".sl-go-on").click()
    heading(page, "A few questions")
    is_well(page)
    answer_questions(page, store, wrong="none")
    expect(page.get_by_role("alert")).to_be_visible()
    is_well(page)
    answer_questions(page, store, wrong="none")
    heading(page, "Thank you for trying")
    is_well(page)
    people.let_in(store, study.id, "Ada", datetime.now(UTC))
    page.goto(f"{server.url}/begin")
    expect(page.locator(".sl-pictures img")).to_be_visible()
    is_well(page)
    for done in range(3):
        expect(page.locator(".sl-count")).to_contain_text(f"{done} of 3")
        page.locator(".sl-grid button:visible").nth(done).click()  # one twice is a double tap
    expect(page.locator(".sl-code")).to_be_visible()
    is_well(page)
    page.locator(".sl-link").click()
    heading(page, "All done, thank you!")
    is_well(page)


def is_well(page: Page) -> None:
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert re.search(r"resnet", page.content()) is None
    for look in LOOKS:
        put_on(page, look)
        assert page.evaluate(wide) <= 0, page.title()
        assert broken_rules(page) == []
