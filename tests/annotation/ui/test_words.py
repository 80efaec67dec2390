from annotation.ui.words import agreeing, counted


def test_counts_have_the_right_words():
    assert [counted(n, "vote") for n in (0, 1, 1200)] == ["0 votes", "1 vote", "1,200 votes"]
    assert counted(1, "is", "are") == "1 is"
    assert [agreeing(n, "has", "have") for n in (0, 1, 2)] == ["have", "has", "have"]
