"""How many statements the database is sent for what every page asks all the time.

Each costs the server about as much as an answer's way through HTTP, and on SQLite those of a
writer hold everybody else up. The numbers are bounds: fewer are welcome.
"""

import uuid
from contextlib import contextmanager

import pytest
from contracts.store_invariants import make_study
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event
from study_factory import DATABASES

from annotation.spec import Task
from annotation.web.api import router

AT_MOST = {"join": 9, "first items": 11, "refill": 11, "vote": 6, "heartbeat": 5}
pytestmark = pytest.mark.parametrize("store", DATABASES, indirect=True)


@pytest.fixture
def study(store):
    """One in four blocks of sixty items, whose repeats begin later."""
    wanted = 60, Task.RECOGNITION, "abcd"
    return make_study(store, *wanted, votes_per_item=5, repeat_lag=200)


@pytest.fixture
def browser(store, study, tmp_path):
    app = FastAPI()
    app.include_router(router(store, tmp_path))
    made = TestClient(app, follow_redirects=False)
    made.post(f"/join/{study.token}", data={"name": "Ada", "password": ""})
    return made


@contextmanager
def counted(store):
    """The statements sent meanwhile, that which begins a transaction of SQLite among them."""
    sent = []

    def note(*said):
        if said[2] != "BEGIN":
            sent.append(said[2])

    event.listen(store._engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(store._engine, "before_cursor_execute", note)


def vote(browser, item):
    body = {"id": str(uuid.uuid4()), "item": item, "answer": "none", "tab": "t", "version": 1}
    return browser.post("/api/vote", json=body).json()


def test_what_people_do_sends_few_statements(store, study, browser):
    with counted(store) as first:
        items = browser.get("/api/next", params={"tab": "t", "n": 20}).json()["items"]
    with counted(store) as voted:
        assert vote(browser, items[0]["item"])["status"] == "counted"
    with counted(store) as refill:
        again = browser.get("/api/next", params={"tab": "t", "n": 25}).json()["items"]
    assert (len(items), len(again)) == (20, 25)
    with counted(store) as beat:
        held = {"tab": "t", "items": [one["item"] for one in again]}
        assert browser.post("/api/heartbeat", json=held).json()["ok"]
    browser.cookies.clear()
    with counted(store) as joined:
        came = browser.post(f"/join/{study.token}", data={"name": "Ben", "password": ""})
    assert came.status_code == 303
    sent = {"first items": first, "vote": voted, "refill": refill, "heartbeat": beat}
    sent["join"] = joined
    assert {what: len(sent[what]) for what in sent if len(sent[what]) > AT_MOST[what]} == {}, sent


def test_each_further_block_adds_one(store, browser):
    with counted(store) as sent:
        items = browser.get("/api/next", params={"tab": "t", "n": 100}).json()["items"]
    assert len(items) == 100
    assert len(sent) <= AT_MOST["first items"] + 1, sent
