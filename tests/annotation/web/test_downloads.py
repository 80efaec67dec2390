"""Every download is one file that holds what the export holds."""

import io
import tempfile
import zipfile

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from annotation.formats import FORMATS, export
from annotation.study.exports import read_study
from annotation.study.simulate import simulate
from annotation.web.api import researcher_router
from annotation.web.downloads import DOWNLOADS, known


@pytest.fixture
def answered(store, make_study, images):
    study = make_study(simulated=True, votes_per_item=3, name="Studie 1: =x")
    simulate(store, study.id, 3)
    return study


@pytest.fixture
def client(store, images, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    app = FastAPI()
    app.include_router(researcher_router(store, images))
    return TestClient(app)


def test_every_table_of_every_format_can_be_downloaded():
    offered = {(one.form, one.what) for one in DOWNLOADS.values()}
    assert offered == {(name, what) for name, one in FORMATS.items() for what in one.writers}
    assert len({one.words for one in DOWNLOADS.values()}) == len(DOWNLOADS)


@pytest.mark.parametrize("file", [file for file in DOWNLOADS if file != "triplets.zip"])
def test_a_download_is_the_export(client, store, images, answered, tmp_path, file):
    reply = client.get(f"/studio/download/{answered.id}/{file}")
    assert reply.status_code == 200
    assert reply.headers["content-disposition"] == f'attachment; filename="studie-1-x-{file}"'
    assert reply.headers["cache-control"] == "no-store"
    assert "/" in reply.headers["content-type"]
    one, data = DOWNLOADS[file], read_study(store, answered.id, images)
    export(data, tmp_path / "there" / file.removesuffix(".zip"), one.form, one.what)
    if file.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(reply.content)) as packed:
            packed.extractall(tmp_path / "here")
        assert files(tmp_path / "here") == files(tmp_path / "there")
    else:
        assert reply.content == (tmp_path / "there" / file).read_bytes()


def files(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_nothing_stays_behind(client, store, make_study, answered, tmp_path):
    client.get(f"/studio/download/{answered.id}/hf.zip")
    refused = client.get(f"/studio/download/{make_study().id}/triplets.zip")
    assert refused.status_code == 422
    assert "no triplet" in refused.json()["error"]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_other_names_are_refused():
    with pytest.raises(ValueError, match=r"expected votes.csv, .*; got 'secrets.csv'"):
        known("secrets.csv")
