"""Files and folders that are whole or not there, whoever else writes them and whenever it ends.

What is being written lies beside its place under `.<name>.<process>.<thread>.part`, so that two
writers of one name do not meet; the last to finish is what stays.
"""

import contextlib
import json
import math
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from semsim.base.errors import SemsimError

_LEFT = re.compile(r"\.(?P<name>.+)\.\d+\.\d+\.(?P<what>part|old)")
_AT_ONCE = 16  # files that are written or settled at the same time
_TURN = 64  # of them that a thread takes at a time: handing one over takes as long as writing it
_DAY = 24 * 3600.0  # seconds after which nobody is still writing
S = TypeVar("S")
T = TypeVar("T")
LEAST_ROOM = 64 * 2**20  # bytes that are free wherever long work begins


@contextmanager
def whole(path: Path, *, settled: bool = False) -> Iterator[Path]:
    """Yield a path for a file or folder, which becomes `path` when the block ends.

    Its parent folder is made. A file that is there is replaced. When the block raises, `path` is
    what it was.

    Args:
        settled: Return only when the new name survives a power cut.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _beside(path, "part")
    try:
        yield part
        os.replace(part, path)
    except BaseException:
        _remove(part)
        raise
    if settled:
        _settle(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` at `path`: a reader sees the old file or the new one, never half of one."""
    with whole(path) as part:
        part.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8 at `path`, as `write_bytes` does."""
    write_bytes(path, text.encode())


def finite(value: Any) -> Any:
    """Return `value` as JSON has it: null for a number that is none, as the SSIM of no picture."""
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    value = value.item() if hasattr(value, "item") else value  # of NumPy
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: Path, content: Mapping[str, Any], *, sort: bool = False) -> None:
    """Write `content` as JSON at `path`, as `write_bytes` does.

    Args:
        sort: By name, so that two records can be laid side by side; else in the order given.
    """
    text = json.dumps(dict(content), indent=1, sort_keys=sort, ensure_ascii=False)
    write_text(path, text + "\n")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """An empty folder to fill; when the block ends it takes the place of `folder`."""
    with whole_folders(folder, replace=True) as (part,):
        yield part


@contextmanager
def whole_folders(*folders: Path, replace: bool = False) -> Iterator[tuple[Path, ...]]:
    """Empty folders to fill, one for each of `folders`, which appear all or none.

    When the block raises, nothing has changed.

    Args:
        replace: Take the place of what is there; without it, a folder that is there and not empty
            raises `OSError`, and none appears.
    """
    parts = tuple(_beside(Path(folder), "part") for folder in folders)
    try:
        for part in parts:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
        yield parts
        _name(dict(zip(parts, map(Path, folders), strict=True)), replace)
    finally:
        for part in parts:
            shutil.rmtree(part, ignore_errors=True)


def free_bytes(path: Path) -> int:
    """Return the bytes free on the disk of `path`, which need not be there yet."""
    return shutil.disk_usage(next(one for one in (path, *path.parents) if one.exists())).free


def require_room(*folders: Path) -> None:
    """Raise `SemsimError` unless each folder is there or can be made, and can be written.

    For before long work, whose result is lost where it cannot be kept.
    """
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as probe:
                probe.write(b"1")
            if free_bytes(folder) < LEAST_ROOM:
                raise OSError(f"less than {LEAST_ROOM // 2**20} MiB are free")
        except OSError as error:
            raise SemsimError(
                f"{folder} cannot be written ({error.strerror or error}). Nothing was begun: make "
                "room there, give this user the right to write there, or name another folder."
            ) from error


def sweep(root: Path, age: float = _DAY) -> None:
    """Remove what writers that were killed have left below `root`, `age` seconds ago or more.

    A folder that was just being replaced gets its place back.
    """
    for above, folders, files in os.walk(root):
        for found in filter(None, map(_LEFT.fullmatch, [*folders, *files])):
            path, place = Path(above, found.group()), Path(above, found["name"])
            with contextlib.suppress(FileNotFoundError):  # its writer has ended just now
                if _idle(path) < age:
                    continue
                if found["what"] == "old" and not place.exists():
                    os.rename(path, place)
                else:
                    _remove(path)
        folders[:] = [name for name in folders if not _LEFT.fullmatch(name)]


def _idle(path: Path) -> float:
    """Seconds since it was written or renamed, which leaves the time of a folder's change."""
    seen = path.stat()
    return time.time() - max(seen.st_mtime, seen.st_ctime)


def _name(parts: Mapping[Path, Path], replace: bool) -> None:
    named: list[Path] = []
    try:
        for part, folder in parts.items():
            if replace and folder.exists():
                shutil.rmtree(_beside(folder, "old"), ignore_errors=True)
                os.rename(folder, _beside(folder, "old"))
            named.append(folder)
            os.rename(part, folder)
    except OSError:
        for folder, part in zip(named, parts, strict=False):
            _take_back(folder, part)
        raise
    for folder in named:
        shutil.rmtree(_beside(folder, "old"), ignore_errors=True)


def _take_back(folder: Path, part: Path) -> None:
    if not part.exists():  # it has become the folder
        shutil.rmtree(folder, ignore_errors=True)
    if _beside(folder, "old").exists():
        os.rename(_beside(folder, "old"), folder)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}.{ending}")


def settle(paths: Iterable[Path]) -> None:
    """Return once these files and folders survive a power cut."""
    together(_settle, paths)


def together(work: Callable[[S], T], things: Iterable[S]) -> list[T]:
    """Return the result of `work` for each thing; alone, each would wait for the disk anew."""
    given = list(things)
    size = max(1, min(_TURN, len(given) // _AT_ONCE))
    turns = [given[start : start + size] for start in range(0, len(given), size)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(chain.from_iterable(pool.map(lambda turn: list(map(work, turn)), turns)))


def _settle(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
