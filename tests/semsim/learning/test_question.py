"""The experiment of `benchmarks.question`: what is chosen by is never what is judged by."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.question import (
    RECIPES,
    Candidate,
    Question,
    architectures,
    candidates,
    choose,
    halves_of,
    opened,
    opened_sides,
    table,
)
from semsim.base.errors import DataError
from semsim.learning.ablations_run import Workplace

ORIGINALS = 12


@pytest.fixture
def question(material, tmp_path):
    place = Workplace(
        checkpoints=tmp_path / "none",
        scores=tmp_path / "scores",
        device="cpu",
        metrics=("mse", "psnr", "ssim"),
    )
    return Question(
        material=material, place=place, out=tmp_path / "out", recogniser="recogniser", seeds=2
    )


def test_no_original_is_opened_that_was_chosen_by_and_none_is_on_both_sides(material):
    labels = material.labels
    first, original = halves_of(labels)
    assert len(set(original[first])) == len(set(original[~first])) == 6
    again, _ = halves_of(labels.sample(frac=1, random_state=3).sort_index())
    assert np.array_equal(first, again)
    for architecture in architectures(labels):
        for seed in range(5):
            sides = opened_sides(labels, architecture, seed, None)
            tested, learned = (set(side["image_id"]) for side in (sides.test, sides.train))
            assert not tested & set(labels["image_id"][first])
            assert not tested & learned
            assert len(tested) == 3
            assert set(sides.test["model"].str.partition("/")[0]) == {architecture}
            assert architecture not in set(sides.train["model"].str.partition("/")[0])


def test_one_architecture_cannot_be_left_out(material):
    labels = material.labels
    with pytest.raises(DataError, match="only one"):
        architectures(labels[labels["model"].str.startswith("net0")])


def test_every_recipe_is_tried_from_every_start_and_imagenet_only_if_it_is_here(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    found = {one.name for one in candidates("resnet18", {"mine": "/weights"})}
    recipes = ("triplet", "contrastive", "pooled")
    assert found == {f"{recipe}-{start}" for recipe in recipes for start in ("random", "mine")}


def test_it_is_answered_from_end_to_end(question, monkeypatch):
    monkeypatch.setitem(RECIPES, "triplet", replace(RECIPES["triplet"], epochs=1, batch_size=8))
    offered = [Candidate(backbone="lenet", recipe="triplet", start="random", weights="scratch")]
    chosen, rows = choose(question, offered)
    assert chosen == offered[0]
    assert [row[0] for row in rows] == ["triplet-random"]
    found = opened(question, chosen)
    assert {(row["architecture"], row["seed"]) for row in found} == {
        (architecture, seed) for architecture in ("net0", "net1") for seed in (0, 1)
    }
    for row in found:
        names = {one["metric"] for one in row["held_out"]["metrics"]}
        assert {"semsim:semsim", "semsim:semsim.start", "shuffled"} <= names
    text = table(found, "recogniser")
    assert "net0 left out:" in text
    assert "ahead of (b) its initial weights in" in text
    assert "target 80%" in text
    assert "not compared with (c) the reference classifier: it has no AUC here" in text
