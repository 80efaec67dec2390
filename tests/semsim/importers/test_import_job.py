"""Looking at a drop and keeping it, as jobs do it."""

import json
import shutil
import zipfile
from dataclasses import replace

import pandas as pd
import pytest
from made_weights import make_classifier
from PIL import Image

from semsim.base.errors import DataError, SettingsError
from semsim.base.jobs.folders import read_job, read_order
from semsim.base.progress import silent
from semsim.base.sets.reader import read_set
from semsim.cli.imports import keep
from semsim.cli.job import KINDS
from semsim.importers import IMPORTERS, import_job, uploads
from semsim.importers.import_job import (
    ImportOrder,
    do_look,
    kept_text,
    queue_keep,
    tasks_for,
)


@pytest.fixture
def drop(tmp_path, draw):
    """Two models; one reconstruction is missing and one has no original."""
    root = tmp_path / "drop"
    for image, kind in enumerate(("cat", "dog", "cow")):
        draw(root / f"originals/{kind}/{image}.png", image)
        draw(root / f"net/{image}.png", image + 50)
    draw(root / "other/0.png", 70)
    draw(root / "other/stray.png", 71)
    (root / "weights.pt").write_text("x")
    return root


@pytest.fixture
def order(tmp_path, drop):
    return ImportOrder(data=tmp_path / "data", checkpoints=tmp_path, source=drop, name="mine")


def test_a_look_tells_everything_and_keeps_nothing(order, tmp_path):
    found = json.loads(json.dumps(do_look(order, tmp_path / "job", silent)))
    assert found["kind"] == "variant-folders"
    assert [(one["model"], one["pairs"], one["lacking"]) for one in found["sets"]] == [
        ("net", 3, 0),
        ("other", 1, 2),
    ]
    reasons = {one["why"]: (one["n"], one["first"]) for one in found["reasons"]}
    assert reasons["no reconstruction in the source"][0] == 2
    assert reasons["no original in the source"] == (1, ["image stray of other"])
    assert found["left_out"] == sum(one["n"] for one in found["reasons"]) == 4
    assert set(found["refusals"]) >= {"table", "train-with-ori", "annotator-files"}
    with Image.open(import_job.strip_path(tmp_path / "job", 0)) as strip:
        assert strip.size == (3 * 6 + 2 * 2, 2 * 6 + 2)
    assert not order.data.exists()


@pytest.fixture
def planned(monkeypatch):
    """A list that grows with every source that is planned."""
    calls, plan = [], import_job.plan_import

    def counted(*given):
        calls.append(given)
        return plan(*given)

    monkeypatch.setattr(import_job, "plan_import", counted)
    return calls


def looked(order, folder):
    """The order to keep what a look shows, and what it shows."""
    shown = do_look(order, folder, silent)
    return replace(order, look=folder, plan=shown["sha256"]), shown


def kept(order):
    """Every file that keeping writes, by its path, and the outcome; nothing of it stays."""
    told = keep(order, order.data, silent)
    files = {path: path.read_bytes() for path in order.data.rglob("*") if path.is_file()}
    shutil.rmtree(order.data)
    return files, told


def test_what_is_kept_is_what_was_shown(order, tmp_path, planned):
    asked, shown = looked(order, tmp_path / "job")
    told = keep(asked, tmp_path, silent)
    assert len(planned) == 1
    made = [read_set(order.data / "runs/mine" / one["folder"]) for one in shown["sets"]]
    assert [len(one.pairs) for one in made] == [one["pairs"] for one in shown["sets"]]
    assert (told["kept"], told["sets"], told["anew"]) == ("mine", 2, "")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", IMPORTERS)
def test_the_plan_that_was_shown_is_kept_without_another(kind, packed, example, tmp_path, planned):
    source = example(kind)
    if packed and source.is_dir():
        source = shutil.make_archive(tmp_path / "packed", "zip", source.parent, source.name)
    order = ImportOrder(
        data=tmp_path / "data", checkpoints=tmp_path, source=tmp_path / source, name="mine"
    )
    asked, shown = looked(order, tmp_path / "job")
    of_names = not shown["human"]  # votes are of the data set that they were read for
    names = {"name": "other", "dataset": "pets", "attack": "ours"} if of_names else {}
    once = kept(replace(asked, **names))
    assert (once[1]["anew"], len(planned)) == ("", 1)
    assert once == kept(replace(order, **names))


def test_where_a_plan_no_longer_holds_it_is_made_anew_and_that_is_told(
    order, drop, draw, tmp_path, planned
):
    asked, _ = looked(order, tmp_path / "job")
    draw(drop / "net/1.png", 99)
    assert "have changed" in kept(asked)[1]["anew"]
    asked, _ = looked(order, tmp_path / "job")
    (drop / "net/2.png").unlink()
    assert "have changed" in kept(asked)[1]["anew"]
    assert "not there any more" in kept(replace(asked, plan="0" * 64))[1]["anew"]
    asked, _ = looked(replace(order, name="net"), tmp_path / "job")  # as one of its models
    files, told = kept(replace(asked, name="mine"))
    assert "called otherwise" in told["anew"]
    assert "Looked at anew: It is called otherwise now" in kept_text(told)
    assert any("runs/mine/net" in str(path) for path in files)
    assert len(planned) == 3 + 4
    table = tmp_path / "votes.csv"
    table.write_text("model,image_id,class_name,annotator,answer\nm,a,cat,Ann,cat\n")
    asked, _ = looked(replace(order, source=table), tmp_path / "votes")
    assert kept(asked)[1]["anew"] == ""
    assert "called otherwise" in kept(replace(asked, dataset="pets"))[1]["anew"]
    (tmp_path / "votes/plan/votes.parquet").unlink()
    assert "lost its votes.parquet" in kept(asked)[1]["anew"]


def test_originals_that_lie_apart_are_matched_by_name(tmp_path, draw):
    for image in "abc":
        draw(tmp_path / f"clean/{image}.png", ord(image))
    with zipfile.ZipFile(tmp_path / "got.zip", "w") as archive:
        for image in "bcd":
            picture = draw(tmp_path / "rec" / f"{image}_rec.png", 5 + ord(image))
            archive.write(picture, f"{image}_rec.png")
    order = ImportOrder(
        data=tmp_path / "data",
        checkpoints=tmp_path,
        source=tmp_path / "got.zip",
        originals=tmp_path / "clean",
        name="apart",
    )
    found = do_look(order, tmp_path / "job", silent)
    ((model, pairs),) = [(one["model"], one["pairs"]) for one in found["sets"]]
    assert (model, pairs) == ("apart", 2)
    assert {one["why"]: one["first"] for one in found["reasons"]} == {
        "no original in the source": ["image d of apart"],
        "no reconstruction in the source": ["image a of apart"],
    }
    without = replace(order, originals=None)
    with pytest.raises(DataError, match="No importer reads") as told:
        do_look(without, tmp_path / "job", silent)
    first = str(told.value).splitlines()[0]
    assert "originals/" in first  # what belongs here
    assert "<class>/" in first  # and how pictures lie that nobody has attacked yet


def test_votes_are_counted(tmp_path):
    table = tmp_path / "votes.csv"
    row = {"model": "m", "class_name": "cat", "answer": "cat"}
    rows = [{**row, "image_id": i, "annotator": who} for i in "ab" for who in ("Ann", "Bo")]
    pd.DataFrame(rows).to_csv(table, index=False)
    order = ImportOrder(data=tmp_path, checkpoints=tmp_path, source=table, name="votes")
    assert do_look(order, tmp_path, silent)["human"] == {"votes": 4, "people": 2, "scores": []}


def test_a_judge_reads_what_is_kept(order):
    judge = order.checkpoints / "judges/own.safetensors"
    make_classifier(judge, classes=("cat", "cow", "dog"))
    job = queue_keep(replace(order, judge="own"), order.data / "jobs")
    keep(read_order(job, ImportOrder), job.folder, silent)
    table = pd.read_parquet(order.data / "runs/mine/net/predictions.parquet")
    assert len(table) == 2 * 3 * 3  # both pictures of three pairs, three classes


def test_uploads_go_when_they_are_kept(order, tmp_path):
    root = uploads.folder_of(order.data)
    one, other = uploads.begin(root, "a.zip", 5), uploads.begin(root, "b.zip", 5)
    keep(replace(order, uploads=(one.id, "f" * 32)), tmp_path, silent)
    assert [left.id for left in uploads.uploads(root)] == [other.id]


def test_a_name_that_is_taken_or_none_is_refused(order, tmp_path):
    root = tmp_path / "jobs"
    assert read_job(queue_keep(order, root).folder).kind in KINDS
    (order.data / "imports/mine").mkdir(parents=True)
    with pytest.raises(SettingsError, match="take another name"):
        queue_keep(order, root)
    with pytest.raises(SettingsError, match="cannot name an import"):
        queue_keep(replace(order, name="../x"), root)


@pytest.mark.parametrize(
    ("classes", "unnamed", "why"),
    [
        (["cat", "dog"], 0, ""),
        (["cat"], 0, "two at least"),
        ([], 3, "two at least"),
        (["cat", "dog"], 3, "3 pictures have no class"),
    ],
)
def test_words_can_be_asked_for_where_classes_are_known(classes, unnamed, why):
    plan = {"sets": [{"classes": classes, "unnamed": unnamed}]}
    assert tasks_for({**plan, "words": [("a", "")]})["recognition"] == ""  # a field for each
    found = tasks_for({**plan, "words": []})
    assert why in found["recognition"]
    assert bool(why) == bool(found["recognition"])
    assert (found["pair"], found["rating"]) == ("", "")


@pytest.fixture
def judged(order):
    """The order with a judge, cut off while it reads, and the folder of what was written."""
    make_classifier(order.checkpoints / "judges/own.safetensors", classes=("cat", "cow", "dog"))
    keep(order, order.data, silent)
    return replace(order, judge="own"), order.data / "runs/mine"


def test_a_keep_that_was_cut_off_while_the_judge_read_goes_on(judged):
    asked, made = judged
    written = (made / "import.json").stat().st_mtime_ns
    for _ in range(2):  # also once the judge has read it
        told = keep(asked, asked.data, silent)
        assert told["folders"] == [str(made.resolve())]
        assert (made / "net/predictions.parquet").exists()
    assert (made / "import.json").stat().st_mtime_ns == written


@pytest.mark.parametrize("where", ["net/1.png", "net/9.png"])
def test_what_another_source_left_at_the_place_is_not_taken_for_it(judged, drop, draw, where):
    asked, made = judged
    draw(drop / where, 99)
    with pytest.raises(SettingsError, match="is there already"):
        keep(asked, asked.data, silent)
    assert not (made / "net/predictions.parquet").exists()


@pytest.mark.parametrize("source", ["answers/A.csv", "answers"])
def test_votes_that_were_kept_are_known_again(tmp_path, source):
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers/A.csv").write_text("image,answer\nm/1_49,49\n")
    order = ImportOrder(
        data=tmp_path / "data", checkpoints=tmp_path, source=tmp_path / source, name="a"
    )
    assert keep(order, tmp_path, silent) == keep(order, tmp_path, silent)
    with pytest.raises(SettingsError, match="is there already"):
        keep(replace(order, dataset="other"), tmp_path, silent)


def test_only_votes_that_count_are_told(tmp_path):
    table = tmp_path / "votes.csv"
    table.write_text(
        "model,image_id,class_name,annotator,answer,status\n"
        "m,a,cat,Ann,cat,counted\nm,a,cat,Bo,dog,counted\nm,a,cat,Cleo,dog,superseded\n"
    )
    order = ImportOrder(data=tmp_path, checkpoints=tmp_path, source=table, name="votes")
    told = do_look(order, tmp_path, silent)["human"]
    assert (told["votes"], told["people"]) == (2, 2)
