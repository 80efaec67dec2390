"""Assignment of items: an order of its own for each annotator, and one slot of an item.

An order is not stored. Every item has a random salt; an annotator's rank of an item is
(factor · salt + offset) mod a prime, a universal hash (Carter and Wegman 1979), so that the order
of two annotators is unrelated and the database can sort by it.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from annotation.domain import SlotState

PRIME = 2**31 - 1  # the largest whose products still fit the databases' 64-bit integers
SPARE = 2  # held beyond a fair share, so that the next picture is there already
AT_HAND = 20  # as many a page shows without waiting for the network
RECENTLY = timedelta(minutes=5)  # whoever was here is still at work
# When a lease ended whose holder has answered with a vote that was left out: they get the item no
# more, and anybody else may take it over.
LEFT_OUT = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Permutation:
    """The order in which one annotator sees the items of a study."""

    factor: int
    offset: int


@dataclass(frozen=True, kw_only=True)
class Slot:
    """Room for one vote on an item, as the database has it."""

    id: int
    k: int
    state: SlotState
    annotator: str | None = None
    lease_until: datetime | None = None


def salts(seed: int, n: int) -> list[int]:
    """`n` different random salts below `PRIME`, one an item."""
    return random.Random(f"salts/{seed}").sample(range(1, PRIME), n)


def order_of(seed: int, annotator: str) -> Permutation:
    """The order of `annotator` (any text that names the person) in a study seeded with `seed`."""
    digest = hashlib.sha256(f"{seed}/{annotator}".encode()).digest()
    factor, offset = (int.from_bytes(part, "big") for part in (digest[:16], digest[16:]))
    return Permutation(1 + factor % (PRIME - 1), offset % PRIME)


def wants_another(n_recognised: int, n_votes: int, votes_per_item: int) -> bool:
    """Check whether K votes on an item, K odd, are split as evenly as can be: 3 to 2 of five.

    A single vote is not split.
    """
    split = abs(2 * n_recognised - n_votes) == 1
    return n_votes == votes_per_item and votes_per_item > 1 and split


def slot_for(slots: Sequence[Slot], annotator: str, now: datetime) -> Slot | None:
    """The slot of one item that `annotator` may hold now, or None.

    That is their own while it waits for an answer, else the first free one, else the one whose
    lease ran out first. Who has answered the item gets no slot of it.
    """
    own = [slot for slot in slots if slot.annotator == annotator]
    if own:
        waits = own[0].state is SlotState.LEASED and own[0].lease_until != LEFT_OUT
        return own[0] if waits else None
    free = [slot for slot in slots if slot.state is SlotState.FREE]
    if free:
        return min(free, key=lambda slot: slot.k)
    expired = [
        (slot.lease_until, slot.k, slot)
        for slot in slots
        if slot.state is SlotState.LEASED and slot.lease_until and slot.lease_until < now
    ]
    return min(expired)[2] if expired else None


def share(n: int, left: int, people: int) -> int:
    """Return how many of the `n` items asked for an annotator may hold, of `left` for them.

    A fair share if others are at work, `people` with them. Of more than `AT_HAND`, which are for
    when the network is gone, half of it, so that something is left for whoever joins later or is
    faster.
    """
    fair = n if people == 1 else -(-left // people) + SPARE
    return min(n, fair, max(AT_HAND, left // (2 * people)))
