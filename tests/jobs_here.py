"""Jobs that pages start, carried out by threads of the process that starts them.

`python jobs_here.py SCRIPT ARGUMENTS` runs a script so.

Nothing here is of the process that a job has in the product: tests/semsim/base/jobs/ and
tests/e2e/test_whole_path.py have that one.
"""

import os
import runpy
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers import limit

from semsim.base.jobs import folders

_SPAWN = folders._spawn


@contextmanager
def jobs_here() -> Iterator[None]:
    """Let threads of this process carry out its jobs; whatever still runs stops with the block."""
    assert folders._spawn is _SPAWN, "a test before this one left its own way to start jobs"
    begun: dict[Path, threading.Thread] = {}

    def begin(job: folders.Job) -> None:
        folders._write_owner(job.folder, os.getpid())
        one = threading.Thread(target=_carry_out, args=(job,), name=job.id, daemon=True)
        begun[job.folder] = one
        one.start()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, "_spawn", begin)
        yield
        for folder, one in begun.items():
            if one.is_alive():
                (folder / "stop").touch()
        for folder, one in begun.items():
            one.join(limit(60))
            assert not one.is_alive(), f"{folder} does not stop"


def _carry_out(job: folders.Job) -> None:
    from semsim.cli.job import do

    try:
        do(job)
    except Exception:
        if not folders.error_text(job):  # else the job itself says it
            raise


if __name__ == "__main__":
    del sys.argv[0]
    with jobs_here():
        runpy.run_path(sys.argv[0], run_name="__main__")
