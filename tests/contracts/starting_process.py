"""What a server does with its database when it starts, in a process of its own."""

from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

from studio import START_SECONDS

from annotation.store import Store
from annotation.study.builtin import ensure_demo


def start_on(url: str, sets: Sequence[Path], images: Path, ready: Barrier) -> None:
    """Open the database and make the built-in studies, once all are `ready`."""
    with Store(url) as store:
        ready.wait(START_SECONDS)
        ensure_demo(store, sets, images)
