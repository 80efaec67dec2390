"""The page Pictures over HTTP: files in pieces, the plan, what is kept, browsed and deleted."""

import io
import json
import shutil
import zipfile
from contextlib import suppress
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from made_pictures import blocky
from made_weights import make_classifier
from study_factory import write_set

from semsim.base.errors import SemsimError
from semsim.base.jobs import folders as jobs
from semsim.base.registry import build, read_plugin
from semsim.base.sets.reader import read_set
from semsim.cli import job as job_command
from semsim.datasets import DATASETS
from semsim.importers import import_job, uploads
from semsim.importers.import_job import ImportOrder
from semsim.ui import ScienceContext, lab, pictures, pictures_data

HOME = "/studio/pictures"


class Read(HTMLParser):
    """The words of a page, its links, where its pictures are, and what forms offer to choose."""

    def __init__(self, html):
        super().__init__()
        self.words, self.links, self.images = [], [], []
        self.choices, self.of = {}, ""
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.links += [values["href"]] if tag == "a" else []
        self.images += [values["src"]] if tag == "img" else []
        self.of = values.get("name", "") if tag == "select" else self.of
        if tag == "option" and "disabled" not in values:
            self.choices.setdefault(self.of, []).append(values.get("value"))

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture
def used():
    """Folders that a study uses."""
    return {}


@pytest.fixture
def context(tmp_path, used):
    built_in = tmp_path / "built-in"
    write_set(built_in / "demo", model="demo/none")
    return ScienceContext(
        data=tmp_path / "data",
        checkpoints=tmp_path / "checkpoints",
        studies=list,
        labels=lambda study: None,
        votes=lambda study: None,
        device="cpu",
        built_in=(built_in,),
        used_by=lambda folder: used.get(folder.name, []),
    )


def carry_out(job):
    """Do a job here; what goes wrong is the job's, as in a process of its own."""
    with suppress(SemsimError):
        job_command.do(job)


@pytest.fixture
def client(context, monkeypatch):
    monkeypatch.setattr(jobs, "start", carry_out)
    app = FastAPI()
    app.include_router(pictures.router(context))
    return TestClient(app)


@pytest.fixture
def drop(tmp_path):
    """A zip of two models of three originals, one of them without a reconstruction."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number, kind in enumerate(("cat", "dog", "cow")):
            for place in (f"originals/{kind}", "net", "other <b>"):
                if (place, number) != ("net", 1):
                    blocky(tmp_path / f"{number}.png", len(place) + number)
                    archive.write(tmp_path / f"{number}.png", f"drop/{place}/{number}.png")
    return packed.getvalue()


def sent(client, content, name="drop.zip", piece=1000):
    """The id of an upload, sent in pieces."""
    begun = client.post(f"{HOME}/uploads", json={"name": name, "size": len(content)}).json()
    for at in range(0, len(content), piece):
        put(client, begun["id"], at, content[at : at + piece])
    return begun["id"]


def put(client, upload, at, piece):
    kind = {"content-type": "application/octet-stream"}
    return client.put(f"{HOME}/uploads/{upload}?at={at}", content=piece, headers=kind)


def looked(client, upload, **more):
    return client.post(f"{HOME}/look", json={"upload": upload, **more}).json()["job"]


def page(client, address, status=200):
    reply = client.get(address)
    assert reply.status_code == status, reply.text
    return Read(reply.text)


def kept(client, drop, name="mine", **more):
    look = looked(client, sent(client, drop))
    reply = client.post(f"{HOME}/keep", json={"look": look, "name": name, **more})
    assert reply.status_code == 200, reply.text
    return reply.json()["job"]


def test_pieces_repeated_late_and_of_nobody(client):
    begun = client.post(f"{HOME}/uploads", json={"name": "a.zip", "size": 6, "key": "k"}).json()
    assert put(client, begun["id"], 0, b"abc").json() == {"have": 3}
    assert put(client, begun["id"], 0, b"abc").json() == {"have": 3}
    gap = put(client, begun["id"], 4, b"ef")
    assert (gap.status_code, gap.json()["have"]) == (409, 3)
    again = client.post(f"{HOME}/uploads", json={"name": "a.zip", "size": 6, "key": "k"}).json()
    assert again == {"id": begun["id"], "have": 3}
    assert client.get(f"{HOME}/uploads/{begun['id']}").json() == {"have": 3, "size": 6}
    assert put(client, begun["id"], 3, b"defg").status_code == 413
    assert put(client, "f" * 32, 0, b"abc").status_code == 404
    early = client.post(f"{HOME}/look", json={"upload": begun["id"]})
    assert (early.status_code, "not whole yet" in early.json()["error"]) == (422, True)
    assert client.delete(f"{HOME}/uploads/{begun['id']}").status_code == 200
    assert put(client, begun["id"], 3, b"def").status_code == 404


@pytest.mark.parametrize(
    ("name", "size", "status", "says"),
    [
        ("../../a.zip", 6, 422, "no file's name"),
        ("a.zip", uploads.MOST_UPLOAD + 1, 413, "at most 4,000,000,000 are imported at once"),
        ("a.zip", 0, 422, "is empty"),
    ],
)
def test_what_is_not_taken_is_refused_before_it_is_sent(client, context, name, size, status, says):
    reply = client.post(f"{HOME}/uploads", json={"name": name, "size": size})
    assert reply.status_code == status
    assert says in reply.json()["error"]
    assert not (context.data / "uploads").exists()


def test_the_plan_shows_everything_before_anything_is_kept(client, drop, context):
    look = looked(client, sent(client, drop))
    shown = page(client, f"{HOME}/plan/{look}")
    assert "Plan: drop.zip" in shown.text
    assert "5 pairs in 2 sets. Nothing is kept yet." in shown.text
    assert "2 pairs, 1 lacking · no attack named · 20×28 pixels" in shown.text
    assert "3 classes: cat, cow, dog." in shown.text
    assert "no reconstruction in the source" in shown.text
    assert "image 1 of net" in shown.text
    assert "Read as “variant-folders”" in shown.text
    assert "other <b>" in shown.text
    assert len(shown.images) == 2
    for address in shown.images:
        assert client.get(address).content.startswith(b"\x89PNG")
    assert "Not kept yet: drop" in page(client, HOME).text
    assert not (context.data / "runs").exists()


def test_pictures_of_two_sizes_are_told_before_anything_is_kept(client, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number, place, size in (
            *((n, place, (8, 8)) for n in "ab" for place in ("originals", "net")),
            *((n, "enlarged", (16, 16)) for n in "ab"),
            *(("c", place, (12, 12)) for place in ("originals", "large")),
        ):
            blocky(tmp_path / "one.png", len(place) + ord(number), size)
            archive.write(tmp_path / "one.png", f"{place}/{number}.png")
    shown = page(client, f"{HOME}/plan/{looked(client, sent(client, packed.getvalue()))}").text
    assert "3 pairs in 2 sets" in shown
    assert "The sets are of different sizes: 8×8, 12×12 pixels." in shown
    why = "its pictures are of different sizes: original 8×8, reconstruction 16×16"
    assert f"Nothing of enlarged can be used: {why}." in shown
    assert f"2 {why} image a of enlarged, image b of enlarged" in shown


def test_what_is_kept_is_listed_and_the_files_go(client, drop, context, monkeypatch):
    planned, plan = [], import_job.plan_import
    monkeypatch.setattr(import_job, "plan_import", lambda *a: planned.append(a) or plan(*a))
    job = kept(client, drop, dataset="pets", task="pair")
    assert len(planned) == 1  # for the look, and not again
    now = client.get(f"{HOME}/jobs/{job}").json()
    assert (now["state"], now["to"]) == ("done", f"{HOME}?kept=mine&task=pair")
    shown = page(client, now["to"])
    assert "mine is kept." in shown.text
    assert "read again" not in shown.text
    assert "so they were read again." in page(client, f"{now['to']}&anew=1").text
    assert "/studio/new?sets=mine&task=pair" in shown.links
    assert "9 reconstructions in 3 sets: 2 of your own, 1 built in." in shown.text
    assert "Not kept yet" not in shown.text
    assert uploads.uploads(context.data / "uploads") == []
    own = page(client, f"{HOME}?own=own&dataset=pets")
    assert "demo" not in own.text.split("all sets")[-1].replace("demo/none", "")
    assert len(own.images) == 2


def test_a_judge_that_the_form_offers_ranks_the_words_of_what_is_kept(client, drop, context):
    judges = context.checkpoints / "judges"
    make_classifier(judges / "fit.safetensors", classes=("cat", "cow", "dog"))
    make_classifier(judges / "unfit.safetensors", classes=("cat", "dog"))
    look = looked(client, sent(client, drop))
    shown = page(client, f"{HOME}/plan/{look}")
    assert shown.choices["judge"] == ["", "fit"]
    assert "unfit (other classes)" in shown.text
    refused = client.post(f"{HOME}/keep", json={"look": look, "name": "b", "judge": "unfit"})
    assert (refused.status_code, "'cow' is known" in refused.json()["error"]) == (422, True)
    refused = client.post(f"{HOME}/keep", json={"look": look, "name": "b", "judge": "none"})
    assert "No distractor model is called" in refused.json()["error"]
    asked = {"look": look, "name": "mine", "judge": "fit", "task": "recognition"}
    assert client.post(f"{HOME}/keep", json=asked).status_code == 200
    (net,) = [one for one in pictures_data.shelf(context) if one.model == "net"]
    table = pd.read_parquet(net.folder / "predictions.parquet")
    assert set(table["class_name"]) == {"cat", "cow", "dog"}
    assert net.found.run["predictor"]["name"] == "fit"


def test_a_name_that_is_taken_is_said_and_nothing_begins(client, drop):
    kept(client, drop)
    look = looked(client, sent(client, drop))
    assert 'name="name" value="drop"' in client.get(f"{HOME}/plan/{look}").text
    reply = client.post(f"{HOME}/keep", json={"look": look, "name": "mine"})
    assert (reply.status_code, "take another name" in reply.json()["error"]) == (422, True)


def test_a_drop_that_nobody_reads_says_why_and_asks_for_originals(client, tmp_path):
    blocky(tmp_path / "0.png", 1)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(tmp_path / "0.png", "0.png")
    look = looked(client, sent(client, packed.getvalue(), "got.zip"))
    shown = page(client, f"{HOME}/plan/{look}")
    assert "No importer reads got.zip" in shown.text
    assert "table: " in shown.text
    assert "The originals lie elsewhere?" in shown.text
    blocky(tmp_path / "0.png", 2)
    apart = sent(client, packed.getvalue(), "clean.zip")
    again = looked(client, apart, again=look, adds="originals")
    assert "1 pair in 1 set" in page(client, f"{HOME}/plan/{again}").text


def test_a_broken_zip_is_not_said_to_lack_anything(client):
    look = looked(client, sent(client, b"PK no zip", "broken.zip"))
    shown = page(client, f"{HOME}/plan/{look}")
    assert "broken.zip is not a readable archive" in shown.text
    assert "The originals lie elsewhere?" not in shown.text
    assert "What do the pictures show?" not in shown.text
    assert "Could not be read: broken" in page(client, HOME).text
    assert "See why" in page(client, HOME).text


def packed_classes(tmp_path):
    """A zip of ten pictures of two classes, of which nothing was attacked."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(10):
            blocky(tmp_path / f"{number}.png", number)
            place = f"own/{('cat', 'dog')[number % 2]}/{number}.png"
            archive.write(tmp_path / f"{number}.png", place)
    return packed.getvalue()


def test_pictures_still_to_be_attacked_are_kept_where_the_attack_lab_finds_them(
    client, context, tmp_path
):
    look = looked(client, sent(client, packed_classes(tmp_path), "own.zip"))
    shown = page(client, f"{HOME}/plan/{look}")
    assert "10 pictures of 2 classes, still to be attacked. Nothing is kept yet." in shown.text
    assert "2 classes: cat, dog." in shown.text
    assert "The originals lie elsewhere?" in shown.text  # were they what came back of them
    (strip,) = (one for one in shown.images if "/looked/" in one)
    assert client.get(strip).headers["content-type"] == "image/png"
    assert lab.own_pictures(context.data) == []
    reply = client.post(f"{HOME}/keep", json={"look": look, "name": "own"})
    watched = client.get(f"{HOME}/jobs/{reply.json()['job']}").json()
    shown = page(client, watched["to"])
    assert "own is kept." in shown.text
    assert "Pictures from elsewhere: 1 own 10 pictures of 2 classes, to attack" in shown.text
    assert shown.links.count("/studio/reconstruct?pictures=own") == 2
    ((item, name, line),) = lab.own_pictures(context.data)
    assert (name, line) == ("own", "10 pictures of 2 classes.")
    assert lab.title_of((), item) == "own"
    data = build(DATASETS, "folder", read_plugin(DATASETS, item).settings)
    assert len(data("train").ids) + len(data("test").ids) == 10
    look = looked(client, sent(client, packed_classes(tmp_path), "own.zip"))
    taken = client.post(f"{HOME}/keep", json={"look": look, "name": "own"})
    assert "take another name" in taken.json()["error"]
    folder = context.data / "pictures/own"
    order = ImportOrder(data=context.data, checkpoints=tmp_path, source=folder.resolve(), name="x")
    running = jobs.create(context.data / "jobs", kind="campaign", title="Mine", order=order)
    asked = {"holds": "pictures", "key": "own", "typed": "own"}
    refused = client.post(f"{HOME}/delete-brought", json=asked).json()["error"]
    assert refused == "own stays: Mine works on it. Cancel that first."
    shutil.rmtree(running.folder)
    other = replace(order, source=folder.resolve().with_name("own-2"))
    jobs.create(context.data / "jobs", kind="campaign", title="Another's", order=other)
    for typed, status in (("", 422), ("own", 200), ("own", 404)):
        asked = {"holds": "pictures", "key": "own", "typed": typed}
        assert client.post(f"{HOME}/delete-brought", json=asked).status_code == status
    assert lab.own_pictures(context.data) == []


def test_a_flat_drop_becomes_recognition_by_a_table_of_classes(client, tmp_path, context):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(3):
            for place in ("originals", "net"):
                blocky(tmp_path / "0.png", len(place) + number)
                archive.write(tmp_path / "0.png", f"{place}/{number}.png")
    look = looked(client, sent(client, packed.getvalue(), "flat.zip"))
    shown = page(client, f"{HOME}/plan/{look}").text
    refused = client.post(f"{HOME}/keep", json={"look": look, "name": "x", "task": "recognition"})
    assert refused.status_code == 422
    assert "Write a word under each picture" in refused.json()["error"]
    assert "What does each of the 3 pictures show?" in shown
    wrong = {"upload": sent(client, b"file,label\n0,cat\n", "bad.csv"), "again": look}
    reply = client.post(f"{HOME}/look", json={**wrong, "adds": "classes"})
    assert (reply.status_code, reply.json()["error"]) == (
        422,
        "bad.csv lacks the columns image_id, class_name. It has: file, label.",
    )
    assert "What does each of the 3 pictures show?" in page(client, f"{HOME}/plan/{look}").text
    table = sent(client, b"Image_ID,Class_Name\n0.png,cat\n01,dog\n2,cow\n", "classes.csv")
    again = looked(client, table, again=look, adds="classes")
    shown = page(client, f"{HOME}/plan/{again}").text
    assert "3 classes: cat, cow, dog." in shown
    assert "What do the pictures show?" not in shown
    asked = {"look": again, "name": "flat", "task": "recognition"}
    assert client.post(f"{HOME}/keep", json=asked).status_code == 200
    (run,) = context.data.rglob("run.json")
    assert set(read_set(run.parent).manifest["class_name"]) == {"cat", "dog", "cow"}
    assert uploads.uploads(context.data / "uploads") == []
    asked = {"upload": sent(client, b"x", "x.csv"), "again": look, "adds": "judge"}
    assert client.post(f"{HOME}/look", json=asked).status_code == 422


def test_names_of_files_are_offered_as_words_and_can_be_changed(client, tmp_path, context):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number, name in enumerate(("cat_1", "cat_2", "coffee-cup")):
            for place in ("originals", "net"):
                blocky(tmp_path / "0.png", len(place) + number)
                archive.write(tmp_path / "0.png", f"{place}/{name}.png")
    look = looked(client, sent(client, packed.getvalue(), "own.zip"))
    html = client.get(f"{HOME}/plan/{look}").text
    assert 'data-word="coffee-cup" value="coffee cup"' in html
    assert "cat_2,cat%0A" in html
    assert 'value="recognition" checked' in html
    assert client.get(f"{HOME}/looked/{look}/-3.png").content[:4] == b"\x89PNG"
    words = {"cat_1": "cat", "cat_2": " dog ", "coffee-cup": ""}
    asked = {"look": look, "name": "own", "task": "recognition", "words": words}
    reply = client.post(f"{HOME}/keep", json=asked)
    assert (reply.status_code, "coffee-cup has none" in reply.json()["error"]) == (422, True)
    asked["words"]["coffee-cup"] = "cup"
    assert client.post(f"{HOME}/keep", json=asked).status_code == 200
    (run,) = context.data.rglob("run.json")
    kept = read_set(run.parent)
    assert dict(zip(kept.manifest["image_id"], kept.manifest["class_name"], strict=True)) == {
        "cat_1": "cat",
        "cat_2": "dog",
        "coffee-cup": "cup",
    }


def test_what_is_discarded_is_gone(client, drop, context):
    look = looked(client, sent(client, drop))
    assert client.post(f"{HOME}/discard", json={"look": look}).status_code == 200
    assert uploads.uploads(context.data / "uploads") == []
    assert "Not kept yet" not in page(client, HOME).text
    why = "The files of this plan are here no longer: drop them once more."
    assert why in page(client, f"{HOME}/plan/{look}", 404).text
    reply = client.post(f"{HOME}/keep", json={"look": look, "name": "mine"})
    assert (reply.status_code, reply.json()["error"]) == (404, why)


def test_what_is_kept_leads_to_a_study_whenever_it_is_looked_at(client, drop):
    way = 'href="/studio/new?sets=mine'
    done = kept(client, drop)
    for address in (f"{HOME}/plan/{done}", HOME):
        assert way in client.get(address).text
        assert "Make a study of these" in page(client, address).text


def test_the_plan_of_what_is_kept_says_so(client, drop):
    look = looked(client, sent(client, drop))
    assert "by 2 attacks" not in page(client, f"{HOME}/plan/{look}").text
    assert client.post(f"{HOME}/keep", json={"look": look, "name": "mine"}).is_success
    assert "were kept as mine." in page(client, f"{HOME}/plan/{look}", 404).text
    assert "no such import here" in page(client, f"{HOME}/plan/none", 404).text


def test_what_is_being_kept_is_neither_offered_nor_discarded(client, drop, context, monkeypatch):
    look = looked(client, sent(client, drop))
    with monkeypatch.context() as held:
        held.setattr(jobs, "start", lambda job: None)
        keeping = client.post(f"{HOME}/keep", json={"look": look, "name": "mine"}).json()["job"]
        reply = client.post(f"{HOME}/keep", json={"look": keeping, "name": "again"})
    assert (reply.status_code, "is no look at an upload" in reply.json()["error"]) == (404, True)
    shown = page(client, HOME).text
    assert "At work on" in shown
    assert "Not kept yet" not in shown
    for act, more in (("discard", {}), ("keep", {"name": "again"})):
        reply = client.post(f"{HOME}/{act}", json={"look": look, **more})
        assert (reply.status_code, "being stored already" in reply.json()["error"]) == (422, True)
    assert uploads.uploads(context.data / "uploads") != []


def cut_off(context, job_id):
    """Leave a job as it is where its process had not begun to write what it found."""
    for name in ("result.json", "pid.json"):
        (context.data / "jobs" / job_id / name).unlink(missing_ok=True)


@pytest.mark.parametrize("kind", ["look", "keep"])
def test_what_was_cancelled_says_resume_where_the_button_is(
    client, drop, context, kind, monkeypatch
):
    job_id = looked(client, sent(client, drop))
    if kind == "keep":
        with monkeypatch.context() as held:
            held.setattr(jobs, "start", lambda job: None)
            asked = {"look": job_id, "name": "mine"}
            job_id = client.post(f"{HOME}/keep", json=asked).json()["job"]
    cut_off(context, job_id)
    assert client.post(f"{HOME}/jobs/{job_id}/stop").json()["state"] == "stopped"
    shown = page(client, f"{HOME}/plan/{job_id}").text
    assert "Stopped. Resume begins it again, with the files that are here." in shown
    assert shown.count("Resume") == 2  # in words, and on the button
    with monkeypatch.context() as here:
        here.setattr(jobs, "_spawn", carry_out)
        assert client.post(f"{HOME}/jobs/{job_id}/resume").json()["state"] == "done"
    assert "Resume" not in page(client, f"{HOME}/plan/{job_id}").text
    assert (context.data / "runs" / "mine").is_dir() == (kind == "keep")


def test_what_was_cancelled_and_discarded_is_not_said_to_resume(client, drop, context):
    look = looked(client, sent(client, drop))
    cut_off(context, look)
    client.post(f"{HOME}/discard", json={"look": look})
    shown = page(client, f"{HOME}/plan/{look}").text
    assert "Stopped." in shown
    assert "Resume" not in shown
    assert "Discard" not in shown
    reply = client.post(f"{HOME}/jobs/{look}/resume")
    assert (reply.status_code, "choose them again" in reply.json()["error"]) == (404, True)


def test_jobs_of_other_pages_are_none_of_this_one(client, context):
    other = jobs.create(context.data / "jobs", kind="learn", title="T", order={})
    for address in (f"jobs/{other.id}", "jobs/x", f"looked/{other.id}/0.png"):
        assert client.get(f"{HOME}/{address}").status_code == 404
    for act in ("stop", "resume"):
        assert client.post(f"{HOME}/jobs/{other.id}/{act}").status_code == 404
    page(client, f"{HOME}/plan/{other.id}", 404)


def test_a_set_is_browsed_by_class(client, drop):
    kept(client, drop, dataset="pets")
    (one,) = {a for a in page(client, f"{HOME}?own=own&model=net").links if "/set/" in a}
    shown = page(client, one)
    assert "mine/net" in shown.text
    assert "Brought in from drop.zip, read as variant-folders" in shown.text
    assert len(shown.images) == 4
    assert client.get(shown.images[0]).content.startswith(b"\x89PNG")
    cows = page(client, f"{one}?name=cow")
    assert len(cows.images) == 2
    across = page(client, f"{HOME}/class?dataset=pets&name=cow")
    assert len(across.images) == 3
    page(client, f"{HOME}/class?dataset=pets&name=horse", 404)
    page(client, f"{HOME}/set/x", 404)


@pytest.mark.parametrize("place", ["0/other", "99/original", "-1/original"])
def test_no_address_leads_out_of_a_set(client, context, place):
    (one,) = pictures_data.shelf(context)
    assert client.get(f"{HOME}/image/{one.key}/{place}.png").status_code == 404


def test_a_manifest_leads_nowhere_else(client, context, tmp_path):
    blocky(tmp_path / "secret.png", 1)
    (one,) = pictures_data.shelf(context)
    table = one.found.manifest.assign(original=str(tmp_path / "secret.png"))
    table.to_parquet(one.folder / "manifest.parquet")
    assert client.get(f"{HOME}/image/{one.key}/0/original.png").status_code == 404


def test_only_a_set_that_nobody_uses_is_deleted_and_only_by_its_name(client, drop, context, used):
    kept(client, drop)
    shelf = {one.model: one for one in pictures_data.shelf(context)}

    def delete(model, typed):
        body = {"key": shelf[model].key, "typed": typed}
        return client.post(f"{HOME}/delete", json=body)

    assert "came with SemSim Studio" in delete("demo/none", "demo").json()["error"]
    assert "type its name: mine/net" in delete("net", "mine").json()["error"]
    used["net"] = ["Cats & dogs"]
    assert (
        "1 study asked people about it: Cats & dogs." in delete("net", "mine/net").json()["error"]
    )
    assert "Cats & dogs" in page(client, f"{HOME}/set/{shelf['net'].key}").text
    assert shelf["net"].folder.is_dir()
    used.clear()
    assert delete("net", "mine/net").json() == {"deleted": "mine/net"}
    assert not shelf["net"].folder.exists()
    assert delete("net", "mine/net").status_code == 404
    assert delete("other <b>", "mine/other <b>").status_code == 200
    assert not (context.data / "runs/mine").exists()


def test_pictures_that_imported_votes_are_about_stay(client, drop, context):
    kept(client, drop)
    folder = context.data / "imports/mine"
    folder.mkdir(parents=True)
    entries = ("source", "counts", "unread", "kind", "headline", "simulated")
    record = {"format": "semsim-import/1", "name": "Mine!", **dict.fromkeys(entries, "")}
    record["counts"] = {"votes": 7}
    (folder / "import.json").write_text(json.dumps(record))
    for name in ("votes", "labels"):
        (folder / f"{name}.parquet").touch()
    one = next(one for one in pictures_data.shelf(context) if one.model == "net")
    reply = client.post(f"{HOME}/delete", json={"key": one.key, "typed": one.name})
    assert "votes brought in with it" in reply.json()["error"]
    shown = page(client, f"{HOME}?kept=mine")
    assert "Votes from elsewhere: 1 Mine! 7 votes" in shown.text
    assert shown.links.count("/studio/results?study=import%3Amine") == 2
    (folder / "import.json").write_text(json.dumps({**record, "counts": {"votes": 0}}))
    assert "Labels from elsewhere: 1 Mine! no votes" in page(client, HOME).text
    reply = client.post(f"{HOME}/delete", json={"key": one.key, "typed": one.name})
    assert "labels brought in with it" in reply.json()["error"]
    for key, typed, status in (("mine", "no", 422), ("..", "Mine!", 404), ("mine", "Mine!", 200)):
        asked = {"holds": "labels", "key": key, "typed": typed}
        gone = client.post(f"{HOME}/delete-brought", json=asked)
        assert gone.status_code == status
    assert not folder.exists()
    again = client.post(f"{HOME}/delete", json={"key": one.key, "typed": one.name})
    assert again.status_code == 200


def test_a_set_that_cannot_be_read_says_why(client, context):
    broken = context.data / "runs/odd"
    broken.mkdir(parents=True)
    (broken / "run.json").write_text("{")
    assert "manifest.parquet is missing" in page(client, HOME).text


def test_uploads_under_way_are_listed_and_can_be_discarded(client, drop):
    begun = {"name": "large <b>.zip", "size": 4_000_000_000}
    first = client.post(f"{HOME}/uploads", json=begun).json()["id"]
    looked(client, sent(client, drop, name="whole.zip"))
    shown = page(client, HOME).text
    assert "large <b>.zip , 0.0 of 4,000.0 MB received" in shown
    assert "Unfinished upload: whole" not in shown  # it has a plan, listed by itself
    assert client.delete(f"{HOME}/uploads/{first}").status_code == 200
    assert "large" not in page(client, HOME).text


@pytest.mark.parametrize("left", ["{}", '{"sets": 7}', '{"sets": [{}], "name": "x"}'])
def test_a_look_that_left_no_plan_is_no_plan_to_keep(client, context, drop, left):
    look = looked(client, sent(client, drop))
    (context.data / "jobs" / look / "result.json").write_text(left)
    reply = client.post(f"{HOME}/keep", json={"look": look, "name": "mine"})
    assert reply.status_code == 422
    assert "Look again" in reply.json()["error"]
    assert "Look again" in page(client, f"{HOME}/plan/{look}", 404).text
    assert client.get(HOME).status_code == 200
