"""What is said of a training before it starts."""

import pytest
from made_judged import judged_labels

from semsim.learning import advice
from semsim.learning.advice import expectation
from semsim.learning.splits import HoldOut, count


def test_it_says_how_much_there_is_and_how_sure_the_test_is(tmp_path):
    labels = judged_labels(tmp_path, originals=8)
    said = expectation(count(labels, HoldOut(fraction=0.5)))
    assert said.startswith("4 originals with 16 triplets are less than the paper's smallest study")
    assert "On 4 held-out originals no difference is significant; that takes 6" in said
    many = count(judged_labels(tmp_path / "many", originals=18), HoldOut(fraction=0.5))
    told = expectation(many)
    assert told.endswith("the interval of each difference shows whether chance could make it.")
    undecided = labels.assign(recognisable=True)
    assert expectation(count(undecided, HoldOut())) == ""


@pytest.mark.parametrize(
    ("originals", "triplets", "words"),
    [(4, 16, "are no less than"), (5, 16, "are less than"), (4, 17, "are less than")],
)
def test_both_originals_and_triplets_count(tmp_path, monkeypatch, originals, triplets, words):
    monkeypatch.setattr(advice, "FEW_ORIGINALS", originals)
    monkeypatch.setattr(advice, "FEW_TRIPLETS", triplets)
    counts = count(judged_labels(tmp_path, originals=8), HoldOut(fraction=0.5))
    assert words in expectation(counts)
