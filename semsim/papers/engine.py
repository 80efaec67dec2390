"""The engine of the reproductions: presets, what is to run and done, campaigns, and judged tables.

A reproduction prints its cells as --plan asks: to run, done, and not run of its paper. A judged
table is a declaration: its sets are attacked, judged by simulated people and metrics, and ranked in
one way, by one command. A set of controls is judged alike, and ranked nowhere.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import typer

from semsim.attacks import ATTACKS
from semsim.attacks.as_text import read_attack
from semsim.base.cli.terminal import (
    DATA,
    CheckpointsOption,
    DeviceOption,
    Json,
    SchedulerOption,
    TerminalBar,
    WorkersOption,
    rows_of,
    say,
    show_told,
    text_table,
    told_errors,
)
from semsim.base.errors import DataError, SettingsError
from semsim.base.metric_spec import beside_votes
from semsim.base.registry import build, read_plugin
from semsim.base.sets.reader import ReconstructionSet, read_set
from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.evidence import Evidence
from semsim.base.storage.places import toml_of
from semsim.base.words import listed
from semsim.campaign import work
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.plan import Campaign, Plan
from semsim.campaign.runner import HowToRun, run_plan
from semsim.campaign.store import PieceStore
from semsim.datasets import DATASETS
from semsim.datasets.on_disk import present
from semsim.device import pick_device
from semsim.learning.evaluation import evidence_of
from semsim.metrics import MetricSpec, Resources, find_metric
from semsim.metrics.scoring import pair_sets_of_labels, score_sets
from semsim.papers.simulated_votes import CONTROL, Voters, simulated_people, simulated_votes
from semsim.reporting import writing
from semsim.reporting.canvas import SIMULATED
from semsim.reporting.not_run import not_run_text
from semsim.reporting.notation import interval, number, reason
from semsim.reporting.tables import Cells, Table, table_of
from semsim.weights import CHECKPOINTS

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


def of_preset(presets: Mapping[str, T], name: str) -> T:
    """Return what `presets` have under `name`; `SettingsError` names them where it is none."""
    if name not in presets:
        raise SettingsError(f"--preset is one of {', '.join(presets)}; got {name!r}.")
    return presets[name]


@dataclass(frozen=True, kw_only=True)
class Work:
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


@dataclass(frozen=True, kw_only=True)
class WorkPlan:
    """Answer of a reproduction to --plan.

    Attributes:
        name: Of the reproduction.
        note: What a step is.
        preset, below: Its preset, where there are some, and the works of another one, asked of the
            one below it.
        rows, before: Rows and a text that stand before the works.
    """

    name: str
    note: str
    works: Sequence[Work]
    preset: str = ""
    below: Callable[[str], Sequence[Work]] | None = None
    rows: Sequence[Mapping[str, Any]] = ()
    before: str = ""

    def show(self, as_json: bool) -> None:
        """Print it."""
        told = f"{self.before}\n{self.text}" if self.before else self.text
        show_told([*self.rows, *map(asdict, self.works)], told, as_json)

    @property
    def text(self) -> str:
        """The works, and what of the paper was not run."""
        works = self.works
        rows = [
            [one.part, one.what, f"{one.cells:,}", f"{one.done:,}", f"{one.steps:,}"]
            for one in works
        ]
        table = text_table(["row", "what", "cells", "done", "steps"], rows)
        cells, done = sum(one.cells for one in works), sum(one.done for one in works)
        lines = [table, f"{cells:,} cells, {done:,} of them done. {self.note}"]
        return "\n".join([*lines, *self._times(), "", not_run_text(self.name)])

    def _times(self) -> list[str]:
        """Count how many times the steps of the preset below it takes, where there is one."""
        lower, parts = BELOW.get(self.preset), []
        below = self.below(lower) if self.below and lower else ()
        for trains, word in ((True, "trainings"), (False, "attacks")):
            mine, theirs = (
                sum(one.steps for one in some if one.trains is trains)
                for some in (self.works, below)
            )
            if theirs:
                times = mine / theirs
                parts.append(f"{times:,.0f}" if times >= 10 else f"{times:.1f}")
                parts[-1] += f" times the steps of its {word}"
        if not below:
            return []
        told = " and ".join(parts)
        return [f"Against {lower}, {self.preset} takes {told}; counted, not measured."]


def campaign_works(
    asked: Sequence[tuple[str, Campaign]], plans: Sequence[Plan], data: Path
) -> list[Work]:
    """Return what campaigns compute, a row a data set's trainings and one an attack of a part.

    Args:
        asked: Names of parts with their campaigns.
        plans: Of those whose pictures are here, by which it is known what is done below `data`.
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


# Of single pictures, LPIPS by one of its networks; Fréchet distances need more of them in a set.
METRICS = (
    *("psnr", "ssim", "mse", "psnr-registered", "ssim-registered", "ssim-uniform", "ms-ssim"),
    *("lpips-alex", "recogniser", "semsim:demo"),
)
# Ranked by the share of votes: few images make coarse majorities. Nothing reads a p here.
RANKED = AnalysisSettings(headline="mean-response", permutations=99)


class Judged(NamedTuple):
    """Votes of simulated people and scores of `METRICS` on the same sets, controls among them.

    Attributes:
        labels, votes, scores: As `evidence_of` takes them.
        specs: Of the metrics that have scores, with the marks of `beside_votes`.
        absent: Why others have none.
    """

    labels: pd.DataFrame
    votes: pd.DataFrame
    scores: pd.DataFrame
    specs: tuple[MetricSpec, ...]
    absent: Mapping[str, str]

    def of(self, models: Sequence[str]) -> "Judged":
        """Return the votes and scores of the sets with these names."""
        return self._where("model", lambda own: own.isin(list(models)))

    def means(self) -> dict[str, float]:
        """Return the mean of people's votes, and of each metric's scores.

        Infinite scores are kept out of it, except of a metric that has no others.
        """
        every = self.scores.groupby("metric")["value"].mean()
        finite = self.scores[np.isfinite(self.scores["value"])].groupby("metric")["value"].mean()
        values = finite.combine_first(every)
        people = {"people": float(self.votes["recognised"].mean())}
        return {**people, **{s.name: float(values.get(s.name, np.nan)) for s in self.specs}}

    def control(self, title: str) -> dict[str, Any]:
        """The row of the set of controls called `title`: its counts, and its `means`."""
        own = self.of([title])
        n = len(own.labels)
        return {"n_attacked": n, "n_ok": n, "simulated": True, "why": "", **own.means()}

    def evidence(self) -> Evidence:
        """All of it, to be ranked by `RANKED`."""
        return evidence_of(self.labels, self.votes, self.scores, self.specs)

    def agreement(self, columns: Sequence[str]) -> pd.DataFrame:
        """Return each metric's agreement on sets made by attacks, in `columns` of the analysis."""
        attacked = self._where("attack", lambda own: own != CONTROL)
        found = analyse(attacked.evidence(), self.specs, RANKED).agreement
        return found.reindex(columns=list(columns))

    def _where(self, column: str, wanted: Callable[[pd.Series], pd.Series]) -> "Judged":
        labels, votes, scores = (
            one[wanted(one[column])] for one in (self.labels, self.votes, self.scores)
        )
        return self._replace(labels=labels, votes=votes, scores=scores)


class Machines(NamedTuple):
    """Processes that compute, as the options of a command say it, and the folder of weights."""

    workers: int
    scheduler: str
    device: str
    checkpoints: Path


@dataclass(frozen=True, kw_only=True)
class JudgedTable:
    """One reproduction of sets that simulated people and metrics judge.

    Attributes:
        name: Of its command and its folder.
        help: Of the command.
        works: Of a preset and its folder.
        planned: The same with what is done there, and what stands before them.
        made: Computes a preset and writes into its folder; returns rows and what the text says.
        written: Files in that folder, the text first.
    """

    name: str
    help: str
    works: Callable[[str, Path], Sequence[Work]]
    planned: Callable[[str, Path], tuple[Sequence[Work], str]]
    made: Callable[[str, Path, Machines], tuple[pd.DataFrame, str]]
    written: tuple[str, ...]


def command_of(table: JudgedTable) -> Callable[..., None]:
    """The command of a table; what was computed before is not again."""

    def command(
        preset: SizeOption = "small",
        plan: PlanOption = False,
        out: MadeOption = DATA / "reproduce" / table.name,
        workers: WorkersOption = 0,
        scheduler: SchedulerOption = "",
        device: DeviceOption = "auto",
        checkpoints: CheckpointsOption = CHECKPOINTS,
        as_json: Json = False,
    ) -> None:
        folder, (first, *others) = out / preset, table.written
        with told_errors():
            if plan:
                works, before = table.planned(preset, folder)
                WorkPlan(
                    name=table.name,
                    note=CAMPAIGN_STEPS,
                    works=works,
                    preset=preset,
                    below=lambda lower: table.works(lower, folder),
                    before=before,
                ).show(as_json)
                return
            machines = Machines(workers, scheduler, device, checkpoints)
            rows, text = table.made(preset, folder, machines)
            show_told(rows_of(rows), text, as_json)
            say(f"Wrote {folder / first}, {listed(others)}.")

    command.__doc__ = table.help
    return command


def judge_plans(
    study: str,
    aim: str,
    plans: Mapping[str, Plan],
    voters: Voters,
    folder: Path,
    machines: Machines,
) -> tuple[dict[str, list[ReconstructionSet]], Judged]:
    """Carry out `plans` below `folder` and judge what came back, beside the controls.

    Scores are kept in `folder`/scores.

    Args:
        study: What the votes are called.
        aim: The verb of what sets are judged for.

    Returns:
        The sets of each plan, by its name and in its order.

    Raises:
        DataError: Where not one picture came back.
    """
    folder.mkdir(parents=True, exist_ok=True)
    workers, scheduler, device, checkpoints = machines
    made = carried_out(plans, folder, workers=workers, scheduler=scheduler, device=device)
    jury, controls = simulated_people(voters, folder, workers)
    found = {name: [read_set(one) for one in own] for name, own in made.items()}
    shown = [one.folder for own in found.values() for one in own if not one.pairs.empty]
    if not shown:
        raise DataError(f"Every attack failed on every image, so there is nothing to {aim}.")
    resources = Resources(checkpoints=checkpoints.resolve(), device=pick_device(device))
    seen = simulated_votes(study, "recognition", [*shown, *controls.values()], jury)
    pairs, kept = pair_sets_of_labels(seen.labels), folder / "scores"
    with TerminalBar("Judging") as bar:
        book = score_sets(pairs, METRICS, resources, kept, bar)
    specs = beside_votes((find_metric(name).spec for name in METRICS), simulated=True)
    return found, Judged(
        labels=seen.labels,
        votes=pd.DataFrame(seen.votes),
        scores=book.scores,
        specs=tuple(spec for spec in specs if (book.scores["metric"] == spec.name).any()),
        absent={**book.unavailable, **{name: why for (_, name), why in book.refused.items()}},
    )


def first_failure(sets: Sequence[ReconstructionSet]) -> str:
    """The last line of the first error of an attack in `sets`; "" where none failed."""
    errors = [str(error) for one in sets for error in one.manifest["error"] if error]
    return errors[0].strip().splitlines()[-1] if errors else ""


def agreement_table(
    agreement: pd.DataFrame,
    of: str,
    columns: Mapping[str, str | tuple[str, str]],
    *,
    name: str,
    title: str,
    caption: str,
) -> Table:
    """`Judged.agreement` as a table to read, a line a metric.

    Args:
        of: What was ranked, such as "sets".
        columns: By their heads, the statistic that each shows, or both ends of an interval.
    """
    cells: Cells = {
        "metric": lambda row: row["title"],
        of: lambda row: str(row["n"]),
        **{head: partial(_shown, column) for head, column in columns.items()},
        "undefined": lambda row: reason(row["undefined"]) or "",
    }
    return table_of(agreement, cells, name=name, title=title, caption=caption)


def _shown(column: str | tuple[str, str], row: pd.Series) -> str:
    if isinstance(column, str):
        return number(row[column], 2)
    low, high = column
    return interval(row[low], row[high])


def write_tables(
    name: str,
    frames: Mapping[str, pd.DataFrame],
    text: Sequence[str],
    absent: Mapping[str, str],
    folder: Path,
) -> str:
    """Write `frames` as CSV below `folder`, and `text` as NAME.md, which is returned.

    Every row says that its votes are simulated, as all are here.

    Args:
        absent: Why metrics have no column, which it says at its end.
    """
    for stem, frame in frames.items():
        table = writing.csv(frame.assign(**{SIMULATED: True}))
        (folder / f"{stem}.csv").write_text(table, encoding="utf-8")
    missing = [f"{one} has no column: {absent[one]}" for one in METRICS if one in absent]
    whole = "\n".join([*text, *missing])
    (folder / f"{name}.md").write_text(whole + "\n", encoding="utf-8")
    return whole
