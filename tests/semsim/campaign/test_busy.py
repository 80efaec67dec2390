"""What `python -m benchmarks.campaign` calls busy."""

import pytest

from benchmarks.campaign import Course


def test_workers_that_compute_half_of_the_time_are_half_busy_and_it_is_told_when():
    course = Course(looks=[(10.0, 3.0), (15.0, 13.0), (20.0, 13.0)])
    assert course.seconds == 10
    assert course.busy(2) == pytest.approx(50)
    assert course.tenths(2) == pytest.approx([100] * 5 + [0] * 5)
