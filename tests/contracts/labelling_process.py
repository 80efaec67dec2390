"""People labelling in a process of their own: `python labelling_process.py URL TOKEN SEED NAME…`.

Each acknowledged vote is printed, as its id and its status, once it has been acknowledged.
"""

import random
import sys
import threading
import uuid
from datetime import UTC, datetime

from annotation.domain import Answer
from annotation.store import Store
from annotation.study import join, next_items, vote


def label_everything(store, annotator, rng, acknowledged):
    """What a browser does: fetch a few, answer each, send every fifth answer twice."""
    while items := next_items(store, annotator, "tab", 3, datetime.now(UTC)):
        for item in items:
            answer = Answer(id=str(uuid.uuid4()), item=item.item, answer="none")
            for _ in range(2 if rng.random() < 0.2 else 1):
                acknowledged(vote(store, annotator, answer, datetime.now(UTC)))


def main(url, token, seed, *names):
    def acknowledged(receipt):
        sys.stdout.write(f"{receipt.id} {receipt.status}\n")  # in one piece: others write too
        sys.stdout.flush()

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


if __name__ == "__main__":
    main(*sys.argv[1:])
