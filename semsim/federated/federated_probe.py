"""How long a federated comparison takes and how much disk it needs, from a few steps.

A second of each training and of each party's attack tells its pace. What is found is kept, see
`semsim.campaign.costs`.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from semsim.campaign.costs import Cost, keep_cost, probe_key
from semsim.campaign.probe import pace, picture_bytes, probed, starting
from semsim.device import one_thread
from semsim.federated import is_table
from semsim.federated.comparison import Loaded, check_settings, load
from semsim.federated.leak import LeakStudy, arms_for
from semsim.federated.rounds import train
from semsim.federated.settings import FederatedOrder, FederatedSettings


@dataclass(frozen=True, kw_only=True)
class FederatedOutlook:
    """What carrying out an order takes.

    attacks: each by one party, on `pictures` pictures; none of a table. seconds: of one core, None
    where it was not measured. disk: bytes.
    """

    trainings: int
    attacks: int
    pictures: int
    seconds: float | None
    disk: int


def told(order: FederatedOrder, data: Path, measuring: bool) -> FederatedOutlook:
    """What `order` takes; measuring: probe where no earlier probe below `data` is known."""
    check_settings(order)
    loaded = load(order.data)
    trainings = [order.training("fedavg"), order.training("pbpfl")]
    trainings += [order.training("fedavg", "cross-entropy")] if order.cross_entropy else []
    attacked = order.arms and loaded.images is not None
    arms = arms_for(order.network, loaded.data, order.arms) if attacked else []
    values = math.prod(loaded.data.input_shape)
    outlook = FederatedOutlook(
        trainings=len(trainings),
        attacks=len(arms),
        pictures=order.images,
        seconds=None,
        disk=len(arms) * order.images * picture_bytes(values),
    )
    if not measuring:
        return outlook
    with one_thread():
        paces = [_training_seconds(order, one, data, loaded) for one in trainings]
        attacks = sum(_attack_seconds(order, arm, data, loaded) for arm in arms)
    before = (order.attack_round - 1) / order.rounds * paces[0] if arms else 0.0
    files = [] if is_table(order.data) else [order.data]
    cost = Cost(
        seconds=sum(paces) + before + attacks,
        alone=starting(data, "semsim.federated.comparison", *files),
        disk=outlook.disk,
    )
    keep_cost(order, data, cost)
    return replace(outlook, seconds=cost.seconds + cost.alone)


def _training_seconds(
    order: FederatedOrder, settings: FederatedSettings, data: Path, loaded: Loaded
) -> float:
    key = probe_key("CPU of a federated training", order.data, settings)
    work = partial(train, settings, loaded.data)
    return probed(data, key, lambda: pace(lambda report: work(report=report)))


def _attack_seconds(order: FederatedOrder, arm: str, data: Path, loaded: Loaded) -> float:
    assert loaded.images is not None
    first = replace(order, attack_round=1)  # an untrained network is attacked as fast
    facts = (order.data, order.network, order.images, order.attack)
    study = LeakStudy(loaded.data, loaded.images, first)
    key = probe_key("CPU of a federated attack", arm, *facts)
    return probed(data, key, lambda: pace(partial(study.attack, arm)))
