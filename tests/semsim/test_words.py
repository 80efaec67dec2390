import pytest

from semsim.words import agreeing, counted


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
