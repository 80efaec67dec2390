"""People labelling in a process of their own.

Each acknowledged vote is told, as its id and its status, once it has been acknowledged.
"""

import os
import random
import sys
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TextIO

from studio import COPIES

from annotation.domain import Answer
from annotation.store import Store
from annotation.study.labelling import join, next_items, vote


def label_everything(store, annotator, rng, acknowledged):
    """What a browser does: fetch a few, answer each, send every fifth answer twice."""
    while items := next_items(store, annotator, "tab", 3, datetime.now(UTC)):
        for item in items:
            answer = Answer(id=str(uuid.uuid4()), item=item.item, answer="none")
            for _ in range(2 if rng.random() < 0.2 else 1):
                acknowledged(vote(store, annotator, answer, datetime.now(UTC)))


def label(told: Connection, url: str, token: str, seed: int, names: Sequence[str]) -> None:
    """Let `names` label all they get; what goes wrong is written to `told` too."""
    os.dup2(told.fileno(), sys.stderr.fileno())

    def acknowledged(receipt):
        line = f"{receipt.id} {receipt.status}\n"
        os.write(told.fileno(), line.encode())  # in one piece: others write too

    with Store(url) as store:
        threads = [
            threading.Thread(
                target=label_everything,
                args=(
                    store,
                    join(store, token, name).annotator,
                    random.Random(f"{seed}/{name}"),
                    acknowledged,
                ),
            )
            for name in names
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@contextmanager
def labelling(
    url: str, token: str, seed: int, names: Sequence[str]
) -> Iterator[tuple[BaseProcess, TextIO]]:
    """A process in which `names` label all they get, and what it tells."""
    here, there = COPIES.Pipe(duplex=False)
    process = COPIES.Process(target=label, args=(there, url, token, seed, names))
    process.start()
    there.close()
    try:
        with here, open(here.fileno(), closefd=False) as lines:
            yield process, lines
    finally:
        process.kill()
        process.join()
