import math

import pytest
from torchmetrics.functional.text import bleu_score

from semsim.papers.sentences import bleu, sentences, words_right


def test_words_count_at_their_place_only():
    originals = [("a", "girl", "sleeps"), ("the", "man", "runs")]
    found = [("a", "sleeps", "girl", "x"), ("the", "man")]
    assert words_right(originals, found) == pytest.approx(3 / 6)
    assert words_right(originals, found, {"girl", "man", "runs"}) == pytest.approx(1 / 3)
    assert math.isnan(words_right(originals, found, {"nobody"}))


@pytest.mark.parametrize("shift", [1, 2, 7])
def test_bleu_is_what_another_library_has(shift):
    """Each sentence against a mixture of itself and another, so that some of it is right."""
    originals = [pair.english for pair in sentences(60, 4)]
    found = [
        (*one[:5], *originals[(n + shift) % 60][5:]) if n % 3 else one
        for n, one in enumerate(originals)
    ]
    theirs = bleu_score([" ".join(one) for one in found], [[" ".join(one)] for one in originals])
    assert 0.3 < bleu(originals, found) < 1
    assert bleu(originals, found) == pytest.approx(theirs.item(), abs=1e-5)


def test_short_answers_are_punished_and_nothing_right_is_nothing():
    whole = [("a", "b", "c", "d", "e", "f", "g", "h")]
    assert bleu(whole, whole) == pytest.approx(1)
    assert bleu(whole, [whole[0][:4]]) == pytest.approx(math.exp(1 - 8 / 4))
    assert bleu(whole, [("x", "y", "z", "w", "v")]) == 0
    assert bleu(whole, [()]) == 0
