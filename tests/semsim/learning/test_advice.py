"""What is said of a training before it starts."""

import pytest
from made_judged import judged_labels

from semsim.learning import PRESETS, advice
from semsim.learning.advice import default_preset, expectation, preset_for
from semsim.learning.splits import HoldOut, count


@pytest.mark.parametrize(
    ("originals", "triplets", "preset"),
    [(24, 310, "mixed"), (49, 9000, "mixed"), (50, 499, "mixed"), (50, 500, "pooled")],
)
def test_the_preset_follows_from_originals_and_triplets(originals, triplets, preset):
    assert default_preset(originals, triplets) == preset
    assert preset in PRESETS


def test_one_sentence_says_what_to_expect_and_how_sure_the_test_is(tmp_path):
    labels = judged_labels(tmp_path, originals=8)
    counts = count(labels, HoldOut(fraction=0.5))
    assert preset_for(counts) == "mixed"
    said = expectation(counts, "mixed", "mixed")
    assert said.startswith("With 4 originals and 16 triplets there is too little")
    assert "on 4 held-out originals no difference can be told from chance, which takes 6" in said
    assert said.count(". ") == 0
    many = count(judged_labels(tmp_path / "many", originals=18), HoldOut(fraction=0.5))
    told = expectation(many, "mixed", "mixed")
    assert told.endswith("the interval of each difference shows whether chance could make it.")
    undecided = labels.assign(recognisable=True)
    assert expectation(count(undecided, HoldOut()), "mixed", "mixed") == ""


@pytest.mark.parametrize(
    ("few", "preset", "loss", "words"),
    [
        (True, "mixed", "mixed", "too little to train a network on, so the preset mixed weighs"),
        (True, "small", "triplet", "network on, but the preset small trains one all the same"),
        (True, "small", "mixed", "network on, but the preset small weighs pixels"),
        (True, "mixed", "pooled", "network on, but the preset mixed trains one all the same"),
        (False, "pooled", "pooled", "study had, so the preset pooled trains a network"),
        (False, "paper", "triplet", "study had, but the preset paper trains a network"),
        (False, "mixed", "mixed", "study had, but the preset mixed weighs pixels"),
    ],
)
def test_what_to_expect_is_said_of_the_preset_that_was_chosen(
    tmp_path, monkeypatch, few, preset, loss, words
):
    if not few:
        monkeypatch.setattr(advice, "FEW_ORIGINALS", 1)
        monkeypatch.setattr(advice, "FEW_TRIPLETS", 1)
    counts = count(judged_labels(tmp_path, originals=8), HoldOut(fraction=0.5))
    assert words in expectation(counts, preset, loss)
