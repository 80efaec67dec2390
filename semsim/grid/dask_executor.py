"""One computation on a Dask cluster."""

import asyncio
import contextlib
import queue
import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future as Answer
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from semsim.base.errors import JobError, MissingExtraError, StopRequestedError
from semsim.base.progress import Progress
from semsim.device import keep_freed_memory
from semsim.grid.executor import Keep, Leave, Piece, Standing, answer_of, content_of, share_of
from semsim.grid.machines import check_machines, parcel, workers_within_reach
from semsim.grid.previews import Camera, Preview, Strip, longer

try:
    from distributed import Client, Event, Future, get_worker
except ModuleNotFoundError as error:
    raise MissingExtraError("Work in many processes", "grid") from error

_TICK = 1.0  # seconds between two looks at whether a stop was asked for
_LOOK = 5.0  # seconds between two looks at who works, also while answers come in
_TELL = 0.5  # seconds between two words of one worker
_FORGOTTEN = "The Dask scheduler forgot this run (was it restarted?). Resume goes on."


class DaskRun:
    """State of a run: what is open, and what came in."""

    def __init__(self, client: Client, keep: Keep, leave: Leave, threads: int) -> None:
        self.client, self.keep, self.leave, self.threads = client, keep, leave, threads
        self.id = secrets.token_hex(6)  # two runs on one scheduler share nothing
        self.open: dict[str, tuple[Piece, Future]] = {}
        self._over, self._last = 0, ""
        self._shares: dict[str, float] = {}
        self._strips: dict[str, Strip] = {}
        self._news: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._stop = Event(_stop_name(self.id), client=client)
        self._waiting, self._looked = False, 0.0
        self._look()
        client.subscribe_topic(self.id, lambda event: self._news.put(event[1]))

    def begin(self, pieces: Iterable[Piece]) -> None:
        """Ask the workers for `pieces`."""
        sent: dict[Path | None, Future | None] = {None: None}
        for piece in pieces:
            if piece.key in self.open:
                continue
            if piece.given not in sent:  # a task of its own: any worker that has it may be lost
                name = f"given-{piece.key}-{self.id}"
                sent[piece.given] = self.client.submit(bytes, content_of(piece), key=name)
            self._submit(piece, sent[piece.given])

    def listen(self) -> None:
        """Take in what workers have to say; waits for a second at most."""
        try:
            said = self._news.get(timeout=_TICK)
        except queue.Empty:
            self._look()
            return
        if time.monotonic() - self._looked >= _LOOK:
            self._look()
        self._waiting = False
        with contextlib.suppress(queue.Empty):
            while True:
                self._hear(said)
                said = self._news.get_nowait()

    def standing(self) -> Standing:
        """Return the progress of the run."""
        told = dict(self._shares), dict(self._strips)
        return Standing(self._over, len(self.open), self._last, *told, waiting=self._waiting)

    def end(self) -> None:
        """Leave the cluster as it was found: what still runs is told to stop."""
        with contextlib.suppress(OSError, RuntimeError):  # the cluster itself may be gone
            if self.open:
                self._stop.set()
                self.client.cancel([future for _, future in self.open.values()], force=True)
            self.client.unsubscribe_topic(self.id)

    def _submit(self, piece: Piece, given: Future | None) -> None:
        where = _Where(self.id, piece.key, self.threads, piece.seen)
        opened, content = parcel(_work_there, piece.work, piece.asked, where)
        name = f"{piece.work.__name__}-{piece.key}-{self.id}"
        future = self.client.submit(opened, content, given, key=name, pure=False)
        self.open[piece.key] = replace(piece, asked=()), future  # it may be large
        # On the loop, so that an answer which is lost on its way holds up no other: Dask waits
        # there until another worker has made it anew.
        coming = self.client.gather(future, asynchronous=True)
        answer = asyncio.run_coroutine_threadsafe(coming, self.client.loop.asyncio_loop)
        key = piece.key
        answer.add_done_callback(lambda made: self._news.put({"done": key, "answer": made}))

    def _hear(self, said: dict[str, Any]) -> None:
        """One word of a worker: how far it is, or that it is done."""
        if "done" not in said:
            if said["piece"] in self.open:
                self._shares[said["piece"]] = said["share"]
                if said["sight"] is not None:
                    before = self._strips.get(said["piece"], ())
                    self._strips[said["piece"]] = longer(before, Preview(**said["sight"]))
            return
        if said["done"] not in self.open:
            return  # whatever Dask computed twice is kept once
        piece, future = self.open.pop(said["done"])
        self._shares.pop(piece.key, None)
        self._strips.pop(piece.key, None)
        self._over, self._last = self._over + 1, piece.note
        error = _error_of(said["answer"], future)
        if error is None:
            self.begin(self.keep(piece, said["answer"].result()) or ())
        else:
            self.leave(piece, error)
            check_machines(self.client, piece.work.__module__)

    def _look(self) -> None:
        """Check whether any worker is there; `JobError` where the cluster does not answer."""
        try:
            self._waiting, self._looked = not workers_within_reach(self.client), time.monotonic()
        except OSError as error:
            raise JobError(_FORGOTTEN) from error


def _error_of(answer: Answer[Any], future: Future) -> Exception | None:
    """Return the error of a piece, None where it was done; `JobError` where the cluster failed."""
    if answer.cancelled() or future.status == "cancelled":
        raise JobError(_FORGOTTEN)
    error = answer.exception()
    if isinstance(error, OSError) and future.status != "error":  # of the wire, not of the piece
        raise JobError(_FORGOTTEN) from error
    if error is not None and not isinstance(error, Exception):
        raise error
    return error


class _Where(NamedTuple):
    """Facts for a worker on the run that a piece belongs to."""

    run: str
    piece: str
    threads: int
    seen: bool


def _work_there(
    given: bytes | None, work: Callable[..., Any], asked: tuple[Any, ...], where: _Where
) -> Any:
    """Do a piece of work on a worker, and return its answer."""
    torch.set_num_threads(where.threads)
    keep_freed_memory()
    return answer_of(work, given, asked, _Worker(where))


class _Worker:
    """Tells the run how far a piece is, and ends the work where the run was stopped."""

    def __init__(self, where: _Where) -> None:
        self._where, self._camera = where, Camera()
        self._begun, self._last = time.monotonic(), 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last < _TELL:
            return
        self._last = now
        sight = self._camera(progress) if self._where.seen else None
        told = {
            "piece": self._where.piece,
            "share": share_of(progress),
            "sight": None if sight is None else asdict(sight),
        }
        get_worker().log_event(self._where.run, told)
        # To ask is to wait for the scheduler; a short piece is over before it matters.
        if now - self._begun >= _TELL and self._is_stopped():
            raise StopRequestedError("A stop was asked for.")

    def _is_stopped(self) -> bool:
        """Return whether a stop was asked for; False when cut off from the scheduler."""
        try:
            return bool(Event(_stop_name(self._where.run)).is_set())
        except OSError:
            return False


def _stop_name(run: str) -> str:
    return f"semsim-stop-{run}"
