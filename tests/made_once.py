"""What tests need ready-made: made once, and kept until what it is made of changes."""

import hashlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from filelock import FileLock
from helpers import ROOT

KEPT = ROOT / ".pytest_cache" / "made"


def made_once(name: str, made_of: Iterable[Path], make: Callable[[Path], None]) -> Path:
    """The folder that `make` filled, to be read and copied and not to be written to.

    made_of: the files that decide what is made; a change of one makes it anew. Of several workers
    one makes it. It is made where it stays, so that it may name its own files.
    """
    KEPT.mkdir(parents=True, exist_ok=True)
    made = KEPT / f"{name}-{_key(made_of)}"
    with FileLock(KEPT / f"{name}.lock"):
        whole = KEPT / f"{made.name}.whole"
        if not whole.exists():
            for old in KEPT.glob(f"{name}-*"):
                shutil.rmtree(old) if old.is_dir() else old.unlink()
            made.mkdir()
            make(made)
            whole.touch()
    return made


def code(*folders: str) -> list[Path]:
    """The Python files below these folders of the checkout."""
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def _key(files: Iterable[Path]) -> str:
    told = hashlib.sha256()
    for path in files:
        told.update(path.name.encode() + path.read_bytes())
    return told.hexdigest()[:16]
