"""Thousands of requests of all kinds by all kinds of people, none of which breaks the server."""

import random
import uuid
from collections import Counter, defaultdict
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import pytest
from fastapi.testclient import TestClient
from fuzz.requests_from_schema import LATE, Spoiler, cases_of, schema_of
from made_accounts import made_account, made_session
from study_factory import CLASSES, DATABASES, arrived, fresh_database, small_study

from annotation.account_domain import Role
from annotation.accounts import register as accounts
from annotation.accounts.access import ACCOUNT_COOKIE, lookup
from annotation.design.way import Step
from annotation.errors import told_as
from annotation.store import Store, passwords
from annotation.store.tables import AnnotatorRow
from annotation.study import labelling as study
from annotation.study.exports import export_labels, export_votes
from annotation.study.passage import NO, YES
from annotation.ui.mount import web_app
from annotation.web.guard import ANNOTATOR_COOKIE, Guard
from semsim.errors import DataError
from semsim.ui import ScienceContext, StudyChoice
from semsim.ui.pages import routers

REQUESTS = 2_000  # on each database
# The fields of forms that routes read by themselves, which their schema does not know.
FORMS = {
    "/join/{token}": ("name", "password", "link", "PROLIFIC_PID", "STUDY_ID", "participant"),
    "/begin": ("step", "agree", "keep_votes", "attempt", "what", "none", "guess"),
}
# What may end a session, so that whoever asked gets a new one.
ENDING = {
    "/join/{token}",
    "/me/{link}",
    "/sign-out",
    "/login",
    "/logout",
    "/invite/{token}",
    "/account",
}
ACCOUNTS = {"researcher": Role.RESEARCHER, "administrator": Role.ADMINISTRATOR}
ROLES = ("nobody", "annotator", *ACCOUNTS)
# Who has something to do there, by the first part of the path.
OWNERS = defaultdict(
    lambda: "annotator", studio="researcher", account="researcher", admin="administrator"
)


class Server(NamedTuple):
    """A server without its Gradio pages, and what exists on it."""

    store: Store
    app: object
    study: study.Study
    real: dict[str, list]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def product(store, folder):
    """The product but for its Gradio pages, as (what stands behind the guard, the guard)."""
    told, who = told_as(DataError), lookup(store)
    facts = attrgetter("id", "name", "spec.simulated", "spec.headline")
    science = ScienceContext(
        data=folder,
        checkpoints=folder,
        studies=lambda: [StudyChoice(*facts(one)) for one in study.list_studies(store)],
        labels=told(lambda one: export_labels(store, one, folder / "images")),
        votes=told(lambda one: export_votes(store, one)),
        device="cpu",
    )
    app = web_app(store, folder / "images", *routers(science), who=who)
    return app, Guard(app, who, partial(study.who, store))


@pytest.fixture(scope="module")
def cases(folder):
    """Cases of every operation; the schema is the same on each database."""
    with fresh_database("sqlite", folder) as url, Store(url) as store:
        return cases_of(schema_of(product(store, folder)[0], FORMS))


@pytest.fixture(params=DATABASES)
def server(request, tmp_path, monkeypatch):
    monkeypatch.setattr(accounts, "PARALLELISM", 1)
    monkeypatch.setattr(passwords, "COST", 2)
    with fresh_database(request.param, tmp_path) as url, Store(url) as store:
        for name, role in ACCOUNTS.items():
            made_account(store, name, role)
        made = small_study(store, tmp_path, votes_per_item=5, consent="Yes?", check=True)
        yield Server(store, product(store, tmp_path)[1], made, real_values(store, made))


def real_values(store, made):
    """Values that exist or could, by the name of the parameter or field they are for."""
    arrived(store, made, "Anna")
    other = made_account(store, "Eve")  # whom administrators may do anything to
    store.write(lambda tx: tx.query(AnnotatorRow).update({"step": Step.MAIN}))
    person = arrived(store, made, "Anna").annotator
    items = study.next_items(store, person, "tab", 8, datetime.now(UTC))
    pictures = [image for item in items for image in item.images]
    boss = accounts.find_account(store, "administrator")
    now = datetime.now(UTC)
    invitations = [accounts.invite(store, Role.RESEARCHER, now, by=boss) for _ in range(3)]
    return {
        "token": [made.token, made.token, *pictures, *invitations],
        "tab": ["tab", "another tab"],
        "item": [item.item for item in items],
        "items": [[item.item for item in items]],
        "answer": [*CLASSES, "none"],
        "reason": ["cannot_make_out", "not_listed"],
        "views": [["smooth"], ["squares", "smooth-and-small"]],
        "link": [study.new_link(store, person), f"/me/{study.new_link(store, person)}"],
        "id": [str(uuid.UUID(int=n)) for n in range(999)],
        "client_ts": [LATE, now.isoformat()],
        "display": [{"scale": 8, "css_px": [48, 48]}],
        "name": ["Anna", "Ben", "administrator", "Eve", "correlations"],
        "password": ["four words make one", ""],
        "step": [step.value for step in Step],
        "agree": [YES, NO],
        "attempt": ["0", "1"],
        "study_id": [made.id],
        "study": [made.id, made.name],
        "file": ["votes.csv", "labels.csv", "votes.parquet"],
        "ending": ["csv", "html", "png"],
        "account_id": [other.id],
        "change": ["disable", "enable", *ACCOUNTS.values()],
        "role": list(ACCOUNTS.values()),
        "n": [1, 10, 400],
    }


class Visitors:
    """Somebody of each role, who signs in again whenever their session has ended."""

    def __init__(self, server):
        self._server = server
        self._names = iter(range(10**6))
        self._cookies = {"nobody": ""}
        for role in ROLES[1:]:
            self.renew(role)

    def renew(self, role):
        store, made = self._server.store, self._server.study
        if role in ACCOUNTS:
            self._cookies[role] = f"{ACCOUNT_COOKIE}={made_session(store, role)}"
        elif role == "annotator":
            number = next(self._names)
            name = "Anna" if number % 4 else f"Person {number}"
            token = arrived(store, made, name).session_token
            self._cookies[role] = f"{ANNOTATOR_COOKIE}={token}"

    def cookie(self, role):
        return {"cookie": self._cookies[role]}


def elsewhere(app, rng):
    """`app`, asked from another address each time: nobody waits for wrong passwords of others."""

    async def asked(scope, receive, send):
        if scope["type"] == "http":
            scope = {**scope, "client": (f"10.{rng.randrange(2**24)}", 50000)}
        await app(scope, receive, send)

    return asked


def test_no_request_breaks_the_server(server, cases):
    rng = random.Random(0)
    spoil, visitors = Spoiler(0, server.real), Visitors(server)
    broken, told = [], Counter()
    app = elsewhere(server.app, rng)
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as browser:
        for number in range(REQUESTS):
            asked = spoil.request(rng.choice(cases[number % len(cases)]))
            role = rng.choice(ROLES) if rng.random() < 0.5 else OWNERS[asked.path.split("/")[1]]
            headers = {**visitors.cookie(role), **asked.headers}
            browser.cookies.clear()
            reply = browser.request(
                asked.method,
                asked.address,
                headers={name: value.encode("latin-1") for name, value in headers.items()},
                content=asked.content,
            )
            told[reply.status_code] += 1
            if reply.status_code > 499:
                broken.append((role, asked, reply.status_code, reply.text[:200]))
            if asked.path in ENDING:
                visitors.renew(role)
    assert broken == []
    # Not all of it was turned away at the door.
    assert {200, 303, 400, 401, 403, 404, 413, 415, 422} <= set(told)
    assert len(export_votes(server.store, server.study.id)) > 2
