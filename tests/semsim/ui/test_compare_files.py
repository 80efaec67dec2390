"""Every figure and table leaves the page in every form it is offered in."""

import io
import zipfile
from dataclasses import replace
from urllib.parse import quote

import pandas as pd
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from helpers import ended

from semsim.base.jobs import folders as jobs
from semsim.base.jobs.folders import read_recent
from semsim.reporting import figures, tables
from semsim.ui import compare_files
from semsim.ui.compare_data import ComparisonView, held
from semsim.ui.compare_files import address, made_address, made_file, made_job, make_files, router

VIEW = ComparisonView(study="1")


@pytest.fixture(scope="module")
def client(small_context):
    app = FastAPI()
    app.include_router(router(small_context))
    client = TestClient(app)
    client.context = small_context
    return client


@pytest.mark.parametrize("name", figures.NAMES)
def test_figures_come_as_png_svg_and_csv(client, name):
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "csv": None}
    for ending, start in starts.items():
        reply = client.get(address(VIEW, name, ending, "mse"))
        assert reply.status_code == 200, reply.text
        assert f".{ending}" in reply.headers["content-disposition"]
        if start is not None:
            assert reply.content.startswith(start)
    drawn = figures.figure(held(client.context, VIEW).analysis, name, "mse").frame
    sent = pd.read_csv(io.BytesIO(reply.content))
    assert list(sent.columns) == [str(column) for column in drawn.columns]
    assert len(sent) == len(drawn)


def test_tables_come_as_csv_latex_and_markdown_in_full_precision(client):
    analysis = held(client.context, VIEW).analysis
    for table in tables.tables(analysis):
        for ending in ("csv", "tex", "md"):
            reply = client.get(address(VIEW, table.name, ending))
            assert reply.status_code == 200, reply.text
            assert reply.content
    sent = pd.read_csv(io.BytesIO(client.get(address(VIEW, "agreement", "csv")).content))
    assert sent["rho"].tolist() == analysis.agreement["rho"].tolist()


def test_the_report_and_everything_are_made_by_jobs(client, monkeypatch, one_figure):
    comparison = held(client.context, VIEW)
    told = "Left out of edges: 3 scores of pictures that this study does not have."
    remarked = replace(comparison.tables, remarks=(told,))
    comparison = replace(comparison, tables=remarked)
    for what, name in (("report", "report.html"), ("everything", "everything.zip")):
        job = make_files(client.context, comparison, what)
        ended(job)
        assert made_file(job) == name, jobs.error_text(job)
        reply = client.get(made_address(job.id, name))
        assert name in reply.headers["content-disposition"]
        notes = {progress.note for progress in read_recent(job.folder / "progress.jsonl")}
        assert "working out the comparison" in notes
    packed = zipfile.ZipFile(io.BytesIO(reply.content))
    assert {"report.html", "settings.json", "tables/agreement.csv"} <= set(packed.namelist())
    assert packed.testzip() is None
    pictures = {one.compress_type for one in packed.infolist() if one.filename.endswith(".png")}
    assert pictures == {zipfile.ZIP_STORED}  # they are compressed
    report = packed.read("report.html").decode()
    assert report.startswith("<!DOCTYPE html>")
    assert "Simulated votes" in report
    assert told in report
    # The job has worked it out anew: its numbers are those of the page.
    sent = pd.read_csv(io.BytesIO(packed.read("tables/agreement.csv")))
    assert sent["rho"].tolist() == comparison.analysis.agreement["rho"].tolist()
    assert made_job(client.context, comparison, "everything") == job
    # After an update of the program its numbers may be others.
    monkeypatch.setattr(compare_files, "product_version", lambda: "a later one")
    assert made_job(client.context, comparison, "everything") is None


@pytest.mark.parametrize("path", ["x/report.html", "../x/report.html"])
def test_a_file_that_no_job_has_made_is_not_there(client, path):
    assert client.get(f"/studio/compare-files/made/{path}").status_code == 404


def test_a_table_of_several_studies(client):
    reply = client.get(address(VIEW, "table1", "csv", studies=["1", "1"]))
    assert pd.read_csv(io.BytesIO(reply.content))["study"].tolist().count("Made") == 6


@pytest.mark.parametrize(
    "asked",
    [
        "nothing.png?study=1",
        "forest.exe?study=1",
        "scatter.png?study=1&metric=unknown",
        "forest.png?study=gone",
        "forest.png?study=1&rule=unknown",
        f"{quote('../secret', safe='')}.csv?study=1",
    ],
)
def test_what_there_is_not_is_said_in_words(client, asked):
    reply = client.get(f"/studio/compare-files/{asked}")
    assert reply.status_code == 404
    assert reply.text
