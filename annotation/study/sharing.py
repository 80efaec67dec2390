"""Use case: what a page that closes held is there for others."""

from collections.abc import Sequence
from datetime import datetime

from annotation.domain import Annotator
from annotation.store import Store, sharing
from annotation.study.labelling import MOST_ITEMS


def release(
    store: Store, annotator: Annotator, tab: str, items: Sequence[str], now: datetime
) -> None:
    """Give back what was handed out to `tab` and has not been answered; anybody may have it then.

    Until somebody takes an item over it is still theirs: an answer to it counts, and a page that
    is loaded again gets it back.
    """
    store.write(lambda tx: sharing.release(tx, annotator, tab, items[:MOST_ITEMS], now))
