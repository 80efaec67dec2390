"""The engine of judged tables: campaigns whose pictures simulated annotators and metrics judge.

A judged table is declared: its campaigns, its rows, its columns and its texts. Sets are attacked,
judged beside controls, and ranked in one way, by one command. A set of controls is judged alike,
and ranked nowhere.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import typer

from semsim.attacks.as_text import read_attack
from semsim.base.cli import terminal
from semsim.base.cli.terminal import rows_of, say
from semsim.base.errors import DataError, SettingsError, StopRequestedError
from semsim.base.metric_spec import beside_votes
from semsim.base.progress import one_step
from semsim.base.registry import Plugin, built, read_plugin
from semsim.base.sets.reader import ReconstructionSet, read_set
from semsim.base.stats.analysis import AnalysisSettings, analyse
from semsim.base.stats.evidence import Evidence
from semsim.base.words import counted, listed
from semsim.campaign.campaign_job import load, plan_of
from semsim.campaign.plan import Campaign, Plan
from semsim.campaign.work import attack_images
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES, read_strategy
from semsim.device import pick_device
from semsim.learning.evaluation import evidence_of
from semsim.metrics import MetricSpec, Resources, find_metric
from semsim.metrics.scoring import pair_sets_of_labels, score_sets
from semsim.papers import engine, simulated_votes
from semsim.papers.simulated_votes import CONTROL, SAYS_NOTHING
from semsim.reporting import writing
from semsim.reporting.canvas import SIMULATED
from semsim.reporting.notation import NONE, interval, number, reason
from semsim.reporting.tables import Cells, Table, table_of
from semsim.targets import NETWORKS
from semsim.targets.each_image import check_trainable
from semsim.targets.model import TargetModel
from semsim.weights import CHECKPOINTS

SizeOption = Annotated[
    str, typer.Option(help="smoke, small (built-in symbols) or, of most, paper (a GPU, CIFAR-100).")
]
Sets = Mapping[str, Sequence[ReconstructionSet]]  # by the name of their campaign

# Of single pictures, LPIPS by one of its networks; Fréchet distances need more of them in a set.
METRICS = (
    *("psnr", "ssim", "mse", "psnr-registered", "ssim-registered", "ssim-uniform", "ms-ssim"),
    *("lpips-alex", "recogniser", "semsim:demo"),
)
# Ranked by the share of votes: few images make coarse majorities. Nothing reads a p here.
RANKED = AnalysisSettings(headline="mean-response", permutations=99)
OK, FAILED, UNFIT = "ok", "failed", "cannot be"  # the status of a cell; "ok" has pictures
ENOUGH = 0.9  # of the originals: fewer, and simulated annotators are too blunt to stand for anybody


_PLAIN = Plugin(name="none")


class Judged(NamedTuple):
    """Votes of simulated annotators and scores of `METRICS` on the same sets, controls among them.

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

    def facts(self, sets: Sequence[ReconstructionSet]) -> dict[str, Any]:
        """Return the counts of sets and their `means`, as columns of a row."""
        own = self.of([one.model for one in sets])
        n, errors = len(own.labels), [e for one in sets for e in one.manifest["error"] if e]
        why = str(errors[0]).strip().splitlines()[-1] if errors else ""  # the first error's end
        found = {"n_attacked": sum(len(one.manifest) for one in sets), "n_ok": n, "why": why}
        return {**found, "simulated": True, **(own.means() if n else {})}

    def guesses(self, ids: Collection[str]) -> dict[str, float]:
        """Return the share of votes that recognise grey and mean pictures in place of originals.

        Empty without `ids` of originals.
        """
        found = {}
        for kind in (simulated_votes.GREY, simulated_votes.MEAN) if ids else ():
            votes = self.of([simulated_votes.TITLES[kind]]).votes
            shown = votes["recognised"][votes["image_id"].isin(ids)]
            found[f"people_{kind}"] = float(shown.mean())
        return found

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


@dataclass(frozen=True, kw_only=True)
class JudgedScale:
    """Campaigns on one data set, and who judges them.

    Attributes:
        name: Of a preset.
        parts: Titles and campaigns; the campaigns have names of their own.
        jury_epochs: Of simulated annotators, in tenths of the usual.
        jury_data: What they learn, as text; "" for the training pictures of the targets.
    """

    name: str
    parts: tuple[tuple[str, Campaign], ...]
    jury_epochs: int
    jury_data: str = ""

    @property
    def dataset(self) -> str:
        """The data set of all campaigns."""
        return self.parts[0][1].datasets[0]


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Attacks and strategies of a campaign that its network cannot have, with the reasons."""

    campaign: Campaign
    attacks: Mapping[str, str]
    strategies: Mapping[str, str]

    def why(self, attack: str, strategy: str) -> str:
        """Return why a cell cannot be, "" where it can; of two reasons the strategy's."""
        return self.strategies.get(strategy) or self.attacks.get(attack, "")

    @cached_property
    def plan(self) -> Plan:
        """The plan of the campaign without them."""
        attacks = tuple(one for one in self.campaign.attacks if one not in self.attacks)
        strategies = tuple(one for one in self.campaign.strategies if one not in self.strategies)
        return plan_of(replace(self.campaign, attacks=attacks, strategies=strategies))

    def lines(self) -> Iterator[str]:
        """Yield what is refused, a line a reason."""
        network = read_plugin(NETWORKS, self.campaign.architectures[0]).name
        for kind in (self.attacks, self.strategies):
            for why in dict.fromkeys(kind.values()):
                names = [text.partition(":")[0] for text, one in kind.items() if one == why]
                yield f"{network} without {listed(names)}: {why}"


@cache
def refused(campaign: Campaign) -> Refused:
    """Return what the network of a campaign refuses, by trial on one that has not learned.

    Raises `DataError` where the pictures are not there.
    """
    images, one = load(campaign.datasets[0], "train"), [0]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = TargetModel.on(built(NETWORKS, campaign.architectures[0]), images).eval()

    def attacked(text: str) -> object:
        return attack_images(model, images.pick(one), _PLAIN, read_attack(text), one, one_step)

    def trained(text: str) -> None:
        check_trainable(model, built(DEFENCES, read_strategy(text)))

    return Refused(
        campaign=campaign,
        attacks=_refusals(attacked, campaign.attacks),
        strategies=_refusals(trained, campaign.strategies),
    )


def _refusals(tried: Callable[[str], object], texts: Sequence[str]) -> dict[str, str]:
    """Return the reason of each text that is refused when it is `tried`; one begins, or is not."""
    found = {}
    for text in texts:
        try:
            tried(text)
        except SettingsError as error:
            found[text] = str(error)
        except StopRequestedError:
            pass
    return found


def plans_of(scale: JudgedScale) -> dict[str, Plan]:
    """Return the plan of each part, without what does not go together."""
    return {campaign.name: refused(campaign).plan for _, campaign in scale.parts}


class Found(NamedTuple):
    """Content of a judged table.

    Attributes:
        rows: A row a row of the table and a control, with a column a metric; NaN for no value.
        agreement: A row a metric, over all sets that attacks made.
        specs: Of the metrics that have columns.
        absent: Why others have none.
        more: Further frames, by the names of their files.
        note: What the text says of the simulated annotators.
    """

    rows: pd.DataFrame
    agreement: pd.DataFrame
    specs: tuple[MetricSpec, ...]
    absent: Mapping[str, str]
    more: Mapping[str, pd.DataFrame] = MappingProxyType({})
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class JudgedTable:
    """A reproduction whose pictures simulated annotators and metrics judge.

    Attributes:
        name: Of its command and its folder.
        aim: The verb of what sets are judged for.
        files: Names of the text and of the CSV of rows and of agreement.
        facts: Columns of `Found.rows`, before those of people and metrics.
        ranks: Columns of `Found.agreement`.
        plans_of: The plans of a scale, by the names of their campaigns.
        before: What stands before the works of a scale; no plans where its pictures are not here.
        rows_of: Rows of a scale, from its sets and what was judged.
        control: The own columns of a control, by its title.
        more, note: Further frames and a note of `Found`, from the same as rows.
        text: Parts of the text, after pictures are drawn into the folder.
        drawn: Files that `text` draws.
    """

    name: str
    help: str
    aim: str
    files: tuple[str, str, str]
    facts: Sequence[str]
    ranks: Sequence[str]
    scale_of: Callable[[str], JudgedScale]
    plans_of: Callable[[JudgedScale], dict[str, Plan]]
    before: Callable[[JudgedScale, Mapping[str, Plan]], str]
    rows_of: Callable[[JudgedScale, Sets, Judged], Iterable[dict[str, Any]]]
    control: Callable[[str], dict[str, Any]]
    text: Callable[[Found, Path], Sequence[str]]
    more: Callable[[JudgedScale, Sets, Judged], Mapping[str, pd.DataFrame]] = lambda *_: {}
    note: Callable[[JudgedScale, Sets, Judged], str] = lambda *_: ""
    drawn: Sequence[str] = ()

    def works(
        self, preset: str, folder: Path, known: bool = False
    ) -> tuple[list[engine.Work], str]:
        """Return the trainings and attacks of a preset, and what stands before them.

        Args:
            known: Whether to look what is done below `folder`, which reads the pictures.
        """
        scale = self.scale_of(preset)
        plans = self.plans_of(scale) if known and engine.is_here(scale.dataset) else {}
        own = {name: plan.campaign for name, plan in plans.items()}
        asked = [(title, own.get(one.name, one)) for title, one in scale.parts]
        works = engine.campaign_works(asked, list(plans.values()), folder)
        return works, self.before(scale, plans) if known else ""

    def make(
        self, preset: str, folder: Path, machines: engine.Machines
    ) -> tuple[pd.DataFrame, str, list[str]]:
        """Compute a preset and write it below `folder`; return rows, text and names of files."""
        scale = self.scale_of(preset)
        plans = self.plans_of(scale)
        say(self.before(scale, plans))
        learned = read_plugin(DATASETS, scale.jury_data or scale.dataset)
        images = next(iter(plans.values())).images[scale.dataset]
        voters = simulated_votes.Voters(
            read_plugin(DATASETS, scale.dataset), learned, scale.jury_epochs, images
        )
        sets, judged = judge_plans(self, plans, voters, folder, machines)
        lines = [*self.rows_of(scale, sets, judged)]
        for title in simulated_votes.TITLES.values():
            own = judged.of([title])
            counts = dict.fromkeys(("n_attacked", "n_ok"), len(own.labels))
            marks = {"simulated": True, "why": ""}
            lines.append({**self.control(title), **counts, **marks, **own.means()})
        metrics = dict.fromkeys(("people", *(spec.name for spec in judged.specs)))
        rows = pd.DataFrame(lines).reindex(columns=list(dict.fromkeys((*self.facts, *metrics))))
        rows = rows.astype(dict.fromkeys(metrics, float))
        found = Found(
            rows=rows,
            agreement=judged.agreement(self.ranks).assign(**{SIMULATED: True}),
            specs=judged.specs,
            absent=judged.absent,
            more=self.more(scale, sets, judged),
            note=self.note(scale, sets, judged),
        )
        stem, *names = self.files
        frames = {names[0]: rows, **found.more, names[1]: found.agreement}
        for name, frame in frames.items():
            table = writing.csv(frame.assign(**{SIMULATED: True}))
            (folder / f"{name}.csv").write_text(table, encoding="utf-8")
        missing = [f"{one} has no column: {why}" for one, why in judged.absent.items()]
        text = "\n".join([*self.text(found, folder), *missing])
        (folder / f"{stem}.md").write_text(f"{text}\n", encoding="utf-8")
        return rows, text, [f"{stem}.md", *(f"{name}.csv" for name in frames), *self.drawn]


def command_of(table: JudgedTable) -> Callable[..., None]:
    """Return the command of a table; it computes nothing that was computed before."""

    def command(
        preset: SizeOption = "small",
        plan: engine.PlanOption = False,
        out: engine.MadeOption = terminal.DATA / "reproduce" / table.name,
        workers: terminal.WorkersOption = 0,
        scheduler: terminal.SchedulerOption = "",
        device: terminal.DeviceOption = "auto",
        checkpoints: terminal.CheckpointsOption = CHECKPOINTS,
        as_json: terminal.Json = False,
    ) -> None:
        folder = out / preset
        with terminal.told_errors():
            if plan:
                works, before = table.works(preset, folder, known=True)

                def below(lower: str) -> list[engine.Work]:
                    return table.works(lower, folder)[0]

                engine.show_plan(table.name, works, as_json, (preset, below), before=before)
                return
            machines = engine.Machines(workers, scheduler, device, checkpoints)
            rows, text, (first, *others) = table.make(preset, folder, machines)
            terminal.show_told({"cells": terminal.rows_of(rows)}, text, as_json)
            say(f"Wrote {folder / first}, {listed(others)}.")

    command.__doc__ = table.help
    return command


def judge_plans(
    table: JudgedTable,
    plans: Mapping[str, Plan],
    voters: simulated_votes.Voters,
    folder: Path,
    machines: engine.Machines,
) -> tuple[dict[str, list[ReconstructionSet]], Judged]:
    """Carry out `plans` below `folder` and judge what came back, beside the controls.

    Scores are kept in `folder`/scores.

    Returns:
        The sets of each plan, by its name and in its order; votes and scores.

    Raises:
        DataError: Where not one picture came back.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = engine.carried_out(plans, folder, machines)
    jury, controls = simulated_votes.simulated_people(voters, folder, machines.workers)
    found = {name: [read_set(one) for one in own] for name, own in made.items()}
    shown = [one.folder for own in found.values() for one in own if not one.pairs.empty]
    if not shown:
        raise DataError(f"Every attack failed on every image, so there is nothing to {table.aim}.")
    device, checkpoints = pick_device(machines.device), machines.checkpoints.resolve()
    resources = Resources(checkpoints=checkpoints, device=device)
    seen = simulated_votes.simulated_votes(
        table.name, "recognition", [*shown, *controls.values()], jury
    )
    pairs, kept = pair_sets_of_labels(seen.labels), folder / "scores"
    with terminal.TerminalBar("Judging") as bar:
        book = score_sets(pairs, METRICS, resources, kept, bar)
    specs = beside_votes((find_metric(name).spec for name in METRICS), simulated=True)
    return found, Judged(
        labels=seen.labels,
        votes=pd.DataFrame(seen.votes),
        scores=book.scores,
        specs=tuple(spec for spec in specs if (book.scores["metric"] == spec.name).any()),
        absent={name: why for name in METRICS if (why := book.reasons.get(name))},
    )


def jury_text(originals: int, recognised: int, votes: float) -> str:
    """Say how many originals simulated annotators recognise by majority, and what follows.

    Args:
        votes: The share of their votes that recognise one.
    """
    told = (
        f"The simulated annotators recognise {recognised} of {originals} originals "
        f"by majority ({votes:.0%} of their votes)"
    )
    if recognised >= ENOUGH * originals:
        return f"{told}, at least nine in ten."
    return f"{told}, fewer than nine in ten: too blunt to stand for people in any row."


def jury_note(_: JudgedScale, __: Sets, judged: Judged) -> str:
    """Return `jury_text` of the votes on originals."""
    own = judged.of([simulated_votes.TITLES[simulated_votes.ORIGINAL]]).labels
    votes = own["n_recognised"].sum() / own["n_votes"].sum()
    return jury_text(len(own), int(own["recognisable"].sum()), float(votes))


def agreement_table(
    agreement: pd.DataFrame,
    of: str,
    columns: Mapping[str, str | tuple[str, str]],
    told: Mapping[str, str],
) -> Table:
    """Return `Judged.agreement` as a table to read, a line a metric.

    Args:
        of: What was ranked, such as "sets".
        columns: By their heads, the statistic that each shows, or both ends of an interval.
        told: Of `titled`.
    """
    cells: Cells = {
        "metric": lambda row: row["title"],
        of: lambda row: str(row["n"]),
        **{head: partial(_shown, column) for head, column in columns.items()},
        "undefined": lambda row: reason(row["undefined"]) or reason(row.get("rho_note")) or "",
    }
    return table_of(agreement, cells, **told)


def _shown(column: str | tuple[str, str], row: pd.Series) -> str:
    if isinstance(column, str):
        return number(row[column], 2)
    low, high = column
    return interval(row[low], row[high])


def controls_table(found: Found, shown: Mapping[str, str]) -> Table:
    """Return a line a control, by the columns of `shown`."""
    own = found.rows[found.rows["status"] == CONTROL].assign(status=OK)
    lines = [[row["attack"], *(cell_text(row, name) for name in shown)] for row in rows_of(own)]
    told = engine.titled("everything", "controls", marks=SAYS_NOTHING)
    return engine.table(told, own, ["picture", *shown.values()], lines)


def reasons_table(cells: pd.DataFrame) -> Table:
    """Return reasons of cells without a number, or with fewer pictures, a line a reason."""
    told, lines = cells[cells["why"] != ""], []
    for (status, why, network), part in told.groupby(["status", "why", "network"], sort=False):
        names = (", ".join(dict.fromkeys(part[one])) for one in ("attack", "strategy"))
        what = "some pictures did not come back" if status == OK else status
        cell = counted(len(part), "cell")
        lines.append([*map(str, (network, *names, cell, what, why))])
    head = ["network", "attacks", "strategies", "how many", "what", "why"]
    return engine.table(engine.titled("everything", "reasons"), told, head, lines)


def cell_text(row: Mapping[Any, Any] | pd.Series, name: str) -> str:
    """Return a mean of a cell as it is printed, with the count of pictures where some are lost."""
    if row["status"] != OK:
        return "×" if row["status"] == FAILED else NONE
    value = f"{row[name]:.0%}" if name == "people" else number(row[name], 2)
    whole = row["n_ok"] == row["n_attacked"]
    return value if whole else f"{value} ({row['n_ok']:.0f} of {row['n_attacked']:.0f})"
