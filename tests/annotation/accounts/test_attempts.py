"""Failures are counted by key, make the next try wait ever longer, and are forgotten in time."""

from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from study_factory import DATABASES, fresh_database

from annotation.accounts.attempts import Attempts, Clock, TooManyError, place_of
from annotation.errors import SignInError
from annotation.store import Store
from annotation.store.tables import PasswordTryRow


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


@pytest.fixture(params=DATABASES)
def store(request, tmp_path):
    with fresh_database(request.param, tmp_path) as url, Store(url) as opened:
        yield opened


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


def test_each_failure_doubles_the_wait_up_to_the_longest(hours, store):
    attempts = Attempts(store, "test", free=2, longest=8, clock=hours.clock)
    for _ in range(8):
        attempt(attempts)
    assert hours.slept == [1, 2, 4, 8, 8, 8]


def test_right_ones_never_wait_and_clear_what_was_before(hours, store):
    attempts = Attempts(store, "test", free=2, clock=hours.clock)
    for _ in range(9):
        attempt(attempts, right=True)
    attempt(attempts)
    attempt(attempts, right=True)
    attempt(attempts)
    attempt(attempts)
    assert hours.slept == []


def test_time_that_has_passed_is_not_waited_again(hours, store):
    attempts = Attempts(store, "test", free=1, clock=hours.clock)
    attempt(attempts)
    hours.time += 0.25
    attempt(attempts)
    hours.time += 60
    attempt(attempts)
    assert hours.slept == [0.75]


def test_keys_do_not_wait_for_each_other(hours, store):
    attempts = Attempts(store, "test", free=1, clock=hours.clock)
    attempt(attempts, "a")
    attempt(attempts, "b")
    assert hours.slept == []


def test_failures_are_forgotten_after_the_time(hours, store):
    attempts = Attempts(store, "test", free=1, seconds=100, clock=hours.clock)
    attempt(attempts)
    hours.time += 100
    assert attempts.begin("a") == 0
    assert attempts.begin("a") == 1


def test_tries_at_the_same_moment_are_counted_before_they_fail(hours, store):
    attempts = Attempts(store, "test", free=2, clock=hours.clock)
    assert [attempts.begin("a") for _ in range(4)] == [0, 0, 1, 1]
    hours.time += 1
    assert [attempts.begin("a") for _ in range(2)] == [0, 2]


def test_a_crowd_is_refused_and_only_while_it_is_there(hours, store):
    attempts = Attempts(store, "test", crowd=2, clock=hours.clock)

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


def test_what_goes_wrong_otherwise_is_no_failure(hours, store):
    attempts = Attempts(store, "test", free=1, clock=hours.clock)

    async def break_down():
        async with attempts.turn("a"):
            raise OSError

    for _ in range(3):
        with pytest.raises(OSError):
            anyio.run(break_down)
    assert hours.slept == []


def test_servers_on_one_database_count_together_and_a_restart_forgets_nothing(hours, store):
    one = Attempts(store, "test", free=1, clock=hours.clock)
    assert one.begin("a") == 0
    with Store(store.url) as again:
        other = Attempts(again, "test", free=1, clock=hours.clock)
        assert other.begin("a") == 1
        other.forgive("a")
    assert one.begin("a") == 0


def test_two_servers_at_the_same_moment_let_no_more_through(hours, store):
    with Store(store.url) as second, ThreadPoolExecutor(8) as pool:
        servers = [Attempts(one, "test", free=3, clock=hours.clock) for one in (store, second)]
        waits = list(pool.map(lambda n: servers[n % 2].begin("a"), range(16)))
    assert sorted(waits) == [0, 0, 0] + [1] * 13


def test_what_counts_no_longer_is_deleted_and_no_name_is_kept(hours, store):
    attempts = Attempts(store, "test", seconds=100, clock=hours.clock)

    def rows():
        return store.read(lambda tx: tx.query(PasswordTryRow).all())

    attempts.begin("Ada\n10.0.0.1")
    (row,) = rows()
    assert "Ada" not in row.key_sha256
    assert len(row.key_sha256) == 64
    hours.time += 100
    attempts.begin("Ben")
    assert len(rows()) == 1


def test_other_kinds_of_key_do_not_wait(hours, store):
    Attempts(store, "name", free=1, clock=hours.clock).begin("a")
    assert Attempts(store, "address", free=1, clock=hours.clock).begin("a") == 0


def test_a_clock_put_back_makes_nobody_wait_for_long(hours, store):
    attempts = Attempts(store, "test", free=1, clock=hours.clock)
    attempts.begin("a")
    hours.time -= 50
    assert attempts.begin("a") == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),  # as a proxy may write them
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("testclient", "testclient", True),
        ("", "10.0.0.1", False),
    ],
)
def test_which_addresses_count_as_one(one, other, same):
    assert (place_of(one) == place_of(other)) is same
