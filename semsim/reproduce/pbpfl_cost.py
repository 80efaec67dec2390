"""What the tables of PBPFL take on this machine: a second of each training and of each attack."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from semsim.campaign.probe import pace, picture_bytes
from semsim.device import one_thread
from semsim.federated.arms import ARMS
from semsim.federated.comparison import load
from semsim.federated.data import FederatedData
from semsim.federated.leak import LeakStudy
from semsim.federated.rounds import train
from semsim.federated.settings import FederatedSettings
from semsim.grid.engine import Piece
from semsim.progress import Progress, Report, silent
from semsim.reproduce.pbpfl_leak import LeakPlan, loaded, own_models
from semsim.reproduce.plans import Share

NOT_COUNTED = (
    "Extrapolated from a second of each training by one client, those with more clients taking as "
    "many steps, and from a second of attacks on each network: those in which all clients have "
    "one model take as long as each other, and so do those in which each has its own. Not in it: "
    "Tables 5 and 6, minutes, the rounds before an attacked one, and answers on test examples."
)
_TESTED = 32  # test examples that a probe asks: of all, that may take longer than many steps


def under(settings: FederatedSettings, scheme: str) -> FederatedSettings:
    """The same training as FedAvg-CE, FedAvg-MSE or PBPFL, as the paper's tables call them."""
    if scheme == "PBPFL":
        return replace(settings, scheme="pbpfl")
    return replace(settings, loss="cross-entropy" if scheme == "FedAvg-CE" else "mse")


def costs_of(
    trained: Mapping[str, Sequence[Piece]],
    leak: LeakPlan,
    attacks: Sequence[Piece],
    report: Report = silent,
) -> tuple[list[Share], int]:
    """Where the time goes, and bytes of disk. trained: the comparisons of each table by its name.

    attacks: of `leak`.
    """
    shares = [one for table, own in trained.items() for one in training_shares(table, own, report)]
    pictures = len(attacks) * leak.images
    disk = pictures * picture_bytes(math.prod(loaded(leak.data).data.input_shape))
    return [*shares, *leak_shares(leak, attacks, report)], disk


def training_shares(table: str, pieces: Sequence[Piece], report: Report = silent) -> list[Share]:
    """A share a network and scheme of the comparisons in `pieces`.

    Only the first of each network is measured: one with more clients takes as many steps.
    """
    by_network: dict[str, list[Piece]] = {}
    for piece in pieces:
        by_network.setdefault(piece.asked[0].network, []).append(piece)
    shares = []
    for done, (network, own) in enumerate(by_network.items()):
        report(Progress(done, len(by_network), f"{table}: {network}"))
        settings, data, schemes, _ = own[0].asked
        examples = _hardly_tested(load(data).data)
        for scheme in schemes:
            with one_thread():
                seconds = len(own) * pace(partial(_train, under(settings, scheme), examples))
            what = f"train {network}, {scheme}"
            shares.append(Share(part=table, what=what, count=len(own), seconds=seconds))
    return shares


def _train(settings: FederatedSettings, data: FederatedData, report: Report) -> None:
    train(settings, data, report=report)


def leak_shares(plan: LeakPlan, pieces: Sequence[Piece], report: Report = silent) -> list[Share]:
    """A share a network and party of the attacks in `pieces`, each on all images of a seed."""
    counts: dict[tuple[str, str], int] = {}
    for piece in pieces:
        _, network, _, _, arm, _ = piece.asked
        counts[network, arm] = counts.get((network, arm), 0) + 1
    found, shares = loaded(plan.data), []
    if found.images is None:
        return []  # a table has no pictures to attack
    data, paces = _hardly_tested(found.data), dict[tuple[str, bool, bool], float]()
    for done, ((network, arm), count) in enumerate(counts.items()):
        report(Progress(done, len(counts), f"What leaks: {network}, {arm}"))
        alike = network, own_models(arm), ARMS[arm].treatment == "closed-form"
        if alike not in paces:
            study = LeakStudy(data, found.images, plan.order(network, 1, 0))
            with one_thread():
                paces[alike] = pace(partial(study.attack, arm))
        what = f"attack {network}, {arm}"
        seconds = count * paces[alike]
        shares.append(Share(part="What leaks", what=what, count=count, seconds=seconds))
    return shares


def _hardly_tested(data: FederatedData) -> FederatedData:
    """The same with a few test examples."""
    return replace(data, test=data.test.pick(range(min(_TESTED, len(data.test)))))
