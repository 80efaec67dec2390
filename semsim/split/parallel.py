"""An experiment in split inference by several processes, which share the pieces on disk."""

from dataclasses import replace
from functools import cache, partial
from typing import Any

from semsim.grid.processes import each_in_processes
from semsim.progress import Progress, Report, silent
from semsim.split.attacks import ShadowAttack
from semsim.split.plan import SplitPlan
from semsim.split.session import Place, Run, run_split

System = tuple[str, str, int]  # network, defence, seed
_TRAINING, _ATTACKS = 0.3, 0.65  # shares of the progress; putting it together is the rest


def run_spread(
    plan: SplitPlan, place: Place, workers: int, report: Report = silent
) -> dict[str, Any]:
    """As `run_split`: systems are trained side by side, then attacked side by side.

    A system or an attack is never divided, so more processes than there are of them idle.
    """
    if workers == 1:
        return run_split(plan, place, report)
    total = 100 * len(plan.networks) * len(plan.defences) * len(plan.defence_seeds)

    def tell(done: int, *, of: int, start: float, share: float, note: str) -> None:
        reached = round(total * (start + share * done / of))
        report(Progress(reached, total, f"{note}: {done} of {of}"))

    lean = replace(plan, metrics=())  # only what is put together at the end needs them
    run = Run(lean, place)  # trains the recogniser, once
    systems = run.systems()
    needed = list(dict.fromkeys([(n, "none", seed) for n, _, seed in systems] + systems))
    told = partial(tell, of=len(needed), start=0.0, share=_TRAINING, note="systems trained")
    each_in_processes(partial(_train, lean, place), needed, workers, told)
    attacks = [
        (system, tool, seed)
        for system in systems
        for _, tool, seed in run.tools(run.train(*system, silent))
    ]
    told = partial(tell, of=len(attacks), start=_TRAINING, share=_ATTACKS, note="attacks made")
    each_in_processes(partial(_attack, lean, place), attacks, workers, told)
    outcome = run_split(plan, place)
    report(Progress(total, total, "done"))
    return outcome


_run = cache(Run)  # the images, read once a process


def _train(plan: SplitPlan, place: Place, system: System) -> None:
    _run(plan, place).system(*system, silent)


def _attack(plan: SplitPlan, place: Place, work: tuple[System, ShadowAttack, int]) -> None:
    system, tool, seed = work
    run = _run(plan, place)
    run.leak(run.train(*system, silent), tool, seed, silent)
