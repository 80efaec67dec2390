"""What a reference classifier recognises, with the demo's own: its sets are of its classes."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from semsim.base.sets.reader import read_set, set_folders
from semsim.base.storage.places import DEMO
from semsim.datasets.symbols import Symbols
from semsim.images import read_image
from semsim.metrics import Resources
from semsim.metrics.reference_classifier import Looked, learned_from, recognition, recognition_in
from semsim.sets.recognition import NOT_YET, recognised_words


@pytest.fixture
def resources(tmp_path: Path) -> Resources:
    return Resources(checkpoints=tmp_path)  # so that the demo's recogniser is the only one


@pytest.fixture(scope="module")
def folder() -> Path:
    return set_folders([DEMO / "sets"])[0]


def test_the_originals_are_recognised_and_grey_pictures_are_not(
    folder: Path, resources: Resources
) -> None:
    found = recognition({"one": folder}, resources)
    assert (found["classifier"], found["why"]) == ("recogniser", "")
    (counts,) = found["sets"].values()
    assert counts["over"] == len(read_set(folder).manifest)
    assert max(counts["recognised"], counts["grey"]) < counts["originals"] <= counts["over"]
    assert counts["originals"] > 0.9 * counts["over"]
    assert counts["grey"] < 0.2 * counts["over"]
    words = recognised_words(found, ["one"])
    assert words.startswith(f"A reference classifier recognises {counts['recognised']} of ")


def test_where_no_classifier_fits_that_is_said(folder: Path, resources: Resources) -> None:
    found = recognition({"one": folder}, replace(resources, classifiers=()))
    assert found["sets"] == {}
    words = recognised_words(found, ["one"])
    assert words.startswith("What can be recognised is not known: no classifier here knows these")
    assert "distractors train" in words
    assert recognised_words(None, ["one"]) == NOT_YET


def test_where_no_classifier_fits_one_is_made_and_its_share_is_told(
    folder: Path, resources: Resources
) -> None:
    shown = set(read_set(folder).manifest["class_name"])
    train, test = (
        split.pick([n for n, of in enumerate(split.labels.tolist()) if split.classes[of] in shown])
        for split in map(Symbols(train_per_class=16, test_per_class=4), ("train", "test"))
    )
    alone = replace(resources, classifiers=())
    found = recognition({"one": folder}, alone, partial(learned_from, train, test))
    (counts,) = found["sets"].values()
    assert counts["grey"] <= 2 < counts["originals"]
    assert 0.5 < found["right"] <= 1
    said = recognised_words(found, ["one"])
    assert said.startswith(
        f"A reference classifier that learned other pictures here ({found['right']:.0%} right) "
    )
    at_hand = recognition({"one": folder}, resources, lambda: pytest.fail("one at hand fits"))
    assert (at_hand["classifier"], at_hand["right"]) == ("recogniser", None)


def test_one_that_was_made_and_names_too_few_is_no_reference(
    folder: Path, resources: Resources
) -> None:
    symbols = Symbols(train_per_class=1, test_per_class=1)
    grey = symbols("train")
    grey = replace(grey, images=torch.full_like(grey.images, 0.5))
    alone = replace(resources, classifiers=())
    found = recognition({"one": folder}, alone, partial(learned_from, grey, grey))
    assert found["sets"] == {}
    assert "originals only" in recognised_words(found, ["one"])


def test_pictures_at_hand_are_counted_with_the_failed_attacks(
    folder: Path, resources: Resources
) -> None:
    pair = read_set(folder).pairs.iloc[0]
    original = read_image(Path(pair["original"]))
    one = Looked(
        name="one",
        over=3,
        classes=[pair["class_name"]] * 3,
        originals=torch.stack([original] * 3),
        done_classes=[pair["class_name"]] * 2,
        pictures=torch.stack([original, torch.full_like(original, 0.5)]),
    )
    found = recognition_in([one], resources)
    assert found["sets"] == {"one": {"recognised": 1, "grey": 0, "originals": 3, "over": 3}}
    strange = one._replace(classes=["no such class"] * 3, done_classes=["no such class"] * 2)
    assert "no classifier here knows" in recognition_in([strange], resources)["why"]
