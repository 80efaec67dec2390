import json

import numpy as np
import pytest
from PIL import Image

from semsim.base.errors import DataError
from semsim.base.progress import Progress
from semsim.base.sets.reader import read_set
from semsim.importers.import_folder import copy_set
from semsim.importers.import_plan import Pair, find_sets, labelled_paths, slug


@pytest.fixture
def pair(tmp_path, draw):
    """A pair whose two images are drawn where they are not given."""

    def make(image_id="a", model="one", **changes):
        files = {
            "original": draw(tmp_path / f"o/{image_id}.png", 1),
            "reconstruction": draw(tmp_path / f"{model}/{image_id}.png", 2),
        }
        named = {"attack": "x", "model": model, "image_id": image_id, "class_name": "cat"}
        return Pair(**{**named, **files, **changes})

    return make


def find(pairs, report=lambda progress: None):
    return find_sets(pairs, dataset="d", classes=("cat", "dog"), report=report)


def test_one_set_a_model_in_order_of_name(pair):
    found = find([pair("b"), pair("a", model="two"), pair("a")])
    sets = found.sets
    assert found.unread == ()
    assert [(one.model, [p.image_id for p in one.pairs]) for one in sets] == [
        ("one", ["a", "b"]),
        ("two", ["a"]),
    ]
    assert sets[0].size == (6, 6)
    assert found.counts == {
        "models": 2,
        "originals": 2,
        "reconstructions": 3,
        "failed or missing": 0,
    }


def test_what_cannot_be_judged_stays_as_failed_with_the_reason(pair, tmp_path, draw):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG broken")
    deep = tmp_path / "deep.png"
    Image.fromarray(np.arange(36, dtype=np.uint16).reshape(6, 6) * 999).save(deep)
    wrong = {
        "broken": broken,
        "clear": draw(tmp_path / "clear.png", mode="RGBA"),
        "deep": deep,
        "large": draw(tmp_path / "large.png", size=(6, 8)),
    }
    pairs = [pair("ok"), *(pair(name, reconstruction=path) for name, path in wrong.items())]
    everything = find(pairs)
    (found,), unread = everything.sets, everything.unread
    why = {one.where: one.why for one in unread}
    expected = {
        "broken": "not a readable image",
        "clear": "partly transparent",
        "deep": "expected 8 bits",
        "large": "of different sizes: original 6×6, reconstruction 8×6",
    }
    for name, words in expected.items():
        assert words in why[f"image {name} of one"]
    failed = {p.image_id: p for p in found.pairs if p.error}
    assert failed.keys() == wrong.keys()
    assert all(p.reconstruction is None and p.original is not None for p in failed.values())


def test_each_model_has_a_size_of_its_own(pair, tmp_path, draw):
    def large(image_id, model, both=True):
        files = {"reconstruction": draw(tmp_path / f"8/{model}/{image_id}.png", 3, (8, 8))}
        if both:
            files["original"] = draw(tmp_path / f"8/{image_id}.png", 5, (8, 8))
        return pair(image_id, model, **files)

    enlarged = [large(one, "enlarged", both=False) for one in "ab"]
    found = find([pair("a"), pair("b"), *(large(one, "wide") for one in "cd"), *enlarged])
    assert [(one.model, one.size, one.whole) for one in found.sets] == [
        ("one", (6, 6), 2),
        ("wide", (8, 8), 2),
    ]
    why = "its pictures are of different sizes: original 6×6, reconstruction 8×8"
    assert [str(one) for one in found.unread] == [f"image {one} of enlarged: {why}" for one in "ab"]
    assert found.lost == (f"Nothing of enlarged can be used: {why}.",)
    odd = find([pair("a"), pair("b"), large("c", "one")])
    assert [str(one) for one in odd.unread] == [
        "image c of one: it is 8×8; a set has one size, here 6×6"
    ]
    assert odd.sets[0].pairs[2].original is None


def test_an_original_that_cannot_be_read_fails_its_pair(pair, tmp_path):
    everything = find([pair("a"), pair("b", original=tmp_path / "nothing.png")])
    (found,) = everything.sets
    assert [str(one) for one in everything.unread] == [
        f"image b of one: No image at {tmp_path / 'nothing.png'}."
    ]
    assert found.pairs[1].original is None


def test_a_model_without_any_pair_is_no_set(pair):
    found = find([pair("a"), pair("a", model="two", reconstruction=None, error="missing")])
    assert [one.model for one in found.sets] == ["one"]
    assert [str(one) for one in found.unread] == ["image a of two: missing"]
    assert found.lost == ("Nothing of two can be used: missing.",)


def test_nothing_to_judge_is_an_error(pair, tmp_path):
    with pytest.raises(DataError, match=r"No image has both.* missing"):
        find([pair(reconstruction=None, error="missing")])
    with pytest.raises(DataError, match=r"No image has both.* No image at .*x"):
        find([pair(original=tmp_path / "x", reconstruction=tmp_path / "y")])


@pytest.mark.parametrize("other", ["a_b", "A b"])
def test_models_that_would_share_a_folder_are_refused(pair, other):
    with pytest.raises(DataError, match="would share a folder"):
        find([pair(model="a b"), pair(model=other)])


def test_progress_reaches_its_total(pair):
    seen = []
    find([pair("a"), pair("b")], seen.append)
    assert seen[-1] == Progress(4, 4, "looking at images")


def test_png_is_copied_byte_for_byte_and_jpeg_by_its_pixels(pair, tmp_path, draw):
    jpeg = draw(tmp_path / "j.jpg", 3)
    pairs = [pair("p", attacked=draw(tmp_path / "seen.png", 4)), pair("j", reconstruction=jpeg)]
    pairs += [pair("f", reconstruction=None, error="diverged")]
    (found,) = find(pairs).sets
    copy_set(found, tmp_path / "set", "import/one", {"kind": "test"})
    written = read_set(tmp_path / "set")
    rows = written.manifest.set_index("image_id")
    assert (tmp_path / "set" / rows.loc["p", "original"]).read_bytes() == pairs[
        0
    ].original.read_bytes()
    shown = np.asarray(Image.open(tmp_path / "set" / rows.loc["j", "reconstruction"]))
    np.testing.assert_array_equal(shown, np.asarray(Image.open(jpeg).convert("RGB")))
    assert rows.loc["p", "attacked"] == "attacked/p.png"
    assert rows.loc["f", ["status", "error"]].tolist() == ["failed", "diverged"]
    assert written.pairs["image_id"].tolist() == ["j", "p"]
    run = json.loads((tmp_path / "set/run.json").read_text())
    assert run["import"]["source_formats"] == {"JPEG": 1, "PNG": 5}
    assert "JPEG decoded" in run["import"]["conversion"]
    assert (run["n_ok"], run["n_failed"]) == (2, 1)
    assert run["dataset"] == {"name": "d", "classes": ["cat", "dog"], "size": [6, 6]}


def test_the_record_knows_the_images(pair, tmp_path, draw):
    def digest(name):
        copy_set(find([pair()]).sets[0], tmp_path / name, "n", {})
        return read_set(tmp_path / name).run["import"]["source_sha256"]

    first = digest("x")
    assert digest("y") == first
    drawn = draw(tmp_path / "other.png", 99)
    copy_set(find([pair(reconstruction=drawn)]).sets[0], tmp_path / "z", "n", {})
    assert read_set(tmp_path / "z").run["import"]["source_sha256"] != first


def test_labels_point_to_where_the_images_will_be(pair, tmp_path):
    sets = find([pair("a", model="x/y"), pair("b", model="x/y", original=None, error="gone")]).sets
    copy_set(sets[0], tmp_path / sets[0].folder, "n", {})
    (row,) = labelled_paths(sets)
    assert row == {
        "dataset": "d",
        "attack": "x",
        "model": "x/y",
        "image_id": "a",
        "class_name": "cat",
        "original": "x_y/originals/a.png",
        "reconstruction": "x_y/reconstructions/a.png",
        "attacked": None,
    }
    assert (tmp_path / row["reconstruction"]).is_file()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a/b c", "a_b_c"), ("..", "_"), (".x", "x"), ("rec__3+4", "rec__3+4")]
    + [(name, name) for name in ("模型一", "μοντέλο", "модель", "हिन्दी", "نموذج")]
    + [("Ku\u0308che", "K\u00fcche"), ("型" * 90, "型" * 66)],
)
def test_slugs_are_names_of_folders(text, expected):
    assert slug(text) == expected
