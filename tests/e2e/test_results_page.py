"""Results in a real browser: five tabs say what votes say, or what is missing; tables are kept."""

import io
import re

import pandas as pd
import pytest
from playwright.sync_api import expect
from study_factory import answer_all

from annotation.spec import Task
from annotation.study import labelling as studies

pytestmark = pytest.mark.e2e
SETS = {"resnet20-4": 6}
TABS = ("Share recognised", "Agreement", "People", "Checks", "Signal detection")
PEOPLE = ("Ada", "Ben", "Cleo")


def open_results(page, server, study) -> None:
    page.goto(f"{server.url}/studio/results?study={study.id}")


def press(page, tab: str) -> None:
    link = page.locator(".rs-tabs").get_by_role("link", name=tab, exact=True)
    link.click()
    expect(link).to_have_attribute("aria-current", "page")
    expect(link).to_be_focused()


def test_a_study_without_votes_says_what_is_missing_on_every_tab(page, server, new_study) -> None:
    open_results(page, server, new_study(Task.RECOGNITION, name="Empty"))
    for tab in TABS:
        press(page, tab)
        expect(page.locator(".rs-body .st-empty")).to_be_visible()
        expect(page.locator(".rs-body table")).to_have_count(0)


def test_what_people_said_is_on_the_tabs_and_in_the_tables(page, server, store, new_study) -> None:
    study = new_study(Task.RECOGNITION, name="Said", votes_per_item=len(PEOPLE))
    for person in PEOPLE:
        answer_all(store, studies.join(store, study.token, person).annotator)
    open_results(page, server, study)
    expect(page.locator("#results")).to_contain_text("18 votes of 3 annotators")
    for tab in TABS:
        press(page, tab)
        expect(page.locator(".rs-body .st-empty")).to_have_count(int(tab == "Signal detection"))
    press(page, "People")
    for person in PEOPLE:
        expect(page.get_by_role("row", name=re.compile(f"^{person} 6 "))).to_be_visible()
    page.locator(".rs-files summary").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="annotators.csv").click()
    people = pd.read_csv(io.BytesIO(download.value.path().read_bytes()))
    assert sorted(people.iloc[:, 0]) == sorted(PEOPLE)


def test_of_two_quick_presses_the_last_counts(page, server, new_study) -> None:
    open_results(page, server, new_study(Task.RECOGNITION, name="x" * 200))
    page.evaluate(
        """() => { const real = window.fetch; window.fetch = async (asked, given) => {
        const answer = await real(asked, given);
        if (!String(asked).includes('tab=people')) return answer;
        await new Promise((go) => { window.late = go; });
        const text = await answer.text();
        answer.text = async () => { setTimeout(() => { window.read = true; }); return text; };
        return answer; }; }"""
    )
    page.locator(".rs-tabs").get_by_role("link", name="People", exact=True).click()
    press(page, "Checks")
    page.wait_for_function("Boolean(window.late)")
    page.evaluate("window.late()")
    page.wait_for_function("Boolean(window.read)")  # and what follows was done with it
    expect(page.locator(".rs-tabs [aria-current]")).to_have_text("Checks")
    expect(page).to_have_url(re.compile("tab=checks"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_open_page_follows_votes_and_keeps_what_is_open(page, server, store, new_study) -> None:
    study = new_study(Task.RECOGNITION, name="Followed", votes_per_item=len(PEOPLE))
    for person in PEOPLE[:2]:
        answer_all(store, studies.join(store, study.token, person).annotator)
    open_results(page, server, study)
    page.wait_for_function("Boolean(document.querySelector('#studio-frame [data-live]'))")
    press(page, "Checks")
    page.locator(".rs-files summary").click()
    page.locator(".rs-body").evaluate("(body) => { body.mine = true; }")
    answer_all(store, studies.join(store, study.token, PEOPLE[2]).annotator)
    expect(page.locator("#results")).to_contain_text("18 votes of 3 annotators")
    expect(page.locator(".rs-files")).to_have_attribute("open", "")
    expect(page.locator(".rs-tabs [aria-current]")).to_have_text("Checks")
    assert page.locator(".rs-body").evaluate("(body) => body.mine")  # no other element
    page.goto(f"{server.url}/studio/overview?study={study.id}")
    page.wait_for_function("Boolean(document.querySelector('#studio-frame [data-live]'))")
    page.get_by_text("Export", exact=True).click()
    answer = studies.join(store, study.token, "Dora").annotator
    expect(page.locator("#ov-card-people")).to_contain_text(answer.name)
    expect(page.locator(".ov-menu").first).to_have_attribute("open", "")
