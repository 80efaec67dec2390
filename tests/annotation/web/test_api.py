"""The HTTP interface of the study, over a real store."""

import asyncio
import io
import json
import threading
import uuid
from math import inf

import httpx
import pandas as pd
import pytest
from anyio import to_thread
from fastapi import FastAPI
from fastapi.testclient import TestClient
from helpers import limit, until
from sqlalchemy import event
from study_factory import CLASSES, write_set

from annotation.accounts.attempts import Clock
from annotation.domain import StudyStatus
from annotation.spec import StudySpec, Task
from annotation.store.tables import StudyRow, TrialRow, VoteRow
from annotation.study import labelling as studies
from annotation.study.create import create_study
from annotation.study.exports import export_labels, export_votes
from annotation.study.protocols import amend
from annotation.web import page_api
from annotation.web.api import MOST_CLAIMING, researcher_router, router

MODELS = ("resnet20-4", "convnet8")


@pytest.fixture
def app(store, images):
    made = FastAPI()
    made.include_router(router(store, images))
    made.include_router(researcher_router(store, images))
    return made


@pytest.fixture
def join(app):
    def sign_in(study, name="Ada", password=""):
        browser = TestClient(app, follow_redirects=False)
        form = {"name": name, "password": password}
        reply = browser.post(f"/join/{study.token}", data=form)
        assert reply.status_code == 303, reply.text
        return browser

    return sign_in


def next_items(browser, n=3, tab="tab"):
    return browser.get("/api/next", params={"tab": tab, "n": n}).json()


def vote_body(item, answer="none", **changes):
    vote = {"id": str(uuid.uuid4()), "item": item, "answer": answer, "tab": "tab", "version": 1}
    return {**vote, **changes}


def test_signing_in_leads_to_the_labelling_page_with_a_private_cookie(app, make_study):
    browser = TestClient(app, follow_redirects=False)
    reply = browser.post(f"/join/{make_study().token}", data={"name": "Ada"})
    assert (reply.status_code, reply.headers["location"]) == (303, "/label")
    cookie = reply.headers["set-cookie"].lower()
    assert "semsim_session=" in cookie
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie  # plain http here


def test_the_cookie_stays_on_https_where_there_is_https(app, make_study):
    browser = TestClient(app, follow_redirects=False, base_url="https://lab")
    reply = browser.post(f"/join/{make_study().token}", data={"name": "Ada"})
    assert "secure" in reply.headers["set-cookie"].lower()


def test_a_wrong_password_is_said_and_guessing_is_slow(store, images, make_study):
    study, other = make_study(password="right"), make_study("other", password="right")
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    app = FastAPI()
    app.include_router(router(store, images, Clock(now=lambda: sum(waits), sleep=sleep)))

    def attempt(password, address="10.0.0.1", study=study):
        browser = TestClient(app, follow_redirects=False, client=(address, 50000))
        return browser.post(f"/join/{study.token}", data={"name": "Ada", "password": password})

    replies = [attempt("wrong") for _ in range(8)]
    assert {reply.status_code for reply in replies} == {403}
    assert "The password is not the one of this study." in replies[0].text
    assert waits == [1, 2, 4]
    assert attempt("wrong", study=other).status_code == 403
    assert attempt("right", "10.0.0.2").status_code == 303
    assert waits == [1, 2, 4]
    assert attempt("right").status_code == 409  # the name is taken by now
    assert waits == [1, 2, 4, 8]


def test_an_empty_name_is_said(app, make_study):
    reply = TestClient(app).post(f"/join/{make_study().token}", data={"name": " "})
    assert reply.status_code == 403
    assert "name" in reply.text


def test_a_link_to_no_study_says_so(app):
    reply = TestClient(app).get("/join/nowhere")
    assert reply.status_code == 404
    assert "No such study" in reply.text


def test_the_join_page_knows_who_is_signed_in(app, join, make_study):
    study = make_study()
    browser = join(study)
    assert "Continue as Ada" in browser.get(f"/join/{study.token}").text
    assert "Continue as" not in browser.get(f"/join/{make_study('other').token}").text


def test_signing_out_ends_the_session_on_the_server(join, make_study):
    browser = join(make_study())
    token = browser.cookies["semsim_session"]
    assert "You are signed out" in browser.post("/sign-out").text
    assert browser.post("/sign-out").headers["location"] == "/signed-out"  # once is enough
    browser.cookies.set("semsim_session", token)
    assert browser.get("/api/study").status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/study", None),
        ("GET", "/api/next?tab=t", None),
        ("GET", "/api/image/x", None),
        ("POST", "/api/vote", vote_body("x")),
        ("POST", "/api/undo", {"id": str(uuid.uuid4())}),
        ("POST", "/api/heartbeat", {"tab": "t", "items": []}),
        ("POST", "/api/release", {"tab": "t", "items": []}),
        ("POST", "/api/link", None),
    ],
)
def test_nothing_is_told_to_or_taken_from_strangers(app, make_study, method, path, body):
    make_study()
    reply = TestClient(app).request(method, path, json=body)
    assert reply.status_code == 401
    assert "not signed in" in reply.json()["error"]


def test_the_study_is_described_for_its_annotator(join, make_study):
    study = make_study(image_scale=6, title="Small pictures", view="smooth", background="black")
    about = join(study).get("/api/study").json()
    assert about["name"] == "Small pictures"
    assert (about["view"], about["background"]) == ("smooth", "black")
    assert (about["step"], about["place"]) == ("main", None)
    assert about["task"] == "recognition"
    assert about["image_scale"] == 6
    assert about["annotator"] == "Ada"
    assert about["sign_in"] == f"/join/{study.token}"
    assert about["progress"] == {"done": 0, "left": 8, "total": 8, "median_rt_ms": None}


def test_items_come_with_candidates_and_opaque_images(join, make_study):
    reply = next_items(join(make_study()))
    assert reply["state"] == "ready"
    assert len(reply["items"]) == 3
    for item in reply["items"]:
        assert set(item) == {"item", "images", "candidates", "lease_until"}
        assert set(item["candidates"]) <= set(CLASSES)
        assert len(item["images"]) == 1


def test_a_vote_is_stored_once_however_often_it_is_sent(join, store, make_study):
    study = make_study()
    browser = join(study)
    body = vote_body(
        next_items(browser)["items"][0]["item"],
        rt_ms=812.5,
        client_ts="2026-03-01T12:00:00+01:00",
        reason="cannot_make_out",
        display={"scale": 8, "css_px": [48, 48], "hidden_ms": 0},
    )
    replies = [browser.post("/api/vote", json=body) for _ in range(3)]
    assert {reply.status_code for reply in replies} == {200}
    assert [reply.json() for reply in replies] == [{"id": body["id"], "status": "counted"}] * 3
    votes = export_votes(store, study.id)
    assert list(votes["vote_id"]) == [body["id"]]
    assert votes["rt_ms"].item() == 812.5
    assert votes["reason"].item() == "cannot_make_out"
    assert votes["client_ts"].item() == pd.Timestamp("2026-03-01T11:00:00Z")


def noting(app, arrived):
    """`app`, which adds the path of each request to `arrived` as it comes."""

    async def noted(scope, receive, send):
        arrived.append(scope["path"])
        await app(scope, receive, send)

    return noted


def test_an_answer_does_not_queue_behind_people_who_ask_for_items(
    app, join, make_study, monkeypatch
):
    browser = join(make_study())
    item = next_items(browser)["items"][0]["item"]
    go_on, look, arrived, looking = threading.Event(), studies.ahead, [], []

    def look_late(*args):
        looking.append(args)
        assert go_on.wait(limit(120))
        return look(*args)

    monkeypatch.setattr(studies, "ahead", look_late)

    async def answer_while_others_ask():
        transport = httpx.ASGITransport(noting(app, arrived))
        cookies, threads = (
            dict(browser.cookies),
            to_thread.current_default_thread_limiter().total_tokens,
        )
        address = "http://testserver"
        async with httpx.AsyncClient(
            transport=transport, base_url=address, cookies=cookies
        ) as client:
            asking = [
                asyncio.create_task(client.get("/api/next", params={"tab": "tab", "n": 1}))
                for _ in range(int(threads) + 1)
            ]
            # They take all threads there are for them.
            await asyncio.to_thread(
                until, lambda: len(arrived) == len(asking) and len(looking) == MOST_CLAIMING
            )
            try:
                vote = client.post("/api/vote", json=vote_body(item))
                voted = await asyncio.wait_for(vote, limit(20))
                asked_before = [request.done() for request in asking]
            finally:
                go_on.set()
            return voted, asked_before, await asyncio.gather(*asking)

    voted, asked_before, asked = asyncio.run(answer_while_others_ask())
    assert voted.json()["status"] == "counted"
    assert not any(asked_before)
    assert {reply.status_code for reply in asked} == {200}


def test_who_has_nothing_to_answer_goes_before_those_who_fill_their_reserve(
    app, join, make_study, monkeypatch
):
    browser, go_on, asked, arrived = join(make_study()), threading.Event(), [], []
    ahead = studies.ahead

    def look_late(store, by, n, *rest):
        asked.append(n)
        if n > 20:
            assert go_on.wait(limit(120))
        return ahead(store, by, n, *rest)

    monkeypatch.setattr(studies, "ahead", look_late)

    async def ask_all():
        transport, cookies = httpx.ASGITransport(noting(app, arrived)), dict(browser.cookies)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://testserver", cookies=cookies
        ) as client:

            def ask(n):
                return asyncio.create_task(client.get("/api/next", params={"tab": "t", "n": n}))

            reserves = []
            for number in range(4):
                reserves.append(ask(200))
                # One after the other.
                await asyncio.to_thread(until, lambda n=number: len(arrived) > n and asked)
            try:
                twenties = asyncio.gather(*(ask(20) for _ in range(5)))
                first = await asyncio.wait_for(twenties, limit(20))
                waited = [request.done() for request in reserves]
            finally:
                go_on.set()
            return waited, [*first, *await asyncio.gather(*reserves)]

    waited, replies = asyncio.run(ask_all())
    assert not any(waited)
    assert {reply.status_code for reply in replies} == {200}
    # The first two came while nobody else waited.
    assert asked == [200, *[20] * 5, 200, 40, 40]


def test_who_comes_waits_at_the_door_while_many_who_are_in_wait_for_pictures(
    app, join, make_study, monkeypatch
):
    study = make_study()
    browser, go_on, ahead, looking = join(study), threading.Event(), studies.ahead, []
    rest, at_the_door = page_api.sleep, []

    def look_late(*args):
        looking.append(args)
        assert go_on.wait(limit(120))
        return ahead(*args)

    async def look_again(seconds):
        at_the_door.append(seconds)
        await rest(seconds)

    monkeypatch.setattr(studies, "ahead", look_late)
    monkeypatch.setattr(page_api, "sleep", look_again)

    async def join_while_others_ask(n, longest, comes):
        monkeypatch.setattr(page_api, "LONGEST_AT_THE_DOOR", longest)
        looking.clear(), at_the_door.clear()
        arrived = []
        transport = httpx.ASGITransport(noting(app, arrived))
        here = {"transport": transport, "base_url": "http://testserver"}
        async with (
            httpx.AsyncClient(**here, cookies=dict(browser.cookies)) as client,
            httpx.AsyncClient(**here) as newcomer,
        ):
            ask = {"tab": "t", "n": 1}
            asking = [asyncio.create_task(client.get("/api/next", params=ask)) for _ in range(n)]
            await asyncio.to_thread(
                until, lambda: len(arrived) == n and len(looking) == MOST_CLAIMING
            )
            form = {"name": f"Ben {n} {longest}"}
            coming = asyncio.create_task(newcomer.post(f"/join/{study.token}", data=form))
            try:
                if comes:
                    await asyncio.wait_for(coming, limit(60))
                await asyncio.to_thread(until, lambda: comes or len(at_the_door) > 1)
                came = coming.done()
            finally:
                go_on.set()
            replies = await asyncio.gather(coming, *asking)
            go_on.clear()
            return came, {reply.status_code for reply in replies}

    for n, longest, comes in ((6, inf, True), (7, inf, False), (7, 0.1, True)):
        told = asyncio.run(join_while_others_ask(n, longest, comes))
        assert told == (comes, {200, 303})


def test_more_about_the_screen_than_is_kept_costs_nobody_an_answer(join, store, make_study):
    browser = join(make_study())
    display = {f"key {number:02d}": number for number in range(30)}
    body = vote_body(next_items(browser)["items"][0]["item"], display=display)
    assert browser.post("/api/vote", json=body).json()["status"] == "counted"
    (row,) = store.read(lambda tx: tx.query(VoteRow).all())
    assert row.display == dict(list(display.items())[:20])


def test_a_vote_keeps_the_version_its_item_was_shown_under(join, store, make_study):
    study = make_study(catch_rate=0.5, set_aside=2)
    browser = join(study)
    assert browser.get("/api/study").json()["version"] == 1
    reply = next_items(browser, 6)
    assert reply["version"] == 1
    bodies = [vote_body(item["item"]) for item in reply["items"]]
    amend(store, study.id, {"image_scale": 2}, "too large")
    assert browser.get("/api/study").json()["version"] == 2
    assert next_items(browser)["version"] == 2
    later, never, before = {**bodies[0], "version": 2}, bodies[1], bodies[2:]
    assert browser.post("/api/vote", json=later).status_code == 200
    for version in (0, 3, None):
        refused = browser.post("/api/vote", json={**never, "version": version})
        assert (refused.status_code, set(refused.json())) == (422, {"error"})
    receipts = [browser.post("/api/vote", json=body).json() for body in before]
    amend(store, study.id, {"image_scale": 3}, "too small")
    assert [browser.post("/api/vote", json=body).json() for body in before] == receipts
    votes = store.read(lambda tx: tx.query(VoteRow).all())
    assert {vote.trial_id is None for vote in votes} == {True, False}
    shown = {vote.id: vote.protocol for vote in votes}
    assert shown == {later["id"]: 2, **{body["id"]: 1 for body in before}}


def test_an_id_used_for_another_answer_is_a_conflict(join, make_study):
    browser = join(make_study())
    body = vote_body(next_items(browser)["items"][0]["item"])
    browser.post("/api/vote", json=body)
    reply = browser.post("/api/vote", json={**body, "answer": "sun"})
    assert reply.status_code in (409, 422)
    assert reply.json()["error"]


def test_undo_gives_the_item_back(join, store, make_study):
    study = make_study()
    browser = join(study)
    body = vote_body(next_items(browser)["items"][0]["item"])
    browser.post("/api/vote", json=body)
    reply = browser.post("/api/undo", json={"id": body["id"]})
    assert reply.json()["id"] == body["id"]
    assert reply.json()["item"]["item"] == body["item"]
    again = vote_body(body["item"])
    assert browser.post("/api/vote", json=again).json()["status"] == "counted"
    assert list(export_votes(store, study.id)["status"]) == ["superseded", "counted"]


def test_what_a_page_gives_back_is_there_for_others(join, make_study):
    study = make_study(votes_per_item=1)
    ada, grace = join(study, "Ada"), join(study, "Grace")
    held = [item["item"] for item in next_items(ada, 100)["items"]]
    assert next_items(grace)["items"] == []
    assert ada.post("/api/release", json={"tab": "tab", "items": held}).json()["ok"]
    assert {item["item"] for item in next_items(grace, 100)["items"]} <= set(held)
    assert len(next_items(grace, 100)["items"]) == 8 / 2 + 2  # a fair share


def test_what_cannot_be_right_is_refused_with_a_reason(join, make_study):
    browser = join(make_study())
    item = next_items(browser)["items"][0]["item"]
    wrong = {
        "an answer not offered": (vote_body(item, "zebra"), 422),
        "an unknown item": (vote_body("nothing"), 404),
        "no UUID": (vote_body(item, id="17"), 422),
        "a negative time": (vote_body(item, rt_ms=-1), 422),
        "endless": (vote_body(item, "x" * 1000), 422),
        "no zone": (vote_body(item, client_ts="2026-03-01T12:00:00"), 422),
    }
    for what, (body, status) in wrong.items():
        reply = browser.post("/api/vote", json=body)
        assert reply.status_code == status, what
        assert set(reply.json()) == {"error"}, what
    assert "id" in browser.post("/api/vote", json=vote_body(item, id="17")).json()["error"]
    assert browser.post("/api/undo", json={"id": str(uuid.uuid4())}).status_code == 404


def test_items_of_others_cannot_be_answered_or_looked_at(join, make_study):
    study = make_study()
    ada, grace = join(study, "Ada"), join(study, "Grace")
    hers = next_items(ada, 1)["items"][0]
    assert grace.post("/api/vote", json=vote_body(hers["item"])).status_code == 403
    assert grace.get(hers["images"][0]).status_code == 403
    assert ada.get(hers["images"][0]).status_code == 200
    assert ada.get("/api/image/unknown").status_code == 404


def test_an_image_says_nothing_but_its_pixels(join, make_study):
    browser = join(make_study())
    reply = browser.get(next_items(browser)["items"][0]["images"][0])
    assert reply.content.startswith(b"\x89PNG")
    assert reply.headers["cache-control"] == "private, max-age=86400, immutable"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert not {"content-disposition", "last-modified", "etag"} & set(reply.headers)


@pytest.mark.parametrize("task", Task)
def test_pictures_are_there_after_the_data_folder_has_moved(store, images, make_study, task):
    study = make_study(task=task, set_aside=2, catch_rate=0.5)
    elsewhere = images.rename(images.with_name("elsewhere"))
    app = FastAPI()
    app.include_router(router(store, elsewhere))
    browser = TestClient(app)
    browser.post(f"/join/{study.token}", data={"name": "Ada"})
    shown = [one for item in next_items(browser, 9)["items"] for one in item["images"]]
    trials = store.read(lambda tx: {trial.token for trial in tx.query(TrialRow)})
    assert {address.rpartition("/")[2] for address in shown} & trials
    assert all(browser.get(one).content[:4] == b"\x89PNG" for one in shown)


def test_no_answer_names_a_model_or_the_true_class(join, make_study):
    browser = join(make_study())
    item = next_items(browser, 1)["items"][0]
    body = vote_body(item["item"])
    replies = [
        browser.get("/api/study").json(),
        {key: value for key, value in item.items() if key != "candidates"},
        browser.post("/api/vote", json=body).json(),
        {
            key: value
            for key, value in browser.post("/api/undo", json={"id": body["id"]}).json().items()
            if key != "item"
        },
    ]
    told = json.dumps(replies).lower()
    assert not [word for word in (*MODELS, *CLASSES, "invgrad", "image-0") if word.lower() in told]


@pytest.mark.parametrize("headers", [{"Origin": "http://evil"}, {"Sec-Fetch-Site": "cross-site"}])
@pytest.mark.parametrize("path", ["/api/vote", "/api/undo", "/api/heartbeat", "/sign-out"])
def test_other_sites_cannot_act_for_somebody_signed_in(join, make_study, path, headers):
    browser = join(make_study())
    reply = browser.post(path, json=vote_body("x"), headers=headers)
    assert reply.status_code == 403
    assert "another site" in reply.json()["error"]
    assert browser.get("/api/study").status_code == 200


def test_a_page_opened_by_somebody_else_is_told_so(join, make_study):
    study = make_study()
    ada, grace = join(study, "Ada"), join(study, "Grace")
    key = ada.get("/api/study").json()["key"]
    assert ada.get("/api/next?tab=t", headers={"X-Annotator": key}).status_code == 200
    reply = grace.get("/api/next?tab=t", headers={"X-Annotator": key})
    assert reply.status_code == 401
    assert "Grace" in reply.json()["error"]


def test_the_page_learns_why_there_is_nothing_to_do(join, store, make_study):
    study = make_study(votes_per_item=1)
    ada, grace = join(study, "Ada"), join(study, "Grace")
    assert len(next_items(ada, 100)["items"]) == 8
    assert next_items(grace)["state"] == "waiting"  # Ada holds the only slot of each
    for item in next_items(ada, 100)["items"]:
        ada.post("/api/vote", json=vote_body(item["item"]))
    assert next_items(ada)["state"] == "finished"
    assert next_items(grace)["state"] == "finished"
    studies.set_status(store, study.id, StudyStatus.PAUSED)
    assert next_items(ada)["state"] == "paused"
    studies.set_status(store, study.id, StudyStatus.CLOSED)
    assert next_items(ada)["state"] == "closed"


@pytest.mark.parametrize("table", ["votes", "labels"])
def test_downloads_hold_what_the_export_holds(app, join, store, images, make_study, table):
    study = make_study(name='Näme "x"/..')
    browser = join(study)
    browser.post("/api/vote", json=vote_body(next_items(browser)["items"][0]["item"]))
    address = f"/studio/download/{study.id}/{table}"
    expected = (
        export_votes(store, study.id)
        if table == "votes"
        else export_labels(store, study.id, images)
    )
    parquet = TestClient(app).get(f"{address}.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(parquet.content)), expected)
    csv = TestClient(app).get(f"{address}.csv")
    assert list(pd.read_csv(io.BytesIO(csv.content))["item"]) == list(expected["item"])
    assert csv.headers["content-disposition"] == f'attachment; filename="n-me-x-{table}.csv"'


def test_a_download_of_nothing_says_so(app):
    assert TestClient(app).get("/studio/download/none/votes.csv").status_code == 404
    assert TestClient(app).get("/studio/download/none/secrets.csv").status_code == 422


def test_a_request_takes_few_transactions(store, join, make_study):
    """Fifty people ask at once: each transaction more is one that all of them wait for."""
    browser = join(make_study())
    begun = []
    event.listen(store._engine, "begin", lambda _: begun.append(1))
    items = next_items(browser)["items"]
    assert len(begun) == 2  # one that looks, one that reserves
    begun.clear()
    assert browser.post("/api/vote", json=vote_body(items[0]["item"])).status_code == 200
    assert len(begun) == 1


def test_the_longest_class_that_a_study_takes_can_be_answered(store, tmp_path, images, join):
    longest = "c" * 200
    labels = ("Cat", longest, "star", "sun")
    folder = write_set(tmp_path / "a", labels=labels, classes=[*CLASSES, longest])
    spec = StudySpec(name="long", task=Task.RECOGNITION)
    browser = join(create_study(store, spec, [folder], images))
    (item,) = next_items(browser, n=1)["items"]
    assert longest in item["candidates"]
    reply = browser.post("/api/vote", json=vote_body(item["item"], longest))
    assert (reply.status_code, reply.json()["status"]) == (200, "counted")


def test_an_answer_sooner_than_anybody_can_look_is_not_taken_and_can_be_given_again(
    store, join, make_study
):
    study = make_study()
    browser = join(study)
    assert browser.get("/api/study").json()["min_rt_ms"] == 150
    (item,) = next_items(browser, n=1)["items"]
    body = vote_body(item["item"], rt_ms=149.9, version=1)
    refused = browser.post("/api/vote", json=body)
    assert refused.status_code == 422
    assert "149.9 ms is too quick" in refused.json()["error"]
    assert store.read(lambda tx: tx.query(VoteRow).count()) == 0
    again = next_items(browser, n=1)["items"]
    assert again[0]["item"] == item["item"]
    taken = browser.post("/api/vote", json={**body, "rt_ms": 150.0})
    assert (taken.status_code, taken.json()["status"]) == (200, "counted")
    assert browser.post("/api/vote", json=body).json() == taken.json()  # that id has arrived


@pytest.mark.parametrize(("spec", "rt_ms"), [({"min_rt_ms": 0}, 0), ({}, None)])
def test_a_study_may_take_any_answer_and_one_without_a_time_is_taken(join, make_study, spec, rt_ms):
    browser = join(make_study(**spec))
    (item,) = next_items(browser, n=1)["items"]
    assert browser.post("/api/vote", json=vote_body(item["item"], rt_ms=rt_ms)).status_code == 200


def test_a_limit_set_later_is_for_what_is_shown_later(store, join, make_study):
    study = make_study(min_rt_ms=0)
    browser = join(study)
    first, second = next_items(browser, n=2)["items"]
    amend(store, study.id, {"min_rt_ms": 300}, "slips")
    early = vote_body(first["item"], rt_ms=200, version=1)
    assert browser.post("/api/vote", json=early).status_code == 200
    late = vote_body(second["item"], rt_ms=200, version=2)
    assert browser.post("/api/vote", json=late).status_code == 422


@pytest.mark.parametrize(
    "changes",
    [
        {"answer": "a\0b"},
        {"item": "\ud800"},
        {"reason": "\x1b"},
        {"tab": "\0"},
        {"display": {"a": "\ud800"}},
        {"display": {"a": float("nan")}},
        {"display": {"a": [{"b": float("inf")}]}},
        {"display": {"\ud800": 1}},
        {"display": {"\0": 1}},
        {"display": json.loads("[" * 200 + "]" * 200)},
        {"display": {"a": json.loads("[" * 200 + "]" * 200)}},
        {"client_ts": "0001-01-01T00:00:00+23:59"},
        {"client_ts": "9999-12-31T23:59:59-23:59"},
        {"rt_ms": float("inf")},
        {"rt_ms": 1e308},
        {"version": 0},
        {"version": 2**31},
    ],
    ids=repr,
)
def test_what_no_database_can_hold_is_refused_before_it_gets_there(join, make_study, changes):
    browser = join(make_study())
    body = vote_body(next_items(browser)["items"][0]["item"])
    content = json.dumps({**body, **changes})
    reply = browser.post("/api/vote", content=content, headers={"content-type": "application/json"})
    assert reply.status_code == 422, reply.text
    assert reply.json()["error"]
    assert browser.post("/api/vote", json=body).status_code == 200


@pytest.mark.parametrize("number", ["9" * 5000, "1e999", "-" + "9" * 400])
def test_numbers_beyond_all_measure_are_refused(join, make_study, number):
    browser = join(make_study())
    body = json.dumps(vote_body(next_items(browser)["items"][0]["item"], rt_ms=0.5))
    content = body.replace("0.5", number)
    reply = browser.post("/api/vote", content=content, headers={"content-type": "application/json"})
    assert reply.status_code in {400, 422}


def test_a_damaged_study_is_no_crash(app, join, make_study, store):
    study = make_study()
    browser = join(study)
    store.write(lambda tx: tx.query(StudyRow).update({"spec": {"name": "x"}}))
    for path in ("/api/study", "/api/next?tab=t", f"/join/{study.token}"):
        reply = browser.get(path)
        assert reply.status_code == 503
        assert "restore a backup" in reply.json()["error"]
    assert browser.get(f"/studio/download/{study.id}/votes.csv").status_code == 503


@pytest.mark.parametrize("spec", [[], {"name": "x"}, {"name": "x", "lease_seconds": "long"}])
def test_what_annotators_send_to_a_damaged_study_is_no_crash(join, make_study, store, spec):
    browser = join(make_study())
    first, second = next_items(browser, n=2)["items"]
    done = vote_body(first["item"])
    assert browser.post("/api/vote", json=done).status_code == 200
    store.write(lambda tx: tx.query(StudyRow).update({"spec": spec}))
    for path, body in (
        ("/api/heartbeat", {"tab": "tab", "items": [second["item"]]}),
        ("/api/undo", {"id": done["id"]}),
        ("/api/vote", vote_body(second["item"])),
    ):
        reply = browser.post(path, json=body)
        assert reply.status_code == 503, path
        assert "restore a backup" in reply.json()["error"]
