"""Failures are counted by key, make the next try wait ever longer, and are forgotten in time."""

import anyio
import pytest

from annotation.accounts.attempts import Attempts, Clock, TooManyError, place_of
from annotation.errors import SignInError


class Hours:
    """A clock that goes on only when somebody waits, or when it is put forward."""

    def __init__(self):
        self.time = 0.0
        self.slept = []

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.time += seconds

    @property
    def clock(self):
        return Clock(now=lambda: self.time, sleep=self.sleep)


@pytest.fixture
def hours():
    return Hours()


def attempt(attempts, key="a", *, right=False):
    async def once():
        async with attempts.turn(key):
            if not right:
                raise SignInError("wrong")

    if right:
        return anyio.run(once)
    with pytest.raises(SignInError):
        anyio.run(once)
    return None


def test_each_failure_doubles_the_wait_up_to_the_longest(hours):
    attempts = Attempts(free=2, longest=8, clock=hours.clock)
    for _ in range(8):
        attempt(attempts)
    assert hours.slept == [1, 2, 4, 8, 8, 8]


def test_right_ones_never_wait_and_clear_what_was_before(hours):
    attempts = Attempts(free=2, clock=hours.clock)
    for _ in range(9):
        attempt(attempts, right=True)
    attempt(attempts)
    attempt(attempts, right=True)
    attempt(attempts)
    attempt(attempts)
    assert hours.slept == []


def test_time_that_has_passed_is_not_waited_again(hours):
    attempts = Attempts(free=1, clock=hours.clock)
    attempt(attempts)
    hours.time += 0.25
    attempt(attempts)
    hours.time += 60
    attempt(attempts)
    assert hours.slept == [0.75]


def test_keys_do_not_wait_for_each_other(hours):
    attempts = Attempts(free=1, clock=hours.clock)
    attempt(attempts, "a")
    attempt(attempts, "b")
    assert hours.slept == []


def test_failures_are_forgotten_after_the_time(hours):
    attempts = Attempts(free=1, seconds=100, clock=hours.clock)
    attempt(attempts)
    hours.time += 100
    assert attempts.begin("a") == 0
    assert attempts.begin("a") == 1


def test_tries_at_the_same_moment_are_counted_before_they_fail(hours):
    attempts = Attempts(free=2, clock=hours.clock)
    assert [attempts.begin("a") for _ in range(4)] == [0, 0, 1, 1]
    hours.time += 1
    assert [attempts.begin("a") for _ in range(2)] == [0, 2]


def test_a_crowd_is_refused_and_only_while_it_is_there(hours):
    attempts = Attempts(crowd=2, clock=hours.clock)

    async def crowd():
        async with attempts.turn("a"), attempts.turn("a"):
            async with attempts.turn("b"):
                pass
            with pytest.raises(TooManyError):
                async with attempts.turn("a"):
                    pytest.fail("let in")
        async with attempts.turn("a"):
            return "in"

    assert anyio.run(crowd) == "in"


def test_what_goes_wrong_otherwise_is_no_failure(hours):
    attempts = Attempts(free=1, clock=hours.clock)

    async def break_down():
        async with attempts.turn("a"):
            raise OSError

    for _ in range(3):
        with pytest.raises(OSError):
            anyio.run(break_down)
    assert hours.slept == []


def test_too_many_keys_forget_the_one_that_was_tried_longest_ago(hours, monkeypatch):
    monkeypatch.setattr("annotation.accounts.attempts.MOST_KEYS", 2)
    attempts = Attempts(free=1, clock=hours.clock)
    for key in ("a", "b", "a", "c"):
        attempts.begin(key)
    assert attempts.begin("a") == 1
    assert attempts.begin("c") == 1
    assert attempts.begin("b") == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("testclient", "testclient", True),
        ("", "10.0.0.1", False),
    ],
)
def test_which_addresses_count_as_one(one, other, same):
    assert (place_of(one) == place_of(other)) is same
