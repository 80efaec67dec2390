"""Tables of what simulated people and metrics say of attacked sets, each a declaration.

Sets are attacked, judged and ranked in one way, by one command. A set of controls is judged alike,
and ranked nowhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

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
    told_errors,
)
from semsim.base.errors import DataError
from semsim.base.metric_spec import beside_votes
from semsim.base.sets.reader import ReconstructionSet, read_set
from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.evidence import Evidence
from semsim.base.words import listed
from semsim.campaign.plan import Plan
from semsim.device import pick_device
from semsim.learning.evaluation import evidence_of
from semsim.metrics import MetricSpec, Resources, find_metric
from semsim.metrics.scoring import pair_sets_of_labels, score_sets
from semsim.papers.plans import (
    CAMPAIGN_STEPS,
    MadeOption,
    PlanOption,
    SizeOption,
    Work,
    carried_out,
    show_plan,
)
from semsim.papers.simulated_votes import CONTROL, Voters, simulated_people, simulated_votes
from semsim.reporting import writing
from semsim.reporting.canvas import SIMULATED
from semsim.reporting.notation import interval, number, reason
from semsim.reporting.tables import Cells, Table, table_of
from semsim.weights import CHECKPOINTS

# Of single pictures, LPIPS by one of its networks; Fréchet distances need more of them in a set.
METRICS = (
    *("psnr", "ssim", "mse", "psnr-registered", "ssim-registered", "ssim-uniform", "ms-ssim"),
    *("lpips-alex", "recogniser", "semsim:demo"),
)
# Ranked by the share of votes: few images make coarse majorities. Nothing reads a p here.
RANKED = AnalysisSettings(headline="mean-response", permutations=99)


class Judged(NamedTuple):
    """Votes of simulated people and scores of `METRICS` on the same sets, controls among them.

    labels, votes, scores: as `evidence_of` takes them. specs: of the metrics that have scores, with
    the marks of `beside_votes`.
    absent: why others have none.
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

    name: of its command and its folder. help: of the command. works: of a preset and its folder.
    planned: the same with what is done there, and what stands before them. made: computes a preset
    and writes into its folder; returns rows and what the text says. written: files in that folder,
    the text first.
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
                show_plan(
                    *(table.name, CAMPAIGN_STEPS, works, as_json),
                    preset=preset,
                    below=lambda lower: table.works(lower, folder),
                    before=before,
                )
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
    study: what the votes are called. aim: the verb of what sets are judged for. Returns the sets of
    each plan, by its name and in its order. Raises `DataError` where not one picture came back.
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

    of: what was ranked, such as "sets". columns: by their heads, the statistic that each shows, or
    both ends of an interval.
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
    absent: why metrics have no column, which it says at its end.
    """
    for stem, frame in frames.items():
        table = writing.csv(frame.assign(**{SIMULATED: True}))
        (folder / f"{stem}.csv").write_text(table, encoding="utf-8")
    missing = [f"{one} has no column: {absent[one]}" for one in METRICS if one in absent]
    whole = "\n".join([*text, *missing])
    (folder / f"{name}.md").write_text(whole + "\n", encoding="utf-8")
    return whole
