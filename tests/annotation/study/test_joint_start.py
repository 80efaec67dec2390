"""What `python -m benchmarks.annotation --joint` says: waits by the second, and the worst one."""

from benchmarks.annotation import by_second, print_seconds

CALM = [("join", 0.2, 0.01), ("claim", 0.9, 0.03), ("vote", 1.1, 0.02)]
JAM = [("join", 0.2, 0.01), ("claim", 0.9, 0.03), ("vote", 1.1, 0.4)]


def test_waits_belong_to_the_second_in_which_they_began():
    seconds = by_second(CALM)
    assert list(seconds) == [0, 1]
    assert seconds[0][::2] == (2, 30.0)
    assert seconds[1] == (1, 20.0, 20.0)


def test_the_worst_second_is_the_median_of_the_runs(capsys):
    print_seconds([CALM, JAM, CALM])
    said = capsys.readouterr().out
    assert "worst second, vote  p95   20.0 ms, ≤ 150 ms: met (runs: 20, 400, 20; longest" in said
    print_seconds([JAM, JAM, CALM])
    said = capsys.readouterr().out
    assert "worst second, all   p95  400.0 ms, ≤ 150 ms: **missed**" in said
