"""The pages around the labelling: labelled fields, escaped texts, one's place on the way."""

import re
from html.parser import HTMLParser

import pytest

from annotation.design import check
from annotation.domain import Step, StudyStatus, Task
from annotation.study.labelling import set_status
from annotation.web import phase_pages as pages

NASTY = "<script>alert('x')</script>"
FULL = {"consent": "Voluntary.\n\nReally.", "check": True, "title": "Pictures"}


class Elements(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def all_pages(study):
    asked = check.questions(study.kind, 0, "anna")
    return {
        "consent": pages.consent_page(study, problem=NASTY),
        "instructions": pages.instructions_page(study),
        "check": pages.check_page(study, asked, 0, problem=NASTY),
        "again": pages.check_page(study, asked, 1, reminders=[NASTY]),
        "declined": pages.declined_page(study),
        "failed": pages.failed_page(study),
        "stopped": pages.stopped_page(study, NASTY, NASTY),
        "thanks": pages.thanks_page(study, NASTY),
    }


def test_texts_are_escaped(make_study):
    texts = {"consent": NASTY, "instructions": NASTY, "title": NASTY, "check": True}
    for name, page in all_pages(make_study(**texts)).items():
        scripts = [one for one in Elements(page).all("script") if "src" not in one]
        assert scripts == [], name


def test_nobody_sees_the_name_the_study_has_for_the_researcher(make_study):
    for name, page in all_pages(make_study("resnet20 against noise", **FULL)).items():
        assert "resnet20" not in page, name
        assert "Pictures" in page, name


@pytest.mark.parametrize("task", Task)
def test_every_field_has_a_label(make_study, task):
    for name, page in all_pages(make_study(task=task, **FULL)).items():
        elements = Elements(page)
        fields = [one["id"] for one in elements.all("input") if one.get("type") != "hidden"]
        assert sorted(fields) == sorted(one["for"] for one in elements.all("label")), name


def test_the_place_is_said(make_study):
    study = make_study(**FULL)
    assert "Step 1 of 4: Consent" in pages.consent_page(study)
    assert "Step 3 of 4: Questions" in pages.check_page(study, (), 0)


def test_instructions_are_the_usual_ones_or_ones_own_with_the_rules(make_study):
    usual = pages.instructions_page(make_study())
    own = pages.instructions_page(make_study(instructions="Look closely.\n\nTake your time."))
    assert "one after the other" in usual
    assert "one after the other" not in own
    assert "Take your time." in own
    assert "I can’t make it out" in own


def test_the_instructions_come_again_after_a_wrong_answer_only(make_study):
    study = make_study(**FULL)
    asked = check.questions(study.kind, 0, "anna")
    assert "How to answer" not in pages.check_page(study, asked, 0)
    again = pages.check_page(study, asked, 1, reminders=[asked[0].reminder])
    assert "How to answer" in again
    assert asked[0].reminder in again.replace("&#x27;", "'")
    assert "once" in again


def test_no_option_of_the_questions_is_marked(make_study):
    study = make_study(**FULL)
    page = pages.check_page(study, check.questions(study.kind, 0, "anna"), 1, reminders=["Hm."])
    radios = [one for one in Elements(page).all("input") if one.get("type") == "radio"]
    assert len(radios) == 12
    assert {frozenset(one) for one in radios} == {
        frozenset({"type", "id", "name", "value", "required"})
    }


def test_the_end_leads_on_where_the_study_says(make_study):
    study = make_study(completion_url="https://panel.example/done?cc={code}")
    (link,) = Elements(pages.thanks_page(study, "AB 1")).all("a")
    assert link["href"] == "https://panel.example/done?cc=AB%201"
    assert link["rel"] == "noreferrer"
    assert Elements(pages.thanks_page(make_study("other"), "AB1")).all("a") == []


def test_a_paused_study_says_so(store, make_study):
    study = set_status(store, make_study(**FULL).id, StudyStatus.PAUSED)
    assert "paused" in pages.instructions_page(study)


def test_each_form_tells_which_step_it_is_for(make_study):
    study = make_study(**FULL)
    page = pages.consent_page(study)
    assert re.findall(r'name="step" value="(\w+)"', page) == [Step.CONSENT.value]
    assert [one["action"] for one in Elements(page).all("form")] == ["/begin"]
