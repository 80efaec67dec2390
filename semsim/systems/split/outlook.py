"""Count the systems, attacks, sets and disk of an experiment in split inference."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

from semsim.layer_graph import count_parameters
from semsim.sets.image import picture_bytes
from semsim.systems.split.defences import draw_selector
from semsim.systems.split.networks import AnyTask, SplitNetwork, Task, task_of
from semsim.systems.split.plan import (
    SplitPlan,
    attack_name,
    attacks_on,
    check,
    make_dataset,
    make_defence,
    make_network,
    model_name,
    set_folder,
)
from semsim.systems.split.system import SplitSystem, empty_system


@dataclass(frozen=True, kw_only=True)
class SplitOutlook:
    """Counts and disk of a plan of which nothing is done yet.

    attacks: each on `pictures` pictures. disk: bytes.
    """

    systems: int
    attacks: int
    pictures: int
    disk: int


def outlook(plan: SplitPlan) -> SplitOutlook:
    """Return what carrying out `plan` makes; raises what is wrong with it."""
    check(plan)
    made = make_dataset(plan.dataset)
    task, test = task_of(made("train")), made("test")
    systems = [
        untrained(make_network(network), defence, task)
        for network, defence in product(plan.networks, plan.defences)
    ]
    seeds, pictures = len(plan.defence_seeds), min(plan.images, len(test))
    attacks = sum(len(attacks_on(one, arm, plan.shadow)) for one in systems for arm in plan.attacks)
    judged = seeds * attacks * len(plan.attack_seeds)
    return SplitOutlook(
        systems=seeds * len(systems),
        attacks=judged,
        pictures=pictures,
        disk=seeds * sum(4 * count_parameters(one) for one in systems)
        + judged * pictures * picture_bytes(test.images[0].numel()),
    )


def planned_sets(plan: SplitPlan, data: Path) -> tuple[tuple[str, str, Path], ...]:
    """Return the model, the attack and the folder of every set of a plan, in their order."""
    any_task = Task(size=(32, 32), classes=2, mean=(0.5,) * 3, std=(0.25,) * 3)
    found = []
    for network, seed, defence in product(plan.networks, plan.defence_seeds, plan.defences):
        made = untrained(make_network(network), defence, any_task)
        model = model_name(network, defence, seed)
        for arm in plan.attacks:
            for tool in attacks_on(made, arm, plan.shadow):
                attack = attack_name(arm, tool)
                found.append((model, attack, set_folder(data, plan, model, attack)))
    return tuple(found)


def untrained(network: SplitNetwork, defence: str, task: AnyTask) -> SplitSystem:
    """Return a system that has the parts of one with `defence`, written as text."""
    shield = make_defence(defence)
    bodies = getattr(shield, "bodies", 1)
    made = empty_system(network, task, bodies=bodies)
    made.selector = draw_selector(bodies, getattr(shield, "selected", bodies), 0)
    return made
