"""List the trainings and attacks of the PBPFL tables, and those that are done."""

from collections.abc import Sequence
from pathlib import Path

from semsim.grid.engine import Piece
from semsim.reproduce.pbpfl_leak import LeakPlan
from semsim.reproduce.plans import Work, attack_steps

STEPS = (
    "A step is a mini-batch of a client, or a step of an attack on one picture. Not counted: "
    "Tables 5 and 6, the rounds before an attacked one, and answers on test examples."
)


def training_works(table: str, pieces: Sequence[Piece]) -> list[Work]:
    """Return a row a network and scheme of the comparisons in `pieces`."""
    works = []
    for network in dict.fromkeys(one.asked[0].network for one in pieces):
        own = [one for one in pieces if one.asked[0].network == network]
        steps = sum(one.asked[0].rounds * one.asked[0].clients for one in own)
        for scheme in own[0].asked[2]:
            what = f"train {network}, {scheme}"
            works.append(Work(part=table, what=what, cells=len(own), done=_done(own), steps=steps))
    return works


def leak_works(plan: LeakPlan, pieces: Sequence[Piece]) -> list[Work]:
    """Return a row a network and party of the attacks in `pieces`; a cell is a picture."""
    groups: dict[tuple[str, str], list[Piece]] = {}
    for piece in pieces:
        _, network, _, _, arm, _ = piece.asked
        groups.setdefault((network, arm), []).append(piece)
    works = []
    for (network, arm), own in groups.items():
        cells = plan.images * len(own)
        works.append(
            Work(
                part="What leaks",
                what=f"attack {network}, {arm}",
                cells=cells,
                done=plan.images * _done(own),
                steps=cells * attack_steps(plan.attack),
            )
        )
    return works


def _done(pieces: Sequence[Piece]) -> int:
    return sum(Path(one.key).exists() for one in pieces)
