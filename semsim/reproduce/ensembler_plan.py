"""List the trainings and attacks of the Ensembler paper, and those that are done."""

from itertools import product
from pathlib import Path

from semsim.reproduce.plans import Work
from semsim.split.defences import Ensembler
from semsim.split.networks import task_of
from semsim.split.outlook import planned_sets, untrained
from semsim.split.plan import (
    SplitPlace,
    SplitPlan,
    attacks_on,
    check,
    make_defence,
    model_name,
)
from semsim.split.train_settings import ShadowAttack, SplitTrainSettings
from semsim.split.translation import SentencePlan, SentenceRun

STEPS = (
    "A cell is a trained system, or an attack on one. A step is an epoch of a training, or of what "
    "an attack trains."
)


def works_of(plan: SplitPlan, data: Path) -> list[Work]:
    """Return the trainings and attacks of an experiment, by network and defence.

    A system counts as trained once one of its reconstruction sets lies below `data`.
    """
    check(plan)
    sets, seeds = planned_sets(plan, data), plan.defence_seeds
    found = []
    for network, defence in product(plan.networks, plan.defences):
        models = {model_name(network, defence, seed) for seed in seeds}
        own = [(model, folder) for model, _, folder in sets if model in models]
        there = [model for model, folder in own if folder.exists()]
        many = len(plan.attack_seeds)
        found += [
            _training(network, defence, plan.train, (len(seeds), len(set(there)))),
            _attack(network, defence, plan.shadow, (many * len(own), many * len(there))),
        ]
    return found


def sentence_works(plan: SentencePlan, place: SplitPlace) -> list[Work]:
    """Return the trainings and attacks of Table 4, by defence."""
    run = SentenceRun(plan, place)
    found = []
    for defence in plan.defences:
        made = untrained(plan.network, defence, task_of(run.public))
        tools = [tool for arm in plan.attacks for tool in attacks_on(made, arm, plan.shadow)]
        systems = [run.key(defence, seed) for seed in plan.defence_seeds]
        reads = [
            run.leak_key(defence, *one)
            for one in product(plan.defence_seeds, tools, plan.attack_seeds)
        ]
        trained = len(systems) - len(run.store.systems.missing(systems))
        read = len(reads) - len(run.leaks.missing(reads))
        found += [
            _training("Table 4", defence, plan.train, (len(systems), trained)),
            _attack("Table 4", defence, plan.shadow, (len(reads), read)),
        ]
    return found


def _training(part: str, defence: str, train: SplitTrainSettings, counts: tuple[int, int]) -> Work:
    """Return a row of trainings; counts: all, and those that are done."""
    shield, epochs = make_defence(defence), train.epochs
    if isinstance(shield, Ensembler):  # its networks are trained apart, then together
        epochs = shield.bodies * train.epochs + train.ensemble_epochs
    cells, done = counts
    return Work(part=part, what=f"train {defence}", cells=cells, done=done, steps=cells * epochs)


def _attack(part: str, defence: str, shadow: ShadowAttack, counts: tuple[int, int]) -> Work:
    cells, done = counts
    steps = cells * (shadow.epochs + shadow.decoder_epochs)
    return Work(part=part, what=f"attack {defence}", cells=cells, done=done, steps=steps)
