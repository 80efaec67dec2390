"""People labelling in a process of their own: `labelling_process.py URL TOKEN SEED NAMES`.

Each acknowledged vote is told, as its id and its status, once it has been acknowledged.
"""

import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TextIO

import copies
from helpers import ROOT, at_once
from studio import around
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


def label(url: str, token: str, seed: str, *names: str) -> None:
    """Let `names` label all they get; what is told goes to standard output."""

    def acknowledged(receipt):
        line = f"{receipt.id} {receipt.status}\n"
        os.write(1, line.encode())  # in one piece: others write too

    def take_part(store, name):
        person = arrived(store, study_by_token(store, token), name).annotator
        label_everything(store, person, random.Random(f"{seed}/{name}"), acknowledged)

    with Store(url) as store:
        at_once(*[partial(take_part, store, name) for name in names])


@contextmanager
def labelling(
    url: str, token: str, seed: int, names: Sequence[str]
) -> Iterator[tuple[copies.Copy, TextIO]]:
    """A process in which `names` label all they get, and what it tells, what goes wrong too."""
    here, there = os.pipe()
    words = [__file__, url, token, str(seed), *names]
    with open(here) as lines, open(there, "wb") as told:
        process = copies.begin(words, cwd=ROOT, env=around(), out=told, of=copies.STUDIO)
        told.close()
        try:
            yield process, lines
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    label(*sys.argv[1:])
