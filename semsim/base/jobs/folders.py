"""Long work as folders: a job runs in its own process and all that is known of it is on disk.

    <root>/<id>/spec.json       id, kind, title, program, created; its format is the folder's
    <root>/<id>/order.json      what was asked for
    <root>/<id>/progress.jsonl  one line a report: done, total, note, values, at
    <root>/<id>/result.json     present when the work is done
    <root>/<id>/error.txt       present when it failed: what went wrong, then the traceback
    <root>/<id>/stopped.txt     present when it stopped because it was asked to
    <root>/<id>/stop            present when a stop was asked for
    <root>/<id>/pid.json        the process that runs it, or ran it last
    <root>/<id>/log.txt         what that process printed
    <root>/<id>/.lock           held by whoever gives the job a process, so that it gets one

So a page, a second page and a restarted server all see the same job, and none of them owns it.
`root` is everywhere the folder that holds the jobs, `<data-dir>/jobs`.
"""

import contextlib
import filecmp
import json
import logging
import math
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import psutil
from filelock import FileLock, Timeout

from semsim.base.errors import JobError, StopRequestedError
from semsim.base.jobs.orders import absolute, from_record, to_record
from semsim.base.progress import Progress, Report, silent
from semsim.base.storage.atomic import write_json, write_text
from semsim.base.storage.places import checkout
from semsim.base.storage.records import read_object, read_record, write_record

if TYPE_CHECKING:
    import pandas as pd

_THIN = 0.2  # seconds between two reports of the same sort that are worth keeping
_RECENT = 64 * 1024  # bytes at the end of the file that tell the present pace
_SAME = 2.0  # seconds by which two readings of one process's start may differ
_PACE = 60.0  # seconds of work by which the time left is judged
_SURE = 3.0  # seconds of work that tell a pace


@dataclass(frozen=True)
class TimedProgress(Progress):
    """A progress report and when it was made, in seconds since the epoch."""

    at: float = 0.0


class ProgressWriter:
    """Appends reports to an open file.

    Of reports with the same note and the same names of values only one each 0.2 s is kept, so
    a report that says something new, such as the end of an epoch, is never lost.

    Attributes:
        clock: Seconds since the epoch, which reports tell.
        steady: Seconds since whenever, by which they are thinned, so that a clock set back holds
            none up.
    """

    def __init__(
        self,
        file: IO[bytes],
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._clock = clock
        self._steady = steady
        self._last: tuple[str, frozenset[str]] | None = None
        self._last_at = 0.0
        _end_line(file)

    def __call__(self, progress: Progress) -> None:
        now = self._steady()
        sort = (progress.note, frozenset(progress.values))
        ends = progress.done >= progress.total
        if ends or sort != self._last or now - self._last_at >= _THIN:
            self._write(progress, self._clock())
            self._last, self._last_at = sort, now

    def _write(self, progress: Progress, now: float) -> None:
        values = {name: float(value) for name, value in progress.values.items()}
        line = {"done": progress.done, "total": progress.total, "note": progress.note}
        line |= {} if progress.paced else {"paced": False}
        text = json.dumps({**line, "values": values, "at": now}, ensure_ascii=False)
        self._file.write(text.encode() + b"\n")
        self._file.flush()


def read_first(path: Path) -> TimedProgress | None:
    """The oldest report in the file at `path`, whose beginning alone is read; None without one."""
    try:
        with open(path, "rb") as file:
            found = _parse(file.read(_RECENT).decode("utf-8", errors="replace"))
    except FileNotFoundError:
        return None
    return found[0] if found else None


def read_recent(path: Path) -> list[TimedProgress]:
    """The reports at the end of the file at `path`: enough to know where it is and its pace."""
    return _parse(read_end(path, _RECENT))


def read_end(path: Path, limit: int = _RECENT) -> str:
    """The last `limit` bytes of a text file, "" where it is missing."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - limit))
            return file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def seconds_left(points: Sequence[TimedProgress]) -> float | None:
    """Seconds from the last of `points` to its total at the pace of the minute before it.

    The pace begins with the first step in that minute: what came before it, such as reading
    libraries, has none. None while no pace is known, and at the total: what a job does after its
    last step, such as judging what it learned, has none either.
    """
    if not points:
        return None
    last = points[-1]
    if last.done >= last.total or not last.paced:
        return None
    # A report from the future is from before the clock was set back.
    now = [p for p in points if 0 <= last.at - p.at <= _PACE and p.total == last.total and p.paced]
    first = next((p for p in now if p.done > now[0].done), last)
    steps, seconds = last.done - first.done, last.at - first.at
    if steps <= 0 or seconds < _SURE:
        return None
    return (last.total - last.done) * seconds / steps


def _end_line(file: IO[bytes]) -> None:
    """Close a line that a killed run left half written, so that the next starts on its own."""
    if file.seek(0, os.SEEK_END) == 0:
        return
    file.seek(-1, os.SEEK_END)
    if file.read(1) != b"\n":
        file.write(b"\n")


def _parse(text: str) -> list[TimedProgress]:
    return [point for line in text.splitlines() if (point := _point(line)) is not None]


def _point(line: str) -> TimedProgress | None:
    """The report in a line; a line may be half there: a run was killed, or is writing it."""
    try:
        point = TimedProgress(**json.loads(line))
        numbers = [point.done, point.total, point.at, *point.values.values()]
        # A loss may well be infinite or NaN, which a place may not.
        is_right = isinstance(point.note, str) and all(map(math.isfinite, numbers[:3]))
        return point if is_right and all(isinstance(n, int | float) for n in numbers) else None
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


log = logging.getLogger(__name__)

PROGRAM = ("-m", "semsim")  # also where the command is not installed
FORMAT = "semsim-job/1"  # of all that lies in a job's folder
ORDER_FILE = "order.json"
T = TypeVar("T")
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,99}")
_FILE_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")
_WAIT = 10.0  # seconds for somebody else to have given a job its process


class JobState(Enum):
    """State of a job.

    Attributes:
        LOST: Its process is gone and left no word.
    """

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"


LIVE = frozenset({JobState.QUEUED, JobState.RUNNING})
_WORDS = {
    "result.json": JobState.DONE,
    "error.txt": JobState.FAILED,
    "stopped.txt": JobState.STOPPED,
}


@dataclass(frozen=True, kw_only=True)
class Job:
    """Job as it was asked for; `created` is ISO 8601 in UTC."""

    folder: Path
    kind: str
    title: str
    created: str
    program: tuple[str, ...] = PROGRAM

    @property
    def id(self) -> str:
        """The folder's name, unique and in order of creation."""
        return self.folder.name

    @property
    def command(self) -> tuple[str, ...]:
        """Arguments of `python <program>` that start or resume the job."""
        return ("job", str(self.folder))


def create(
    root: Path,
    *,
    kind: str,
    title: str,
    order: Any = None,
    files: Mapping[str, "pd.DataFrame | Mapping[str, Any]"] | None = None,
    program: Sequence[str] = PROGRAM,
) -> Job:
    """A new job below `root`, not yet started.

    Args:
        order: A dataclass, see `to_record`, by which `semsim-studio job` carries out the job, from
            whatever folder: its paths are kept whole.
        files: Tables (written as Parquet) and mappings (JSON) put into the folder before it starts.
    """
    now = datetime.now(UTC)
    folder = Path(root).resolve() / f"{now:%Y%m%d-%H%M%S-%f}-{secrets.token_hex(3)}"
    folder.mkdir(parents=True)
    ordered = {} if order is None else {ORDER_FILE: to_record(absolute(order))}
    for name, content in {**ordered, **(files or {})}.items():
        _write_file(folder, name, content)
    spec = {
        "id": folder.name,
        "kind": kind,
        "title": title,
        "program": list(program),
        "created": now.isoformat(timespec="seconds"),
    }
    write_record(folder / "spec.json", FORMAT, spec)  # last: a folder without one is no job yet
    return read_job(folder)


def read_order(job: Job, kind: type[T]) -> T:
    """Return the order of a job; `SemsimError` where its folder does not say it."""
    return from_record(kind, read_json(job.folder / ORDER_FILE))


def open_job(root: Path, job_id: str) -> Job:
    """The job called `job_id`; `JobError` where there is none."""
    if not _ID.fullmatch(job_id):  # ids come from browsers: never a path
        raise JobError(f"{job_id!r} is not a job's id.")
    return read_job(Path(root) / job_id)


def read_job(folder: Path) -> Job:
    """The job in `folder`; `JobError` where it has no readable spec.json."""
    folder = Path(folder).resolve()
    spec = read_record(folder / "spec.json", FORMAT, JobError)
    for name, is_right in _SPEC.items():
        if not is_right(spec.get(name)):
            raise JobError(
                f"{folder} is not a job: in spec.json {name} is {spec.get(name)!r}; expected "
                f"{'a text' if is_right is _is_text else 'a list of texts'}."
            )
    return Job(
        folder=folder,
        kind=spec["kind"],
        title=spec["title"],
        created=spec["created"],
        program=tuple(spec["program"]),
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_SPEC: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("kind", "title", "created"), _is_text),
    "program": _are_texts,
}


def list_jobs(
    root: Path, kind: str | None = None, asked: Mapping[str, Any] | None = None
) -> list[Job]:
    """The jobs below `root`, of one kind or of all, newest first.

    Args:
        asked: What their orders have, as `to_record` writes it; what else they have may differ. A
            folder whose spec.json is damaged is left out and named in the log, so that it does not
            take the others along.
    """
    specs = sorted(Path(root).glob("*/spec.json"), key=lambda path: path.parent.name, reverse=True)
    jobs = []
    for path in specs:
        try:
            jobs.append(read_job(path.parent))
        except JobError as error:
            log.warning("A job is left out. %s Mend its spec.json or remove the folder.", error)
    found = [job for job in jobs if kind is None or job.kind == kind]
    return [job for job in found if asked is None or _is_asked(job, asked)]


def live_jobs(root: Path, kind: str, asked: Mapping[str, Any] | None = None) -> list[Job]:
    """The jobs of `list_jobs` that wait or run."""
    return [job for job in list_jobs(root, kind, asked) if state(job) in LIVE]


def foremost(root: Path, kind: str) -> Job | None:
    """Return the job of a kind that users seek first: one that waits or runs, else the newest."""
    found = list_jobs(root, kind)
    return next((job for job in found if state(job) in LIVE), found[0] if found else None)


def start(job: Job) -> None:
    """Run the job in a process of its own, which outlives this one; `JobError` if it runs."""
    with _alone(job):
        if state(job) is not JobState.QUEUED:
            raise JobError(f"{job.title!r} is {state(job).value}; only a queued job can start.")
        _spawn(job)


def resume(job: Job) -> None:
    """Run the job again; the command goes on from its own checkpoint in the folder.

    Raises `JobError` when the job runs or is done.
    """
    with _alone(job):
        now = state(job)
        if now in {JobState.RUNNING, JobState.DONE}:
            raise JobError(f"{job.title!r} is {now.value}; there is nothing to resume.")
        for name in ("pid.json", "stop", "stopped.txt", "error.txt", "result.json"):
            (job.folder / name).unlink(missing_ok=True)
        _spawn(job)


def go_on(job: Job) -> Job:
    """Return the earlier job that was asked the same as `job`, which has not begun, else `job`.

    One that was killed or stopped goes on where it was, and `job` goes: what is typed again is one
    job, not one more beside what is lost. One that failed may have left what cannot be resumed.
    """
    for earlier in list_jobs(job.folder.parent, job.kind):
        waits = state(earlier) in {JobState.LOST, JobState.STOPPED}
        if waits and earlier.title == job.title and _are_same(job.folder, earlier.folder):
            shutil.rmtree(job.folder)
            return earlier
    return job


def _are_same(asked: Path, earlier: Path) -> bool:
    """Tell whether `earlier` has all that a job was asked, which has not begun."""
    names = [path.name for path in asked.iterdir() if path.name not in {"spec.json", ".lock"}]
    _, others, missing = filecmp.cmpfiles(asked, earlier, names, shallow=False)
    return not others and not missing


def request_stop(job: Job) -> None:
    """Ask the job to stop at its next report; a job that has no process is stopped at once."""
    if state(job) is JobState.RUNNING:
        (job.folder / "stop").touch()
    elif state(job) in {JobState.QUEUED, JobState.LOST}:
        write_text(job.folder / "stopped.txt", "Stopped while it was not running.\n")


def state(job: Job) -> JobState:
    """Return the state of the job, from its folder and the table of processes alone."""
    # The process is looked at first: one that ends in between has already left its word.
    alive = is_alive(_owner(job.folder))
    for name, word in _WORDS.items():
        if (job.folder / name).exists():
            damaged = word is JobState.DONE and _damage(job) is not None
            return JobState.FAILED if damaged else word
    if alive:
        return JobState.RUNNING
    return JobState.LOST if (job.folder / "pid.json").exists() else JobState.QUEUED


def stop_requested(job: Job) -> bool:
    """Return whether the job was asked to stop."""
    return (job.folder / "stop").exists()


def result(job: Job) -> dict[str, Any]:
    """Return the result of the finished work; `JobError` when it is not done."""
    return read_json(job.folder / "result.json")


def error_text(job: Job) -> str:
    """Return the error message, then the traceback; empty when nothing went wrong."""
    path = job.folder / "error.txt"
    if path.exists():
        return path.read_text(encoding="utf-8", errors="replace")
    damage = _damage(job) if (job.folder / "result.json").exists() else None
    return "" if damage is None else f"{damage} It has to be made again."


def _damage(job: Job) -> JobError | None:
    """Return the error of reading the result that the work has left, None for none."""
    try:
        result(job)
    except JobError as error:
        return error
    return None


def log_tail(job: Job, lines: int = 40) -> str:
    """The last lines the job's process printed."""
    text = read_end(job.folder / "log.txt")
    return "\n".join(text.splitlines()[-lines:])


def latest(job: Job) -> TimedProgress | None:
    """The newest report, or None before the first."""
    recent = read_recent(job.folder / "progress.jsonl")
    return recent[-1] if recent else None


def eta_seconds(job: Job) -> float | None:
    """Seconds left at the pace of the last minute, or None while no pace is known."""
    started = (_owner(job.folder) or {"started": 0.0})["started"]
    recent = read_recent(job.folder / "progress.jsonl")
    return seconds_left([point for point in recent if point.at >= started])


def seconds_taken(job: Job) -> float | None:
    """Return the seconds from the start of a job that is done to its end.

    None where it is not done, or was begun more than once: no record counts all of it.
    """
    owner, path = _owner(job.folder), job.folder / "result.json"
    if owner is None or not path.exists():
        return None
    first = read_first(job.folder / "progress.jsonl")
    if first is not None and first.at < owner["started"] - _SAME:
        return None
    asked = datetime.fromisoformat(job.created).timestamp()
    return max(0.0, path.stat().st_mtime - max(asked, owner["started"]))


def last_seconds(root: Path, kind: str, asked: Mapping[str, Any]) -> float | None:
    """Return the seconds that the newest finished job like this took; None where there is none.

    Args:
        asked: As of `list_jobs`. A job that took over pieces of an earlier one did not do all of
            its work, and does not count.
    """
    for job in list_jobs(root, kind, asked):
        if state(job) is not JobState.DONE or result(job).get("reused"):
            continue
        seconds = seconds_taken(job)
        if seconds is not None:
            return seconds
    return None


def _is_asked(job: Job, asked: Mapping[str, Any]) -> bool:
    """Tell whether the order of a job has all of `asked`; one that cannot be read has not."""
    try:
        return _has(read_json(job.folder / ORDER_FILE), asked)
    except JobError:
        return False


def _has(record: Any, asked: Any) -> bool:
    if isinstance(asked, Mapping):
        known = isinstance(record, Mapping)
        return known and all(_has(record.get(name), one) for name, one in asked.items())
    return bool(record == asked)


def run_as_job(
    folder: Path, work: Callable[[Report], dict[str, Any]], also: Report = silent
) -> dict[str, Any] | None:
    """Do `work` as the job in `folder`: its reports, result, error or stop end up there.

    Args:
        work: Called with a reporter, which raises `StopRequestedError` once a stop is asked for.
        also: Told of every report too, such as a terminal's progress bar.

    Returns:
        What `work` returned, or None when it was stopped. What `work` raises is recorded and raised
        again; `JobError` when the job is done or another living process has it.
    """
    folder = Path(folder).resolve()
    job = read_job(folder)
    with _alone(job):
        _claim(job)
    try:
        with open(folder / "progress.jsonl", "a+b") as file:
            outcome = work(_Reporter(folder, file, also))
        write_json(folder / "result.json", outcome)
    except StopRequestedError:
        write_text(folder / "stopped.txt", "Stopped as asked.\n")
        (folder / "stop").unlink(missing_ok=True)  # granted, and not meant for the next run
        return None
    except KeyboardInterrupt:
        write_text(folder / "stopped.txt", "Stopped from the keyboard.\n")
        raise
    except Exception as error:
        what = str(error) or type(error).__name__
        write_text(folder / "error.txt", f"{what}\n\n{traceback.format_exc()}")
        raise
    return outcome


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; `JobError` where it is missing or broken."""
    return read_object(path, JobError)


class _Reporter:
    """Keeps reports, passes them on, and raises once a stop is asked for."""

    def __init__(self, folder: Path, file: IO[bytes], also: Report) -> None:
        self._stop = folder / "stop"
        self._write = ProgressWriter(file)
        self._also = also

    def __call__(self, progress: Progress) -> None:
        self._write(progress)
        self._also(progress)
        if self._stop.exists():
            raise StopRequestedError("A stop was asked for.")


@contextlib.contextmanager
def _alone(job: Job) -> Iterator[None]:
    """Keep all other callers, here or on another server, from giving the job a process."""
    try:
        with FileLock(job.folder / ".lock", timeout=_WAIT, is_singleton=True):
            yield
    except Timeout as error:
        raise JobError(f"{job.title!r} is being started by somebody else. Try again.") from error


def _spawn(job: Job) -> None:
    command = [sys.executable, *job.program, *job.command]
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    with open(job.folder / "log.txt", "ab") as printed:
        process = subprocess.Popen(
            command,
            cwd=checkout(),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            creationflags=flags,
        )
    with contextlib.suppress(psutil.NoSuchProcess):  # gone already: the command wrote its own
        _write_owner(job.folder, process.pid)
    # Reaped when it ends, so that no zombie stays behind for as long as the server lives.
    log.info("Job %s, %s, has begun.", job.id, job.kind)
    threading.Thread(target=_reap, args=(job, process), daemon=True, name=f"reap-{job.id}").start()


def _reap(job: Job, process: "subprocess.Popen[bytes]") -> None:
    process.wait()
    ended = state(job)
    level = logging.INFO if ended in {JobState.DONE, JobState.STOPPED} else logging.WARNING
    log.log(level, "Job %s, %s, has ended: %s.", job.id, job.kind, ended.value)


def _claim(job: Job) -> None:
    owner = _owner(job.folder)
    # On Windows the starter knows the virtual environment's launcher, which is our parent.
    ours = {os.getpid(), os.getppid()}
    if owner is not None and owner["pid"] not in ours and is_alive(owner):
        raise JobError(f"{job.title!r} already runs as process {owner['pid']:.0f}; stop it first.")
    if (job.folder / "result.json").exists() and _damage(job) is None:
        raise JobError(f"{job.title!r} is done; its result is {job.folder / 'result.json'}.")
    # A stop that a killed run never heard was meant for that one; of one that waits it holds.
    unheard = ("stop",) if state(job) is JobState.LOST else ()
    for name in ("error.txt", "stopped.txt", *unheard):
        (job.folder / name).unlink(missing_ok=True)
    _write_owner(job.folder, os.getpid())


def _write_owner(folder: Path, pid: int) -> None:
    write_json(folder / "pid.json", owner_now(pid))


def _owner(folder: Path) -> dict[str, float] | None:
    try:
        return owner_from(read_json(folder / "pid.json"))
    except JobError:
        return None


def _write_file(folder: Path, name: str, content: "pd.DataFrame | Mapping[str, Any]") -> None:
    if not _FILE_NAME.fullmatch(name):
        raise JobError(f"{name!r} is not a plain file name.")
    if isinstance(content, Mapping):
        write_json(folder / name, content)
    else:
        content.to_parquet(folder / name, index=False)


def owner_now(pid: int) -> dict[str, float]:
    """Return pid, started and booted of a process that runs, in seconds since the epoch.

    Raises `psutil.NoSuchProcess` where there is none of that number.
    """
    started = psutil.Process(pid).create_time()
    return {"pid": pid, "started": started, "booted": psutil.boot_time()}


def owner_from(content: Mapping[str, Any]) -> dict[str, float] | None:
    """Return what `owner_now` returned, as read from a file; None where that does not say it."""
    try:
        return {name: float(content[name]) for name in ("pid", "started", "booted")}
    except (KeyError, TypeError, ValueError):
        return None


def is_alive(owner: Mapping[str, float] | None) -> bool:
    """Return whether the very process runs: same number, same start, and not a zombie."""
    if owner is None:
        return False
    try:
        process = psutil.Process(int(owner["pid"]))
        started = process.create_time()
        # Where the system reckons a start from the boot, setting the clock moves both alike.
        since_boot = (owner["started"] - owner["booted"]) - (started - psutil.boot_time())
        same = min(abs(started - owner["started"]), abs(since_boot)) < _SAME
        return same and process.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except (psutil.Error, ValueError, OverflowError):  # none, or somebody else's with the number
        return False


def sweep_sockets(folder: Path, age: float = 3600.0) -> None:
    """Remove what killed processes that had workers left in `folder`, that of temporary files.

    Python makes them a folder `pymp-…` with a socket, which nothing listens at any more.

    Args:
        age: Seconds since the last change, below which it may just have been made.
    """
    try:
        open_now = {one.laddr for one in psutil.net_connections("unix")}
    except (psutil.Error, ValueError):  # the system has none, or does not let us look
        return
    for found in folder.glob("pymp-*/"):
        with contextlib.suppress(OSError):  # somebody else's, or gone
            left, seen = list(found.iterdir()), found.stat()
            dead = left and all(one.is_socket() and str(one) not in open_now for one in left)
            if dead and seen.st_uid == os.getuid() and time.time() - seen.st_mtime > age:
                shutil.rmtree(found)
