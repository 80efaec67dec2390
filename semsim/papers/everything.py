"""`semsim-studio reproduce everything`: every attack against every defence, as one map.

A row a cell, and how metrics rank the cells beside simulated people.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from semsim.attacks import ATTACKS
from semsim.attacks.as_text import read_attack
from semsim.base.cli.terminal import rows_of, say
from semsim.base.errors import SettingsError, StopRequestedError
from semsim.base.jobs.orders import changed
from semsim.base.progress import one_step
from semsim.base.registry import Plugin, build, read_plugin, short_labels
from semsim.base.sets.reader import ReconstructionSet
from semsim.base.stats.correlation import weighted_spearman
from semsim.base.stats.intervals import FEWEST
from semsim.base.stats.resampling import interval as holding
from semsim.base.words import counted, listed
from semsim.campaign.campaign_job import load, plan_of
from semsim.campaign.plan import Campaign, Plan, PlannedSet
from semsim.campaign.work import attack_images
from semsim.datasets import DATASETS
from semsim.defences import DEFENCES
from semsim.defences.as_text import parse, split_parts
from semsim.defences.strategies import NAMED_STRATEGIES, read_strategy, strategy_label
from semsim.metrics import MetricSpec
from semsim.papers.engine import (
    DECLARED,
    Judged,
    JudgedTable,
    Machines,
    Work,
    agreement_table,
    campaign_works,
    command_of,
    first_failure,
    is_here,
    judge_plans,
    of_preset,
    write_tables,
)
from semsim.papers.simulated_votes import CONTROL, SAYS_NOTHING, TITLES, Voters
from semsim.reporting import writing
from semsim.reporting.canvas import marked_as_simulated
from semsim.reporting.export import write_picture
from semsim.reporting.leak_map import leak_map
from semsim.reporting.notation import interval, number
from semsim.reporting.tables import Cells, Table, table_of
from semsim.targets import NETWORKS
from semsim.targets.each_image import check_trainable
from semsim.targets.model import TargetModel
from semsim.types import LabelledImages

_PLAIN = Plugin(name="none")


class MapCell(NamedTuple):
    """A cell of the map by what its axes call it."""

    network: str
    strategy: str
    attack: str


@dataclass(frozen=True, kw_only=True)
class MapScale:
    """The axes of the map.

    Attributes:
        campaigns: One a network, whose name no other has, of all that is asked.
        jury_epochs: Of simulated people, in tenths of the usual.
        jury_data: What they learn, as text; "" for the training pictures of the targets.
    """

    name: str
    campaigns: tuple[Campaign, ...]
    jury_epochs: int
    jury_data: str = ""

    @property
    def dataset(self) -> str:
        """The data set of all campaigns."""
        return self.campaigns[0].datasets[0]

    @property
    def jury(self) -> Plugin:
        """Data set that simulated people learn."""
        return read_plugin(DATASETS, self.jury_data or self.dataset)

    def cells(self) -> Iterator[MapCell]:
        """Every cell, by network, then attack, then strategy."""
        for campaign in self.campaigns:
            network = read_plugin(NETWORKS, campaign.architectures[0]).name
            for attack in campaign.attacks:
                for strategy in campaign.strategies:
                    yield MapCell(network, strategy_label(strategy), read_attack(attack).name)


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Attacks and strategies of a campaign that its network cannot have, with the reasons."""

    network: str
    attacks: Mapping[str, str]
    strategies: Mapping[str, str]

    @classmethod
    def of(cls, campaign: Campaign, images: LabelledImages) -> "Refused":
        """Return what a network that has not learned refuses, by trial, for images as `images`."""
        network = read_plugin(NETWORKS, campaign.architectures[0])
        model = _untrained(network, images)
        attacks = {text: why_not(read_attack(text), model, images) for text in campaign.attacks}
        strategies = {text: _why_untrained(text, model) for text in campaign.strategies}
        return cls(
            network=network.name,
            attacks={text: why for text, why in attacks.items() if why},
            strategies={text: why for text, why in strategies.items() if why},
        )

    def cells(self, campaign: Campaign) -> dict[MapCell, str]:
        """The cells that cannot be; where both refuse, the strategy's reason."""
        return {
            MapCell(self.network, strategy_label(strategy), read_attack(attack).name): why
            for strategy in campaign.strategies
            for attack in campaign.attacks
            if (why := self.strategies.get(strategy) or self.attacks.get(attack))
        }

    def without(self, campaign: Campaign) -> Campaign:
        """The campaign without them."""
        return replace(
            campaign,
            attacks=tuple(text for text in campaign.attacks if text not in self.attacks),
            strategies=tuple(one for one in campaign.strategies if one not in self.strategies),
        )

    def lines(self) -> Iterator[str]:
        """Yield what is refused, a line a reason."""
        for kind in (self.attacks, self.strategies):
            for why in dict.fromkeys(kind.values()):
                names = [text.partition(":")[0] for text, one in kind.items() if one == why]
                yield f"{self.network} without {listed(names)}: {why}"


@dataclass(frozen=True, kw_only=True)
class Worked:
    """A scale worked out: a plan a campaign, of all cells but those that are refused."""

    scale: MapScale
    plans: tuple[Plan, ...]
    refused: tuple[Refused, ...]

    @property
    def unfit(self) -> dict[MapCell, str]:
        """Reasons of the cells that cannot be, by cell."""
        pairs = zip(self.refused, self.scale.campaigns, strict=True)
        return {key: why for one, asked in pairs for key, why in one.cells(asked).items()}

    @property
    def images(self) -> LabelledImages:
        """The originals that are attacked."""
        return self.plans[0].images[self.scale.dataset]


def strategies() -> tuple[str, ...]:
    """Every strategy that has a name, then each defence that is part of none of these."""
    parts = [part for spec in NAMED_STRATEGIES.values() for part in split_parts(spec)]
    used = {"composed", *(parse(part).name for part in parts)}
    return (*NAMED_STRATEGIES, *(name for name in DEFENCES if name not in used))


def scale_of(name: str) -> MapScale:
    """The scale called smoke, small or paper; `SettingsError` for another name."""
    told = of_preset(DECLARED["everything"], name)
    networks, presets = told["networks"], told["attacks"]
    attacks = [f"{one}:{presets.get(one, presets[''])}" for one in ATTACKS]
    usual = changed(Campaign(name=name, strategies=strategies()), told["campaign"])
    campaigns = tuple(
        replace(
            usual,
            name=f"everything-{name}-{label}",
            architectures=(network,),
            attacks=tuple(attacks),
        )
        for network, label in zip(networks, short_labels(networks), strict=True)
    )
    jury_epochs, jury_data = told["jury_epochs"], told["jury_data"]
    return MapScale(name=name, campaigns=campaigns, jury_epochs=jury_epochs, jury_data=jury_data)


def work_out(scale: MapScale) -> Worked:
    """Return the plans of a scale, without what does not go together.

    Raises `DataError` where the pictures are not there.
    """
    train = load(read_plugin(DATASETS, scale.dataset), "train")
    refused = tuple(Refused.of(campaign, train) for campaign in scale.campaigns)
    pairs = zip(refused, scale.campaigns, strict=True)
    plans = tuple(plan_of(one.without(campaign)) for one, campaign in pairs)
    return Worked(scale=scale, plans=plans, refused=refused)


def key_of(planned: PlannedSet) -> MapCell:
    """Return the map cell of a set."""
    network, _, strategy = planned.target.plan.label.partition("/")
    return MapCell(network=network, strategy=strategy, attack=planned.attack.name)


def why_not(attack: Plugin, model: TargetModel, images: LabelledImages) -> str:
    """Return why an attack does not go with a network, "" where it does; its first step is tried.

    Args:
        images: At least one, (N, 3, H, W).
    """
    one = images.pick([0])
    return _refusal(lambda: attack_images(model, one, _PLAIN, attack, [0], one_step))


def _refusal(tried: Callable[[], object]) -> str:
    """The reason that what is `tried` gives for being refused, "" where it begins."""
    try:
        tried()
    except SettingsError as error:
        return str(error)
    except StopRequestedError:
        pass
    return ""


def _untrained(network: Plugin, images: LabelledImages) -> TargetModel:
    channels, height, width = images.images.shape[1:]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TargetModel(
            build(NETWORKS, network.name, network.settings),
            images.classes,
            mean=[0.5] * channels,
            std=[0.5] * channels,
            size=(height, width),
        ).eval()


def _why_untrained(strategy: str, model: TargetModel) -> str:
    found = read_strategy(strategy)
    defence = build(DEFENCES, found.name, found.settings)
    return _refusal(lambda: check_trainable(model, defence))


def works_of(preset: str, folder: Path) -> list[Work]:
    """Return the trainings and attacks of all cells of a preset, below `folder`."""
    return _works(scale_of(preset).campaigns, (), folder)


def planned(preset: str, folder: Path) -> tuple[list[Work], str]:
    """Return the trainings and attacks of a preset with what is done, and what cannot be.

    Where the pictures are not here, it cannot be told which cells cannot be, and all are counted.
    """
    scale = scale_of(preset)
    if is_here(scale.dataset):
        worked = work_out(scale)
        works = _works([one.campaign for one in worked.plans], worked.plans, folder)
        return works, cells_text(worked)
    told = (
        f"Scale {scale.name}: {counted(len(list(scale.cells())), 'cell')}. {scale.dataset} is not "
        "here; which cells cannot be is told once it is."
    )
    return works_of(preset, folder), told


def _works(campaigns: Sequence[Campaign], plans: Sequence[Plan], data: Path) -> list[Work]:
    named = [(read_plugin(NETWORKS, one.architectures[0]).name, one) for one in campaigns]
    return campaign_works(named, plans, data)


def cells_text(worked: Worked) -> str:
    """Return the number of cells and those that cannot be, a line a reason."""
    cells = sum(len(plan.sets) for plan in worked.plans)
    return "\n".join(
        [
            f"Scale {worked.scale.name}: {counted(cells, 'cell')} to compute, "
            f"{len(worked.images)} originals each; {len(worked.unfit)} that cannot be.",
            *(line for one in worked.refused for line in one.lines()),
        ]
    )


OK, FAILED, UNFIT = "ok", "failed", "cannot be"  # the status of a cell; "ok" has pictures
DRAWS = 2000  # of attacks and targets
_DPI = 150  # of a picture that a page shows whole
_LEADS = ("metric", "title", "other", "other_title", "difference", "low", "high")
_AGREEMENT = (
    *("metric", "title", "n", "rho", "rho_bw_low", "rho_bw_high"),
    *("rho_images_low", "rho_images_high", "undefined"),
)


class Map(NamedTuple):
    """The map of a scale.

    Attributes:
        cells: A row a cell and control: network, strategy, attack, status (`OK`, `FAILED`, `UNFIT`
            or `CONTROL`), why, n_attacked, n_ok, target_accuracy, target_at_chance, target_epsilon,
            simulated, people (the share of simulated votes that recognise it) and a column a
            metric; NaN where there is none.
        agreement: A row a metric, `_AGREEMENT`, over the cells that have a number.
        specs: Of the metrics that have columns.
        absent: Why others have none.
    """

    cells: pd.DataFrame
    agreement: pd.DataFrame
    specs: tuple[MetricSpec, ...]
    absent: Mapping[str, str]


def write_map(preset: str, folder: Path, machines: Machines) -> tuple[pd.DataFrame, str]:
    """Compute a preset and write its map below `folder`; the cells, and what map.md says."""
    worked = work_out(scale_of(preset))
    for line in (line for one in worked.refused for line in one.lines()):
        say(line)
    scale, unfit = worked.scale, worked.unfit
    plans = {one.campaign.name: one for one in worked.plans}
    learned = read_plugin(DATASETS, scale.dataset), scale.jury
    voters = Voters(*learned, scale.jury_epochs, worked.images)
    made, judged = judge_plans("everything", "map", plans, voters, folder, machines)
    found = {
        key_of(planned): one
        for name, plan in plans.items()
        for planned, one in zip(plan.sets, made[name], strict=True)
    }
    rows = [
        _cell(key, found[key], judged) if key in found else _row(key, UNFIT, unfit[key])
        for key in scale.cells()
    ]
    controls = (MapCell(network="", strategy="", attack=title) for title in TITLES.values())
    rows += [{**_row(one, CONTROL), **judged.control(one.attack)} for one in controls]
    names = ["people", *(spec.name for spec in judged.specs)]
    cells = pd.DataFrame(rows).reindex(columns=[*_COLUMNS, *names])
    cells = cells.astype(dict.fromkeys(names, float))
    agreement = judged.agreement(_AGREEMENT)
    drawn = marked_as_simulated(leak_map(cells, agreement, judged.specs, len(worked.images)))
    for ending in ("png", "svg"):
        write_picture(drawn, folder / f"map.{ending}", "--out", dpi=_DPI)
    shown = Map(cells, agreement, judged.specs, judged.absent)
    text = list(map(writing.markdown, tables(shown)))
    frames = {"map": cells, "agreement": agreement}
    return cells, write_tables("map", frames, text, judged.absent, folder)


_COLUMNS = (
    *("network", "strategy", "attack", "status", "why", "n_attacked", "n_ok"),
    *("target_accuracy", "target_at_chance", "target_epsilon", "simulated"),
)


def _row(key: MapCell, status: str, why: str = "") -> dict[str, Any]:
    return {**key._asdict(), "status": status, "why": why, "simulated": True}


def _cell(key: MapCell, found: ReconstructionSet, judged: Judged) -> dict[str, Any]:
    target, ok = found.run["target"], len(found.pairs)
    why = first_failure([found])
    facts = {
        "n_attacked": len(found.manifest),
        "n_ok": ok,
        "target_accuracy": target.get("accuracy"),
        "target_at_chance": target.get("at_chance"),
        "target_epsilon": target.get("epsilon"),
    }
    if not ok:
        return {**_row(key, FAILED, why), **facts}
    return {**_row(key, OK, why), **facts, **judged.of([found.model]).means()}


def tables(found: Map) -> list[Table]:
    """The map as tables to read: of people, of every metric, of agreement, and of what has none."""
    networks = [name for name in dict.fromkeys(found.cells["network"]) if name]
    shown = [
        ("people", "Recognised by simulated people"),
        *((s.name, s.title) for s in found.specs),
    ]
    maps = [
        _grid(found.cells, network, name, title) for name, title in shown for network in networks
    ]
    apart = differences_table(differences(found.cells, found.specs))
    return [*maps, _controls(found, shown), _rho(found.agreement), apart, _reasons(found.cells)]


def _grid(cells: pd.DataFrame, network: str, name: str, title: str) -> Table:
    own = cells[cells["network"] == network]
    strategies = list(dict.fromkeys(own["strategy"]))
    lines = [["(target right)", *(_target(own[own["strategy"] == one]) for one in strategies)]]
    for attack in dict.fromkeys(own["attack"]):
        by = own[own["attack"] == attack].set_index("strategy")
        lines.append([attack, *(_text(by.loc[one], name) for one in strategies)])
    return Table(
        name=f"{name}-{network}",
        title=f"{title}, {network}",
        caption=(
            f"Attacks by rows, strategies by columns. {SAYS_NOTHING} "
            "In brackets: pictures that came back, where not all did. ×: none did; –: the two do "
            "not go together. °: the target guesses."
        ),
        frame=own[["strategy", "attack", name]],
        cells=pd.DataFrame(lines, columns=["attack", *strategies]),
    )


def _target(cells: pd.DataFrame) -> str:
    told = cells.dropna(subset=["target_accuracy"])
    if told.empty:
        return "–"
    one = told.iloc[0]
    promised = one["target_epsilon"]
    epsilon = "" if pd.isna(promised) else f", ε = {promised:.3g}"
    return f"{one['target_accuracy']:.0%}{'°' if one['target_at_chance'] else ''}{epsilon}"


def _text(row: Mapping[Any, Any] | pd.Series, name: str) -> str:
    if row["status"] != OK:
        return "×" if row["status"] == FAILED else "–"
    value = f"{row[name]:.0%}" if name == "people" else number(row[name], 2)
    whole = row["n_ok"] == row["n_attacked"]
    return value if whole else f"{value} ({row['n_ok']:.0f} of {row['n_attacked']:.0f})"


def _controls(found: Map, shown: Sequence[tuple[str, str]]) -> Table:
    own = found.cells[found.cells["status"] == CONTROL].assign(status=OK)
    lines = [[row["attack"], *(_text(row, name) for name, _ in shown)] for row in rows_of(own)]
    return Table(
        name="controls",
        title="Pictures that no attack made",
        caption=f"The same originals, judged alike. {SAYS_NOTHING}",
        frame=own,
        cells=pd.DataFrame(lines, columns=["picture", *(title for _, title in shown)]),
    )


def _rho(agreement: pd.DataFrame) -> Table:
    return agreement_table(
        agreement,
        "cells",
        {
            "ρ": "rho",
            "95 % over cells": ("rho_bw_low", "rho_bw_high"),
            "range over originals": ("rho_images_low", "rho_images_high"),
        },
        name="agreement",
        title="Does a metric rank the cells as simulated people do?",
        caption=(
            "Spearman's ρ over cells with pictures, by the share of votes, positive agrees. The "
            "interval takes cells for a sample, though they share originals and targets; the range "
            f"holds 95 % of resamples of originals. {SAYS_NOTHING}"
        ),
    )


def _reasons(cells: pd.DataFrame) -> Table:
    told = cells[cells["why"] != ""]
    lines = [
        [
            *(network, ", ".join(dict.fromkeys(part["attack"]))),
            *(", ".join(dict.fromkeys(part["strategy"])), counted(len(part), "cell")),
            *("some pictures did not come back" if status == OK else status, why),
        ]
        for (status, why, network), part in told.groupby(["status", "why", "network"], sort=False)
    ]
    return Table(
        name="reasons",
        title="Cells without a number, or with fewer pictures",
        caption="A reason a line, as the attack or the strategy gave it.",
        frame=told,
        cells=pd.DataFrame(
            lines, columns=["network", "attacks", "strategies", "how many", "what", "why"]
        ),
    )


# As a two-way cluster bootstrap (Owen 2007, "The pigeonhole bootstrap").
def differences(
    cells: pd.DataFrame, specs: Sequence[MetricSpec], draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Compare the metric of the highest ρ without a mark with each other, cells drawn anew.

    Cells of one attack, and of one target, are not independent: a sample of the map is a sample of
    its attacks and of its targets.

    Args:
        cells: `Map.cells`; those with status "ok" count, where every metric has a number.
        specs: the metrics to compare.
        draws: how often attacks and targets are drawn anew, each with replacement.
        seed: of the draws.

    Returns:
        A row for each other metric, nearest first, those with a mark last: metric, title, other,
        other_title, difference of the two ρ, and low and high, the 2.5 and 97.5 percentiles of that
        difference, NaN of fewer than `FEWEST` attacks or targets. Empty where fewer than two
        metrics have a ρ, or none without a mark.
    """
    names = [spec.name for spec in specs]
    own = cells[cells["status"] == OK].dropna(subset=["people", *names])
    targets = own["network"] + "/" + own["strategy"]
    weights = _drawn(own["attack"], draws, seed) * _drawn(targets, draws, seed + 1)
    enough = min(own["attack"].nunique(), targets.nunique()) >= FEWEST
    all_once = np.ones((1, len(own)))
    people = own["people"].to_numpy(float)
    found = {}
    for spec in specs:
        sign = 1 if spec.higher_means_more_leakage else -1
        values = sign * own[spec.name].to_numpy(float)
        found[spec.name] = weighted_spearman(people, values, np.concatenate([all_once, weights]))
    ranked = [spec for spec in specs if np.isfinite(found[spec.name][0])]
    ranked.sort(key=lambda spec: (spec.mark != "", -found[spec.name][0]))
    rows = []
    for other in ranked[1:] if ranked and not ranked[0].mark else ():
        best = ranked[0]
        apart = found[best.name] - found[other.name]
        ends = holding(apart[1:]) if enough else (np.nan, np.nan)
        rows.append([best.name, best.title, other.name, other.title, apart[0], *ends])
    return pd.DataFrame(rows, columns=_LEADS)


def differences_table(found: pd.DataFrame) -> Table:
    """Return `differences` as a table to read."""
    cells: Cells = {
        "metric": lambda row: row["title"],
        "ahead of": lambda row: row["other_title"],
        "by": lambda row: number(row["difference"], 2),
        "range": lambda row: interval(row["low"], row["high"]),
    }
    return table_of(
        *(found, cells),
        name="differences",
        title="Is the best metric ahead by more than chance?",
        caption=(
            "Difference of Spearman's ρ. The range holds 95 % of resamples of attacks and targets, "
            f"from {FEWEST} of each on; where it holds 0, chance could do it. The best was picked "
            f"by the same cells, which no range takes in. {SAYS_NOTHING}"
        ),
    )


def _drawn(units: pd.Series, draws: int, seed: int) -> np.ndarray:
    """(draws, N) how often each cell's unit is in a sample of as many units."""
    codes, found = pd.factorize(units)
    n = max(len(found), 1)
    counts = np.random.default_rng(seed).multinomial(n, [1 / n] * n, size=draws)
    return counts[:, codes].astype(float)


reproduce_everything = command_of(
    JudgedTable(
        name="everything",
        help=(
            "Every attack against every defence, by simulated people and by each metric, as one "
            "map.\n\n"
            "All that is registered, on trained targets; what does not go together, and what "
            "failed, stands there with the reason. What was computed before is not again."
        ),
        works=works_of,
        planned=planned,
        made=write_map,
        written=("map.md", "map.csv", "agreement.csv", "map.png", "map.svg"),
    )
)
