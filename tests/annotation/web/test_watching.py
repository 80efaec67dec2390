"""What programs that watch the server are told, and who is told how much it does."""

import re
import shutil
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient
from made_accounts import made_account, made_session
from sqlalchemy import text
from study_factory import START, answer_all, joined

from annotation.accounts.access import ACCOUNT_COOKIE, lookup
from annotation.domain import Role, VoteStatus
from annotation.store import migrate
from annotation.study.labelling import next_items
from annotation.ui.mount import web_app
from annotation.web import watching
from annotation.web.frame import FrameContext
from annotation.web.watching import LEAST_FREE, TOKEN, Latency
from semsim.base.errors import StoreError

# A line of the text format: a comment, or a name with labels and a number.
LINE = re.compile(r'# (HELP|TYPE) \w+ .+|\w+({\w+="[^"]*"(,\w+="[^"]*")*})? [\d.]+')


def browser(store, tmp_path, local=True, running=list):
    images = tmp_path / "images"
    app = web_app(
        FrameContext(store=store, who=None if local else lookup(store), running=running), images
    )
    return TestClient(app, base_url="http://127.0.0.1")


def told(client, **headers):
    reply = client.get("/metrics", headers=headers)
    assert reply.status_code == 200
    values = [line.rsplit(" ", 1) for line in reply.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in values}


def test_a_server_that_is_well_says_so_to_anybody(store, tmp_path):
    reply = browser(store, tmp_path, local=False).get("/health")
    names = ("status", "database", "migrations", "pictures", "disk", "connections")
    parts = dict.fromkeys(names, "ok")
    assert (reply.status_code, reply.json()) == (200, parts)


def test_tables_of_another_version_are_told(store, tmp_path):
    client = browser(store, tmp_path)
    store.write(lambda tx: tx.execute(text("UPDATE alembic_version SET version_num = 'older'")))
    reply = client.get("/health")
    assert reply.status_code == 503
    assert "another version" in reply.json()["migrations"]
    assert reply.json()["database"] == "ok"


def test_a_database_that_does_not_answer_is_told_without_its_address(store, tmp_path, monkeypatch):
    def gone(_):
        raise StoreError("postgresql://secret@host does not answer")

    monkeypatch.setattr(migrate, "is_current", gone)
    reply = browser(store, tmp_path).get("/health")
    assert reply.status_code == 503
    assert reply.json()["database"] == "does not answer"
    assert "secret" not in reply.text


@pytest.mark.parametrize(("free", "status"), [(LEAST_FREE - 1, 503), (LEAST_FREE, 200)])
def test_a_full_disk_is_told_before_it_is_full(store, tmp_path, monkeypatch, free, status):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    assert browser(store, tmp_path).get("/health").status_code == status


def test_votes_claims_jobs_and_answers_are_counted(store, make_study, tmp_path):
    client = browser(store, tmp_path, running=lambda: ["one", "two"])
    before = told(client)
    assert {before[f'semsim_votes{{status="{one}"}}'] for one in VoteStatus} == {0}
    anna, ben = joined(store, make_study(min_rt_ms=0), "Anna", "Ben")
    n = len(answer_all(store, anna, n=3))
    held = len(next_items(store, ben, "tab", 2, START))
    client.get("/signed-out")
    values = told(client)
    assert values['semsim_votes{status="counted"}'] == n > 0
    assert values["semsim_claims"] == held > 0
    assert values["semsim_jobs"] == 2
    # The first two questions here; the third is not answered yet.
    assert values['semsim_response_seconds_count{part="other"}'] == 2


def test_every_line_is_of_the_text_format(store, tmp_path):
    reply = browser(store, tmp_path).get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert reply.text.endswith("\n")
    assert [one for one in reply.text.splitlines() if not LINE.fullmatch(one)] == []


def test_every_metric_says_what_it_is_before_its_numbers(store, tmp_path):
    lines = browser(store, tmp_path).get("/metrics").text.splitlines()
    said = {}
    for line in lines:
        if line.startswith("#"):
            _, word, name, what = line.split(" ", 3)
            said.setdefault(name, []).append(word)
            kind = what if word == "TYPE" else ""
        else:
            ending = r"(_bucket|_sum|_count)" if kind == "histogram" else ""
            assert re.match(rf"{name}{ending}[ {{]", line), line
    assert set(map(tuple, said.values())) == {("HELP", "TYPE")}
    whats = ("votes", "claims", "connections", "jobs", "response_seconds")
    assert {*said} == {f"semsim_{what}" for what in whats}


def test_what_is_asked_for_makes_no_new_series(store, tmp_path):
    """A link to a study, a picture, an address that is none: no one is a label."""
    client = browser(store, tmp_path)
    before = {*told(client)}
    for address in ("/join/nobody", "/api/image/none", "/no/such", "/wp-login.php", "/me/x"):
        client.get(address)
    assert {*told(client)} == before


def test_a_histogram_counts_everything_below_each_end():
    latency = Latency()
    for seconds in (0.005, 0.05, 99.0):
        latency.add("/api/vote", seconds)
    latency.add("/studiously", 1.0)
    lines = dict(one.rsplit(" ", 1) for one in watching._of_latency(latency) if one[0] != "#")
    ends = [lines[f'semsim_response_seconds_bucket{{part="api",le="{end}"}}']
            for end in (0.01, 0.03, 0.1, 10.0, "+Inf")]  # fmt: skip
    assert ends == ["1", "1", "2", "2", "3"]
    assert lines['semsim_response_seconds_count{part="other"}'] == "1"
    assert lines['semsim_response_seconds_count{part="studio"}'] == "0"


@pytest.mark.parametrize(
    ("name", "header", "status"),
    [
        ("Ada", "", 200),
        ("Bo", "", 403),
        ("", "", 403),
        ("", "Bearer of the token", 200),
        ("", "Bearer of another", 403),
        ("", "Bearer ", 403),
    ],
)
def test_only_administrators_and_who_knows_the_token_are_told(
    store, tmp_path, monkeypatch, name, header, status
):
    monkeypatch.setenv(TOKEN, "of the token")
    made_account(store, "Ada", Role.ADMINISTRATOR)
    made_account(store, "Bo")
    client = browser(store, tmp_path, local=False)
    if name:
        client.cookies.set(ACCOUNT_COOKIE, made_session(store, name))
    reply = client.get("/metrics", headers={"authorization": header} if header else {})
    assert reply.status_code == status
    assert ("semsim_claims" in reply.text) == (status == 200)


def test_without_a_token_none_is_one(store, tmp_path, monkeypatch):
    monkeypatch.delenv(TOKEN, raising=False)
    client = browser(store, tmp_path, local=False)
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 403
