"""`semsim-studio reproduce everything`: every attack against every defence, as one map.

A row a cell, and how metrics rank the cells beside simulated people.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from semsim.base.cli.terminal import rows_of, say
from semsim.base.registry import read_plugin
from semsim.base.sets.reader import ReconstructionSet
from semsim.base.stats.correlation import weighted_spearman
from semsim.base.stats.intervals import FEWEST
from semsim.base.stats.resampling import interval as holding
from semsim.base.words import counted
from semsim.datasets import DATASETS
from semsim.metrics import MetricSpec
from semsim.papers.everything_plan import (
    Key,
    key_of,
    planned,
    scale_of,
    work_out,
    works_of,
)
from semsim.papers.judged import (
    Judged,
    JudgedTable,
    Machines,
    agreement_table,
    command_of,
    first_failure,
    judge_plans,
    write_tables,
)
from semsim.papers.simulated_votes import CONTROL, SAYS_NOTHING, TITLES, Voters
from semsim.reporting import writing
from semsim.reporting.canvas import marked_as_simulated
from semsim.reporting.export import write_picture
from semsim.reporting.leak_map import leak_map
from semsim.reporting.notation import interval, number
from semsim.reporting.tables import Cells, Table, table_of

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

    cells: a row a cell and control: network, strategy, attack, status (`OK`, `FAILED`, `UNFIT` or
        `CONTROL`), why, n_attacked, n_ok, target_accuracy, target_at_chance, target_epsilon,
        simulated, people (the share of simulated votes that recognise it) and a column a metric;
        NaN where there is none.
    agreement: a row a metric, `_AGREEMENT`, over the cells that have a number.
    specs: of the metrics that have columns. absent: why others have none.
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
    controls = (Key(network="", strategy="", attack=title) for title in TITLES.values())
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


def _row(key: Key, status: str, why: str = "") -> dict[str, Any]:
    return {**key._asdict(), "status": status, "why": why, "simulated": True}


def _cell(key: Key, found: ReconstructionSet, judged: Judged) -> dict[str, Any]:
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
