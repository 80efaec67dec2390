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


def test_a_try_counts_until_it_is_forgiven():
    attempts = Attempts(limit=2, seconds=60)
    assert attempts.begin("a", 0)
    attempts.forgive("a")
    assert [attempts.begin("a", 1) for _ in range(3)] == [True, True, False]
    assert attempts.begin("a", 61)


def test_too_many_keys_forget_the_one_that_failed_longest_ago(monkeypatch):
    monkeypatch.setattr("annotation.attempts.MOST_KEYS", 2)
    attempts = Attempts(limit=1, seconds=60)
    for key in ("a", "b", "a", "c"):
        attempts.fail(key, 0)
    assert [attempts.exhausted(key, 1) for key in "abc"] == [True, False, True]
