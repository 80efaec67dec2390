"""The engine of the reproductions: presets, published numbers, plans of work, and tables.

A table is its rows × columns × a function of a cell, what the paper prints among the columns; each
is declared by the paper that has it. --plan counts what is to run, what of it is done, and names
what of the paper was not run.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import pandas as pd
import typer

from semsim.attacks import ATTACKS
from semsim.attacks.as_text import read_attack
from semsim.base.cli.terminal import TerminalBar, show_told, text_table
from semsim.base.errors import DataError, SettingsError
from semsim.base.registry import built
from semsim.base.storage.places import toml_of
from semsim.campaign import work
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.plan import Campaign, Plan
from semsim.campaign.runner import HowToRun, run_plan
from semsim.campaign.store import PieceStore
from semsim.datasets import DATASETS
from semsim.datasets.on_disk import present
from semsim.reporting.not_run import not_run_text
from semsim.reporting.tables import Table

PlanOption = Annotated[
    bool, typer.Option("--plan", help="Say what would run and what is done; compute nothing.")
]
# Of what keeps all that it makes in one folder.
MadeOption = Annotated[Path, typer.Option(help="Folder for all that is made; a run goes on there.")]
BELOW: Mapping[str, str] = {"small": "smoke", "paper": "small"}  # the preset below a preset
DECLARED: Mapping[str, Any] = toml_of("semsim.papers", "presets.toml")  # by reproduction
PRINTED: Mapping[str, Any] = toml_of("semsim.papers", "printed.toml")  # by paper
_CAPTIONS: Mapping[str, Any] = toml_of("semsim.papers", "captions.toml")  # by reproduction
Row = Mapping[str, Any]
Columns = Mapping[str, Callable[[Row], str]]  # a table's heads, with the text of a row below each
T = TypeVar("T")


def of_preset(presets: Mapping[str, T], name: str) -> T:
    """Return what `presets` have under `name`; `SettingsError` names them where it is none."""
    if name not in presets:
        raise SettingsError(f"--preset is one of {', '.join(presets)}; got {name!r}.")
    return presets[name]


def titled(paper: str, table: str, /, **values: object) -> dict[str, str]:
    """Return name, title and caption of a table, with `values` where they have braces."""
    found = {key: one.format(**values) for key, one in _CAPTIONS[paper][table].items()}
    return {"name": table, **found}


def table(
    told: Mapping[str, str],
    frame: pd.DataFrame,
    head: Sequence[str],
    lines: Sequence[Sequence[str]],
    best: Iterable[tuple[int, int]] = (),
) -> Table:
    """Return a table to read, of its cells line by line; `told`: of `titled`."""
    cells = pd.DataFrame([list(line) for line in lines], columns=list(head))
    return Table(**told, frame=frame, cells=cells, best=frozenset(best))  # type: ignore[arg-type]


def caption(paper: str, table: str, /, **values: object) -> str:
    """Return the text of a paper that stands above or below a table, with `values` in braces."""
    return str(_CAPTIONS[paper][table]).format(**values)


def column(name: str, form: str = "") -> Callable[[Row], str]:
    """Return the text of a row's value, as `form` says it."""

    def text(row: Row) -> str:
        return f"{row[name]:{form}}"

    return text


def text_of(columns: Columns, rows: Iterable[Row]) -> str:
    """Return a table for a terminal."""
    return text_table(list(columns), lines_of(columns, rows))


def markdown_of(columns: Columns, rows: Iterable[Row]) -> list[str]:
    """Return the lines of a table in Markdown."""
    body = map(markdown_line, lines_of(columns, rows))
    return [markdown_line(columns), "| --- " * len(columns) + "|", *body]


def markdown_line(cells: Iterable[str]) -> str:
    """Return a line of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def lines_of(columns: Columns, rows: Iterable[Row]) -> list[list[str]]:
    """Return the cells of a table, a list a row."""
    return [[show(row) for show in columns.values()] for row in rows]


class Work(NamedTuple):
    """Cells of one kind that a reproduction runs: trainings, or attacked pictures.

    Attributes:
        what: Begins with "train" or "attack".
        steps: Of all cells together.
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


# A preset, and the works of another one, asked of the one below it.
Below = tuple[str, Callable[[str], Sequence[Work]]]
_WORKS: Columns = {
    "row": column("part"),
    "what": column("what"),
    **{name: column(name, ",") for name in ("cells", "done", "steps")},
}


def show_plan(
    name: str,
    works: Sequence[Work],
    as_json: bool,
    below: Below | None = None,
    *,
    also: Mapping[str, Any] | None = None,
    before: str = "",
) -> None:
    """Print the answer of a reproduction to --plan.

    Args:
        below: Its preset, and the works of the one below it.
        also: Parts of its JSON besides the works.
        before: Text above them.
    """
    text = "\n".join(filter(None, [before, plan_text(name, works, below)]))
    show_told({**(also or {}), "works": [one._asdict() for one in works]}, text, as_json)


def plan_text(name: str, works: Sequence[Work], below: Below | None = None) -> str:
    """Return the works of a reproduction, and what of its paper was not run."""
    cells, done = sum(one.cells for one in works), sum(one.done for one in works)
    lines = [text_of(_WORKS, (one._asdict() for one in works))]
    lines += [f"{cells:,} cells, {done:,} of them done. {DECLARED['steps'][name]}"]
    preset, works_of = below or ("", None)
    if works_of and (lower := BELOW.get(preset)):
        lines += [f"Against {lower}, {preset} takes {_times(works, works_of(lower))}"]
    return "\n".join([*lines, "", not_run_text(name)])


def _times(works: Sequence[Work], below: Sequence[Work]) -> str:
    """Return how many times the steps of other works these take."""
    parts = []
    for trains, word in ((True, "trainings"), (False, "attacks")):
        mine, theirs = (
            sum(one.steps for one in some if one.trains is trains) for some in (works, below)
        )
        if theirs:
            times = mine / theirs
            told = f"{times:,.0f}" if times >= 10 else f"{times:.1f}"
            parts.append(f"{told} times the steps of its {word}")
    return f"{' and '.join(parts)}; counted, not measured."


def campaign_works(
    asked: Sequence[tuple[str, Campaign]], plans: Sequence[Plan], data: Path
) -> list[Work]:
    """Return what campaigns compute, a row a data set's trainings and one an attack of a part.

    Parts that attack the same targets share them.

    Args:
        asked: Names of parts with their campaigns.
        plans: Of those whose pictures are here, by which it is known what is done below `data`.
    """
    store, found = PieceStore(data), []
    targets = {(one, campaign.train) for _, campaign in asked for one in product(*_axes(campaign))}
    for dataset in dict.fromkeys(text for _, campaign in asked for text in campaign.datasets):
        epochs = [train.epochs for one, train in targets if one[0] == dataset]
        keys = {t.key for plan in plans for t in plan.targets if t.dataset == dataset}
        done = sum(key in store.weights for key in keys)
        found.append(Work(dataset, "train targets", len(epochs), done, sum(epochs)))
    by_name = {plan.campaign.name: plan for plan in plans}
    for part, campaign in asked:
        cells = math.prod(map(len, (*_axes(campaign), campaign.shares))) * campaign.images
        for text in campaign.attacks:
            done, steps = _attacked(by_name.get(campaign.name), text, store), attack_steps(text)
            found.append(Work(part, f"attack {text}", cells, done, cells * steps))
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
    attack = built(ATTACKS, read_attack(text))
    return int(getattr(attack, "steps", 1)) * int(getattr(attack, "restarts", 1))


def is_here(text: str) -> bool:
    """Tell whether the data set written as `text` is built in or its files are on this machine."""
    return present(built(DATASETS, text))


def plans_here(campaigns: Iterable[Campaign]) -> list[Plan]:
    """Return the plans of the campaigns whose pictures are here."""
    return [plan_of(one) for one in campaigns if all(map(is_here, one.datasets))]


class Machines(NamedTuple):
    """Processes that compute, as the options of a command say it, and the folder of weights."""

    workers: int
    scheduler: str
    device: str
    checkpoints: Path


def carried_out(plans: Mapping[str, Plan], data: Path, machines: Machines) -> dict[str, list[Path]]:
    """The reconstruction sets of every plan, by its name; what is done is not computed again.

    Raises `DataError` where some images could not be attacked.
    """
    from semsim.grid.machines import connect  # with Dask, which takes a second

    made: dict[str, list[Path]] = {}
    how = HowToRun(device=machines.device)
    with connect(machines.scheduler, machines.workers, needs=work.__name__) as client:
        for name, plan in plans.items():
            with TerminalBar(name) as bar:
                outcome = run_plan(plan, data, client, how, bar)
            if outcome["undone"]:
                why = "; ".join(outcome["undone"])
                raise DataError(f"Not all of {name} could be computed; run it again. {why}")
            made[name] = [Path(one) for one in outcome["sets"]]
    return made
