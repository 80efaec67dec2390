"""The answer of an experiment in split inference, in words."""

import pytest
from made_splits import GUESSES, row

from semsim.base.words import jury_words
from semsim.sets.no_attack_baseline import Count
from semsim.sets.recognition import STATISTIC
from semsim.systems.split.summary import answer_words, verdict_words


def test_the_verdict_says_from_what_the_server_still_gets_pictures():
    rows = [
        row("none", 9),
        row("single", 6),
        row("ensembler", 1, 0.2),
        row("dr-single", 0, 0.1, valid=False),
    ]
    words = verdict_words(rows)
    assert words.startswith(
        f"{STATISTIC}without a defence it is {Count(9, 0, 10, 2).words} (SSIM 0.40, PSNR 12.0 dB)."
    )
    assert "clearer on most of them under ensembler (1 of 10; SSIM 0.20, PSNR 12.0 dB)." in words
    assert "Most are still clearer under single (6 of 10;" in words
    assert "dr-single cannot be judged" in words
    assert "needs 3 runs" not in words
    assert "needs 3 runs" in verdict_words([row("none", 9, n=2)])


@pytest.mark.parametrize(("right", "warned"), [(0.1, True), (0.27, True), (0.29, False)])
def test_a_network_that_learned_little_is_said_before_the_answer(right, warned):
    """Kappa of 0.2 against a guesser among ten."""
    result = {
        "summary": [row("none", 9) | {"accuracy": right}, row("single", 9) | {"accuracy": 0.0}],
        "baselines": GUESSES,
    }
    words = " ".join(answer_words(result))
    assert words.endswith(verdict_words(result["summary"]))
    assert words.startswith("Not trained enough to be judged") == warned
    assert (f"the undefended network has {right:.0%} right (chance 10%)" in words) == warned


def test_what_a_classifier_recognises_leads_with_its_controls():
    rows = [
        row("none", 9, n=1, recognised=0.6),
        row("single", 6, n=1, recognised=0.2),
        row("ensembler", 6, n=2, recognised=0.2),
    ]
    lead, rest = answer_words({"summary": rows, "baselines": GUESSES})
    assert lead == (
        "A reference classifier recognises 60% [28, 85] of pictures without a defence, 20% [4, 56] "
        "of pictures under single and 20% [no interval: 5 originals, fewer than 6] of pictures "
        "under ensembler (controls: 10% of grey pictures, 95% of originals). "
    ) + jury_words("classifier")
    assert rest == verdict_words(rows)


@pytest.mark.parametrize("clearer", [0, 5])
def test_an_attack_that_fails_on_the_undefended_system_says_nothing_of_a_defence(clearer):
    """However high its SSIM is: it must beat the guesses on most pictures."""
    words = verdict_words([row("none", clearer, 0.6, 20.0), row("single", 0)])
    assert words.startswith(f"{STATISTIC}the attacks failed on the undefended system")
    assert Count(clearer, 0, 10, 2).words in words
    assert words.endswith("Nothing can be said of a defence.")
    assert "nothing can be said" in verdict_words([row("single", 9)])


def test_a_defence_counts_by_the_strongest_attack_a_server_can_make():
    rows = [row("none", 9), row("single", 0, 0.5), row("single", 8, attack="adaptive-aligned")]
    assert "still clearer under single" in verdict_words(rows)
    for unable in ({"attack": "oracle"}, {"attack": "one-body", "choice": "best SSIM"}):
        rows[2] = row("single", 8, **unable)
        assert "clearer on most of them under single" in verdict_words(rows)


def test_small_pictures_are_judged_without_ssim():
    rows = [row("none", 9, None, 20.0), row("single", 1, None, 11.0)]
    assert "under single (1 of 10; PSNR 11.0 dB)" in verdict_words(rows)
