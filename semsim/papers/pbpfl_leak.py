"""Reconstructions by each party under PBPFL: untrained and trained networks, several seeds.

A reconstruction set a network, round, seed and arm, below `leak/`. One that is there is not
computed again.
"""

import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from semsim.base.errors import SettingsError
from semsim.base.progress import Report
from semsim.base.storage.atomic import write_json
from semsim.base.words import counted
from semsim.grid.executor import Piece
from semsim.papers.plans import Work, attack_steps
from semsim.sets.reader import read_set
from semsim.systems.federated.arms import ARMS, REFERENCE
from semsim.systems.federated.comparison import Loaded, load
from semsim.systems.federated.leak import LeakStudy, arms_for, write_arm
from semsim.systems.federated.settings import FederatedOrder
from semsim.systems.federated.summary import leak_table
from semsim.systems.federated.verdict import over_seeds, scores_in, sentence, summary


@dataclass(frozen=True, kw_only=True)
class LeakPlan:
    """Plan of the attacked networks, rounds and images.

    networks: names, with the arms of each; the arms they are compared with come along. rounds: the
    attacked ones, of which 1 is an untrained network. seeds: each with weights, clients and images
    of its own. images: as many clients, each with one image in its mini-batch. lr: of the rounds
    before.
    """

    data: str = "digits"
    networks: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("lenet", tuple(ARMS)),
        ("mlp-3", tuple(ARMS)),
    )
    rounds: tuple[int, ...] = (1, 61)
    seeds: int = 5
    images: int = 16
    lr: float = 0.05
    attack: str = "invgrad:steps=300,tv=0.002"


def leak_pieces(plan: LeakPlan, out: Path) -> list[Piece]:
    """One attack an arm; those that attack one image after the other first, as they take long."""
    pieces = [
        Piece(
            key=str(_folder(out, network, number, seed) / "sets" / arm / "run.json"),
            work=_attack,
            asked=(plan, network, number, seed, arm, out),
            note=f"{network}, round {number}, seed {seed}: {ARMS[arm].title}",
        )
        for network, wanted in plan.networks
        for number in plan.rounds
        for seed in range(plan.seeds)
        for arm in arms_for(network, loaded(plan.data).data, wanted)
    ]
    return sorted(pieces, key=lambda one: own_models(Path(one.key).parent.name), reverse=True)


def leak_works(plan: LeakPlan, pieces: Sequence[Piece]) -> list[Work]:
    """Return a row a network and party of the attacks in `pieces`; a cell is a picture."""
    groups: dict[tuple[str, str], list[Piece]] = {}
    for piece in pieces:
        _, network, _, _, arm, _ = piece.asked
        groups.setdefault((network, arm), []).append(piece)
    works = []
    for (network, arm), own in groups.items():
        cells, done = (plan.images * n for n in (len(own), n_done(own)))
        what, steps = f"attack {network}, {arm}", cells * attack_steps(plan.attack)
        works.append(Work(part="What leaks", what=what, cells=cells, done=done, steps=steps))
    return works


def n_done(pieces: Sequence[Piece]) -> int:
    """Count the files of `pieces` that are there."""
    return sum(Path(one.key).exists() for one in pieces)


def leak_text(plan: LeakPlan, out: Path) -> str:
    """Tables and verdicts of all that was attacked, which leak.json in `out` keeps, too."""
    found = [
        _summed(plan, out, network, number, arms_for(network, loaded(plan.data).data, wanted))
        for network, wanted in plan.networks
        for number in plan.rounds
    ]
    write_json(out / "leak.json", {"plan": asdict(plan), "found": found})
    return "\n\n".join(_words(plan, one) for one in found)


def _attack(
    plan: LeakPlan, network: str, number: int, seed: int, arm: str, out: Path, *, report: Report
) -> None:
    study = _study(plan, network, number, seed)
    write_arm(_folder(out, network, number, seed) / "sets" / arm, study, study.attack(arm, report))


def _summed(
    plan: LeakPlan, out: Path, network: str, number: int, arms: Sequence[str]
) -> dict[str, Any]:
    """The scores of one network in one round over all seeds."""
    folders = [_folder(out, network, number, seed) for seed in range(plan.seeds)]
    scores = over_seeds([scores_in(folder, list(arms)) for folder in folders])
    shares = [read_set(folder / "sets" / REFERENCE).run["target"]["accuracy"] for folder in folders]
    return {
        "network": network,
        "round": number,
        "accuracy": sum(shares) / len(shares),
        "scores": [asdict(score) for score in scores],
        "sentences": [sentence(score) for score in scores],
        "summary": summary(scores),
    }


def _words(plan: LeakPlan, one: dict[str, Any]) -> str:
    state = "untrained" if one["round"] == 1 else f"after {one['round'] - 1} rounds"
    head = (
        f"What leaks: {one['network']}, {state} (accuracy {one['accuracy']:.0%}), {plan.data}, "
        f"{counted(plan.seeds, 'seed')} of {counted(plan.images, 'image')}, {plan.attack}. Mean ± "
        f"sd and differences with 95 % intervals over {'seeds' if plan.seeds > 1 else 'images'}."
    )
    return "\n".join([head, leak_table(one), *one["sentences"], "In short:", *one["summary"]])


def own_models(arm: str) -> bool:
    """Return whether every client's image is attacked by another model, which excludes batches."""
    own = ARMS[arm]
    return own.view != "server" and own.noise_scope == "client" and own.treatment != "closed-form"


def _folder(out: Path, network: str, number: int, seed: int) -> Path:
    return out / "leak" / f"{network}-round{number}-seed{seed}"


@functools.lru_cache(maxsize=4)  # of a seed: both networks, untrained and trained
def _study(plan: LeakPlan, network: str, number: int, seed: int) -> LeakStudy:
    found = loaded(plan.data)
    if found.images is None:
        raise SettingsError(f"Only images can be reconstructed; {plan.data!r} is a table.")
    order = FederatedOrder(
        network=network,
        images=plan.images,
        attack_round=number,
        lr=plan.lr,
        seed=seed,
        attack=plan.attack,
    )
    return LeakStudy(found.data, found.images, order)


@functools.lru_cache(maxsize=2)
def loaded(name: str) -> Loaded:
    """`load`, once a process."""
    return load(name)
