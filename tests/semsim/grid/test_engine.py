"""One engine for work here and on a cluster: what follows, what is told, what ends it."""

from pathlib import Path

import pytest
from distributed import Client
from made_campaign import one_thread_cluster

from semsim.errors import SettingsError, StopRequestedError
from semsim.grid.engine import Piece, compute
from semsim.progress import Progress


def doubled(number: int, *, report) -> int:
    report(Progress(1, 2))
    if number < 0:
        raise SettingsError(f"{number} is below zero")
    return 2 * number


def measured(content: bytes, times: int, *, report) -> int:
    del report
    return times * len(content)


@pytest.fixture(scope="module", params=["here", "cluster"])
def client(request):
    if request.param == "here":
        yield None
        return
    with one_thread_cluster() as cluster, Client(cluster, set_as_default=False) as opened:
        yield opened


def piece(number, **more):
    return Piece(key=str(number), work=doubled, asked=(number,), note=f"n{number}", **more)


def silent(standing):
    """Told to nobody."""


def test_what_follows_from_an_answer_is_done_too(client):
    found, told = {}, []

    def keep(made, answer):
        found[made.key] = answer
        return [piece(answer)] if answer < 8 else ()

    compute([piece(1), piece(3)], keep, told.append, client)
    assert found == {"1": 2, "2": 4, "4": 8, "3": 6, "6": 12}
    assert (told[-1].over, told[-1].open, told[-1].done) == (5, 0, 5)
    assert told[-1].last in {"n4", "n6"}
    assert [one.over for one in told] == sorted(one.over for one in told)
    assert any(one.shares == {"1": 0.5} for one in told) or client is not None


def test_a_file_comes_before_what_is_asked(client, tmp_path: Path):
    (tmp_path / "w").write_bytes(b"abc")
    pieces = [
        Piece(key=str(n), work=measured, asked=(n,), given=tmp_path / "w") for n in range(1, 4)
    ]
    found = []
    compute(pieces, lambda made, answer: found.append(answer), silent, client)
    assert sorted(found) == [3, 6, 9]


def test_the_first_failure_ends_it_unless_the_caller_says_more(client):
    with pytest.raises(SettingsError, match="-1 is below zero"):
        compute([piece(-1)], lambda made, answer: None, silent, client)
    left, kept = [], []
    compute(
        [piece(-1), piece(2)],
        lambda made, answer: kept.append(answer),
        silent,
        client,
        leave=lambda made, error: left.append((made.key, str(error))),
    )
    assert (kept, left) == ([4], [("-1", "-1 is below zero")])


def test_a_stop_ends_it(client):
    def stop(standing):
        raise StopRequestedError("asked")

    with pytest.raises(StopRequestedError):
        compute([piece(1)], lambda made, answer: None, stop, client)
