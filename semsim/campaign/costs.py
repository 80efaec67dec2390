"""What an order takes, by the best that is known of it on this machine.

An order is a campaign, or what another room carries out: a dataclass. Best is how long it took
here, then what a probe here said of it, then the table that comes with the product: CPU seconds of
another machine, times how much slower this one does a fixed work. What is found here is kept below
<data>/runs/_pieces/probes. Nothing of this but `loop` needs torch.
"""

import json
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from statistics import median
from typing import Any

from semsim.campaign.plan import key_of
from semsim.campaign.store import PieceStore
from semsim.device import one_thread
from semsim.jobs.orders import to_record
from semsim.kept.pieces import BROKEN
from semsim.kept.places import files_of
from semsim.kept.whole import write_json

FORMAT = 1  # of the table; another one is not read
TABLE = files_of("semsim.campaign") / "cards.json"
_MACHINE = [platform.node(), platform.machine(), platform.processor()]
_ROUNDS, _TIMES = 7, 8  # of the fixed work: rounds, and steps in each


class How(Enum):
    """How it is known what an order takes. ELSEWHERE: measured on another machine, and it is not
    known how fast this one is; SCALED: the same, where it is known.
    """

    TOOK = "took"
    PROBED = "probed"
    SCALED = "scaled"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What an order takes where nothing of it is done yet.

    seconds: of one core, which several may share. alone: further seconds that nobody shares, such
    as those in which a process starts. disk: bytes, 0 where nobody knows.
    """

    seconds: float
    disk: int
    alone: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Known:
    """What an order takes, and how that is known; `alone` is all of it where it was carried out."""

    cost: Cost
    how: How


@dataclass(frozen=True, kw_only=True)
class Table:
    """What was measured on a machine, in its CPU seconds.

    loop: of the fixed work, see `loop`. orders: what each takes, by `order_key`. machine: its kind
    in words, and how it was measured.
    """

    loop: float
    orders: Mapping[str, Cost]
    machine: str


def known(order: Any, data: Path, table: Table | None = None) -> Known | None:
    """The best that is known of `order` below `data`; None where nothing is.

    table: what another machine has measured; without, the one that comes with the product.
    """
    here, table = known_cost(order, data), table or read_table()
    there = table.orders.get(order_key(order)) if table else None
    took, pace = found_seconds(data, _took_key(order)), known_pace(data)
    if took is not None:
        disk = (here or there or Cost(seconds=0.0, disk=0)).disk
        return Known(cost=Cost(seconds=0.0, alone=took, disk=disk), how=How.TOOK)
    if here:
        return Known(cost=here, how=How.PROBED)
    if table is None or there is None:
        return None
    if pace is None:
        return Known(cost=there, how=How.ELSEWHERE)
    return Known(cost=scaled(there, pace / table.loop), how=How.SCALED)


def scaled(cost: Cost, slower: float) -> Cost:
    """What takes `cost` on one machine, on another that needs `slower` times as long."""
    return replace(cost, seconds=cost.seconds * slower, alone=cost.alone * slower)


def known_cost(order: Any, data: Path) -> Cost | None:
    """What `keep_cost` kept of an order on this machine; a plan is not needed for that."""
    found = _read(data, _cost_key(order))
    return Cost(**found) if found else None


def keep_cost(order: Any, data: Path, cost: Cost) -> None:
    """Keep what a probe says of an order on this machine, whatever its name."""
    keep_found(data, _cost_key(order), asdict(cost))


def keep_took(order: Any, data: Path, seconds: float) -> None:
    """Keep how long all of an order took on this machine, from its start to its end.

    Only of one of which nothing was there before: the rest takes less.
    """
    keep_found(data, _took_key(order), {"seconds": round(seconds, 1)})


def probe_key(kind: str, *parts: object) -> str:
    """The key of what is found on this machine; kind: what that is."""
    return key_of(kind, _MACHINE, *parts)


def found_seconds(data: Path, key: str) -> float | None:
    """Seconds that `keep_found` kept below `data`, None where it did not."""
    found = _read(data, key)
    return float(found["seconds"]) if found else None


def keep_found(data: Path, key: str, found: Mapping[str, float]) -> None:
    """Keep what was found here; asking what something takes begins no data folder."""
    if Path(data).is_dir():
        PieceStore(data).probes.write(key, dict(found))


def order_key(order: Any) -> str:
    """What an order is called in a table: the same on every machine, whatever its name."""
    return key_of("card", _nameless(order))


def read_table(path: Path | None = None) -> Table | None:
    """The table at `path`, by default that of the product; None where it is missing, damaged, or of
    another format.
    """
    try:
        content = json.loads((path or TABLE).read_text(encoding="utf-8"))
        if content["format"] != FORMAT or not content["loop"] > 0:
            return None
        costs = {
            key: Cost(seconds=one["seconds"], alone=one["alone"], disk=one["disk"])
            for key, one in content["orders"].items()
        }
        return Table(loop=content["loop"], orders=costs, machine=content["machine"])
    except (*BROKEN, AttributeError):
        return None


def write_table(table: Table, titles: Mapping[str, str], path: Path | None = None) -> None:
    """Write a table as `read_table` reads it.

    titles: what to call its orders, by their keys, for who reads the file.
    """
    orders = {key: {"card": titles[key], **asdict(cost)} for key, cost in table.orders.items()}
    head = {"format": FORMAT, "machine": table.machine, "loop": table.loop}
    write_json(path or TABLE, {**head, "orders": orders})


def known_pace(data: Path) -> float | None:
    """CPU seconds of the fixed work on this machine, None where nobody has measured them."""
    return found_seconds(data, _pace_key())


def paced(data: Path) -> float:
    """`known_pace`; measured now, in half a second, where it is not known."""
    kept = known_pace(data)
    if kept is None:
        kept = loop()
        keep_found(data, _pace_key(), {"seconds": kept})
    return kept


def loop() -> float:
    """CPU seconds of one core for a fixed work: steps of a small network of convolutions.

    The median of a few rounds, in each of which it does a few steps.
    """
    import torch
    from torch.nn import functional

    images = torch.linspace(-1, 1, 16 * 16 * 16 * 16).reshape(16, 16, 16, 16)
    weight = torch.linspace(-0.1, 0.1, 16 * 16 * 9).reshape(16, 16, 3, 3).requires_grad_()

    def one_round() -> float:
        began = time.process_time()
        for _ in range(_TIMES):
            found = images
            for _ in range(3):
                found = functional.conv2d(found, weight, padding=1).relu()
            torch.autograd.grad(found.square().mean(), weight)
        return time.process_time() - began

    with one_thread():
        one_round()
        return median(one_round() for _ in range(_ROUNDS))


def _nameless(order: Any) -> Mapping[str, Any]:
    return {**to_record(order), "name": ""}


def _cost_key(order: Any) -> str:
    return probe_key("cost of one core", _nameless(order))


def _took_key(order: Any) -> str:
    return probe_key("took", _nameless(order))


def _pace_key() -> str:
    return probe_key("fixed work", _ROUNDS, _TIMES)


def _read(data: Path, key: str) -> dict[str, Any] | None:
    probes = PieceStore(data).probes
    return probes.read(key) if key in probes else None
