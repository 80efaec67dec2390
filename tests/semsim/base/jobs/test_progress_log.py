"""Reports on disk, and the pace they tell."""

import json

import pytest

from semsim.base.jobs.folders import (
    ProgressWriter,
    TimedProgress,
    read_end,
    read_recent,
    seconds_left,
)
from semsim.base.progress import Progress


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def path(tmp_path):
    return tmp_path / "progress.jsonl"


def write(path, reports, seconds_between=1.0, clock_moves=()):
    """The clock on the wall is also moved by each of `clock_moves` after the report at its place.

    clock_moves: report → seconds. The steady clock goes on as if nothing had been.
    """
    wall, steady = Clock(), Clock()
    with open(path, "a+b") as file:
        writer = ProgressWriter(file, wall, steady)
        for place, report in enumerate(reports):
            writer(report)
            steady.now += seconds_between
            wall.now += seconds_between + dict(clock_moves).get(place, 0.0)


def test_a_report_comes_back_as_it_was(path):
    write(path, [Progress(3, 10, "épreuve", {"loss": 0.25})])
    assert read_recent(path) == [TimedProgress(3, 10, "épreuve", {"loss": 0.25}, at=100.0)]


def test_no_file_is_no_reports(path):
    assert read_recent(path) == []


def test_reports_of_one_sort_in_quick_succession_are_thinned(path):
    write(path, [Progress(i, 1000, "epoch 1", {"loss": i}) for i in range(100)], 0.01)
    kept = [point.done for point in read_recent(path)]
    assert kept == [0, 20, 40, 60, 80]


def test_a_report_that_says_something_new_is_always_kept(path):
    reports = [
        Progress(1, 9, "epoch 1", {"loss": 1}),
        Progress(2, 9, "epoch 1", {"loss": 1}),
        Progress(2, 9, "epoch 1", {"loss": 1, "d_plus": 2}),
        Progress(3, 9, "epoch 2", {"loss": 1}),
        Progress(8, 9, "epoch 2", {"loss": 1}),
        Progress(9, 9, "epoch 2", {"loss": 1}),
    ]
    write(path, reports, 0.001)
    assert [point.done for point in read_recent(path)] == [1, 2, 3, 9]
    assert [len(point.values) for point in read_recent(path)] == [1, 2, 1, 1]


@pytest.mark.parametrize("hour", [3600, -3600])
def test_a_clock_set_an_hour_back_or_forth_loses_no_report(path, hour):
    reports = [Progress(i, 1000, "epoch 1") for i in range(10)]
    write(path, reports, clock_moves={4: hour})
    kept = read_recent(path)
    assert [point.done for point in kept] == list(range(10))
    assert seconds_left(kept) == pytest.approx(991)


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_half_written_last_line_loses_only_itself(path, cut):
    write(path, [Progress(1, 9), Progress(2, 9)])
    path.write_bytes(path.read_bytes()[:-cut])
    assert [point.done for point in read_recent(path)] in ([1], [1, 2])
    write(path, [Progress(3, 9)])
    assert [point.done for point in read_recent(path)] in ([1, 3], [1, 2, 3])


def test_lines_that_are_not_reports_are_passed_over(path):
    wrong = [
        *("[1]", '{"other": 3}', "7", '{"done"', '{"done": "x", "total": 2}', "[" * 10_000),
        *('{"done": 1, "total": null}', '{"done": 1, "total": 2, "at": "noon"}'),
        *('{"done": 1, "total": 2, "note": 7}', '{"done": 1, "total": 2, "values": [1]}'),
        *('{"done": NaN, "total": 2}', '{"done": 1, "total": 2, "values": {"loss": "x"}}'),
    ]
    path.write_text("\n".join(['{"done": 1, "total": 2}', *wrong]) + "\n")
    assert [point.done for point in read_recent(path)] == [1]


def test_the_recent_end_is_the_end(path):
    line = json.dumps({"done": 0, "total": 9, "note": "x" * 1000})
    path.write_text("".join(line.replace("0", str(i), 1) + "\n" for i in range(500)))
    recent = read_recent(path)
    assert [point.note[:3] for point in recent] == ["xxx"] * len(recent)
    assert recent[-1].done == 499
    assert 10 < len(recent) < 100
    assert len(read_end(path, 5)) == 5


def points(*done_at, total=100):
    return [TimedProgress(done, total, at=at) for done, at in done_at]


def test_time_left_follows_the_pace():
    assert seconds_left(points((0, 0), (10, 5), (20, 10))) == pytest.approx(40)


def test_time_left_follows_the_recent_pace_only():
    slow_then_fast = points((0, 0), (1, 1000), (11, 1010), (21, 1020))
    assert seconds_left(slow_then_fast) == pytest.approx(79)


def test_time_left_is_unknown_before_a_second_report():
    assert seconds_left([]) is None
    assert seconds_left(points((5, 0))) is None
    assert seconds_left(points((5, 0), (5, 9))) is None


def test_time_left_counts_from_the_first_step_and_needs_some_seconds():
    reading = [(0, 0), (0, 50)]  # libraries
    assert seconds_left(points(*reading, (1, 51), (2, 52))) is None
    assert seconds_left(points(*reading, (1, 51), (9, 55))) == pytest.approx(91 / 2)


def test_steps_that_say_nothing_of_those_left_give_no_time(path):
    write(path, [Progress(n, 100, "training", paced=False) for n in range(9)])
    trained = read_recent(path)
    assert not any(one.paced for one in trained)
    assert seconds_left(trained) is None
    attacked = points((10, 110), (11, 111), (15, 115))
    assert seconds_left([*trained, *attacked]) == pytest.approx(85)


def test_what_comes_after_the_last_step_has_no_time_left_that_is_known():
    assert seconds_left(points((0, 0), (90, 2), (100, 3))) is None
