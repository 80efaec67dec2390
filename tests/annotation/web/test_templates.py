"""The pages around the labelling: labelled fields, escaped texts, one's place on the way."""

import re
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from annotation import web
from annotation.design import flow
from annotation.domain import Account, Invitation, Role, StudyStatus
from annotation.spec import Task
from annotation.study.labelling import set_status
from annotation.tasks import KINDS
from annotation.tasks.wording import USUAL
from annotation.web import label_page
from annotation.web.page_api import Recruit, _join_page, _step_page, code_address
from annotation.web.templates import fill

NASTY = "<script>alert('x')</script>\"'"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
FULL = {"consent": "Voluntary.\n\nReally.", "check": True, "title": "Pictures"}


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


@pytest.fixture
def join_page(store):
    """Return the join page of a study, by the study and what is known of the visitor."""

    def shown(study, recruit=None, **values) -> str:
        return _join_page(store, study, recruit, **values).body.decode()

    return shown


def step_page(study, step, **values) -> str:
    return _step_page(f"{step}.html", study, step, **{"who": "s:a"} | values).body.decode()


def check_page(study, questions=(), used=0, reminders=(), problem="") -> str:
    asked = {"questions": questions, "used": used, "reminders": reminders, "problem": problem}
    return step_page(study, "check", **asked)


def steps(study, text=""):
    """Every page of the way, by name; `text` stands wherever somebody may say something."""
    asked = flow.questions(study.kind, 0, "anna")
    return {
        "consent": step_page(study, "consent", problem=text),
        "instructions": step_page(study, "instructions"),
        "check": check_page(study, asked, problem=text),
        "again": check_page(study, asked, 1, reminders=[text or asked[0].reminder]),
        "declined": step_page(study, "declined"),
        "failed": step_page(study, "failed"),
        "stopped": step_page(study, "stopped", why="paused"),
        "thanks": step_page(
            study, "thanks", code=text, goes_to=f"https://x.example/{text}", why=""
        ),
    }


def account(name, role=Role.ADMINISTRATOR, disabled=None) -> Account:
    return Account(id=name, name=name, role=role, created=NOW, disabled=disabled)


def accounts(text):
    """Every page of accounts, by name, with `text` wherever somebody may say something."""
    me, other = account(text), account(text, Role.RESEARCHER, disabled=NOW)
    asked = {"id": text, "role": Role.RESEARCHER, "note": text, "invited_by": text}
    new, reset = (
        Invitation(**asked, created=NOW, expires=NOW, account=one) for one in (None, other)
    )
    said = {"problem": text, "name": text, "shortest": 12}
    return {
        "login": fill("login.html", goes_to=text, **said),
        "invitation": fill("invitation.html", invitation=new, token=text, **said),
        "reset": fill("invitation.html", invitation=reset, token=text, **said),
        "own": fill("own_account.html", account=me, done=text, **said),
        "admin": fill(
            "admin.html",
            me=me,
            everybody=[me, other, account(text, Role.RESEARCHER)],
            open_links=[new, reset],
            roles=list(Role),
            asked=text,  # of whose link one has asked to withdraw it
            problem=text,
        ),
        "link": fill("link.html", link=text, told=text, days=7),
        "frame": fill(
            "frame.html",
            account=me,
            groups=[],
            studies=[],
            study=None,
            imports={text: (text, text)},
            brought=text,
            show_imports=("",),
            at="",
            running=[],
        ),
        "message": fill("message.html", title=text, text=text, back=f"/{text}"),
    }


def test_every_text_is_escaped_everywhere(make_study, join_page):
    own = {"consent": NASTY, "instructions": NASTY, "title": NASTY, "check": True}
    texts = {key: f"{NASTY} {place}" for place, key in enumerate(USUAL)}  # no two answers alike
    study = make_study(**own, password=NASTY, texts=texts)
    say, about = study.spec.wording, label_page.shown(study.spec)
    recruit = Recruit(NASTY, {"participant": NASTY})
    pages = {
        "join": join_page(study, signed_in_as=NASTY, name=NASTY, problem=NASTY),
        "recruit": join_page(study, recruit, problem=NASTY),
        "signed out": fill("signed_out.html", say=say, name=NASTY, link=NASTY),
        "personal": fill("personal.html", say=say, address="/me/x", name=NASTY, other=NASTY),
        "label": label_page.page(about).body.decode(),
        **steps(study, NASTY),
        **accounts(NASTY),
    }
    for name, page in pages.items():
        inside = [one for one in Elements(page).all("script") if "src" not in one]
        assert [one["type"] for one in inside] == ["application/json"] * (name == "label"), name
        assert NASTY in unescape(page), name
        assert "alert('x')" not in page, name
        assert "&amp;" not in page, f"{name} escapes twice"


def test_a_template_without_a_value_it_asks_for_is_an_error():
    with pytest.raises(UndefinedError, match="text"):
        fill("message.html", title="Sorry")


def test_every_template_of_a_page_is_a_page(make_study):
    for page in [*steps(make_study(**FULL)).values(), *accounts("Ada").values()][:-2]:
        assert re.match(r'<!doctype html><html lang="en"( dir="ltr")?><head><meta charset=', page)


def test_line_breaks_beside_tags_and_values_are_nothing_and_others_spaces():
    page = fill("link.html", link="a", told="Told.", days=7)
    told = "Told. It works once, for 7 days. Send it to that person only; it is not shown "
    assert f'<p class="st-lead">{told}' in page
    assert "\n" not in page
    assert "> <" not in page


def test_no_python_writes_html():
    rooms = Path(web.__file__).parents[1]
    for path in [*rooms.glob("web/*.py"), *rooms.glob("accounts/*.py")]:
        assert not re.search(r"</?(p|div|form|a|html|button)\b", path.read_text()), path.name


# ------------------------------------------------------------------ joining


def test_every_field_has_a_label(make_study, join_page):
    page = Elements(join_page(make_study(password="secret")))
    labelled = {label["for"] for label in page.all("label")}
    assert {field["id"] for field in page.all("input")} == labelled == {"name", "password"}


def test_no_password_is_asked_where_there_is_none(make_study, join_page):
    assert [field["id"] for field in Elements(join_page(make_study())).all("input")] == ["name"]


@pytest.mark.parametrize("task", Task)
def test_the_page_says_what_will_be_asked(make_study, task, join_page):
    page = unescape(join_page(make_study(task=task)))
    assert [kind.name for kind in KINDS.values() if kind.about in page] == [task]


def test_a_problem_is_announced_and_tied_to_the_fields(make_study, join_page):
    page = Elements(join_page(make_study(), name="Ada", problem="That was wrong."))
    assert page.all("input")[0]["aria-describedby"] == "problem"
    assert page.all("input")[0]["value"] == "Ada"
    assert any(p.get("role") == "alert" and p.get("id") == "problem" for p in page.all("p"))


def test_somebody_signed_in_may_go_on(make_study, join_page):
    assert "Continue as Ada" in join_page(make_study(), signed_in_as="Ada")


def test_a_simulated_study_offers_no_form(make_study, join_page):
    page = join_page(make_study(simulated=True))
    assert not Elements(page).all("form")
    assert "simulated" in page


def test_a_paused_study_says_so(store, make_study, join_page):
    study = set_status(store, make_study(**FULL).id, StudyStatus.PAUSED)
    assert "paused" in join_page(study)
    assert "paused" in step_page(study, "instructions")


# ------------------------------------------------------------------ the steps


def test_nobody_sees_the_name_the_study_has_for_the_researcher(make_study):
    for name, page in steps(make_study("resnet20 against noise", **FULL)).items():
        assert "resnet20" not in page, name
        assert "Pictures" in page, name


@pytest.mark.parametrize("task", Task)
def test_every_field_of_a_step_has_a_label(make_study, task):
    for name, page in steps(make_study(task=task, **FULL)).items():
        elements = Elements(page)
        fields = [one["id"] for one in elements.all("input") if one.get("type") != "hidden"]
        assert sorted(fields) == sorted(one["for"] for one in elements.all("label")), name


def test_the_place_is_said(make_study):
    study = make_study(**FULL)
    assert "Step 1 of 4: Consent" in step_page(study, "consent", problem="")
    assert "Step 3 of 4: Questions" in check_page(study)
    assert "Step" not in step_page(study, "failed")


def test_instructions_are_the_usual_ones_or_ones_own_with_the_rules(make_study):
    usual = step_page(make_study(), "instructions")
    own = step_page(make_study(instructions="Look closely.\n\nTake your time."), "instructions")
    assert "one after the other" in usual
    assert "one after the other" not in own
    assert '<p class="text">Take your time.</p>' in own
    assert "I can’t make it out" in own


def test_the_instructions_come_again_after_a_wrong_answer_only(make_study):
    study = make_study(**FULL)
    asked = flow.questions(study.kind, 0, "anna")
    assert "How to answer" not in check_page(study, asked)
    again = check_page(study, asked, 1, reminders=[asked[0].reminder])
    assert "How to answer" in again
    assert asked[0].reminder in unescape(again)
    assert "Attempts left: 1." in again


def test_no_option_of_the_questions_is_marked(make_study):
    study = make_study(**FULL)
    page = check_page(study, flow.questions(study.kind, 0, "anna"), 1, reminders=["Hm."])
    radios = [one for one in Elements(page).all("input") if one.get("type") == "radio"]
    assert len(radios) == 12
    assert {frozenset(one) for one in radios} == {
        frozenset({"type", "id", "name", "value", "required"})
    }


def test_the_end_leads_on_where_the_study_says(make_study):
    goes_to = code_address("https://panel.example/done?cc={code}", "AB 1")
    last = step_page(make_study(), "thanks", code="AB 1", goes_to=goes_to, why="")
    (link,) = Elements(last).all("a")
    assert link["href"] == "https://panel.example/done?cc=AB%201"
    assert link["rel"] == "noreferrer"
    last = step_page(make_study("b"), "thanks", code="AB1", goes_to="", why="")
    assert Elements(last).all("a") == []


def test_each_form_tells_which_step_it_is_for(make_study):
    page = step_page(make_study(**FULL), "consent", problem="")
    assert re.findall(r'name="step" value="(\w+)"', page) == ["consent"]
    assert [one["action"] for one in Elements(page).all("form")] == ["/begin"]
