"""Thousands of requests of all kinds by all kinds of people, none of which breaks the server."""

import asyncio
import random
import re
import shutil
import sys
import uuid
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import unquote

import pytest
from fastapi.testclient import TestClient
from fuzz.requests_from_schema import LATE, Spoiler, cases_of, schema_of, unnamed
from made_accounts import made_account, made_session
from starlette.routing import Mount
from studio import addresses, compose
from study_factory import CLASSES, DATABASES, arrived, fresh_database, small_sets, small_study

from annotation.accounts import register as accounts
from annotation.accounts.access import ACCOUNT_COOKIE
from annotation.design.flow import Step
from annotation.domain import Role, StimulusKind, StudyStatus
from annotation.spec import HeadlineRule, View
from annotation.store import Store, passwords
from annotation.store.tables import AnnotatorRow
from annotation.study import labelling as study
from annotation.study.exports import export_votes
from annotation.study.participant_flow import NO, YES
from annotation.study.protocols import AMENDABLE
from annotation.tasks import KINDS
from annotation.ui import items_pages
from annotation.ui import results as results_page
from annotation.ui.items_pages import Filters
from annotation.web.guard import ANNOTATOR_COOKIE
from semsim.ui.compare_view import TABS, Asked

REQUESTS = 1_000  # on each database, others on each
# The fields of forms that routes read by themselves, which their schema does not know.
FORMS = {
    "/join/{token}": ("name", "password", "link", "PROLIFIC_PID", "STUDY_ID", "participant"),
    "/begin": ("step", "agree", "keep_votes", "attempt", "what", "none", "guess"),
    **dict.fromkeys(
        (
            f"/studio/people/{{study}}/{step}"
            for step in ("pause", "resume", "exclude", "include", "let-in", "erase", "link")
        ),
        ("person", "typed", "votes", "at"),
    ),
}
DRAFT = ("name", "task", "sets", "people", "wage", "gold", "list_size", "votes_per_item")
DRAFT += ("decoy_rate", "headline", "view", "title", "texts", "password", "seed")
BODIES = {
    **{f"/studio/new/{name}": DRAFT for name in ("look", "create", "file")},
    "/studio/new/read": ("text",),
    "/studio/overview/{study}/status": ("status",),
    "/studio/overview/{study}/model": ("annotators", "calls", "pictures", "money"),
    "/studio/overview/{study}/cancel": (),
    "/studio/overview/{study}/rename": ("name",),
    "/studio/overview/{study}/delete": ("name",),
    "/studio/overview/{study}/amend": ("setting", "value", "why"),
}
PARTS = ("side", "grid", "pictures", "pair", "made", "scoring", "weights")  # of Compare
_COMPARED = tuple(one.name for one in fields(Asked))
_NARROWED = tuple(one.name for one in fields(Filters))
QUERIES = {
    **{f"/studio/{page}": ("study",) for page in ("", "frame", "overview", "people", "results")},
    "/studio/items": ("study", "page", *_NARROWED),
    "/studio/items/{item}": ("study", *_NARROWED),
    "/studio/compare": _COMPARED,
    "/studio/compare/part/{name}": _COMPARED,
    "/studio/compare/act/{name}": _COMPARED,
}
# To which nothing is sent but the address.
BARE = {
    *("/api/link", "/me/{link}", "/sign-out", "/logout"),
    "/admin/withdraw/{invitation_id}",
    "/admin/reset/{account_id}",
    "/admin/{change}/{account_id}",
    "/studio/compare/act/{name}",
    "/studio/lab-files/fetch/{name}",
    "/studio/pictures/jobs/{job_id}/resume",
    "/studio/pictures/jobs/{job_id}/stop",
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
    """The whole product, and what exists on it."""

    store: Store
    app: object
    study: study.Study
    real: dict[str, list]
    seed: int  # of what is asked, another on each database


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def routes_of(product):
    """All of its routes but for Gradio's own."""
    return [
        route
        for route in product._app.routes
        if not (isinstance(route, Mount) and route.path == "/studio")
    ]


@pytest.fixture(scope="module")
def routes(folder):
    with fresh_database("sqlite", folder) as url, Store(url) as store:
        made_account(store, "administrator", Role.ADMINISTRATOR)
        yield routes_of(compose(store, folder, "0.0.0.0", local=False))


@pytest.fixture(scope="module")
def schema(routes):
    """It is the same on each database."""
    return schema_of(routes, FORMS, BODIES, QUERIES)


@pytest.fixture(scope="module")
def cases(schema):
    """Cases of every operation."""
    return cases_of(schema)


@pytest.fixture(params=DATABASES)
def server(request, tmp_path, monkeypatch):
    monkeypatch.setattr(accounts, "PARALLELISM", 1)
    monkeypatch.setattr(passwords, "COST", 2)
    monkeypatch.setattr(sys, "executable", shutil.which("true"))  # jobs die as they start
    with fresh_database(request.param, tmp_path) as url, Store(url) as store:
        for name, role in ACCOUNTS.items():
            made_account(store, name, role)
        made = small_study(store, tmp_path, votes_per_item=5, consent="Yes?", check=True)
        spare = [small_study(store, tmp_path, name="Spare") for _ in range(4)]
        small_sets(tmp_path / "runs")
        app = compose(store, tmp_path, "0.0.0.0", local=False)
        real = real_values(store, app, made, tmp_path) | values_of_spare(store, spare)
        yield Server(store, app, made, real, DATABASES.index(request.param))


def values_of_spare(store, spare):
    """Values of what may be renamed, closed and deleted, by path and name."""
    for one in spare:
        arrived(store, one, "Anna")
    changing = [path for path in (*FORMS, *BODIES) if "/{study}/" in path]
    return {f"{path} study": [one.id for one in spare] for path in changing}


def keys_of(app, store):
    """The keys of the sets that pages show."""
    browser = TestClient(app)
    browser.cookies.set(ACCOUNT_COOKIE, made_session(store, "researcher"))
    asked = ("/studio/new", "/studio/pictures")
    return sorted({key for at in asked for key in re.findall(r"strip/(\w+)", browser.get(at).text)})


def real_values(store, app, made, folder):
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
        "/api/release items": [[items[0].item]],  # or nothing would be left to be answered
        "answer": [*CLASSES, "none"],
        "reason": ["cannot_make_out", "not_in_list"],
        "views": [["smooth"], ["squares", "smooth-and-small"]],
        "link": [study.new_link(store, person), f"/me/{study.new_link(store, person)}"],
        "id": [str(uuid.UUID(int=n)) for n in range(999)],
        "client_ts": [LATE, *3 * [now.isoformat()]],
        "rt_ms": [900, 1200.5, 1],
        "version": [1],
        "display": [{"scale": 8, "css_px": [48, 48]}],
        "name": ["Anna", "Ben", "administrator", "Eve", "correlations", "Spare"],
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
        **values_of_drafts(),
        "status": list(StudyStatus),
        "setting": [*AMENDABLE, "task"],
        "value": ["1", "0.5", "true", ""],
        "why": ["Because."],
        "person": ["Anna", "Ben"],
        "typed": ["Anna", "Ben"],
        "votes": ["keep", "remove"],
        "at": ["1", "0"],
        "ask": ["exclude", "erase"],
        "digest": [picture.stem for picture in folder.glob("images/**/*.png")],
        "/static/annotation/{file} file": ["labeller.js", "icon.svg"],
        "/studio/results tab": [*results_page.TABS],
        "/studio/compare tab": [*TABS],
        "/studio/compare/part/{name} tab": [*TABS],
        "/studio/compare/part/{name} name": ["body", "panel", *PARTS],
        "/studio/compare/act/{name} name": ["report", "everything", "stop", "resume"],
        "rule": [*HeadlineRule],
        "reference": ["original", "attacked"],
        "metric": ["psnr", "mse"],
        "verdict": [*items_pages.VERDICTS],
        "kind": [*StimulusKind, "original"],
        "class_name": [*CLASSES],
        "model": ["convnet8"],
        "key": keys_of(app, store),
    }


def values_of_drafts():
    """What a new study may be, by field."""
    return {
        "task": [*KINDS],
        "sets": [["convnet8"], ["convnet8", "resnet20-4"]],
        "people": [5, "5"],
        "wage": [12, 0.5],
        "gold": ["", "model,image_id,answer\nconvnet8,image-000,none"],
        "list_size": ["4", 8],
        "votes_per_item": [1, "3"],
        "decoy_rate": ["0.5", 0],
        "headline": [*HeadlineRule],
        "view": [*View],
        "title": ["What is it?"],
        "texts": [{}, {"recognition.question": "What?"}],
        "seed": [0, "1"],
        "text": ["task: pair\nsets: [convnet8]", "task: nothing", "{", "[" * 999],
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


async def told_by(app, asked, headers, client):
    """The status of the reply, and how its text begins, asked as by a server from `client`.

    No browser's program is between: it would take as long as the product.
    """
    path, _, query = asked.address.partition("?")
    usual = {"host": "testserver", "user-agent": "made up"}
    usual |= {"content-length": str(len(asked.content))} if asked.content else {}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": asked.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": "",
        "headers": [
            (name.encode(), value.encode("latin-1")) for name, value in {**usual, **headers}.items()
        ],
        "server": ("testserver", 80),
        "client": (client, 50000),
        "state": {},
    }
    sent = [{"type": "http.request", "body": asked.content, "more_body": False}]
    replied, over = [], asyncio.Event()

    async def receive():
        if sent:
            return sent.pop()
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        replied.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            over.set()

    with suppress(Exception):  # a server replies with 500, if nothing is sent yet
        await app(scope, receive, send)
    text = b"".join(one.get("body", b"") for one in replied)
    return replied[0]["status"] if replied else 500, text[:200].decode(errors="replace")


def test_every_address_of_the_product_is_asked(routes, schema, cases):
    asked = {(some[0].method.upper(), some[0].operation.path) for some in cases}
    mounted = [route.path for route in routes if isinstance(route, Mount)]
    there = {
        (method, path + "/{file}" if path in mounted else path)
        for method, path in addresses(routes)
    }
    assert there == asked
    assert {path for _, path in there} >= {"/studio/", "/studio/people/{study}/erase", "/api/vote"}
    assert unnamed(schema) == BARE


def test_no_request_breaks_the_server(server, cases):
    rng = random.Random(server.seed)
    spoil, visitors = Spoiler(server.seed, server.real), Visitors(server)
    broken, told = [], Counter()
    labelling = [some for some in cases if some[0].operation.path.startswith("/api/")]
    # What writes most is asked most, and votes before others have ended a study.
    votes = [some for some in labelling if some[0].operation.path == "/api/vote"]
    first = 20 * votes
    often = [*first, *8 * labelling, *cases]
    with TestClient(server.app) as browser:  # it starts and ends the product
        for number in range(REQUESTS):
            asked = spoil.request(rng.choice(often[number % len(often)]))
            others = number >= len(first) and rng.random() < 0.5
            role = rng.choice(ROLES) if others else OWNERS[asked.path.split("/")[1]]
            headers = {**visitors.cookie(role), **asked.headers}
            # From another address each time: nobody waits for wrong passwords of others.
            client = f"10.{rng.randrange(2**24)}"
            status, text = browser.portal.call(told_by, server.app, asked, headers, client)
            told[status] += 1
            if status > 499:
                broken.append((role, asked, status, text))
            if asked.path in ENDING:
                visitors.renew(role)
    assert broken == []
    # Not all of it was turned away at the door.
    assert {200, 303, 400, 401, 403, 404, 413, 415, 422} <= set(told)
    assert len(export_votes(server.store, server.study.id)) > 2
