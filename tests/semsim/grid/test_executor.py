"""One engine for work here and on a cluster: what follows, what is told, what ends it."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from distributed import Client, Event
from distributed.comm import CommClosedError
from made_campaign import one_thread_cluster

from semsim.base.errors import (
    AttackFailedError,
    CheckpointError,
    DataError,
    PictureError,
    SettingsError,
    StopRequestedError,
)
from semsim.base.progress import Look, Progress
from semsim.grid.executor import Piece, compute, of_the_machine


def doubled(number: int, *, report) -> int:
    report(Progress(1, 2))
    if number < 0:
        raise SettingsError(f"{number} is below zero")
    return 2 * number


def drawn(until: str, *, report) -> int:
    """Shows a picture until there is a file at `until`; returns how often it was asked for."""
    asked = []

    def picture():
        asked.append(1)
        return np.zeros((4, 4, 3), np.uint8)

    while not Path(until).exists():
        report(Progress(1, 2, look=Look(place=0, share=0.5, picture=picture)))
    return len(asked)


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


@pytest.mark.parametrize("seen", [True, False])
def test_what_is_made_is_seen_where_somebody_wants_to_see_it(client, tmp_path, seen):
    end, strips, found = tmp_path / "end", [], []

    def tell(standing):
        strips.append(standing.strips.get("1", ()))
        if strips[-1] or (standing.shares and not seen):
            end.touch()

    work = Piece(key="1", work=drawn, asked=(str(end),), seen=seen)
    compute([work], lambda made, answer: found.append(answer), tell, client)
    assert found == [int(seen)]
    assert strips[-1] == ()  # it is over
    pictures = [sight for strip in strips for sight in strip]
    assert {(one.place, one.share) for one in pictures} == ({(0, 0.5)} if seen else set())


def test_a_stop_ends_it(client):
    def stop(standing):
        raise StopRequestedError("asked")

    with pytest.raises(StopRequestedError):
        compute([piece(1)], lambda made, answer: None, stop, client)


def test_who_cannot_ask_whether_to_stop_works_on(client, tmp_path, monkeypatch):
    """As a worker that is cut off from the scheduler until after its answer."""
    end = tmp_path / "end"

    def cut_off(event):
        end.touch()
        raise OSError("Timed out trying to connect to tcp://10.0.0.1:8786")

    if client is None:
        end.touch()
    monkeypatch.setattr(Event, "is_set", cut_off)
    found = []
    work = Piece(key="1", work=drawn, asked=(str(end),))
    compute([work], lambda made, answer: found.append(answer), silent, client)
    assert found == [0]


MACHINE = [
    ModuleNotFoundError("No module named 'semsim'"),
    MemoryError(),
    OSError(28, "No space left on device"),
    PermissionError(13, "Permission denied", "/data"),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("CUDA error: device-side assert triggered"),
    pickle.UnpicklingError("invalid load key"),
    DataError("No folder /data/cats. Expected <root>/<class>/<image>."),
    CommClosedError("the scheduler went away"),
    PictureError("No image at /data/cats/1.png."),
    CheckpointError("a.part belongs to a training with other settings or images."),
]
COMPUTED = [
    SettingsError("The training diverged: in epoch 2 the loss is nan."),
    AttackFailedError("The objective became nan at step 3 of 9."),
    IndexError("Target 10000 is out of bounds."),
    RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
    ZeroDivisionError("division by zero"),
]


@pytest.mark.parametrize("error", MACHINE, ids=repr)
def test_a_machine_that_could_not(error):
    assert of_the_machine(error)


@pytest.mark.parametrize("error", COMPUTED, ids=repr)
def test_an_attack_that_said_so(error):
    assert not of_the_machine(error)


def test_the_cause_of_an_error_counts():
    error = RuntimeError("The loader stopped.")
    error.__cause__ = OSError(5, "Input/output error")
    assert of_the_machine(error)
