"""What somebody's browser is told who is paused, excluded or erased."""

import uuid
from datetime import UTC, datetime

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from annotation.study import participants as people
from annotation.web.api import router

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def ada(store, images, study):
    made = FastAPI()
    made.include_router(router(store, images))
    browser = TestClient(made, follow_redirects=False)
    browser.post(f"/join/{study.token}", data={"name": "Ada"})
    return browser


def next_items(browser):
    return browser.get("/api/next", params={"tab": "tab", "n": 3}).json()


def send_vote(browser, item, identifier=None):
    body = {"id": identifier or str(uuid.uuid4()), "item": item, "answer": "none", "tab": "tab"}
    return browser.post("/api/vote", json={**body, "version": 1})


@pytest.mark.parametrize(
    ("stop", "state", "word"),
    [(people.pause, "you-paused", "paused"), (people.exclude, "you-stopped", "ended")],
)
def test_no_item_and_a_plain_word(store, study, ada, stop, state, word):
    held = next_items(ada)["items"][0]["item"]
    stop(store, study.id, "Ada", NOW)
    reply = next_items(ada)
    assert (reply["items"], reply["state"]) == ([], state)
    refused = send_vote(ada, held)
    # 403 is final for the browser: it keeps the answer aside and does not try for ever.
    assert refused.status_code == 403
    assert f"has {word} your part in this study" in refused.json()["error"]
    beat = ada.post("/api/heartbeat", json={"tab": "tab", "items": [held]})
    assert beat.status_code == 403


def test_an_answer_that_had_arrived_is_confirmed(store, study, ada):
    held, identifier = next_items(ada)["items"][0]["item"], str(uuid.uuid4())
    send_vote(ada, held, identifier)
    people.exclude(store, study.id, "Ada", NOW)
    assert send_vote(ada, held, identifier).json() == {"id": identifier, "status": "excluded"}


def test_whoever_may_go_on_gets_items_again(store, study, ada):
    held = {item["item"] for item in next_items(ada)["items"]}
    people.pause(store, study.id, "Ada", NOW)
    people.resume(store, study.id, "Ada", NOW)
    assert {item["item"] for item in next_items(ada)["items"]} == held


def test_who_is_erased_is_signed_out_and_their_pseudonym_opens_nothing(store, study, ada):
    erased = people.erase(store, study.id, "Ada", NOW, keep_votes=True)
    assert ada.get("/api/study").status_code == 401
    reply = ada.post(f"/join/{study.token}", data={"name": erased.name})
    assert (reply.status_code, "Please choose another one" in reply.text) == (403, True)
