"""What the cards of the attack lab take, for the table that comes with the product.

    python -m benchmarks.cards                  # all, and writes semsim/campaign/cards.json
    python -m benchmarks.cards --only "See it"  # cards whose name has that in it; the others stay

Each card is probed as its page does when asked to, one thread, by CPU time, so that other programs
matter less. How fast the machine is, by the fixed
work of `semsim.campaign.costs.loop`, is measured before and after each card, and what the card took
is told as if that had been the same for all. On another machine the same work scales the table.
Pictures of CIFAR-100 that are not there are stood in for by noise of their size, which takes as
long. Cards that were measured stay where the rest is broken off.
"""

import argparse
import contextlib
import platform
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.measuring import begin
from semsim.campaign import costs
from semsim.campaign.costs import Cost, Table
from semsim.campaign.plan import Campaign
from semsim.datasets.cifar import Cifar100
from semsim.device import cores, how_busy
from semsim.federated import federated_probe
from semsim.federated.settings import FederatedOrder
from semsim.split import split_probe
from semsim.split.plan import SplitPlan
from semsim.types import LabelledImages
from semsim.ui import federated_form, reconstruct_data, reconstruct_form, split_form

_COUNTS = {"train": 50_000, "test": 10_000}  # of CIFAR-100


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card of a page. probe: measures its order and keeps what it takes below a folder."""

    name: str
    order: Any
    probe: Callable[[Path], object]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="part of the names of cards")
    parser.add_argument("--out", type=Path, default=costs.TABLE, help="the table to write")
    asked = parser.parse_args()
    offered = cards()
    chosen = [card for card in offered if asked.only in card.name]
    if not chosen:
        parser.error(f"{asked.only!r} is in no name of {', '.join(one.name for one in offered)}")
    begin()
    table = _table(costs.read_table(asked.out))
    titles = {costs.order_key(card.order): card.name for card in offered}
    with _pictures():
        for card in chosen:
            cost = measured(card, table.loop)
            orders = {**table.orders, costs.order_key(card.order): cost}
            table = replace(table, orders={key: orders[key] for key in titles if key in orders})
            costs.write_table(table, titles, asked.out)
            times = f"{cost.seconds:,.1f} s of one core, {cost.alone:.1f} s to begin"
            print(f"{card.name}: {times}, {cost.disk / 1e6:,.1f} MB", flush=True)
    for key in titles.keys() - table.orders.keys():
        print(f"{titles[key]}: not measured")


def cards() -> list[Card]:
    """All cards of the pages that attack, the quick ones first."""
    pages: tuple[tuple[str, Sequence[Any], Callable[..., object]], ...] = (
        ("Reconstruct", reconstruct_form.CARDS, _campaign),
        ("Split inference", split_form.CARDS, _experiment),
        ("Federated", federated_form.CARDS, _comparison),
    )
    found = [
        Card(name=f"{page}: {title}", order=order, probe=partial(told, order))
        for page, offered, told in pages
        for title, _, order in offered
    ]
    return sorted(found, key=lambda card: ("As in the paper" in card.name, card.name))


def _campaign(campaign: Campaign, data: Path) -> object:
    return reconstruct_data.told(campaign, data, True)


def _experiment(plan: SplitPlan, data: Path) -> object:
    return split_probe.told(replace(plan, name="card"), data, "cpu", True)


def _comparison(order: FederatedOrder, data: Path) -> object:
    return federated_probe.told(order, data, True)


def measured(card: Card, loop: float) -> Cost:
    """What a card takes where the fixed work takes `loop` seconds.

    Nothing is taken over from another card, which may have been measured at another pace.
    """
    with tempfile.TemporaryDirectory() as folder:
        before = costs.loop()
        card.probe(Path(folder))
        now = (before + costs.loop()) / 2
        cost = costs.known_cost(card.order, Path(folder))
    assert cost is not None
    found = costs.scaled(cost, loop / now)
    return replace(found, seconds=round(found.seconds, 2), alone=round(found.alone, 2))


def _table(before: Table | None) -> Table:
    """A table with the rows of `before`, as if this machine had measured them."""
    loop = round(costs.loop(), 5)
    orders = {} if before is None else before.orders
    slower = 1.0 if before is None else loop / before.loop
    return Table(
        loop=loop,
        orders={key: costs.scaled(cost, slower) for key, cost in orders.items()},
        machine=(
            f"{platform.machine()}, {cores()} cores, PyTorch {torch.__version__}, "
            f"{datetime.now(UTC):%B %Y}, {how_busy()}; CPU seconds"
        ),
    )


@contextlib.contextmanager
def _pictures() -> Iterator[None]:
    if Cifar100().present():
        yield
        return
    print("No pictures of CIFAR-100 here: noise of their size in their place.\n")
    with patch.object(Cifar100, "__call__", _noise):
        yield


def _noise(data: Cifar100, split: str) -> LabelledImages:
    count = _COUNTS[split]
    one = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    return LabelledImages(
        dataset="cifar100",
        classes=tuple(map(str, range(100))),
        ids=tuple(f"{split}-{number}" for number in range(count)),
        images=one.expand(count, -1, -1, -1),
        labels=torch.arange(count) % 100,
    )


if __name__ == "__main__":
    main()
