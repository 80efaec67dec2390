"""The pages about studies for people with an account, over HTTP with the guard in front."""

from functools import partial

import pytest
from fastapi.testclient import TestClient
from made_accounts import made_account, made_session

from annotation.accounts.access import ACCOUNT_COOKIE, lookup
from annotation.domain import Role
from annotation.store import Store
from annotation.store.tables import EventRow
from annotation.study import labelling
from annotation.ui.mount import study_routers, web_app
from annotation.web.frame import FrameContext
from annotation.web.guard import Guard


@pytest.fixture
def product(context):
    """Make the application anew on a store, as a start does."""

    def begun(store: Store) -> Guard:
        who = lookup(store)
        app = web_app(
            FrameContext(store=store, who=who), context.images, *study_routers(context, who)
        )
        return Guard(app, who, partial(labelling.who, store))

    return begun


@pytest.fixture
def visit(product, store):
    """Somebody's browser, signed in without a password."""
    app = product(store)
    made_account(store, "Ada", Role.ADMINISTRATOR)
    made_account(store, "Bo")

    def visit(name: str) -> TestClient:
        browser = TestClient(app, base_url="http://lab.example.org", follow_redirects=False)
        browser.cookies.set(ACCOUNT_COOKIE, made_session(store, name))
        return browser

    return visit


def test_the_side_bar_says_who_is_signed_in_and_only_administrators_find_accounts(visit):
    for name, administers in (("Ada", True), ("Bo", False)):
        page = visit(name).get("/studio/frame").text
        assert f"Signed in as <strong>{name}</strong>" in page
        assert ('href="/admin"' in page) is administers


def test_a_refusal_has_the_side_bar_and_a_way_back(visit):
    refused = visit("Bo").get("/admin", headers={"accept": "text/html"})
    assert refused.status_code == 403
    assert "frame.js" in refused.text
    assert 'href="/studio/">Home' in refused.text


def test_a_session_outlives_a_restart(visit, product, store):
    token = visit("Bo").cookies[ACCOUNT_COOKIE]
    with Store(store.url) as again:
        browser = TestClient(product(again), base_url="http://lab.example.org")
        browser.cookies.set(ACCOUNT_COOKIE, token)
        assert "Signed in as <strong>Bo</strong>" in browser.get("/studio/frame").text


def test_events_say_which_account_caused_them(visit, store, study):
    paused = visit("Bo").post(f"/studio/overview/{study.id}/status", json={"status": "paused"})
    assert paused.status_code == 200
    events = store.read(lambda tx: tx.query(EventRow).filter_by(study_id=study.id).all())
    assert [one.data["by"] for one in events if one.kind == "status"] == ["Bo"]
