"""Scores of one's own metrics over HTTP: a table comes in, columns are chosen, Compare has them."""

import re
from dataclasses import replace

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from semsim.importers import uploads
from semsim.ui import own_scores, pictures
from semsim.ui.compare_data import ComparisonView, opened

HOME = "/studio/pictures/scores"


@pytest.fixture
def context(made_context):
    return replace(made_context(n_images=3), in_hand=lambda request: request.query_params["study"])


@pytest.fixture
def client(context):
    app = FastAPI()
    app.include_router(pictures.router(context))
    return TestClient(app)


@pytest.fixture
def table(context):
    """Scores of every picture of the study, and words that are none."""
    labels = context.labels("1")
    return labels[["model", "image_id", "class_name"]].assign(
        edges=np.linspace(0, 1, len(labels)), words="x", psnr=1.0
    )


def upload(client, text, name="own.csv"):
    content = text.encode()
    begun = client.post(
        "/studio/pictures/uploads", json={"name": name, "size": len(content)}
    ).json()
    kind = {"content-type": "application/octet-stream"}
    client.put(f"/studio/pictures/uploads/{begun['id']}?at=0", content=content, headers=kind)
    return begun["id"]


def keep(client, came, study="1", **metrics):
    body = {"study": study, "upload": came, "metrics": metrics}
    return client.post(f"{HOME}/keep", json=body)


def test_columns_of_numbers_are_offered_and_what_is_chosen_stands_on_compare(
    client, context, table
):
    came = upload(client, table.to_csv(index=False))
    shown = client.get(f"{HOME}?study=1&upload={came}").text
    assert 'data-column="edges"' in shown
    assert 'data-column="words"' not in shown
    assert 'data-column="class_name"' not in shown
    reply = keep(client, came, edges={"column": "edges", "leaks": "lower"})
    assert reply.status_code == 200, reply.text
    n = len(table)
    assert reply.json()["said"] == f"1 metric kept: {n} of {n} pictures have scores."
    assert uploads.uploads(context.data / "uploads") == []
    found = opened(context, ComparisonView(study="1"))
    spec = found.spec("edges")
    assert (spec.title, spec.higher_means_more_leakage) == ("edges (custom)", False)
    assert "edges" in set(found.analysis.agreement["metric"])
    assert any(note.startswith("edges is a custom metric") for note in found.analysis.notes)
    assert "mse" in {one.name for one in found.analysis.specs}
    page = client.get(f"{HOME}?study=1").text
    assert "edges" in page
    removed = client.post(f"{HOME}/remove", json={"study": "1", "metric": "edges"})
    assert removed.status_code == 200
    assert opened(context, ComparisonView(study="1")).spec("edges").name != "edges"
    again = client.post(f"{HOME}/remove", json={"study": "1", "metric": "edges"})
    assert again.status_code == 422


@pytest.mark.parametrize(
    ("metrics", "why"),
    [
        ({"psnr": {"column": "psnr", "leaks": "higher"}}, "psnr is computed here already"),
        ({"edges": {"column": "edges", "leaks": ""}}, "Choose for edges whether"),
        ({"edges": {"column": "gone", "leaks": "lower"}}, "lacks the columns gone"),
        ({"w": {"column": "words", "leaks": "lower"}}, "line 2, column words: 'x' is no number"),
        ({"human": {"column": "edges", "leaks": "lower"}}, "No metric can be called human"),
        ({}, "Name a column"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_kept(client, context, table, metrics, why):
    came = upload(client, table.to_csv(index=False))
    reply = keep(client, came, **metrics)
    assert (reply.status_code, why in reply.json()["error"]) == (422, True), reply.text
    assert not (context.data / "scores/own").exists()
    assert client.get(f"{HOME}?study=1&upload={came}").status_code == 200


def test_a_table_of_other_pictures_a_table_without_scores_and_a_study_that_is_gone(client, table):
    came = upload(client, table.assign(image_id="other").iloc[:1].to_csv(index=False))
    reply = keep(client, came, edges={"column": "edges", "leaks": "lower"})
    assert "None of the scores is of a picture of Made" in reply.json()["error"]
    none = upload(client, table[["model", "image_id", "words"]].to_csv(index=False))
    assert "has no column of numbers" in client.get(f"{HOME}?study=1&upload={none}").text
    lacking = upload(client, table[["edges"]].to_csv(index=False))
    assert "lacks the columns model" in client.get(f"{HOME}?study=1&upload={lacking}").text
    gone = keep(client, came, "2", edges={"column": "edges", "leaks": "lower"})
    assert "This study is gone" in gone.json()["error"]
    assert "there is none yet" in client.get(f"{HOME}?study=2").text
    assert "This upload is gone" in client.get(f"{HOME}?study=1&upload={'f' * 32}").text


def test_what_is_too_large_to_be_read_while_somebody_waits_is_refused(client, table, monkeypatch):
    text, most = table.to_csv(index=False), own_scores.MOST
    came = upload(client, text)
    monkeypatch.setattr(own_scores, "MOST", len(text) - 1)
    shown = client.get(f"{HOME}?study=1&upload={came}").text
    assert "own.csv is larger than" in shown
    assert "data-column" not in shown
    kept = keep(client, came, edges={"column": "edges", "leaks": "lower"})
    assert kept.status_code == 422
    assert "import scores" in kept.text
    monkeypatch.setattr(own_scores, "MOST", len(text))
    assert 'data-column="edges"' in client.get(f"{HOME}?study=1&upload={came}").text
    assert most <= 20e6  # as objects it takes fifty times as much


def test_a_short_file_that_holds_more_rows_than_are_taken_is_refused(client, table, monkeypatch):
    came = upload(client, table.to_csv(index=False))
    monkeypatch.setattr("semsim.base.table_files.MOST_ROWS", len(table) - 1)
    shown = client.get(f"{HOME}?study=1&upload={came}")
    assert shown.status_code == 200
    assert f"more than {len(table) - 1} rows" in shown.text


def test_two_studies_of_one_name_do_not_see_the_scores_of_each_other(context, table):
    (one,) = context.studies()
    both = replace(context, studies=lambda: [one, replace(one, id="2")])
    app = FastAPI()
    app.include_router(pictures.router(both))
    pages = TestClient(app)
    for study, column in (("1", "edges"), ("2", "mine")):
        came = upload(pages, table.assign(mine=0.5).to_csv(index=False))
        reply = keep(pages, came, study, **{column: {"column": column, "leaks": "lower"}})
        assert reply.status_code == 200, reply.text
    shown = [pages.get(f"{HOME}?study={study}").text for study in "12"]
    assert [re.findall('data-remove="(.*?)"', text) for text in shown] == [["edges"], ["mine"]]


def test_half_of_a_file_is_no_table(client):
    begun = client.post("/studio/pictures/uploads", json={"name": "own.csv", "size": 9}).json()
    assert "own.csv is not whole" in client.get(f"{HOME}?study=1&upload={begun['id']}").text
