"""`semsim-studio reproduce everything`: every attack against every defence, as one map.

A row is a cell of the map; over cells metrics are ranked beside simulated people.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from semsim.attacks import ATTACKS
from semsim.attacks.as_text import read_attack, threat_of
from semsim.base.cli.terminal import rows_of
from semsim.base.errors import SettingsError, StopRequestedError
from semsim.base.jobs.orders import changed
from semsim.base.progress import one_step
from semsim.base.registry import Plugin, build, read_plugin
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
from semsim.papers.engine import DECLARED, of_preset, table, titled
from semsim.papers.judged import (
    Found,
    Judged,
    JudgedScale,
    JudgedTable,
    Sets,
    agreement_table,
    command_of,
)
from semsim.papers.simulated_votes import CONTROL, SAYS_NOTHING
from semsim.reporting import writing
from semsim.reporting.canvas import marked_as_simulated
from semsim.reporting.export import write_picture
from semsim.reporting.leak_map import leak_map
from semsim.reporting.notation import NONE, interval, number
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


def cells_of(campaign: Campaign) -> Iterator[tuple[MapCell, str, str]]:
    """Yield the cells of a network, by attack, with the texts of attack and strategy."""
    network = read_plugin(NETWORKS, campaign.architectures[0]).name
    for attack in campaign.attacks:
        for strategy in campaign.strategies:
            cell = MapCell(network, strategy_label(strategy), read_attack(attack).name)
            yield cell, attack, strategy


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Attacks and strategies of a campaign that its network cannot have, with the reasons."""

    campaign: Campaign
    attacks: Mapping[str, str]
    strategies: Mapping[str, str]

    def cells(self) -> dict[MapCell, str]:
        """The cells that cannot be; where both refuse, the strategy's reason."""
        return {
            cell: why
            for cell, attack, strategy in cells_of(self.campaign)
            if (why := self.strategies.get(strategy) or self.attacks.get(attack))
        }

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
    images = load(read_plugin(DATASETS, campaign.datasets[0]), "train")
    model, one = _untrained(read_plugin(NETWORKS, campaign.architectures[0]), images), [0]

    def attacked(text: str) -> object:
        return attack_images(model, images.pick(one), _PLAIN, read_attack(text), one, one_step)

    def trained(text: str) -> None:
        found = read_strategy(text)
        check_trainable(model, build(DEFENCES, found.name, found.settings))

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


def strategies() -> tuple[str, ...]:
    """Every strategy that has a name, then each defence that is part of none of these."""
    parts = [part for spec in NAMED_STRATEGIES.values() for part in split_parts(spec)]
    used = {"composed", *(parse(part).name for part in parts)}
    return (*NAMED_STRATEGIES, *(name for name in DEFENCES if name not in used))


def scale_of(name: str) -> JudgedScale:
    """The scale called smoke, small or paper; `SettingsError` for another name."""
    told = of_preset(DECLARED["everything"], name)
    presets = told["attacks"]
    usual = changed(Campaign(name=name, strategies=strategies()), told["campaign"])
    usual = replace(
        usual, attacks=tuple(f"{one}:{presets.get(one, presets[''])}" for one in ATTACKS)
    )
    networks = [(read_plugin(NETWORKS, text).name, text) for text in told["networks"]]
    parts = tuple(
        (label, replace(usual, name=f"everything-{name}-{label}", architectures=(text,)))
        for label, text in networks
    )
    return JudgedScale(
        name=name, parts=parts, jury_epochs=told["jury_epochs"], jury_data=told["jury_data"]
    )


def plans_of(scale: JudgedScale) -> dict[str, Plan]:
    """Return the plan of each network, without what does not go together."""
    return {campaign.name: refused(campaign).plan for _, campaign in scale.parts}


def key_of(planned: PlannedSet) -> MapCell:
    """Return the map cell of a set."""
    network, _, strategy = planned.target.plan.label.partition("/")
    return MapCell(network=network, strategy=strategy, attack=planned.attack.name)


def cells_text(scale: JudgedScale, plans: Mapping[str, Plan]) -> str:
    """Return the number of cells and those that cannot be, a line a reason.

    Args:
        plans: None where the pictures are not here, by which it cannot be told.
    """
    if not plans:
        n = sum(len([*cells_of(one)]) for _, one in scale.parts)
        return (
            f"Scale {scale.name}: {counted(n, 'cell')}. {scale.dataset} is not here; which cells "
            "cannot be is told once it is."
        )
    tried = [refused(one) for _, one in scale.parts]
    n, images = sum(len(plan.sets) for plan in plans.values()), scale.parts[0][1].images
    return "\n".join(
        [
            f"Scale {scale.name}: {counted(n, 'cell')} to compute, {images} originals each; "
            f"{sum(len(one.cells()) for one in tried)} that cannot be.",
            *(line for one in tried for line in one.lines()),
        ]
    )


OK, FAILED, UNFIT = "ok", "failed", "cannot be"  # the status of a cell; "ok" has pictures
DRAWS = 2000  # of attacks and targets
_DPI = 150  # of a picture that a page shows whole
_LEADS = ("metric", "title", "other", "other_title", "difference", "low", "high")


def rows(scale: JudgedScale, sets: Sets, judged: Judged) -> Iterator[dict[str, Any]]:
    """Yield a row a cell: its key, `status` and counts, the facts of its target, and means."""
    for _, campaign in scale.parts:
        tried = refused(campaign)
        unfit, plan = tried.cells(), tried.plan
        found = dict(zip(map(key_of, plan.sets), sets[campaign.name], strict=True))
        for key, attack, _ in cells_of(campaign):
            about = {**key._asdict(), "attacker": threat_of(read_attack(attack)).words}
            if key not in found:
                yield {**about, "status": UNFIT, "why": unfit[key], "simulated": True}
                continue
            own, target = judged.facts([found[key]]), found[key].run["target"]
            names = ("accuracy", "at_chance", "epsilon")
            known = {f"target_{name}": target.get(name) for name in names}
            yield {**about, "status": OK if own["n_ok"] else FAILED, **known, **own}


def text(found: Found, folder: Path) -> list[str]:
    """Return the parts of map.md, and draw the map into the folder."""
    images = int(found.rows["n_attacked"].max())
    drawn = marked_as_simulated(leak_map(found.rows, with_ranges(found), found.specs, images))
    for ending in ("png", "svg"):
        write_picture(drawn, folder / f"map.{ending}", "--out", dpi=_DPI)
    return list(map(writing.markdown, tables(found)))


def tables(found: Found) -> list[Table]:
    """The map as tables to read: of people, of every metric, of agreement, and of what has none."""
    networks = [name for name in dict.fromkeys(found.rows["network"]) if name]
    shown = {"people": "Recognised by simulated people", **{s.name: s.title for s in found.specs}}
    maps = [
        _grid(found.rows, network, name, title)
        for name, title in shown.items()
        for network in networks
    ]
    apart = differences_table(differences(found.rows, found.specs))
    return [*maps, controls_table(found, shown), _rho(found), apart, reasons_table(found.rows)]


def _grid(cells: pd.DataFrame, network: str, name: str, title: str) -> Table:
    own = cells[cells["network"] == network]
    strategies = list(dict.fromkeys(own["strategy"]))
    lines = [["(target right)", "", *(_target(own[own["strategy"] == one]) for one in strategies)]]
    for attack in dict.fromkeys(own["attack"]):
        by = own[own["attack"] == attack].set_index("strategy")
        attacker = by["attacker"].iloc[0]
        lines.append([attack, attacker, *(_text(by.loc[one], name) for one in strategies)])
    head = ["attack", "attacker", *strategies]
    told = titled("everything", "grid", title=title, network=network, marks=SAYS_NOTHING)
    frame = own[["strategy", "attack", "attacker", name]]
    return table({**told, "name": f"{name}-{network}"}, frame, head, lines)


def _target(cells: pd.DataFrame) -> str:
    told = cells.dropna(subset=["target_accuracy"])
    if told.empty:
        return NONE
    one = told.iloc[0]
    promised = one["target_epsilon"]
    epsilon = "" if pd.isna(promised) else f", ε = {promised:.3g}"
    return f"{one['target_accuracy']:.0%}{'°' if one['target_at_chance'] else ''}{epsilon}"


def _text(row: Mapping[Any, Any] | pd.Series, name: str) -> str:
    if row["status"] != OK:
        return "×" if row["status"] == FAILED else NONE
    value = f"{row[name]:.0%}" if name == "people" else number(row[name], 2)
    whole = row["n_ok"] == row["n_attacked"]
    return value if whole else f"{value} ({row['n_ok']:.0f} of {row['n_attacked']:.0f})"


def controls_table(found: Found, shown: Mapping[str, str]) -> Table:
    """Return a line a control, by the columns of `shown`."""
    own = found.rows[found.rows["status"] == CONTROL].assign(status=OK)
    lines = [[row["attack"], *(_text(row, name) for name in shown)] for row in rows_of(own)]
    told = titled("everything", "controls", marks=SAYS_NOTHING)
    return table(told, own, ["picture", *shown.values()], lines)


def _rho(found: Found) -> Table:
    columns: Mapping[str, str | tuple[str, str]] = {
        "ρ": "rho",
        "range over attacks and targets": ("low", "high"),
        "range over originals": ("rho_images_low", "rho_images_high"),
    }
    told = titled("everything", "agreement", fewest=FEWEST, marks=SAYS_NOTHING)
    return agreement_table(with_ranges(found), "cells", columns, told)


def with_ranges(found: Found) -> pd.DataFrame:
    """Return the agreement with low and high of ρ, cells drawn anew as in `differences`."""
    drawn, enough = _drawn_anew(found.rows, found.specs)
    none = np.full(2, np.nan)
    ends = [
        holding(drawn[name][1:]) if enough and name in drawn else none
        for name in found.agreement["metric"]
    ]
    return found.agreement.assign(**pd.DataFrame(ends, columns=["low", "high"]))


def reasons_table(cells: pd.DataFrame) -> Table:
    """Return reasons of cells without a number, or with fewer pictures, a line a reason."""
    told, lines = cells[cells["why"] != ""], []
    for (status, why, network), part in told.groupby(["status", "why", "network"], sort=False):
        names = (", ".join(dict.fromkeys(part[one])) for one in ("attack", "strategy"))
        what = "some pictures did not come back" if status == OK else status
        cell = counted(len(part), "cell")
        lines.append([*map(str, (network, *names, cell, what, why))])
    head = ["network", "attacks", "strategies", "how many", "what", "why"]
    return table(titled("everything", "reasons"), told, head, lines)


# As a two-way cluster bootstrap (Owen 2007, "The pigeonhole bootstrap").
def _drawn_anew(
    cells: pd.DataFrame, specs: Sequence[MetricSpec]
) -> tuple[dict[str, np.ndarray], bool]:
    """Return each metric's ρ over the cells, then over `DRAWS` samples of attacks and targets.

    Cells of one attack, and of one target, are not independent: a sample of the map is a sample of
    its attacks and of its targets, each with replacement. Beside it stands whether there are
    `FEWEST` of each.
    """
    names = [spec.name for spec in specs]
    own = cells[cells["status"] == OK].dropna(subset=["people", *names])
    targets = own["network"] + "/" + own["strategy"]
    weights = _drawn(own["attack"], DRAWS, 0) * _drawn(targets, DRAWS, 1)
    samples = np.concatenate([np.ones((1, len(own))), weights])
    people = own["people"].to_numpy(float)
    found = {}
    for spec in specs:
        sign = 1 if spec.higher_means_more_leakage else -1
        found[spec.name] = weighted_spearman(people, sign * own[spec.name].to_numpy(float), samples)
    return found, min(own["attack"].nunique(), targets.nunique()) >= FEWEST


def differences(cells: pd.DataFrame, specs: Sequence[MetricSpec]) -> pd.DataFrame:
    """Compare the metric of the highest ρ without a mark with each other, cells drawn anew.

    Args:
        cells: `Found.rows`; those with status "ok" count, where every metric has a number.
        specs: the metrics to compare.

    Returns:
        A row for each other metric, nearest first, those with a mark last: metric, title, other,
        other_title, difference of the two ρ, and low and high, the 2.5 and 97.5 percentiles of that
        difference, NaN of fewer than `FEWEST` attacks or targets. Empty where fewer than two
        metrics have a ρ, or none without a mark.
    """
    found, enough = _drawn_anew(cells, specs)
    ranked = [spec for spec in specs if np.isfinite(found[spec.name][0])]
    ranked.sort(key=lambda spec: (spec.mark != "", -found[spec.name][0]))
    lines = []
    for other in ranked[1:] if ranked and not ranked[0].mark else ():
        best = ranked[0]
        apart = found[best.name] - found[other.name]
        ends = holding(apart[1:]) if enough else (np.nan, np.nan)
        lines.append([best.name, best.title, other.name, other.title, apart[0], *ends])
    return pd.DataFrame(lines, columns=_LEADS)


def differences_table(found: pd.DataFrame) -> Table:
    """Return `differences` as a table to read."""
    cells: Cells = {
        "metric": lambda row: row["title"],
        "ahead of": lambda row: row["other_title"],
        "by": lambda row: number(row["difference"], 2),
        "range": lambda row: interval(row["low"], row["high"]),
    }
    told = titled("everything", "differences", fewest=FEWEST, marks=SAYS_NOTHING)
    return table_of(found, cells, **told)


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
        aim="map",
        files=("map", "map", "agreement"),
        facts=(
            *("network", "strategy", "attack", "attacker", "status", "why", "n_attacked", "n_ok"),
            *("target_accuracy", "target_at_chance", "target_epsilon", "simulated"),
        ),
        ranks=("metric", "title", "n", "rho", "rho_images_low", "rho_images_high", "undefined"),
        scale_of=scale_of,
        plans_of=plans_of,
        before=cells_text,
        rows_of=rows,
        control=lambda title: {
            **MapCell(network="", strategy="", attack=title)._asdict(),
            "status": CONTROL,
        },
        text=text,
        drawn=("map.png", "map.svg"),
    )
)
