import json
import re
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from made_study import MODELS, make_labels
from made_weights import make_classifier

from semsim.base.errors import DataError, StopRequestedError
from semsim.images import read_image, read_images, write_png
from semsim.metrics import Resources
from semsim.metrics.base import PART
from semsim.metrics.pixel import mse
from semsim.metrics.scoring import (
    content_hash,
    pair_sets_of_folders,
    pair_sets_of_labels,
    read_labels,
    read_parts,
    read_scores,
    score_sets,
)
from semsim.sets.image import SetImage
from semsim.sets.writer import write_set


@pytest.fixture(autouse=True)
def _no_torch_home(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch-home"))


@pytest.fixture
def labels(tmp_path):
    return make_labels(tmp_path / "images", models=MODELS[:3])


@pytest.fixture
def resources(tmp_path):
    return Resources(checkpoints=tmp_path / "checkpoints", classifiers=())


def make_set(folder: Path, model: str = "net/none", failed: bool = False) -> Path:
    grey = np.full((8, 8, 3), 128, np.uint8)
    images = [
        SetImage(
            image_id=image_id,
            class_id=0,
            class_name="cat",
            original=grey,
            reconstruction=grey,
            error="diverged" if failed else "",
        )
        for image_id in ("2", "1")
    ]
    run = {"model": model, "dataset": {"name": "symbols"}, "attack": {"name": "invgrad"}}
    return write_set(folder, run, images)


def test_a_set_gives_its_pairs_in_order_of_image(tmp_path):
    (one,) = pair_sets_of_folders([make_set(tmp_path / "one")])
    assert (one.dataset, one.attack, one.model) == ("symbols", "invgrad", "net/none")
    assert one.pairs["image_id"].tolist() == ["1", "2"]
    assert Path(one.pairs["original"][0]).is_absolute()
    assert one.pairs["attacked"].isna().all()


def test_sets_that_cannot_be_told_apart_or_are_empty_are_refused(tmp_path):
    first, second = make_set(tmp_path / "one"), make_set(tmp_path / "two")
    with pytest.raises(DataError, match="Two sets are both net/none on symbols by invgrad"):
        pair_sets_of_folders([first, second])
    with pytest.raises(DataError, match="no image that was reconstructed"):
        pair_sets_of_folders([make_set(tmp_path / "three", failed=True)])


def test_labels_give_one_set_a_model(labels):
    sets = pair_sets_of_labels(labels)
    assert [one.model for one in sets] == sorted(MODELS[:3])
    assert [len(one.pairs) for one in sets] == [5, 5, 5]
    with pytest.raises(DataError, match="lacks the columns original"):
        pair_sets_of_labels(labels.drop(columns="original"))


def with_attacked(labels, folder):
    """The same labels, with an attacked image for each: the original, upside down."""
    paths = []
    for row in labels.itertuples():
        path = folder / f"{row.item}.png".replace("/", "__")
        write_png(read_image(Path(row.original)).flip(1), path)
        paths.append(str(path))
    return labels.assign(attacked=paths)


def test_the_attacked_image_takes_the_place_of_the_original(labels, resources, tmp_path):
    labels = with_attacked(labels, tmp_path / "attacked")
    sets = pair_sets_of_labels(labels)
    names = ["mse", "mse@attacked", "psnr-registered@attacked"]
    book = score_sets(sets, names, resources, tmp_path / "scores")
    assert book.refused == {}
    row = labels.iloc[7]
    second = read_image(Path(row["reconstruction"]))[None]
    for name, column in (("mse", "original"), ("mse@attacked", "attacked")):
        mine = book.scores[
            (book.scores["model"] == row["model"])
            & (book.scores["image_id"] == row["image_id"])
            & (book.scores["metric"] == name)
        ]
        assert mine["value"].tolist() == mse(read_image(Path(row[column]))[None], second).tolist()
    kept = [pd.read_parquet(path).attrs for path in (tmp_path / "scores").iterdir()]
    assert {(facts["metric"], facts["reference"]) for facts in kept} == {
        ("mse", "clean"),
        ("mse@attacked", "attacked"),
        ("psnr-registered@attacked", "attacked"),
    }


def test_scores_depend_on_the_reference_that_was_used_and_on_no_other(labels, resources, tmp_path):
    names, folder = ["mse", "mse@attacked"], tmp_path / "scores"
    labels = with_attacked(labels, tmp_path / "attacked")
    score_sets(pair_sets_of_labels(labels), names, resources, folder)
    write_png(torch.zeros(3, 16, 16), Path(labels["attacked"][0]))
    sets = pair_sets_of_labels(labels)
    assert read_scores(sets, names, resources, folder).missing == (
        (next(one for one in sets if one.model == labels["model"][0]).title, "mse@attacked"),
    )


def test_a_set_without_its_attacked_images_is_refused_never_judged_by_the_clean(
    labels, resources, tmp_path
):
    some = with_attacked(labels, tmp_path / "attacked")
    some.loc[some["model"] == MODELS[0], "attacked"] = None
    some.loc[(some["model"] == MODELS[1]) & (some["image_id"] == "002"), "attacked"] = None
    for table, lacking in ((labels, (5, 5, 5)), (some, (5, 1, 0))):
        sets = pair_sets_of_labels(table)
        for _ in range(2):  # computed, then read
            book = score_sets(sets, ["mse@attacked"], resources, tmp_path / "scores")
        for model, n in zip(MODELS[:3], lacking, strict=True):
            (title,) = [one.title for one in sets if one.model == model]
            reason = book.refused.get((title, "mse@attacked"), "")
            assert reason.startswith(f"{n} of 5 images come without the attacked image") == (n > 0)
        assert len(book.facts) == lacking.count(0)
        assert book.missing == ()


def test_labels_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(DataError, match=r"No labels at .*a\.parquet"):
        read_labels(tmp_path / "a.parquet")
    (tmp_path / "a.parquet").write_text("text")
    with pytest.raises(DataError, match="not a readable table"):
        read_labels(tmp_path / "a.parquet")


def test_scores_are_the_metrics_of_the_images(labels, resources, tmp_path):
    book = score_sets(pair_sets_of_labels(labels), ["mse"], resources, tmp_path / "scores")
    row = labels.iloc[7]
    images = [read_image(Path(row[side]))[None] for side in ("original", "reconstruction")]
    mine = book.scores[
        (book.scores["model"] == row["model"]) & (book.scores["image_id"] == row["image_id"])
    ]
    assert mine["value"].tolist() == mse(*images).tolist()
    assert len(book.scores) == 15
    assert book.facts["n"].tolist() == [5, 5, 5]
    assert (book.missing, book.refused, book.unavailable) == ((), {}, {})


def test_what_is_done_is_never_computed_again(labels, resources, tmp_path):
    sets, folder = pair_sets_of_labels(labels), tmp_path / "scores"
    score_sets(sets[:2], ["mse"], resources, folder)
    files = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    reports = []
    score_sets(sets, ["mse", "psnr"], resources, folder, reports.append)
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert len(list(folder.iterdir())) == 6
    done = [report.done for report in reports]
    assert done == sorted(done)
    assert (done[0], *done[-2:]) == (0, 30, 30)
    assert set(done[1:]) <= {15, 20, 25, 30}  # two sets of 5 pairs lack one score, one lacks two
    assert {report.total for report in reports} == {30}


def test_stopping_keeps_what_was_done(labels, resources, tmp_path, monkeypatch):
    monkeypatch.setattr("semsim.metrics.scoring.cores", lambda: 1)  # one set after the other
    sets = pair_sets_of_labels(labels)

    def stop(progress):
        if progress.done == 10:
            raise StopRequestedError("stop")

    with pytest.raises(StopRequestedError):
        score_sets(sets, ["mse"], resources, tmp_path / "scores", stop)
    book = read_scores(sets, ["mse"], resources, tmp_path / "scores")
    assert len(book.missing) == 1


def test_the_files_of_a_set_are_looked_at_once(labels, resources, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "semsim.metrics.scoring.content_hash",
        lambda pairs: seen.append(len(pairs)) or content_hash(pairs),
    )
    sets = pair_sets_of_labels(labels)
    score_sets(sets, ["mse", "psnr"], resources, tmp_path / "scores")
    assert len(seen) == len(sets)


def test_reading_computes_nothing(labels, resources, tmp_path):
    sets = pair_sets_of_labels(labels)
    book = read_scores(sets, ["mse"], resources, tmp_path / "scores")
    assert book.missing == tuple((one.title, "mse") for one in sets)
    assert book.scores.empty
    assert not (tmp_path / "scores").exists()


def test_an_unavailable_metric_is_a_reason_and_no_number(labels, resources, tmp_path):
    sets = pair_sets_of_labels(labels)
    book = score_sets(sets, ["fid", "mse", "recogniser"], resources, tmp_path / "scores")
    assert set(book.unavailable) == {"fid", "recogniser"}
    assert "weights-inception-2015-12-05-6726825d.pth is missing" in book.unavailable["fid"]
    assert set(book.scores["metric"]) == {"mse"}
    assert len(list((tmp_path / "scores").iterdir())) == 3


def test_a_set_that_cannot_be_judged_keeps_its_reason(tmp_path, resources):
    labels = make_labels(tmp_path / "images", models=MODELS[:1], side=8)
    sets = pair_sets_of_labels(labels)
    for _ in range(2):  # computed, then read
        book = score_sets(sets, ["ssim"], resources, tmp_path / "scores")
        assert "at least 11 pixels" in book.refused[sets[0].title, "ssim"]
        assert book.missing == ()
        assert book.scores.empty


def test_weights_that_turn_out_unusable_are_a_reason_too(labels, resources, tmp_path):
    resources.checkpoints.mkdir()
    (resources.checkpoints / "recogniser.safetensors").write_bytes(b"broken")
    sets = pair_sets_of_labels(labels)
    book = score_sets(sets, ["recogniser"], resources, tmp_path / "scores")
    assert "not a readable weight file" in book.refused[sets[0].title, "recogniser"]
    make_classifier(resources.checkpoints / "recogniser.safetensors")
    book = score_sets(sets, ["recogniser"], resources, tmp_path / "scores")
    assert not book.refused


def test_what_only_kept_a_picture_from_being_read_is_tried_again(
    labels, resources, tmp_path, monkeypatch
):
    """The reason tells what to do; who has done it gets scores, and until then the reason."""
    sets, kept = pair_sets_of_labels(labels), tmp_path / "scores"
    monkeypatch.setenv("SEMSIM_MAX_MEGAPIXELS", "0.00001")
    for book in (
        score_sets(sets, ["mse"], resources, kept),
        read_scores(sets, ["mse"], resources, kept),
    ):
        assert "SEMSIM_MAX_MEGAPIXELS" in book.refused[sets[0].title, "mse"]
        assert book.missing == ()
    monkeypatch.delenv("SEMSIM_MAX_MEGAPIXELS")
    assert read_scores(sets, ["mse"], resources, kept).refused  # which computes nothing
    book = score_sets(sets, ["mse"], resources, kept)
    assert (book.refused, len(book.scores)) == ({}, 15)


def test_a_metric_of_sets_has_one_row_and_its_notes(labels, resources, tmp_path):
    make_classifier(resources.checkpoints / "recogniser.safetensors")
    names = ["fd:recogniser", "recogniser"]
    book = score_sets(pair_sets_of_labels(labels), names, resources, tmp_path / "scores")
    distances = book.scores[book.scores["metric"] == "fd:recogniser"]
    assert distances["image_id"].isna().tolist() == [True] * 3
    assert "5 images for 16 feature dimensions" in book.facts["notes"].iloc[0]
    assert len(book.scores) == 3 + 15


@pytest.mark.parametrize("side", ["original", "reconstruction"])
def test_a_network_sees_a_set_in_parts_and_gives_the_same_scores(
    side, labels, resources, tmp_path, monkeypatch
):
    """Of five pairs two are read at a time, and what was read before is let go."""
    make_classifier(resources.checkpoints / "recogniser.safetensors")
    sets, names = pair_sets_of_labels(labels), ["fd:recogniser", "recogniser"]
    whole = score_sets(sets, names, resources, tmp_path / "whole")
    alive, most = [], []
    files = set(labels[side])

    def read(paths):
        images = read_images(paths)
        if str(paths[0]) in files:
            alive.append(weakref.ref(images))
            most.append(sum(len(one) for ref in alive if (one := ref()) is not None))
        return images

    monkeypatch.setattr("semsim.metrics.scoring.read_images", read)
    monkeypatch.setattr("semsim.metrics.scoring.PART", 2)
    told = []
    parts = score_sets(sets, names, resources, tmp_path / "parts", told.append)
    assert any(one.note.endswith("image 3 of 5") for one in told)
    assert all(re.match(r"\d+ of \d+ metrics?, ", one.note) for one in told if "image" in one.note)
    assert parts.refused == whole.refused == {}
    for name in names:
        first, second = (
            book.scores.loc[book.scores["metric"] == name, "value"].to_numpy()
            for book in (parts, whole)
        )
        assert first == pytest.approx(second, abs=1e-8)
    if side == "reconstruction":  # three parts a set and metric, never more than two of them
        assert (len(most), max(most) <= 4) == (18, True)
    else:  # sets share their originals, of which four parts are kept: each is read once a metric
        assert len(most) == 6


def test_parts_are_read_when_they_are_asked_for_and_hold_all_in_order(labels):
    asked = []
    one = pair_sets_of_labels(labels)[0]
    parts = read_parts(one, "clean", lambda paths: asked.extend(paths) or read_images(paths), 2)
    assert asked == []
    assert len(next(parts)) == 2
    assert len(asked) == 2
    assert [len(part) for part in parts] == [2, 1]
    assert [str(path) for path in asked] == one.pairs["original"].tolist()
    assert PART % 128 == 0  # the largest batch of a judge


def test_parts_of_different_sizes_are_refused_by_name_as_a_whole_is(labels):
    one = pair_sets_of_labels(labels)[0]
    for side in ("original", "reconstruction"):
        write_png(torch.zeros(3, 16, 20), Path(one.pairs[side].iloc[4]))
    words = rf"{Path(one.pairs['original'].iloc[4]).name} is 20×16 but .* is 16×16; .* one size"
    for size in (2, 5):
        with pytest.raises(DataError, match=words):
            list(read_parts(one, "clean", read_images, size))


def test_another_classifier_is_another_score(labels, resources, tmp_path):
    path = resources.checkpoints / "recogniser.safetensors"
    sets, folder = pair_sets_of_labels(labels), tmp_path / "scores"
    make_classifier(path)
    score_sets(sets, ["recogniser"], resources, folder)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        make_classifier(path)
    assert len(read_scores(sets, ["recogniser"], resources, folder).missing) == 3


def test_scores_follow_the_content_not_the_place(labels, resources, tmp_path):
    sets, folder = pair_sets_of_labels(labels), tmp_path / "scores"
    score_sets(sets, ["mse"], resources, folder)
    again = pair_sets_of_labels(make_labels(tmp_path / "elsewhere", models=MODELS[:3]))
    assert read_scores(again, ["mse"], resources, folder).missing == ()
    write_png(torch.zeros(3, 16, 16), Path(again[0].pairs["reconstruction"][0]))
    assert read_scores(again, ["mse"], resources, folder).missing == ((again[0].title, "mse"),)


def test_a_kept_score_says_what_made_it(labels, resources, tmp_path):
    score_sets(pair_sets_of_labels(labels)[:1], ["ssim-uniform"], resources, tmp_path / "scores")
    (path,) = (tmp_path / "scores").iterdir()
    facts = pd.read_parquet(path).attrs
    assert facts["settings"] == {"window": "uniform"}
    assert (facts["metric"], facts["n"], facts["weights"]) == ("ssim-uniform", 5, {})
    assert "scikit-image" in facts["versions"]
    json.dumps(facts)


def test_a_broken_file_is_computed_again(labels, resources, tmp_path):
    sets, folder = pair_sets_of_labels(labels)[:1], tmp_path / "scores"
    score_sets(sets, ["mse"], resources, folder)
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes()[:100])
    assert len(read_scores(sets, ["mse"], resources, folder).missing) == 1
    assert score_sets(sets, ["mse"], resources, folder).missing == ()


def test_an_image_that_is_gone_is_named(labels, resources, tmp_path):
    sets = pair_sets_of_labels(labels)
    Path(labels["original"][0]).unlink()
    with pytest.raises(DataError, match=r"No image at .*000\.png"):
        score_sets(sets, ["mse"], resources, tmp_path / "scores")


def test_the_hash_knows_classes_and_order(labels):
    pairs = pair_sets_of_labels(labels)[0].pairs
    other = pairs.assign(class_name="dog")
    assert content_hash(pairs) == content_hash(pairs.copy())
    assert content_hash(pairs) != content_hash(other)
