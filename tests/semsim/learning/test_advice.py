"""What is said of a training before it starts."""

import pytest
from made_judged import judged_labels

from semsim.learning import PRESETS
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
    said = expectation(counts)
    assert said.startswith("With 4 originals and 16 triplets there is too little")
    assert "on 4 held-out originals a difference of AUC below about 0.15" in said
    assert said.count(". ") == 0
    undecided = labels.assign(recognisable=True)
    assert expectation(count(undecided, HoldOut())) == ""
