"""Writing so that nobody sees half of it: first under a name of the writer's own."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path, *, settled: bool = False) -> Iterator[Path]:
    """A path where a file or a folder is made; when the block ends it becomes `path`.

    When the block raises, what was made goes and `path` is what it was. settled: return only
    when the new name survives a power cut.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}.part")
    try:
        yield part
        move(part, path)
        if settled:
            _settle(path.parent)
    finally:
        _remove(part)


def move(path: Path, target: Path) -> None:
    """Give what lies at `path` the name `target`, on the same disk, in one step."""
    os.replace(path, target)


def _settle(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
