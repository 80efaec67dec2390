"""A study whose pictures lie elsewhere, for several servers; what happens when they are gone."""

import hashlib
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from made_remote import PLACE
from study_factory import SURE, write_set

from annotation.errors import StudyError
from annotation.formats import export
from annotation.images import shelf
from annotation.spec import StudySpec, Task
from annotation.store.tables import StudyRow
from annotation.study.create import create_study
from annotation.study.exports import export_labels, read_study
from annotation.study.sets import users_of
from annotation.ui.mount import web_app
from annotation.web.frame import FrameContext
from semsim.base.picture_files import read_pixels


@pytest.fixture
def given(tmp_path):
    return write_set(tmp_path / "set", model="net", probabilities=SURE)


@pytest.fixture
def made_on(tmp_path, unsteady):
    return shelf(PLACE, tmp_path / "a", write=True)


@pytest.fixture
def images(tmp_path, made_on):
    """The same pictures, as another machine sees them."""
    return shelf(PLACE, tmp_path / "b")


@pytest.fixture
def study(store, made_on, given):
    spec = StudySpec(name="Shared", task=Task.RECOGNITION, min_rt_ms=0)
    return create_study(store, spec, [given], made_on)


@pytest.fixture
def browser(store, images):
    with TestClient(
        web_app(FrameContext(store=store), images), base_url="http://127.0.0.1"
    ) as opened:
        yield opened


def shown(browser, study):
    browser.post(f"/join/{study.token}", data={"name": "Ada"})
    items = browser.get("/api/next?tab=t&n=9").json()["items"]
    return [one for item in items for one in item["images"]]


def test_the_other_machine_shows_and_exports_them(browser, store, study, images, tmp_path):
    for address in shown(browser, study):
        assert browser.get(address).content[:4] == b"\x89PNG"
    export(read_study(store, study.id, images), tmp_path / "hf", "hf")
    pictures = list((tmp_path / "hf").rglob("*.png"))
    assert len(pictures) == 8
    assert all(hashlib.sha256(one.read_bytes()).hexdigest() == one.stem for one in pictures)
    labels = export_labels(store, study.id, images)
    assert all(read_pixels(one).shape == (6, 6, 3) for one in map(Path, labels["original"]))
    assert {path.name for path in tmp_path.iterdir()} >= {"a", "b"}
    assert [one.name for one in (tmp_path / "a").iterdir()] == []
    assert [one.name for one in (tmp_path / "b").iterdir()] == ["copies"]


def test_pictures_that_do_not_answer_are_asked_for_again(browser, study, unsteady):
    (first, *_) = shown(browser, study)
    unsteady.gone = "secret host is down"
    reply = browser.get(first)
    assert (reply.status_code, "Try again" in reply.json()["error"]) == (503, True)
    assert "secret" not in reply.text
    told = browser.get("/health")
    assert (told.status_code, told.json()["pictures"]) == (503, "do not answer")
    assert "secret" not in told.text
    unsteady.gone = ""
    assert browser.get(first).status_code == browser.get("/health").status_code == 200


def test_votes_are_taken_out_while_pictures_do_not_answer(browser, study, unsteady):
    shown(browser, study)
    unsteady.gone = "down"
    for file, status in (("votes.csv", 200), ("labels.parquet", 503), ("hf.zip", 503)):
        reply = browser.get(f"/studio/download/{study.id}/{file}")
        assert reply.status_code == status, file
    unsteady.gone = ""
    packed = browser.get(f"/studio/download/{study.id}/hf.zip").content
    assert sum(one.endswith(".png") for one in zipfile.ZipFile(BytesIO(packed)).namelist()) == 8


def test_health_says_that_somebody_emptied_the_store(browser, unsteady):
    unsteady.store.clear()
    told = browser.get("/health")
    assert (told.status_code, "none there" in told.json()["pictures"]) == (503, True)


def test_nothing_is_stored_of_a_study_whose_pictures_are_not(
    store,
    made_on,
    given,
    unsteady,
):
    unsteady.gone = "down"
    spec = StudySpec(name="Lost", task=Task.RECOGNITION)
    with pytest.raises(Exception, match="Try again"):
        create_study(store, spec, [given], made_on)
    assert store.read(lambda tx: tx.query(StudyRow).count()) == 0


def test_a_set_is_in_use_as_long_as_nobody_can_say_that_it_is_not(
    store,
    study,
    images,
    given,
    unsteady,
):
    unsteady.gone = "down"
    assert users_of(store, images, given) == ["Shared"]
    unsteady.gone = ""
    assert users_of(store, images, given) == ["Shared"]


def test_a_folder_is_no_address(tmp_path):
    with pytest.raises(StudyError, match=r"such as s3://bucket/prefix; got '/mnt/pictures'"):
        shelf("/mnt/pictures", tmp_path)
    assert shelf("", tmp_path) == tmp_path / "images"
