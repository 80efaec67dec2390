"""The pages before sign-in say what is needed, and escape what they are given."""

from html.parser import HTMLParser

import pytest

from annotation.domain import StudyStatus, Task
from annotation.study.labelling import set_status
from annotation.web.signin import message_page, sign_in_page

NASTY = "<script>alert('x')</script>"


class Elements(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def test_every_field_has_a_label(make_study):
    page = Elements(sign_in_page(make_study(password="secret")))
    labelled = {label["for"] for label in page.all("label")}
    assert {field["id"] for field in page.all("input")} == labelled == {"name", "password"}


def test_no_password_is_asked_where_there_is_none(make_study):
    assert [field["id"] for field in Elements(sign_in_page(make_study())).all("input")] == ["name"]


@pytest.mark.parametrize(("task", "word"), [(Task.RECOGNITION, "recognise"), (Task.PAIR, "pair")])
def test_the_page_says_what_will_be_asked(make_study, task, word):
    assert word in sign_in_page(make_study(task=task))


def test_texts_are_escaped(make_study):
    page = sign_in_page(make_study(name=NASTY), signed_in_as=NASTY, name=NASTY, problem=NASTY)
    assert not Elements(page).all("script")
    assert not Elements(message_page(NASTY, NASTY)).all("script")


def test_a_problem_is_announced_and_tied_to_the_fields(make_study):
    page = Elements(sign_in_page(make_study(), name="Ada", problem="That was wrong."))
    assert page.all("input")[0]["aria-describedby"] == "problem"
    assert page.all("input")[0]["value"] == "Ada"
    assert any(p.get("role") == "alert" and p.get("id") == "problem" for p in page.all("p"))


def test_somebody_signed_in_may_go_on(make_study):
    page = sign_in_page(make_study(), signed_in_as="Ada")
    assert "Continue as Ada" in page


def test_a_simulated_study_offers_no_form(make_study):
    page = sign_in_page(make_study(simulated=True))
    assert not Elements(page).all("form")
    assert "simulated" in page


def test_a_paused_study_says_so(store, make_study):
    study = set_status(store, make_study().id, StudyStatus.PAUSED)
    assert "paused" in sign_in_page(study)
