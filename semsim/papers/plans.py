"""Print the cells of a reproduction: to run, done, and not run of its paper; run campaigns."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from semsim.attacks import ATTACKS
from semsim.attacks.as_text import read_attack
from semsim.base.cli.terminal import TerminalBar, show_told, text_table
from semsim.base.errors import DataError, SettingsError
from semsim.base.jobs.orders import from_record, to_record
from semsim.base.registry import build, read_plugin
from semsim.base.storage.places import toml_of
from semsim.campaign import work
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.plan import Campaign, Plan
from semsim.campaign.runner import HowToRun, run_plan
from semsim.campaign.store import PieceStore
from semsim.datasets import DATASETS
from semsim.datasets.on_disk import present
from semsim.reporting.not_run import not_run_text

PlanOption = Annotated[
    bool, typer.Option("--plan", help="Say what would run and what is done; compute nothing.")
]
# Of what keeps all that it makes in one folder.
MadeOption = Annotated[Path, typer.Option(help="Folder for all that is made; a run goes on there.")]
SizeOption = Annotated[
    str, typer.Option(help="smoke, small (built-in symbols) or paper (a GPU, CIFAR-100).")
]
BELOW: Mapping[str, str] = {"small": "smoke", "paper": "small"}  # the preset below a preset
CAMPAIGN_STEPS = (
    "A step is an epoch of a training, or a step of an attack on one picture. Not counted: "
    "simulated people, who learn too, and scores."
)
DECLARED: Mapping[str, Any] = toml_of("semsim.papers", "presets.toml")  # by reproduction
T = TypeVar("T")


def changed(base: T, changes: Mapping[str, Any]) -> T:
    """Return the plan `base` with `changes`; what they do not name of a part of it stays.

    Raises `SettingsError` for a setting that it does not have.
    """
    return from_record(type(base), _merged(to_record(base), changes))


def _merged(record: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    parts = {name: one for name, one in changes.items() if isinstance(one, Mapping)}
    return {**record, **changes, **{n: _merged(record[n], one) for n, one in parts.items()}}


def of_preset(presets: Mapping[str, T], name: str) -> T:
    """Return what `presets` have under `name`; `SettingsError` names them where it is none."""
    if name not in presets:
        raise SettingsError(f"--preset is one of {', '.join(presets)}; got {name!r}.")
    return presets[name]


@dataclass(frozen=True, kw_only=True)
class Work:
    """Cells of one kind that a reproduction runs: trainings, or attacked pictures.

    what: begins with "train" or "attack". steps: of all cells together.
    """

    part: str
    what: str
    cells: int
    done: int
    steps: int

    @property
    def trains(self) -> bool:
        """Return True for trainings, False for attacks."""
        return self.what.startswith("train")


def show_plan(
    name: str,
    note: str,
    works: Sequence[Work],
    as_json: bool,
    *,
    preset: str = "",
    below: Callable[[str], Sequence[Work]] | None = None,
    rows: Sequence[Mapping[str, Any]] = (),
    before: str = "",
) -> None:
    """Print the works of the reproduction called `name`, as for --plan.

    note: what a step is. below: the works of a preset, asked of the one below `preset`. rows,
    before: rows and a text that stand before them.
    """
    lower = BELOW.get(preset)
    less = below(lower) if below and lower else ()
    text = planned_text(name, works, note, preset, less)
    said = f"{before}\n{text}" if before else text
    show_told([*rows, *map(asdict, works)], said, as_json)


def planned_text(
    name: str, works: Sequence[Work], note: str, preset: str = "", below: Sequence[Work] = ()
) -> str:
    """Return the works of the reproduction called `name`, and what of its paper was not run.

    note: what a step is. below: the works of the preset below `preset`, if there is one.
    """
    rows = [
        [one.part, one.what, f"{one.cells:,}", f"{one.done:,}", f"{one.steps:,}"] for one in works
    ]
    table = text_table(["row", "what", "cells", "done", "steps"], rows)
    cells, done = sum(one.cells for one in works), sum(one.done for one in works)
    lines = [table, f"{cells:,} cells, {done:,} of them done. {note}"]
    if below:
        lines.append(_times_text(preset, works, below))
    return "\n".join([*lines, "", not_run_text(name)])


def _times_text(preset: str, works: Sequence[Work], below: Sequence[Work]) -> str:
    """Return how many times the steps of the preset below a preset takes."""
    parts = []
    for trains, word in ((True, "trainings"), (False, "attacks")):
        mine, theirs = (
            sum(one.steps for one in some if one.trains is trains) for some in (works, below)
        )
        if theirs:
            times = mine / theirs
            parts.append(f"{times:,.0f}" if times >= 10 else f"{times:.1f}")
            parts[-1] += f" times the steps of its {word}"
    return f"Against {BELOW[preset]}, {preset} takes {' and '.join(parts)}; counted, not measured."


def campaign_works(
    asked: Sequence[tuple[str, Campaign]], plans: Sequence[Plan], data: Path
) -> list[Work]:
    """Return what campaigns compute, a row a data set's trainings and one an attack of a part.

    asked: names of parts with their campaigns. plans: of those whose pictures are here, by which it
    is known what is done below `data`.
    """
    store = PieceStore(data)
    return [*_trainings(asked, plans, store), *_attacks(asked, plans, store)]


def _trainings(
    asked: Sequence[tuple[str, Campaign]], plans: Sequence[Plan], store: PieceStore
) -> list[Work]:
    """Return a row a data set; parts that attack the same targets share them."""
    targets = {(one, campaign.train) for _, campaign in asked for one in product(*_axes(campaign))}
    found = []
    for dataset in dict.fromkeys(text for _, campaign in asked for text in campaign.datasets):
        epochs = [train.epochs for one, train in targets if one[0] == dataset]
        keys = {t.key for plan in plans for t in plan.targets if t.dataset == dataset}
        done, cells = sum(key in store.weights for key in keys), len(epochs)
        found.append(
            Work(part=dataset, what="train targets", cells=cells, done=done, steps=sum(epochs))
        )
    return found


def _attacks(
    asked: Sequence[tuple[str, Campaign]], plans: Sequence[Plan], store: PieceStore
) -> list[Work]:
    by_name = {plan.campaign.name: plan for plan in plans}
    found = []
    for part, campaign in asked:
        sets = math.prod(map(len, (*_axes(campaign), campaign.shares)))
        for text in campaign.attacks:
            done = _attacked(by_name.get(campaign.name), text, store)
            cells, what = sets * campaign.images, f"attack {text}"
            steps = cells * attack_steps(text)
            found.append(Work(part=part, what=what, cells=cells, done=done, steps=steps))
    return found


def _axes(campaign: Campaign) -> tuple[tuple[object, ...], ...]:
    """Return what the targets of a campaign are crossed of; data sets come first."""
    return (
        *(campaign.datasets, campaign.architectures, campaign.strategies),
        *(campaign.trainings, campaign.seeds),
    )


def _attacked(plan: Plan | None, text: str, store: PieceStore) -> int:
    """Return how many cells of an attack are done, as often as sets have them."""
    if plan is None:
        return 0
    attack = read_attack(text)
    own = [cell for one in plan.sets if one.attack == attack for cell in one.cells]
    missing = set(store.cells.missing({cell.key for cell in own}))
    return sum(cell.key not in missing for cell in own)


def attack_steps(text: str) -> int:
    """Return the steps that an attack, written as text, takes on one picture."""
    plugin = read_attack(text)
    attack = build(ATTACKS, plugin.name, plugin.settings)
    return int(attack.steps) * int(getattr(attack, "restarts", 1))


def is_here(text: str) -> bool:
    """Tell whether the data set written as `text` is built in or its files are on this machine."""
    plugin = read_plugin(DATASETS, text)
    return present(build(DATASETS, plugin.name, plugin.settings))


def plans_here(campaigns: Iterable[Campaign]) -> list[Plan]:
    """Return the plans of the campaigns whose pictures are here."""
    return [plan_of(one) for one in campaigns if all(map(is_here, one.datasets))]


def carried_out(
    plans: Mapping[str, Plan], data: Path, *, workers: int, scheduler: str, device: str
) -> dict[str, list[Path]]:
    """The reconstruction sets of every plan, by its name; what is done is not computed again.

    Raises `DataError` where some images could not be attacked.
    """
    from semsim.grid.machines import connect  # with Dask, which takes a second

    made: dict[str, list[Path]] = {}
    with connect(scheduler, workers, needs=work.__name__) as client:
        for name, plan in plans.items():
            with TerminalBar(name) as bar:
                outcome = run_plan(plan, data, client, HowToRun(device=device), bar)
            if outcome["undone"]:
                why = "; ".join(outcome["undone"])
                raise DataError(f"Not all of {name} could be computed; run it again. {why}")
            made[name] = [Path(one) for one in outcome["sets"]]
    return made
