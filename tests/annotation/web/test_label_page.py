"""The labelling page: small, in the words of its study, and nothing of what is right in it."""

import json
import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from annotation.spec import StudySpec, Task
from annotation.tasks import KINDS
from annotation.tasks.wording import USUAL
from annotation.web import label_page
from annotation.web.api import router
from annotation.web.templates import STATIC, STATIC_URL


@pytest.fixture
def browser(store, images, make_study):
    app = FastAPI()
    app.include_router(router(store, images))
    opened = TestClient(app, follow_redirects=False)
    opened.study = make_study(consent="Voluntary.", texts={"label.undo": "</script><b>Zurück"})
    opened.post(f"/join/{opened.study.token}", data={"name": "Ada"})
    return opened


def test_who_is_not_at_work_is_led_to_where_they_belong(browser):
    assert browser.get("/label").headers["location"] == "/begin"
    browser.cookies.clear()
    assert browser.get("/label").headers["location"] == "/signed-out"


def test_the_page_has_all_that_the_server_would_tell_it(browser):
    for form in ({"step": "consent", "agree": "yes"}, {"step": "instructions"}):
        browser.post("/begin", data=form)
    page = browser.get("/label")
    (told,) = re.findall(r'<script type="application/json" id="study">(.*?)</script>', page.text)
    about = json.loads(told)
    assert about == browser.get("/api/study").json()
    assert about["texts"]["label.undo"] == "</script><b>Zurück"
    assert browser.study.name not in page.text


def test_all_it_loads_is_there_and_named_in_its_head():
    page = label_page.page(label_page.shown(StudySpec(name="x", task=Task.PAIR))).body.decode()
    named = set(re.findall(rf"{STATIC_URL}/([\w.]+)", page))
    assert {"labeller.js", "labeller.css", "outbox.js", "words.js"} <= named
    assert [name for name in named if not (STATIC / name).exists()] == []
    assert "preview.js" not in named


def test_only_its_worker_may_show_it_without_a_network(browser):
    reply = browser.get("/label/worker.js")
    assert reply.headers["service-worker-allowed"] == "/label"
    assert "javascript" in reply.headers["content-type"]


def test_nothing_is_loaded_from_elsewhere():
    texts = {path.name: path.read_text() for path in STATIC.iterdir()}
    far = {
        name
        for name, text in texts.items()
        if re.search(r"https?://", text.replace("http://www.w3.org/2000/svg", ""))
    }
    assert far == set()


def test_every_text_the_scripts_ask_for_is_there():
    scripts = "".join((STATIC / name).read_text() for name in label_page.scripts())
    named = set(re.findall(r'"((?:label|copy)\.[a-z_]+)"', scripts))
    assert len(named) > 60
    assert sorted(named - set(USUAL)) == []
    states = ("loading", "finished", "paused", "closed", "you_paused", "you_stopped")
    assert {f"label.{one}" for one in (*states, "elsewhere", "waiting")} <= set(USUAL)


def test_no_script_says_anything_in_words_of_its_own():
    view = (STATIC / "view.js").read_text()
    template = view[view.index("const TEMPLATE") : view.index("const MARKS")]
    words = re.sub(r"<[^>]*>|const TEMPLATE = `|`;", "", template)
    assert words.split() == ["↶"]


def test_instructions_of_a_study_stand_in_place_of_the_usual_ones():
    spec = StudySpec(name="x", task=Task.PAIR)
    own = StudySpec(name="x", task=Task.PAIR, instructions="Look closely.\n\nTake your time.")
    assert label_page.shown(own)["about"] == "Look closely.\n\nTake your time."
    assert label_page.shown(spec)["about"] not in ("", label_page.shown(own)["about"])


@pytest.mark.parametrize("task", Task)
def test_every_kind_is_told_whole(task):
    about = label_page.shown(StudySpec(name="x", task=task))
    kind = KINDS[task]()
    assert about["question"] == kind.question
    assert [key["answer"] for key in about["keys"]] == [key.answer for key in kind.keys]
    assert about["rules"] == kind.rules
    assert (about["lists"], about["beside"]) == (kind.lists, kind.beside)
