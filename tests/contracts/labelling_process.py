"""People labelling in a process of their own.

Each acknowledged vote is told, as its id and its status, once it has been acknowledged.
"""

import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TextIO

from helpers import at_once
from studio import COPIES
from study_factory import answer_to, arrived

from annotation.store import Store
from annotation.study.labelling import next_items, study_by_token, vote


def label_everything(store, annotator, rng, acknowledged):
    """What a browser does: fetch a few, answer each, send every fifth answer twice."""
    while items := next_items(store, annotator, "tab", 3, datetime.now(UTC)):
        for item in items:
            answer = answer_to(item.item)
            for _ in range(2 if rng.random() < 0.2 else 1):
                acknowledged(vote(store, annotator, answer, datetime.now(UTC)))


def label(told: Connection, url: str, token: str, seed: int, names: Sequence[str]) -> None:
    """Let `names` label all they get; what goes wrong is written to `told` too."""
    os.dup2(told.fileno(), sys.stderr.fileno())

    def acknowledged(receipt):
        line = f"{receipt.id} {receipt.status}\n"
        os.write(told.fileno(), line.encode())  # in one piece: others write too

    def take_part(store, name):
        person = arrived(store, study_by_token(store, token), name).annotator
        label_everything(store, person, random.Random(f"{seed}/{name}"), acknowledged)

    with Store(url) as store:
        at_once(*[partial(take_part, store, name) for name in names])


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
