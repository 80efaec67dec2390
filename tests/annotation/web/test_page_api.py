"""The pages annotators go through, over a real store: joining, every step, the end."""

import asyncio
import re
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from helpers import limit
from study_factory import answer_to, questions_for

from annotation.accounts.attempts import Clock
from annotation.design.workload import seconds_of
from annotation.domain import Step, StudyStatus
from annotation.errors import StudyError
from annotation.store.tables import AnnotatorRow, EventRow, PersonalLinkRow
from annotation.study import labelling as studies
from annotation.study.exports import export_votes
from annotation.study.participant_flow import completion_code_of
from annotation.study.participants import erase, exclude, let_in, new_link, pause
from annotation.web.api import router
from annotation.web.guard import Guard
from semsim.base.errors import StoreError

PID = {"PROLIFIC_PID": "5f1e", "STUDY_ID": "60aa", "SESSION_ID": "61bb"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONSENT = {"step": "consent", "agree": "yes"}


@pytest.fixture
def app(store, images):
    made = FastAPI()
    made.include_router(router(store, images))
    return made


@pytest.fixture
def join(app):
    def sign_in(study, name="Ada"):
        browser = TestClient(app, follow_redirects=False)
        form = {"link": links[study.id, name]} if (study.id, name) in links else {"name": name}
        browser.arrived = browser.post(f"/join/{study.token}", data=form)
        assert browser.arrived.status_code == 303, browser.arrived.text
        links[study.id, name] = browser.post("/api/link").json()["link"]
        return browser

    links: dict[tuple[str, str], str] = {}  # whoever comes again comes by their own
    return sign_in


def person(store, name="Ada"):
    return store.read(lambda tx: tx.query(AnnotatorRow).filter_by(name=name).one())


def send(browser, **form):
    reply = browser.post("/begin", data=form)
    return browser.get("/begin") if reply.status_code == 303 else reply


def answers(store, browser, *, wrong=()):
    """The form of the check with the questions of those names answered wrongly."""
    annotator = studies.who(store, browser.cookies["semsim_session"])
    form = {"step": "check", "attempt": str(person(store).check_attempts)}
    for one in questions_for(store, annotator):
        others = [name for name, _ in one.options if name != one.right]
        form[one.name] = others[0] if one.name in wrong else one.right
    return form


def test_a_plain_study_begins_with_the_pictures(join, make_study):
    browser = join(make_study())
    assert browser.arrived.headers["location"] == "/label"
    assert browser.get("/begin").headers["location"] == "/label"
    assert browser.get("/done").headers["location"] == "/label"


def test_the_link_says_how_many_pictures_and_minutes_there_are(app, store, make_study):
    client = TestClient(app)

    def said(study):
        return client.get(f"/join/{study.token}").text

    study = make_study(repeat_rate=0.0)
    n = study.n_items
    assert f"Up to {n} pictures, about {max(1, round(seconds_of(n) / 60))} min." in said(study)
    few = make_study(name="Few", items_per_person=3, repeat_rate=0.0)
    assert "Up to 3 pictures" in said(few)
    once = make_study(name="Once", max_views=1, repeat_rate=0.0)
    assert f"Up to {n // len(once.models)} pictures" in said(once)
    # From the study's own pace, as soon as it has one.
    for name in ("Ann", "Ben", "Cleo"):
        person = studies.join(store, study.token, name).annotator
        for item in studies.next_items(store, person, "tab", 100, NOW):
            slow = answer_to(item.item, rt_ms=60_000.0)
            studies.vote(store, person, slow, NOW)
    assert f"about {round(seconds_of(n, 60_000) / 60)} min." in said(study)
    studies.set_status(store, study.id, StudyStatus.CLOSED)
    assert "Up to" not in said(study)


@pytest.mark.parametrize("path", ["/join/{}", "/begin"])
def test_a_body_that_breaks_off_is_no_error_of_the_server(app, make_study, path):
    came = iter(
        [
            {"type": "http.request", "body": b"name=A", "more_body": True},
            {"type": "http.disconnect"},
        ]
    )
    sent = []

    async def receive():
        return next(came)

    async def send(message):
        sent.append(message)

    scope = {
        **{"type": "http", "method": "POST", "path": path.format(make_study().token)},
        **{"query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1"},
        "headers": [(b"content-type", b"application/x-www-form-urlencoded")],
    }
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 400


def test_guesses_at_the_same_moment_are_counted_like_others(store, images, make_study):
    study = make_study(password="right")
    start = threading.Barrier(20)

    async def give_up(seconds):
        raise StoreError("This one has to wait.")

    app = FastAPI()
    app.include_router(router(store, images, Clock(now=lambda: 0.0, sleep=give_up)))

    def guess(number):
        start.wait(limit(60))
        form = {"name": "Ada", "password": f"wrong {number}"}
        return browser.post(f"/join/{study.token}", data=form).status_code

    # All of them in one event loop, as in a server.
    with TestClient(app) as browser, ThreadPoolExecutor(20) as threads:
        told = Counter(threads.map(guess, range(20)))
    assert told == {403: 5, 503: 15}


def test_the_whole_way_to_the_pictures(store, join, make_study):
    browser = join(make_study(consent="Voluntary.", check=True))
    assert browser.arrived.headers["location"] == "/begin"
    assert "Voluntary." in browser.get("/begin").text
    assert "How to answer" in send(browser, **CONSENT, keep_votes="yes").text
    assert "The questions" in send(browser, step="instructions").text
    assert send(browser, **answers(store, browser)).headers["location"] == "/label"
    row = person(store)
    assert (row.step, row.keep_votes, row.check_attempts) == (Step.MAIN, True, 1)
    assert row.consented is not None


def test_a_page_opened_for_somebody_else_moves_nobody(store, join, make_study):
    """On a computer that several use, one may be open from before."""
    study = make_study(consent="Voluntary.")
    ada, ben = join(study), join(study, "Ben")
    whose = [
        re.search(r'name="who" value="([^"]+)"', one.get("/begin").text)[1] for one in (ada, ben)
    ]
    assert whose[0] != whose[1]
    assert "Voluntary." in send(ben, **CONSENT, who=whose[0]).text
    assert person(store, "Ben").consented is None
    assert "How to answer" in send(ben, **CONSENT, who=whose[1]).text


def test_no_items_are_handed_out_before_the_pictures(join, make_study):
    browser = join(make_study(consent="Voluntary."))
    assert browser.get("/api/study").json()["step"] == "consent"
    reply = browser.get("/api/next?tab=t").json()
    assert (reply["items"], reply["state"]) == ([], "elsewhere")
    send(browser, **CONSENT)
    send(browser, step="instructions")
    assert browser.get("/api/next?tab=t").json()["state"] == "ready"
    assert browser.get("/api/study").json()["step"] == "main"


def test_every_step_is_still_there_in_another_browser(app, store, join, make_study):
    study = make_study(consent="Voluntary.", check=True)
    send(join(study), **CONSENT)
    assert "How to answer" in join(study).get("/begin").text
    send(join(study), step="instructions")
    assert "The questions" in join(study).get("/begin").text


def test_a_form_sent_twice_passes_one_step(join, store, make_study):
    browser = join(make_study(consent="Voluntary.", check=True))
    for _ in range(3):
        send(browser, **CONSENT)
    assert person(store).step == Step.INSTRUCTIONS


def test_who_makes_no_choice_is_asked_again(join, store, make_study):
    browser = join(make_study(consent="Voluntary."))
    reply = send(browser, step="consent")
    assert reply.status_code == 422
    assert "choose one" in reply.text
    assert person(store).step == Step.CONSENT


def test_who_declines_gets_nothing_and_may_think_again(join, store, make_study):
    browser = join(make_study(consent="Voluntary."))
    assert "chosen not to take part" in send(browser, step="consent", agree="no").text
    assert browser.get("/api/next?tab=t").json()["items"] == []
    assert (person(store).consented, person(store).keep_votes) == (None, None)
    assert "Voluntary." in send(browser, step="declined").text
    send(browser, **CONSENT)
    assert person(store).keep_votes is False


def test_a_wrong_answer_brings_the_instructions_back_and_uses_an_attempt(join, store, make_study):
    browser = join(make_study(check=True))
    send(browser, step="instructions")
    form = answers(store, browser, wrong=["guess"])
    again = send(browser, **form)
    assert "Some answers do not match the instructions" in again.text
    assert "How to answer" in again.text
    assert "Attempts left: 1." in again.text
    send(browser, **form)  # the very same form, from a page loaded before
    assert person(store).check_attempts == 1
    assert send(browser, **answers(store, browser)).headers["location"] == "/label"


def test_an_unanswered_question_is_no_attempt(join, store, make_study):
    browser = join(make_study(check=True))
    send(browser, step="instructions")
    form = answers(store, browser)
    del form["none"]
    reply = send(browser, **form)
    assert reply.status_code == 422
    assert "still open: 1." in reply.text
    assert person(store).check_attempts == 0


def test_no_attempt_left_is_the_end_until_the_researcher_lets_them_in(join, store, make_study):
    study = make_study(check=True, check_attempts=1)
    browser = join(study)
    send(browser, step="instructions")
    failed = send(browser, **answers(store, browser, wrong=["none"]))
    assert "Thank you for trying" in failed.text
    assert "Thank you for trying" in send(browser, **answers(store, browser)).text
    assert "Thank you for trying" in join(study).get("/begin").text
    assert browser.get("/api/next?tab=t").json()["items"] == []
    assert let_in(store, study.id, "ADA", datetime.now(UTC)).step is Step.MAIN
    assert browser.get("/begin").headers["location"] == "/label"


def test_a_step_is_not_skipped_by_a_form_of_a_later_one(join, store, make_study):
    browser = join(make_study(consent="Voluntary.", check=True))
    for step in ("instructions", "practice", "declined", "check", "main", "done", "", "nonsense"):
        form = answers(store, browser) if step == "check" else {}
        send(browser, **{**form, "step": step})
        assert person(store).step == Step.CONSENT, step


def test_what_happened_is_on_record(join, store, make_study):
    browser = join(make_study(consent="Voluntary.", check=True))
    send(browser, **CONSENT)
    send(browser, step="instructions")
    send(browser, **answers(store, browser, wrong=["alone"]))
    events = store.read(lambda tx: tx.query(EventRow).order_by(EventRow.id).all())
    told = [(one.kind, one.data) for one in events if one.kind in ("step", "check")]
    assert told == [
        ("step", {"before": "consent", "after": "instructions", "protocol": 1}),
        ("step", {"before": "instructions", "after": "check", "protocol": 1}),
        ("check", {"attempt": 1, "wrong": ["alone"]}),
    ]


@pytest.mark.parametrize("address", ["/begin", "/done"])
def test_strangers_are_sent_away(app, address):
    reply = TestClient(app, follow_redirects=False).get(address)
    assert (reply.status_code, reply.headers["location"]) == (303, "/signed-out")
    assert TestClient(app, follow_redirects=False).post("/begin").headers["location"] == (
        "/signed-out"
    )


def test_other_sites_cannot_consent_for_somebody(join, store, make_study):
    browser = join(make_study(consent="Voluntary."))
    reply = browser.post("/begin", data=CONSENT, headers={"Origin": "http://evil"})
    assert reply.status_code == 403
    assert person(store).step == Step.CONSENT


def test_whoever_was_stopped_is_told_so_and_goes_no_further(join, store, make_study):
    study = make_study(consent="Voluntary.")
    browser = join(study)
    studies.set_status(store, study.id, StudyStatus.CLOSED)
    assert "The study is closed" in browser.get("/begin").text
    studies.set_status(store, study.id, StudyStatus.RUNNING)
    pause(store, study.id, "Ada", NOW)
    assert "Your part is paused" in send(browser, **CONSENT).text
    assert person(store).step == Step.CONSENT


def answer_all(browser):
    for _ in range(20):
        reply = browser.get("/api/next?tab=t&n=100").json()
        if not reply["items"]:
            return reply
        for number, item in enumerate(reply["items"]):
            body = {"id": f"00000000-0000-4000-8000-{hash(item['item']) % 10**12:012d}"}
            body |= {"item": item["item"], "answer": "none", "tab": f"t{number}", "version": 1}
            assert browser.post("/api/vote", json=body).status_code == 200
    raise AssertionError("still items after 20 rounds")


def test_the_code_comes_at_the_end_and_not_before(join, store, make_study):
    study = make_study(votes_per_item=1)
    browser = join(study)
    assert "code" not in browser.get("/api/next?tab=t&n=2").json()
    assert completion_code_of(store, study.id, "Ada") is None
    reply = answer_all(browser)
    code = completion_code_of(store, study.id, "Ada")
    assert (reply["state"], reply["code"], reply["done_page"]) == ("finished", code, "/done")
    assert re.fullmatch(r"[A-Z2-9]{10}", code)
    page = browser.get("/done").text
    assert code in page
    assert browser.get("/begin").headers["location"] == "/done"
    assert browser.get("/api/next?tab=t").json()["code"] == code


def test_a_study_may_have_one_code_for_all(join, store, make_study):
    study = make_study(votes_per_item=1, completion_code="C1A2B3")
    assert answer_all(join(study))["code"] == "C1A2B3"
    assert completion_code_of(store, study.id, "Ada") == "C1A2B3"


@pytest.fixture
def done(join, make_study):
    """A study, the browser of Ada, who is done, and her code; Ben has answered one item of all."""
    study = make_study(votes_per_item=1)
    ben = join(study, "Ben")
    first = ben.get("/api/next?tab=t&n=1").json()["items"][0]
    body = {"id": "00000000-0000-4000-8000-000000000001", "item": first["item"]}
    ben.post("/api/vote", json={**body, "answer": "none", "tab": "t", "version": 1})
    ada = join(study)
    return study, ada, answer_all(ada)["code"]


def codes_told(store, study):
    return {one.name: one.completion_code for one in studies.progress(store, study.id).annotators}


def test_somebody_done_goes_on_when_there_is_more_again_and_keeps_the_code(store, done):
    study, ada, code = done
    exclude(store, study.id, "Ben", NOW)
    assert len(ada.get("/api/next?tab=t").json()["items"]) == 1
    assert person(store).step == Step.MAIN
    assert code in ada.get("/done").text
    assert codes_told(store, study) == {"Ada": code, "Ben": None}
    studies.set_status(store, study.id, StudyStatus.PAUSED)
    reply = ada.get("/api/next?tab=t").json()
    assert (reply["state"], reply["code"], reply["done_page"]) == ("paused", code, "/done")
    studies.set_status(store, study.id, StudyStatus.RUNNING)
    assert answer_all(ada)["code"] == code


@pytest.mark.parametrize("status", [StudyStatus.PAUSED, StudyStatus.CLOSED])
def test_somebody_done_stays_so_when_there_is_more_in_a_study_that_does_not_run(
    store, done, status
):
    study, ada, code = done
    studies.set_status(store, study.id, status)
    exclude(store, study.id, "Ben", NOW)
    reply = ada.get("/api/next?tab=t").json()
    assert (reply["items"], reply["state"], reply["code"]) == ([], status.value, code)
    assert person(store).step == Step.DONE


@pytest.mark.parametrize("status", [StudyStatus.PAUSED, StudyStatus.CLOSED])
def test_whoever_had_answered_all_before_the_study_stopped_is_done(store, join, make_study, status):
    """Their last answers came late, or they had gone when others held the rest."""
    study = make_study(votes_per_item=1)
    ada = join(study)
    for number, item in enumerate(ada.get("/api/next?tab=t&n=100").json()["items"]):
        body = {"id": f"00000000-0000-4000-8000-{number:012d}", "item": item["item"]}
        body |= {"answer": "none", "tab": "t", "version": 1}
        assert ada.post("/api/vote", json=body).is_success
    studies.set_status(store, study.id, status)
    reply = ada.get("/api/next?tab=t").json()
    assert (reply["items"], reply["state"]) == ([], status.value)
    assert reply["code"] == codes_told(store, study)["Ada"] == person(store).completion_code
    assert person(store).step == Step.DONE


def test_whoever_has_something_left_when_the_study_closes_is_not_done(store, join, make_study):
    study = make_study(votes_per_item=1)
    ada = join(study)
    studies.set_status(store, study.id, StudyStatus.CLOSED)
    assert "code" not in ada.get("/api/next?tab=t").json()
    assert person(store).step == Step.MAIN


def test_somebody_excluded_after_the_end_is_told_so(store, done):
    study, ada, code = done
    for name in ("Ben", "Ada"):  # so that there is more again
        exclude(store, study.id, name, NOW)
    reply = ada.get("/api/next?tab=t")
    assert (reply.status_code, reply.json()["state"]) == (200, "you-stopped")
    assert reply.json()["code"] == code
    assert person(store).step == Step.DONE
    page = ada.get("/done").text
    assert code in page
    assert "Your part has ended" in page


def test_a_recruit_is_asked_for_nothing_but_to_start(app, store, make_study):
    study = make_study(consent="Voluntary.")
    browser = TestClient(app, follow_redirects=False)
    page = browser.get(f"/join/{study.token}", params={**PID, "junk": "1"}).text
    assert "Your name" not in page
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', page))
    assert fields == PID
    reply = browser.post(f"/join/{study.token}", data=fields)
    assert reply.headers["location"] == "/begin"
    row = person(store, PID["PROLIFIC_PID"])
    assert row.external == PID
    assert browser.get("/api/study").json()["annotator"] == "5f1e"


def test_a_recruit_who_comes_back_is_the_same_person(app, store, make_study):
    study = make_study()
    for session in ("61bb", "62cc"):
        TestClient(app).post(f"/join/{study.token}", data={**PID, "SESSION_ID": session})
    assert person(store, "5f1e").external == {**PID, "SESSION_ID": "62cc"}


def test_a_recruit_whose_id_is_no_tidy_name_comes_back_all_the_same(app, store, make_study):
    study = make_study()
    for _ in range(2):
        browser = TestClient(app, follow_redirects=False)
        reply = browser.post(f"/join/{study.token}", data={"participant": "P  17"})
        assert reply.status_code == 303
    other = TestClient(app, follow_redirects=False)
    assert other.post(f"/join/{study.token}", data={"participant": "P 17"}).status_code == 409


def test_erasing_somebody_takes_the_ids_of_the_service_away(app, store, make_study):
    study = make_study()
    TestClient(app).post(f"/join/{study.token}", data=PID)
    erase(store, study.id, "5f1e", NOW, keep_votes=True)
    rows = store.read(lambda tx: tx.query(AnnotatorRow).all())
    assert [one.external for one in rows] == [None]


PRACTICE = {"practice": 2, "set_aside": 1, "check": True}


def practise(browser, number, answer=None):
    """Answer the next practice item; returns the server's replies to the question and the vote."""
    reply = browser.get("/api/next?tab=t").json()
    item = reply["items"][0]
    body = {"id": f"00000000-0000-4000-8000-{number:012d}", "item": item["item"], "tab": "t"}
    body |= {"answer": answer or item["candidates"][0], "version": 1}
    return reply, browser.post("/api/vote", json=body).json()


def test_practice_tells_what_it_was_and_leads_on(join, store, make_study):
    study = make_study(**PRACTICE)
    browser = join(study)
    assert send(browser, step="instructions").headers["location"] == "/label"
    about = browser.get("/api/study").json()
    assert (about["step"], about["place"]) == ("practice", [2, 4])
    reply, receipt = practise(browser, 1)
    assert [item["practice"] for item in reply["items"]] == [True, True]
    assert (reply["progress"]["done"], reply["progress"]["total"]) == (0, 2)
    assert receipt["feedback"] in reply["items"][0]["candidates"]
    assert browser.post("/begin", data={"step": "practice"}).status_code == 303
    assert person(store).step == Step.PRACTICE  # one item waits for an answer
    reply, _ = practise(browser, 2)
    assert reply["progress"]["done"] == 1
    assert browser.get("/api/next?tab=t").json()["state"] == "elsewhere"
    assert person(store).step == Step.CHECK
    assert "The questions" in browser.get("/begin").text
    assert set(export_votes(store, study.id)["status"]) == {"quality"}


def test_practice_waits_while_the_study_is_paused(join, store, make_study):
    study = make_study(**PRACTICE)
    browser = join(study)
    send(browser, step="instructions")
    studies.set_status(store, study.id, StudyStatus.PAUSED)
    assert browser.get("/api/next?tab=t").json()["state"] == "paused"
    assert person(store).step == Step.PRACTICE


def test_items_of_the_study_do_not_say_that_they_are_no_practice(join, make_study):
    item = join(make_study()).get("/api/next?tab=t").json()["items"][0]
    assert "practice" not in item


def test_joining_again_ends_the_session_this_browser_had(join, make_study, store):
    study, other = make_study(), make_study("other")
    browser = join(study)
    for token, name in ((study.token, "Ada"), (other.token, "Bea")):
        before = browser.cookies["semsim_session"]
        assert studies.who(store, before) is not None
        browser.post(f"/join/{token}", data={"name": name})
        assert studies.who(store, before) is None
        assert studies.who(store, browser.cookies["semsim_session"]).name == name


def test_a_name_that_is_refused_ends_no_session(join, make_study, store):
    study = make_study()
    browser = join(study)
    browser.post(f"/join/{study.token}", data={"name": " "})
    assert studies.who(store, browser.cookies["semsim_session"]).name == "Ada"


@pytest.mark.parametrize("attempt", ["9" * 5000, "-1", "", "\u0663", "1e3"])
def test_an_attempt_that_was_never_made_changes_nothing(join, make_study, store, attempt):
    browser = join(make_study(check=True))
    send(browser, step="instructions")
    form = {**answers(store, browser), "attempt": attempt}
    assert browser.post("/begin", data=form).headers["location"] == "/begin"
    assert person(store).check_attempts == 0
    assert person(store).step == "check"


@pytest.mark.parametrize("text", ["a\0b", "\x1b[2J"])
def test_forms_hold_no_control_characters(app, make_study, text):
    study = make_study()
    for form in ({"name": text}, {"PROLIFIC_PID": text}, {text: "x", "name": "Ada"}):
        reply = TestClient(app).post(f"/join/{study.token}", data=form)
        assert (reply.status_code, "control characters" in reply.text) == (422, True)


# ------------------------------------------------------------------ personal links


def test_a_taken_name_is_said_and_a_link_asked_for(app, join, make_study):
    study = make_study()
    join(study)
    other = TestClient(app, follow_redirects=False)
    told = other.post(f"/join/{study.token}", data={"name": "ADA"})
    assert told.status_code == 409
    assert "Somebody called Ada takes part already" in told.text
    assert 'name="link"' in told.text
    assert "semsim_session" not in other.cookies


def test_a_personal_link_leads_to_where_somebody_is(app, join, store, make_study):
    study = make_study(consent="Voluntary.")
    first = join(study)
    send(first, **CONSENT)
    link = first.post("/api/link").json()["link"]
    assert re.fullmatch(r"/me/[-\w]{32}", link)
    other = TestClient(app, follow_redirects=False)
    assert other.get(link).headers["location"] == "/begin"
    assert "How to answer" in other.get("/begin").text
    assert studies.who(store, first.cookies["semsim_session"]).name == "Ada"  # there, too


def test_whoever_is_signed_in_is_not_made_somebody_else_by_a_link(join, store, make_study):
    study = make_study()
    ada, bea = join(study), join(study, "Bea")
    link = ada.post("/api/link").json()["link"]
    page = bea.get(link).text
    assert "Continue as Ada?" in page
    assert "Bea is signed in" in page
    assert studies.who(store, bea.cookies["semsim_session"]).name == "Bea"
    evil = bea.post(link, headers={"Origin": "http://evil"})
    assert evil.status_code == 403
    before = bea.cookies["semsim_session"]
    assert bea.post(link).headers["location"] == "/label"
    assert studies.who(store, bea.cookies["semsim_session"]).name == "Ada"
    assert studies.who(store, before) is None


def test_a_preview_of_a_link_that_a_researcher_made_leaves_no_vote_out(
    app, join, store, make_study
):
    study = make_study()
    join(study)
    link = f"/me/{new_link(store.by('Rosa'), study.id, 'Ada', NOW)}"
    other = TestClient(app, follow_redirects=False)
    assert "Continue as Ada?" in other.get(link).text
    assert not other.cookies
    assert person(store).link_by is None
    assert other.post(link).headers["location"] == "/label"
    assert person(store).link_by == "Rosa"
    assert other.get(link).headers["location"] == "/label"


def test_a_link_of_another_study_or_of_nobody_is_none(app, join, make_study):
    study, other = make_study(), make_study("other")
    link = join(other).post("/api/link").json()["link"]
    for given in (link, "/me/x", "nonsense"):
        told = TestClient(app).post(f"/join/{study.token}", data={"link": given})
        assert told.status_code == 403
        assert "a personal link of this study" in told.text
    assert TestClient(app).get("/me/nonsense").status_code == 404


def test_signing_out_says_how_to_come_back(app, join, make_study):
    reply = join(make_study()).post("/sign-out")
    assert reply.headers["clear-site-data"] == '"cache"'
    again = TestClient(app, follow_redirects=False).get("/sign-out")
    assert (again.status_code, again.headers["location"]) == (303, "/signed-out")
    (link,) = set(re.findall(r"http://testserver(/me/[-\w]+)", reply.text))
    assert "Only this computer" not in reply.text
    other = TestClient(app, follow_redirects=False)
    assert other.get(link).headers["location"] == "/label"


def test_an_erased_person_comes_back_by_no_link(app, join, store, make_study):
    study = make_study()
    link = join(study).post("/api/link").json()["link"]
    erase(store, study.id, "Ada", NOW, keep_votes=True)
    assert TestClient(app).get(link).status_code == 404
    assert store.read(lambda tx: tx.query(PersonalLinkRow).count()) == 0


def test_nobody_becomes_a_recruit_by_their_id_as_a_name_or_the_other_way_round(app, make_study):
    study = make_study()
    TestClient(app).post(f"/join/{study.token}", data=PID)
    TestClient(app).post(f"/join/{study.token}", data={"name": "Mia"})
    for form in ({"name": "5f1e"}, {"PROLIFIC_PID": "Mia"}, {"participant": "5f1e"}):
        reply = TestClient(app).post(f"/join/{study.token}", data=form)
        assert reply.status_code == 409, form


# ------------------------------------------------------------------ in which words


def test_a_study_is_held_in_its_own_words(app, store, make_study):
    texts = {
        "page.lang": "de",
        "join.start": "Los",
        "consent.agree": "Ich mache mit",
        "error.choose": "Bitte wählen.",
        "error.taken": "{name} gibt es schon.",
        "recognition.rules": "Hinsehen.\nAntworten.",
        "signed_out.title": "Abgemeldet",
    }
    study = make_study(consent="Freiwillig.", texts=texts)
    browser = TestClient(app)
    page = browser.get(f"/join/{study.token}").text
    assert '<html lang="de" dir="ltr">' in page
    assert ">Los</button>" in page
    assert "Ich mache mit" in browser.post(f"/join/{study.token}", data={"name": "Mia"}).text
    assert "Bitte wählen." in browser.post("/begin", data={"step": "consent"}).text
    assert "<li>Hinsehen.</li><li>Antworten.</li>" in browser.post("/begin", data=CONSENT).text
    taken = TestClient(app).post(f"/join/{study.token}", data={"name": "mia"})
    assert "Mia gibt es schon." in taken.text
    assert "Abgemeldet" in browser.post("/sign-out").text


@pytest.mark.parametrize("left", ["{{%PROLIFIC_PID%}}", "[ID]", "", "test", "xxx"])
def test_a_link_with_an_unfilled_placeholder_lets_nobody_in(app, store, make_study, left):
    study, sent, client = make_study(), {"PROLIFIC_PID": left}, TestClient(app)
    for reply in (
        client.get(f"/join/{study.token}", params=sent),
        client.post(f"/join/{study.token}", data=sent),
    ):
        assert reply.status_code == 400
        assert "left a placeholder in the link" in reply.text
        assert "To try a link, put a word of your own there each time" in reply.text
    assert store.read(lambda tx: tx.query(AnnotatorRow).count()) == 0


def test_a_browser_that_keeps_no_cookies_is_told_so_and_not_sent_in_a_circle(app, make_study):
    """The link that it is asked to open again would bring it here again."""
    browser = TestClient(app, base_url="https://lab.example.org", follow_redirects=False)
    arrived = browser.post(f"/join/{make_study().token}", data={"name": "Ada"})
    while arrived.status_code == 303:
        browser.cookies.clear()
        arrived = browser.get(arrived.headers["location"])
    assert arrived.url.path == "/signed-out"
    assert "this browser does not keep cookies" in arrived.text
    assert "Allow cookies of lab.example.org" in arrived.text


SITES = "https://worker.mturk.com https://*.example.org:8443"


def test_only_the_sites_that_a_study_names_may_frame_its_pages(app, make_study):
    guarded = Guard(app, lambda token: None, lambda token: token or None)
    for sites, allowed in (("", "'none'"), (SITES, SITES)):
        study = make_study(name=f"Framed by {sites}", framed_by=sites, consent="Voluntary.")
        browser = TestClient(guarded, base_url="https://lab.example.org", follow_redirects=False)
        pages = [browser.get(f"/join/{study.token}")]
        arrived = browser.post(f"/join/{study.token}", data={"name": "Ada"})
        pages += [browser.get("/begin")]
        for form in (CONSENT, {"step": "instructions"}):
            browser.post("/begin", data=form)
        pages += [browser.get("/label")]
        policies = [one.headers["content-security-policy"] for one in pages]
        assert [one.status_code for one in pages] == [200] * 3
        assert {one.rpartition("frame-ancestors ")[2] for one in policies} == {allowed}
        assert all(one.startswith("default-src 'self'; ") for one in policies)
        cookie = arrived.headers["set-cookie"]
        assert ("SameSite=none" in cookie) == ("Partitioned" in cookie) == bool(sites)
        assert ("SameSite=lax" in cookie) == (not sites)
        assert "Secure" in cookie


IN_A_FRAME = {"sec-fetch-dest": "iframe", "sec-fetch-site": "cross-site"}


@pytest.mark.parametrize(
    ("sites", "others", "told"),
    [(SITES, "", SITES), ("", "", "–"), ("", "https://s.org", "https://s.org")],
)
def test_a_page_that_may_not_frame_a_study_is_told_which_may(
    app, make_study, monkeypatch, sites, others, told
):
    """In the frame, where the browser would show nothing at all."""
    monkeypatch.setenv("SEMSIM_FRAMED_BY", others)
    guarded = Guard(app, lambda token: None, lambda token: token or None)
    browser = TestClient(guarded, base_url="https://lab.example.org")
    address = f"/join/{make_study(framed_by=sites).token}?workerId=A2"
    reply = browser.get(address, headers={**IN_A_FRAME, "referer": "https://other.net/task?a=b"})
    assert reply.status_code == 403
    assert "Pages of https://other.net may not show this study." in reply.text
    assert f"Sites that may: {told}." in reply.text
    assert "<form" not in reply.text
    policy = reply.headers["content-security-policy"].rpartition("frame-ancestors")[2]
    assert policy.split() == [*others.split(), "*"]
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {**IN_A_FRAME, "referer": "https://worker.mturk.com/projects"},
        {**IN_A_FRAME, "referer": "https://a.b.example.org:8443/x"},
        IN_A_FRAME,  # of a page that does not say which it is: the browser decides
        {**IN_A_FRAME, "sec-fetch-site": "same-origin", "referer": "https://lab.example.org/"},
        {"sec-fetch-dest": "document", "sec-fetch-site": "cross-site", "referer": "https://x.org/"},
    ],
)
def test_whoever_comes_otherwise_is_shown_the_study(app, make_study, headers):
    browser = TestClient(app, base_url="https://lab.example.org")
    reply = browser.get(f"/join/{make_study(framed_by=SITES).token}", headers=headers)
    assert (reply.status_code, "<form" in reply.text) == (200, True)


def test_without_tls_a_cookie_stays_on_the_site(app, make_study):
    """A browser takes none for a frame there, and would refuse it everywhere."""
    browser = TestClient(app, base_url="http://lab.example.org", follow_redirects=False)
    arrived = browser.post(f"/join/{make_study(framed_by=SITES).token}", data={"name": "Ada"})
    assert "SameSite=lax" in arrived.headers["set-cookie"]
    assert "Partitioned" not in arrived.headers["set-cookie"]


@pytest.mark.parametrize(
    "wrong", ["http://a.org", "a.org", "https://a.org/x", "https://a.org;x", "*"]
)
def test_a_site_that_may_frame_is_an_https_address(make_study, wrong):
    with pytest.raises(StudyError, match=r"such as https://worker\.mturk\.com.*got"):
        make_study(framed_by=f"https://worker.mturk.com {wrong}")
