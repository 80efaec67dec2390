"""Failures are counted per caller and forgotten in time."""

from annotation.attempts import Attempts


def test_the_limit_is_reached_exactly():
    attempts = Attempts(limit=3, seconds=60)
    for second in range(3):
        assert not attempts.exhausted("a", second)
        attempts.fail("a", second)
    assert attempts.exhausted("a", 3)


def test_callers_do_not_wait_for_each_other():
    attempts = Attempts(limit=1, seconds=60)
    attempts.fail("a", 0)
    assert attempts.exhausted("a", 1)
    assert not attempts.exhausted("b", 1)


def test_a_failure_is_forgotten_after_the_time():
    attempts = Attempts(limit=1, seconds=60)
    attempts.fail("a", 0)
    assert attempts.exhausted("a", 59.9)
    assert not attempts.exhausted("a", 60)
