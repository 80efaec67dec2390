import pytest

from semsim.base.words import agreeing, counted, words_of_test


@pytest.mark.parametrize(
    ("n", "models", "studies", "verb"),
    [
        (0, "0 models", "0 studies", "have"),
        (1, "1 model", "1 study", "has"),
        (1200, "1,200 models", "1,200 studies", "have"),
    ],
)
def test_counts_have_the_right_words(n, models, studies, verb):
    assert counted(n, "model") == models
    assert counted(n, "study", "studies") == studies
    assert agreeing(n, "has", "have") == verb


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"accuracy": 0.71, "chance": 0.02, "at_chance": False}, "71% right (chance 2%)"),
        ({"accuracy": 0.03, "chance": 0.02, "at_chance": True}, "3% right: at chance (2%)"),
        ({"accuracy": 0.996, "chance": 0.005, "at_chance": False}, "99.6% right (chance 0.5%)"),
        ({"accuracy": 1.0, "chance": 0.001, "at_chance": False}, "100% right (chance 0.1%)"),
        ({"accuracy": 0.0, "chance": 0.1, "at_chance": True}, "0% right: at chance (10%)"),
        (
            {"accuracy": 0.5, "n_classes": 10, "chance": 0.1028, "at_chance": False},
            "50% right (chance 10%)",
        ),
        (
            {"accuracy": 0.97, "n_classes": 2, "chance": 0.92, "at_chance": False},
            "97% right (chance 92%, the commonest class)",
        ),
        ({"accuracy": 0.5}, "50% right (chance not kept)"),
        ({"accuracy": 0.5, "n_classes": 10}, "50% right (chance not kept)"),
        (
            {"accuracy": 0.5, "epsilon": 8.1264, "delta": 1e-5},
            "50% right (chance not kept), ε = 8.13 at δ = 1e-05",
        ),
        (
            {"accuracy": 0.5, "epsilon": 1234.5, "delta": 1e-6},
            "50% right (chance not kept), ε = 1,234 at δ = 1e-06",
        ),
        (
            {"accuracy": 0.5, "epsilon": None, "delta": 1e-5},
            "50% right (chance not kept), ε = ∞ at δ = 1e-05",
        ),
        ({}, "not kept"),
        (None, "not kept"),
        ("cnn4", "not kept"),
    ],
)
def test_a_test_is_told_as_far_as_it_was_kept(facts, words):
    assert words_of_test(facts) == words
