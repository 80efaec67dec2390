"""The Results page over HTTP: the tab that is asked for, its tables, its pictures."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from made_ballots import random_votes
from made_results import Page, write_import
from study_factory import answer_all, joined, let_answer

from annotation.domain import Answer
from annotation.errors import NotFoundError
from annotation.study import exports
from annotation.study.labelling import join, next_items, vote
from annotation.tasks.kind import NONE
from annotation.ui import preview_pages, results
from annotation.ui.results_data import ResultsCache

PAGE = "/studio/results"


def reader(context) -> TestClient:
    app = FastAPI()
    for pages in (results, preview_pages):
        app.include_router(pages.router(context))
    return TestClient(app)


def test_without_a_study_the_page_says_where_to_make_one(context):
    page = reader(context).get(PAGE).text
    assert "There is no study yet" in page
    assert 'href="/studio/new"' in page


def test_without_votes_nothing_but_what_is_missing_is_shown(context, study):
    page = reader(context).get(PAGE, params={"study": study.id}).text
    assert "Nobody has answered yet" in page
    assert "<table" not in page
    assert ".csv" not in page


def test_votes_are_shown_a_tab_at_a_time(context, store, study):
    now = datetime.now(UTC)
    anna = join(store, study.token, "Anna").annotator
    for item in next_items(store, anna, "tab", 8, now):
        answer = Answer(id=str(uuid.uuid4()), item=item.item, answer=NONE, tab="tab")
        vote(store, anna, answer, now)
    client = reader(context)
    pages = {
        tab: client.get(PAGE, params={"study": study.id, "tab": tab}).text
        for tab in ("share", "agreement", "people", "checks", "detection", "nonsense")
    }
    assert "8 votes of 1 annotator" in pages["share"]
    assert "Only one annotator has voted" in pages["agreement"]
    assert "Anna" in pages["people"]
    assert "Anna" not in pages["checks"]
    assert "No catch trials or gold items in this study" in pages["checks"]
    assert "here none can" in pages["detection"]
    assert pages["nonsense"] == pages["share"]
    for tab, page in pages.items():
        current = [a for name, a in Page(page).tags if a.get("aria-current")]
        assert len(current) == 1
        assert tab == "nonsense" or current[0]["href"].endswith(f"tab={tab}")


def test_pictures_tables_and_what_there_is_not(context, store, images, study):
    let_answer(store, images, study, lambda seen: seen["class_name"])
    client = reader(context)
    page = Page(client.get(PAGE, params={"study": study.id}).text)
    sources = [a["src"] for name, a in page.tags if name == "img"]
    assert len(sources) >= 2
    picture = client.get(sources[0])
    assert picture.headers["content-type"] == "image/png"
    assert "immutable" in picture.headers["cache-control"]
    assert client.get(f"/studio/seen/{study.id}/{'0' * 64}").status_code == 404
    assert client.get(f"/studio/seen/{study.id}/..%2Fstudies.db").status_code in (404, 422)
    links = [a["href"] for name, a in page.tags if name == "a" and "download" in a]
    assert f"{PAGE}/{study.id}/rates.csv" in links
    for link in links:
        assert client.get(link).text.strip()
    assert client.get(f"{PAGE}/{study.id}/nothing.csv").status_code == 404
    assert client.get(f"{PAGE}/nowhere/rates.csv").status_code == 404


def test_the_page_opens_on_what_people_have_voted_on(context, store, make_study):
    voted, _, silent = (make_study(name=name) for name in ("voted", "tried", "silent"))
    answer_all(store, joined(store, voted, "Anna")[0])
    client = reader(context)
    assert "voted" in client.get(PAGE).text
    assert "silent" in client.get(PAGE, params={"study": silent.id}).text


def test_what_goes_wrong_is_said_on_the_page(context, study, monkeypatch):
    def fail(self, study_id):
        raise NotFoundError("It is <gone>.")

    monkeypatch.setattr(ResultsCache, "get", fail)
    page = reader(context).get(PAGE, params={"study": study.id}).text
    assert "It is &lt;gone&gt;." in page


@pytest.fixture
def with_import(context, tmp_path):
    votes = random_votes().assign(study="Paper")
    return replace(context, imports=write_import(tmp_path / "imports", votes))


def test_imported_votes_get_what_collected_ones_do(with_import):
    client = reader(with_import)
    page = str(Page(client.get(PAGE, params={"study": "import:paper", "tab": "agreement"}).text))
    assert "Krippendorff's α" in page
    assert "Human ceiling" in page
    assert "imported" in page
    assert "Paper" in str(Page(client.get(PAGE).text))  # nothing else to open with
    rates = client.get(f"{PAGE}/import:paper/rates.csv").text
    assert rates.startswith("model,")
    assert "There is no import" in client.get(PAGE, params={"study": "import:no"}).text


def test_an_import_of_shares_leads_to_compare(context, tmp_path):
    shares = replace(context, imports=write_import(tmp_path / "imports", random_votes().iloc[:0]))
    page = reader(shares).get(PAGE, params={"study": "import:paper"}).text
    assert "This import has no single votes" in page
    assert 'href="/studio/compare?study=import:paper"' in page
    assert "Nobody has answered yet" not in page


def test_imported_votes_are_offered_beside_a_study(with_import, study):
    page = Page(reader(with_import).get(PAGE, params={"study": study.id}).text)
    assert any("study=import%3Apaper" in a.get("href", "") for _, a in page.tags)


def test_the_lists_of_a_study_are_worked_out_once(context, store, study, monkeypatch):
    asked = []
    real = exports.list_facts
    monkeypatch.setattr(exports, "list_facts", lambda lists: asked.append(1) or real(lists))
    answer_all(store, joined(store, study, "Anna")[0])
    client = reader(context)
    for tab in ("share", "checks", "people"):
        client.get(PAGE, params={"study": study.id, "tab": tab})
    assert len(asked) == 1
