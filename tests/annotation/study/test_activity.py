"""Activity of a study: in the store, on its page and that of all, and in a terminal."""

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from study_factory import START
from typer.testing import CliRunner

from annotation.cli.main import study as commands
from annotation.study import labelling as studies
from annotation.study.activity import activity
from annotation.study.participants import erase, exclude, include, new_link
from annotation.study.protocols import amend
from annotation.ui import StudyContext, overview_pages
from annotation.web import account_api
from annotation.web.api import researcher_router


@pytest.fixture
def client(store, images):
    """The pages and downloads, asked for by eva."""
    app, eva = FastAPI(), lambda request: "eva"
    context = StudyContext(store=store, images=images, find_sets=list, imports=(), account=eva)
    for routes in (overview_pages.router(context), researcher_router(store, images, eva)):
        app.include_router(routes)
    app.include_router(account_api.router(store))  # the guard lets administrators in alone
    return TestClient(app)


def acts(store, study=None):
    return [(one.by, one.what) for one in activity(store, study and study.id)]


def test_everything_that_is_done_to_a_study_is_listed_with_whose_account(
    store, study, anna, ben, client, tmp_path
):
    eva, bo, now = store.by("eva"), store.by("bo"), START
    assert acts(store, study) == [("", "made it")]
    studies.set_status(eva, study.id, "paused")
    studies.set_status(eva, study.id, "running")
    studies.rename(bo, study.id, "Other")
    amend(bo, study.id, {"title": "Seen"}, "clearer")
    exclude(eva, study.id, "Anna", now)
    include(eva, study.id, "Anna", now)
    new_link(bo, study.id, "Ben", now)
    erase(eva, study.id, "Ben", now, keep_votes=True)
    studies.set_status(eva, study.id, "closed")
    studies.set_status(eva, study.id, "running")
    assert client.get(f"/studio/download/{study.id}/votes.csv").status_code == 200
    told = acts(store, study)
    ben_now = re.search(r"erased-\w+", str(told))[0]
    assert told == [
        ("eva", "exported votes.csv"),
        ("eva", "reopened it"),
        ("eva", "closed it"),
        ("eva", f"erased somebody, now {ben_now}"),
        ("bo", f"made a personal link for {ben_now}"),
        ("eva", "let Anna take part again"),
        ("eva", "excluded Anna"),
        ("bo", "amended Title for annotators: clearer"),
        ("bo", f"renamed it, from “{study.name}” to “Other”"),
        ("eva", "let it go on"),
        ("eva", "paused it"),
        ("", "made it"),
    ]
    page = client.get("/studio/activity", params={"study": study.id}).text
    assert all(what in page for _, what in told)
    assert "Back to Overview" in page
    printed = CliRunner().invoke(commands, ["activity", "Other", "--database", store.url])
    head, *rows = [re.split(r"  +", line) for line in printed.output.splitlines()]
    assert head == ["at", "study", "by", "what"]
    assert [row[2:] for row in rows] == [[by or "–", what] for by, what in told]


def test_a_study_that_was_deleted_stays_in_the_activity_of_all(store, make_study, client, tmp_path):
    gone, stays = make_study(name="Gone"), make_study(name="Stays")
    studies.delete(store.by("eva"), gone.id, "Gone", tmp_path / "backups")
    told = [(one.study, one.by, one.what) for one in activity(store)]
    assert told == [("Gone", "eva", "deleted “Gone” with 0 votes"), ("Stays", "", "made it")]
    page = client.get("/admin/activity").text
    assert "deleted “Gone” with 0 votes" in page
    assert stays.name in page


def test_a_refused_download_is_none(store, study, client):
    assert client.get(f"/studio/download/{study.id}/nothing.csv").status_code == 422
    assert acts(store, study) == [("", "made it")]
