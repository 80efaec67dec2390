"""The People page and what it means for somebody who is labelling, in a real browser."""

import uuid
from datetime import UTC, datetime

import pytest
from helpers import until
from playwright.sync_api import expect

from annotation.domain import Answer, Study
from annotation.store import Store
from annotation.study import labelling as studies
from annotation.study import participants as people

pytestmark = pytest.mark.e2e
SETS = {"resnet20-4": 24}


@pytest.fixture
def study(new_study):
    return new_study(votes_per_item=2)


def answer_all(store: Store, study: Study, name: str) -> None:
    person = studies.join(store, study.token, name).annotator
    for item in studies.next_items(store, person, "tab", 24, datetime.now(UTC)):
        answer = Answer(id=str(uuid.uuid4()), item=item.item, answer="none", rt_ms=900.0)
        studies.vote(store, person, answer, datetime.now(UTC))


def test_what_is_done_to_somebody_is_told_and_erasing_takes_their_name(
    page, server, store, study
) -> None:
    answer_all(store, study, "Ada & <i>Eve</i>")
    page.goto(f"{server.url}/studio/people?study={study.id}")
    table, head = page.locator("#people-table"), page.locator("#person-head")
    told = page.locator("#studio-toasts")
    page.get_by_role("link", name="Ada & <i>Eve</i>").click()
    expect(head).to_contain_text("Gets items and may vote")
    page.get_by_role("button", name="Pause").click()
    expect(told).to_contain_text("Ada & <i>Eve</i> is paused.")
    expect(head).to_contain_text("paused")
    expect(head.get_by_role("heading")).to_be_focused()  # what was pressed is gone

    page.get_by_role("button", name="Erase…").click()
    expect(page.get_by_label("Remove their votes")).to_be_checked()  # nobody asked her
    page.get_by_label("Keep their votes").check()
    page.get_by_role("button", name="Erase for good…").click()
    asked, go = page.locator("dialog.st-dialog"), page.locator("dialog.st-dialog [value=yes]")
    asked.get_by_role("textbox").fill("Ada")
    expect(go).to_be_disabled()
    asked.get_by_role("textbox").fill("Ada & <i>Eve</i>")
    go.click()
    expect(told).to_contain_text("The name is erased.")
    expect(head).to_contain_text("erased-")
    expect(table).not_to_contain_text("Eve")
    assert people.list_people(store, study.id)[0].status.value == "erased"
    assert studies.progress(store, study.id).coverage == [0, 24, 0]


def test_what_becomes_of_votes_stays_as_chosen_while_the_page_is_looked_at_again(
    own, server, store, study
) -> None:
    answer_all(store, study, "Ada")
    own.clock.install()
    own.goto(f"{server.url}/studio/people?study={study.id}&person=Ada&ask=erase")
    own.get_by_label("Keep their votes").check()
    own.keyboard.press("Tab")
    studies.join(store, study.token, "Cleo")  # which changes what the page shows
    own.clock.run_for("00:12")  # it looks again, twice
    own.evaluate("fetch('/signed-out').then((reply) => reply.text())")  # after whatever it asked
    expect(own.get_by_label("Keep their votes")).to_be_checked()
    own.get_by_role("link", name="Cancel").click()
    expect(own.locator("#people-table")).to_contain_text("Cleo")


def test_what_went_wrong_is_said(page, server, store, study) -> None:
    studies.join(store, study.token, "Ada")
    page.goto(f"{server.url}/studio/people?study={study.id}")
    page.get_by_role("link", name="Ada").click()
    expect(page.locator("#person-head")).to_contain_text("active")
    people.exclude(store, study.id, "Ada", datetime.now(UTC))  # by somebody else meanwhile
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Ada is excluded")).to_be_visible()
    page.context.set_offline(True)
    page.get_by_role("link", name="Ada").click()
    expect(page.get_by_text("The studio does not answer. Try again.")).to_be_visible()


def test_who_is_excluded_sees_a_plain_word_and_loses_nothing(page, server, store, study) -> None:
    page.goto(f"{server.url}/join/{study.token}")
    page.get_by_label("Your name").fill("Ada")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".sl-pictures img").first).to_be_visible()
    people.pause(store, study.id, "Ada", datetime.now(UTC))
    page.keyboard.press("1")
    expect(page.locator("semsim-labeller")).to_contain_text("Your part is paused")
    expect(page.locator("semsim-labeller")).to_contain_text("Answers kept in this browser: 1.")
    expect(page.locator(".sl-pictures img")).to_have_count(0)
    # The browser does not try for ever: nothing waits to be sent.
    expect(page.locator("semsim-labeller")).to_have_attribute("data-unsaved", "0")
    assert studies.progress(store, study.id).coverage[0] == 24

    people.resume(store, study.id, "Ada", datetime.now(UTC))
    expect(page.locator(".sl-pictures img").first).to_be_visible()  # by itself
    page.locator(".sl-again").click()
    until(lambda: studies.progress(store, study.id).coverage[1] == 1)

    people.exclude(store, study.id, "Ada", datetime.now(UTC))
    page.reload()
    expect(page.locator("semsim-labeller")).to_contain_text("Your part has ended")
    expect(page.locator(".sl-pictures img")).to_have_count(0)


def test_the_page_without_people_and_on_a_phone(phone, server, store, study) -> None:
    phone.goto(f"{server.url}/studio/people?study={study.id}")
    expect(phone.locator("#people-table")).to_contain_text("Nobody has joined yet")
    answer_all(store, study, "Ada")
    button = phone.get_by_role("link", name="Ada")
    expect(button).to_be_visible()  # nobody touched the page
    button.click()
    expect(phone.locator("#person-head h2")).to_have_text("Ada")
    assert phone.locator("#person").bounding_box()["width"] > 300
