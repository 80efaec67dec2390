"""The frame: which study is in hand, what the side bar says, and pages that are not there."""

import re
from types import SimpleNamespace

import pytest
from fastapi import Body, HTTPException
from fastapi.testclient import TestClient
from starlette.responses import HTMLResponse, JSONResponse
from study_factory import answer_all, joined

from annotation.study.labelling import list_studies
from annotation.ui.mount import web_app
from annotation.web import frame
from annotation.web.frame import NEWS, STUDY_COOKIE, FrameContext, head, in_hand
from annotation.web.guard import PROCESS
from semsim.reporting.glossary import glossary

PAGE = {"accept": "text/html"}
RUNS = SimpleNamespace(
    words="Training <first>", share=0.41, left="about 2 min left", address="/studio/x"
)


def asked(study="", cookie=""):
    return SimpleNamespace(query_params={"study": study}, cookies={STUDY_COOKIE: cookie})


@pytest.fixture
def two(make_study):
    return make_study(name="One"), make_study(name="Two")


OTHERS = {"Metric": [("Train SemSim", "train"), ("Compare", "compare")]}


@pytest.fixture
def client(store, tmp_path):
    app = web_app(
        FrameContext(store=store, running=lambda: [RUNS], groups=OTHERS, words=glossary),
        tmp_path / "images",
    )
    app.add_api_route("/studio/drawn", _drawn, methods=["GET"])
    return TestClient(app, base_url="http://127.0.0.1")


def _drawn():
    return HTMLResponse("<html><head></head><body><gradio-app></gradio-app></body></html>")


def test_the_study_of_the_address_comes_before_the_one_chosen_last(store, two):
    one, other = (study.id for study in two)
    of = in_hand(store)
    assert of(asked(one, other)) == one
    assert of(asked("", other)) == other
    assert of(asked("gone", other)) == other
    assert of(asked()) in {one, other}


def test_what_happens_anywhere_is_news_with_the_side_bar(store, two, tmp_path, monkeypatch):
    monkeypatch.setattr(frame, "time", lambda: 60.0)
    files = iter([1, 1, 1, 2])
    bar = FrameContext(store=store, changed=lambda: next(files))
    client = TestClient(web_app(bar, tmp_path / "images"), base_url="http://127.0.0.1")

    def news():
        return client.get("/studio/frame", params={"study": two[0].id}).headers[NEWS]

    before = news()
    assert news() == before
    answer_all(store, joined(store, two[1], "Ada")[0])
    voted = news()
    assert voted != before
    assert news() != voted


def test_without_a_study_none_is_in_hand(store):
    assert in_hand(store)(asked("any", "any")) == ""


def test_the_one_that_was_voted_in_is_in_hand_before_one_that_was_not(store, two):
    answer_all(store, joined(store, two[0], "Ada")[0])
    assert in_hand(store)(asked()) == two[0].id


def test_the_side_bar_marks_the_page_and_keeps_the_study_in_every_link(client, two):
    bar = client.get("/studio/frame", params={"at": "people", "study": two[0].id})
    assert f'href="/studio/people?study={two[0].id}" aria-current="page"' in bar.text
    assert f'href="/studio/compare?study={two[0].id}">' in bar.text
    assert f'<option value="{two[0].id}" selected>One</option>' in bar.text
    assert bar.cookies[STUDY_COOKIE] == two[0].id
    below = client.get("/studio/frame", params={"at": "people/one", "study": two[0].id})
    assert below.text == bar.text  # a page below is marked as the one above it
    again = client.get("/studio/frame", params={"at": "people"})
    assert f'<option value="{two[0].id}" selected>One</option>' in again.text


def test_votes_from_elsewhere_are_in_hand_on_the_pages_that_show_them(store, two, tmp_path):
    brought = {"import:lab": ("Lab <one>", "votes"), "import:paper": ("Paper", "labels")}
    app = web_app(
        FrameContext(store=store, groups=OTHERS, imports=lambda: brought), tmp_path / "images"
    )
    client = TestClient(app, base_url="http://127.0.0.1")
    asked = {"at": "results", "study": "import:lab"}
    bar = client.get("/studio/frame", params=asked).text
    assert '<option value="import:lab" selected>Lab &lt;one&gt; (imported)</option>' in bar
    assert bar.count(" selected>") == 1
    assert "Votes from elsewhere" in bar
    assert 'href="/studio/compare?study=import%3Alab">' in bar
    assert "/studio/train?study=import" not in bar  # it cannot show them
    labels = client.get("/studio/frame", params={**asked, "study": "import:paper"}).text
    assert "Labels from elsewhere" in labels
    assert "Votes from elsewhere" not in labels
    elsewhere = client.get("/studio/frame", params={**asked, "at": "train"})
    assert "import:lab" not in elsewhere.text


def test_a_clean_start_has_people_in_hand_on_home(store, make_study, tmp_path):
    study = make_study(name="Demo", simulated=True)
    brought = {"import:people": ("218 people", "labels"), "import:paper": ("Paper", "labels")}
    bar = FrameContext(store=store, groups=OTHERS, imports=lambda: brought)
    client = TestClient(web_app(bar, tmp_path / "images"), base_url="http://127.0.0.1")
    home = client.get("/studio/frame").text
    assert '<option value="import:people" selected>218 people (imported)</option>' in home
    assert home.count(" selected>") == 1
    assert 'href="/studio/compare?study=import%3Apeople">' in home
    other = client.get("/studio/frame", params={"study": "import:paper"}).text
    assert '<option value="import:paper" selected>' in other
    chosen = client.get("/studio/frame", params={"study": study.id}).text
    assert f'<option value="{study.id}" selected>Demo</option>' in chosen


def test_a_study_that_is_not_there_is_not_kept(client, two):
    bar = client.get("/studio/frame", params={"study": "gone"})
    assert STUDY_COOKIE not in bar.cookies
    assert "gone" not in bar.text


def test_the_side_bar_says_what_runs_as_text(client):
    text = client.get("/studio/frame").text
    assert "Training &lt;first&gt;" in text
    assert "41%, about 2 min left" in text
    assert "No study yet" in text


def test_what_gradio_draws_gets_the_frame_once_and_its_length(client):
    page = client.get("/studio/drawn", headers={**PAGE, "accept-encoding": "identity"})
    assert page.content.count(head()) == 1
    assert int(page.headers["content-length"]) == len(page.content)
    assert head() not in client.get("/studio/drawn").content  # a script asks: nothing is added


def test_page_and_side_bar_say_which_process_they_are_of(client):
    page = client.get("/studio/drawn", headers=PAGE).text
    (drawn,) = re.findall(
        '<meta name="studio-process" content="([0-9a-f]{16})" data-other="[^"]*deploy/nginx.conf',
        page,
    )
    assert client.get("/studio/frame").headers[PROCESS] == drawn


def test_the_address_of_a_study_that_is_gone_shows_no_other(client, two):
    told = client.get("/studio/help?study=gone", headers=PAGE)
    assert told.status_code == 410
    assert "The study of this address is not here" in told.text
    assert "Try again" not in told.text
    both = f"/studio/help?study={two[0].id}&study={two[1].id}"
    assert client.get(both, headers=PAGE).status_code == 200
    assert client.get(f"{both}&study=gone", headers=PAGE).status_code == 410
    assert client.get("/studio/frame?study=gone").status_code == 200  # the bar goes on


def test_without_a_study_none_is_gone(client):
    assert client.get("/studio/help?study=gone", headers=PAGE).status_code == 200


@pytest.mark.parametrize("path", ["/nope", "/studio/nope/<b>"])
def test_a_page_that_is_not_there_is_a_page(client, path):
    page = client.get(path, headers=PAGE)
    assert page.status_code == 404
    assert "There is no such page" in page.text
    assert "<b>" not in page.text
    assert client.get(path).json() == {"detail": "Not Found"}


@pytest.mark.parametrize(("path", "framed"), [("/studio/wrong", True), ("/wrong", False)])
def test_what_went_wrong_with_a_page_is_a_page(client, path, framed):
    @client.app.get(path)
    def wrong() -> None:
        raise HTTPException(418)

    app = client.app
    app.add_api_route(f"{path}/asked", lambda at: at, methods=["GET"])
    page = client.get(f"{path}/asked", headers=PAGE)
    assert page.status_code == 422
    assert "<h1>That did not work</h1>" in page.text
    assert "at: Field required" in page.text
    assert ("frame.js" in page.text) is framed
    assert client.get(f"{path}/asked").json() == {"error": "at: Field required"}
    assert "Teapot" in client.get(path, headers=PAGE).text
    assert client.get(path).json() == {"detail": "I'm a Teapot"}


def test_the_address_of_a_form_is_no_page(client):
    client.app.add_api_route("/studio/press", lambda: None, methods=["POST"])
    page = client.get("/studio/press", headers=PAGE)
    assert page.status_code == 405
    assert "There is no such page" in page.text


def test_what_went_wrong_with_a_form_is_a_page(client):
    @client.app.post("/studio/press")
    def press() -> JSONResponse:
        return JSONResponse({"error": "There is no Ada <b>here</b>."}, 404)

    page = client.post("/studio/press", headers=PAGE)
    assert page.status_code == 404
    assert "There is no Ada &lt;b&gt;here&lt;/b&gt;." in page.text
    assert "Try again" not in page.text  # which would not send the form
    assert client.post("/studio/press").json() == {"error": "There is no Ada <b>here</b>."}


def test_what_nobody_foresaw_is_told_without_what_it_was(client):
    @client.app.get("/studio/broken")
    def broken() -> None:
        raise RuntimeError("<b>secret</b>")

    with pytest.raises(RuntimeError):  # so that the log has it
        client.get("/studio/broken")
    told = TestClient(client.app, "http://127.0.0.1", raise_server_exceptions=False)
    page = told.get("/studio/broken", headers=PAGE)
    assert page.status_code == 500
    assert "Something broke in the studio itself." in page.text
    assert "secret" not in page.text
    assert "secret" not in told.get("/studio/broken").json()["error"]


def test_every_word_is_explained_on_the_help_page_and_for_scripts(client):
    words = client.get("/studio/glossary").json()
    assert words == dict(glossary())
    assert all(meaning.endswith(".") for meaning in words.values())
    page = client.get("/studio/help", headers=PAGE).text
    assert all("<dt" in page and word.split()[0] in page for word in words)


def test_help_names_the_command_that_lets_others_in_where_it_is_wanted(client):
    for host, told in (("127.0.0.1:8110", True), ("lab", False)):
        here = TestClient(client.app, base_url=f"http://{host}")
        page = here.get("/studio/help", headers=PAGE).text
        assert ("To let others in" in page) == told
        assert ("<code>make run HOST=0.0.0.0 PORT=8110</code>" in page) == told


def test_the_names_are_those_of_the_store(store, two, client):
    text = client.get("/studio/frame").text
    assert all(f">{study.name}</option>" in text for study in list_studies(store))


def test_what_is_not_as_a_route_wants_it_is_not_repeated(client):
    @client.app.post("/studio/wants")
    def wants(study: str = Body(embed=True)) -> str:
        return study

    sent = b'{"study": {"a": "\\ud800"}}'
    told = client.post("/studio/wants", content=sent, headers={"content-type": "application/json"})
    assert told.status_code == 422
    assert told.json()["error"].startswith("study: ")
