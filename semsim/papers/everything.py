"""`semsim-studio reproduce everything`: every attack against every defence, as one map.

A row is a cell of the map; over cells metrics are ranked beside simulated annotators.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from semsim.attacks import ATTACKS
from semsim.attacks.as_text import read_attack, threat_of
from semsim.base.jobs.orders import changed
from semsim.base.registry import read_plugin
from semsim.base.stats.correlation import weighted_spearman
from semsim.base.stats.intervals import FEWEST
from semsim.base.stats.resampling import interval as holding
from semsim.base.words import counted
from semsim.campaign.plan import Campaign, Plan, PlannedSet
from semsim.defences import DEFENCES, NAMED_STRATEGIES, parse, split_parts, strategy_label
from semsim.metrics import MetricSpec
from semsim.papers.engine import DECLARED, of_preset, table, titled
from semsim.papers.judged import (
    FAILED,
    OK,
    UNFIT,
    Found,
    Judged,
    JudgedScale,
    JudgedTable,
    Sets,
    agreement_table,
    cell_text,
    command_of,
    controls_table,
    plans_of,
    reasons_table,
    refused,
)
from semsim.papers.simulated_votes import CONTROL, SAYS_NOTHING
from semsim.reporting import writing
from semsim.reporting.canvas import marked_as_simulated
from semsim.reporting.export import write_picture
from semsim.reporting.leak_map import leak_map
from semsim.reporting.notation import NONE, interval, number
from semsim.reporting.tables import Cells, Table, table_of
from semsim.targets import NETWORKS


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
    unfit = sum(
        bool(one.why(attack, strategy))
        for one in tried
        for _, attack, strategy in cells_of(one.campaign)
    )
    n, images = sum(len(plan.sets) for plan in plans.values()), scale.parts[0][1].images
    return "\n".join(
        [
            f"Scale {scale.name}: {counted(n, 'cell')} to compute, {images} originals each; "
            f"{unfit} that cannot be.",
            *(line for one in tried for line in one.lines()),
        ]
    )


DRAWS = 2000  # of attacks and targets
_DPI = 150  # of a picture that a page shows whole
_LEADS = ("metric", "title", "other", "other_title", "difference", "low", "high")


def rows(scale: JudgedScale, sets: Sets, judged: Judged) -> Iterator[dict[str, Any]]:
    """Yield a row a cell: its key, `status` and counts, the facts of its target, and means."""
    for _, campaign in scale.parts:
        tried = refused(campaign)
        found = dict(zip(map(key_of, tried.plan.sets), sets[campaign.name], strict=True))
        for key, attack, strategy in cells_of(campaign):
            about = {**key._asdict(), "attacker": threat_of(read_attack(attack)).words}
            if why := tried.why(attack, strategy):
                yield {**about, "status": UNFIT, "why": why, "simulated": True}
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
    shown = {
        "people": "Recognised by simulated annotators",
        **{s.name: s.title for s in found.specs},
    }
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
        lines.append([attack, attacker, *(cell_text(by.loc[one], name) for one in strategies)])
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
            "Every attack against every defence, by simulated annotators and each metric, as one "
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
