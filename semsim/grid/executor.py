"""Pieces of work, done here or by the workers of a Dask cluster: they compute, this process keeps.

An answer is kept before the next one is looked at, so that a run that is stopped or killed loses
only what was being computed. Dask gives the work of a worker that dies to another one. Nothing here
decides a result.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from semsim.base.errors import StopRequestedError
from semsim.base.progress import Progress, Report, silent
from semsim.grid.previews import Camera, Strip, longer

if TYPE_CHECKING:
    from semsim.grid.machines import Client


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A piece of work: `work(*asked, report=…)`.

    Attributes:
        key: Of what it makes; of two pieces with one key one is done.
        work: A function of a module; it and what is asked are pickled.
        given: A file of this machine whose content comes before what is asked, and which a worker
            gets once for many pieces.
        note: What it is, for people.
        seen: Whether a user wants to see what it makes while it is made.
    """

    key: str
    work: Callable[..., Any]
    asked: tuple[Any, ...] = ()
    given: Path | None = None
    note: str = ""
    seen: bool = False


@dataclass(frozen=True)
class Standing:
    """Progress of a computation.

    Attributes:
        over: Pieces that are done with.
        open: Pieces that are not.
        last: The note of the one that was done with last.
        shares: How much is done of each piece under way, 0 to 1, by its key.
        strips: What is seen of those that are `seen`.
        waiting: There is no worker.
    """

    over: int = 0
    open: int = 0
    last: str = ""
    shares: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    strips: Mapping[str, Strip] = field(default_factory=lambda: MappingProxyType({}))
    waiting: bool = False

    @property
    def done(self) -> float:
        """Pieces done, those under way in part."""
        return self.over + sum(self.shares.values())


Keep = Callable[[Piece, Any], Iterable[Piece] | None]
Leave = Callable[[Piece, Exception], None]
Tell = Callable[[Standing], None]


def raised(piece: Piece, error: Exception) -> None:
    """Let what a piece could not do end the computation."""
    raise error


def compute(
    pieces: Iterable[Piece],
    keep: Keep,
    tell: Tell,
    client: "Client | None" = None,
    *,
    leave: Leave = raised,
    threads: int = 1,
) -> None:
    """Do all `pieces` and those that follow from them.

    Args:
        keep: Gets a piece and its answer, in this process; returns pieces that can begin now.
        tell: Called as it goes, once a second at least; what it raises ends the computation.
        client: Of a cluster, see `connect`; None does one piece after the other in this process.
        leave: Gets a piece that was not done and why.
        threads: Of each worker.

    Raises:
        JobError: Where the cluster went away or a worker cannot do the work.
    """
    if client is None:
        _compute_here(pieces, keep, tell, leave)
        return
    from semsim.grid.dask_executor import DaskRun  # with Dask, which takes a second

    run = DaskRun(client, keep, leave, threads)
    try:
        run.begin(pieces)
        tell(run.standing())
        while run.open:
            run.listen()
            tell(run.standing())
    finally:
        run.end()


def spread(
    pieces: Sequence[Piece],
    keep: Keep,
    report: Report,
    workers: int,
    scheduler: str = "",
    *,
    ready: int = 0,
) -> None:
    """`compute` by so many processes that share this machine's cores; one is this process.

    Args:
        report: Told in hundredths of a piece, those under way in part.
        scheduler: Address of a Dask scheduler whose workers do it instead.
        ready: Pieces that were done before. Raises as `compute`.
    """
    total = 100 * max(1, ready + len(pieces))

    def tell(standing: Standing) -> None:
        report(Progress(round(100 * (ready + standing.done)), total, standing.last))

    if not pieces or (not scheduler and min(workers, len(pieces)) <= 1):
        compute(pieces, keep, tell)
        return
    from semsim.grid.machines import connect, cores_for_each

    needs = pieces[0].work.__module__
    threads = cores_for_each(workers, scheduler)
    with connect(scheduler, min(workers, len(pieces)), needs=needs) as client:
        compute(pieces, keep, tell, client, threads=threads)


def make_files(
    pieces: Sequence[Piece], workers: int = 1, report: Report = silent, scheduler: str = ""
) -> None:
    """`spread` of those pieces whose file is not there: each writes, last of all, its key.

    The first failure ends the computation; what was done stays.
    """
    missing = [piece for piece in pieces if not Path(piece.key).exists()]
    ready = len(pieces) - len(missing)
    spread(missing, lambda *_: None, report, workers, scheduler, ready=ready)


def _compute_here(pieces: Iterable[Piece], keep: Keep, tell: Tell, leave: Leave) -> None:
    waiting, standing = deque(pieces), Standing()
    while waiting:
        standing = replace(standing, open=len(waiting))
        tell(standing)
        piece = waiting.popleft()
        within = _telling(piece, standing, tell)
        try:
            answer = answer_of(piece.work, content_of(piece), piece.asked, within)
        except StopRequestedError:
            raise
        except Exception as error:  # noqa: BLE001  the caller says what becomes of it
            leave(piece, error)
        else:
            waiting.extend(keep(piece, answer) or ())
        standing = Standing(over=standing.over + 1, last=piece.note)
    tell(standing)


def _telling(piece: Piece, standing: Standing, tell: Tell) -> Report:
    camera = Camera()
    strip: Strip = ()

    def within(progress: Progress) -> None:
        nonlocal strip
        sight = camera(progress) if piece.seen else None
        strip = strip if sight is None else longer(strip, sight)
        strips: dict[str, Strip] = {piece.key: strip} if strip else {}
        tell(replace(standing, shares={piece.key: share_of(progress)}, strips=strips))

    return within


def content_of(piece: Piece) -> bytes | None:
    """Return the content that a piece is given, None for nothing."""
    return None if piece.given is None else piece.given.read_bytes()


def answer_of(
    work: Callable[..., Any], given: bytes | None, asked: tuple[Any, ...], report: Report
) -> Any:
    """Do the work of a piece and return its answer."""
    return work(*asked, report=report) if given is None else work(given, *asked, report=report)


def share_of(progress: Progress) -> float:
    """Return the share of a piece that is done, 0 to 1."""
    return min(1.0, progress.done / max(1, progress.total))


# Names rather than classes, whose libraries need not be there.
_OF_THE_MACHINE = {
    *("ImportError", "MemoryError", "OSError"),
    *("PickleError", "UnpicklingError", "PicklingError"),
    *("OutOfMemoryError", "AcceleratorError", "SafetensorError", "BadZipFile"),
    *("KilledWorker", "CommClosedError", "FutureCancelledError", "CancelledError"),
    *("DataError", "PictureError", "WeightsError", "CheckpointError"),
    *("JobError", "UnknownNameError"),
}
# How torch words what it raises as a plain RuntimeError.
_WORDS = re.compile(
    r"out of memory|can't allocate memory|not enough memory|CUDA error|cuDNN error|CUBLAS_STATUS"
    r"|CUDNN_STATUS|NVIDIA driver|No space left",
    re.IGNORECASE,
)


def of_the_machine(error: BaseException) -> bool:
    """Return whether `error`, raised by some work, or its cause is the machine's.

    A failure of the work itself is a result: it comes out the same everywhere, so it is kept. One
    of a machine (memory, disk, a missing package or data set, a worker that died) says nothing of
    the work, so it is never kept.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    if _is_known(names, str(error)):
        return True
    return error.__cause__ is not None and of_the_machine(error.__cause__)


def _is_known(names: set[str], message: str) -> bool:
    return bool(names & _OF_THE_MACHINE) or bool(_WORDS.search(message))
