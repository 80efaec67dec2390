"""The map as a table: a row a cell, and how metrics rank the cells beside simulated people."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from semsim.errors import DataError
from semsim.metrics import MetricSpec, Resources
from semsim.progress import Report, silent
from semsim.reporting.notation import number
from semsim.reporting.tables import Table
from semsim.reproduce.everything_plan import Key, Worked
from semsim.reproduce.judged import Judged, agreement_table, judge_sets
from semsim.reproduce.map_differences import OK, differences, differences_table
from semsim.reproduce.simulated_people import CONTROL
from semsim.reproduce.simulated_votes import SAYS_NOTHING
from semsim.sets.reader import ReconstructionSet, read_set
from semsim.terminal import rows_of
from semsim.words import counted

FAILED, UNFIT = "failed", "cannot be"
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


def map_of(
    worked: Worked,
    data: Path,
    controls: Sequence[Path],
    jury: Sequence[Path],
    resources: Resources,
    report: Report = silent,
) -> Map:
    """The map of finished sets below `data`; what is scored is kept in `data`/scores.

    jury: of `data_set_jury`. Raises `DataError` where not one picture came back.
    """
    found = {key: read_set(folder) for key, folder in worked.sets(data)}
    unfit = worked.unfit
    shown = [one.folder for one in found.values() if not one.pairs.empty]
    if not shown:
        raise DataError("Every attack failed on every image, so there is nothing to map.")
    judged = judge_sets("everything", [*shown, *controls], data, jury, resources, report)
    rows = [
        _cell(key, found[key], judged) if key in found else _row(key, UNFIT, unfit[key])
        for key in worked.scale.cells()
    ]
    rows += [_control(read_set(folder), judged) for folder in controls]
    names = ["people", *(spec.name for spec in judged.specs)]
    table = pd.DataFrame(rows).reindex(columns=[*_COLUMNS, *names])
    return Map(
        cells=table.astype(dict.fromkeys(names, float)),
        agreement=judged.agreement(_AGREEMENT),
        specs=judged.specs,
        absent=judged.absent,
    )


_COLUMNS = (
    *("network", "strategy", "attack", "status", "why", "n_attacked", "n_ok"),
    *("target_accuracy", "target_at_chance", "target_epsilon", "simulated"),
)


def _row(key: Key, status: str, why: str = "") -> dict[str, Any]:
    return {**key._asdict(), "status": status, "why": why, "simulated": True}


def _cell(key: Key, found: ReconstructionSet, judged: Judged) -> dict[str, Any]:
    target, ok = found.run["target"], len(found.pairs)
    errors = found.manifest["error"]
    why = next((str(one).strip().splitlines()[-1] for one in errors if one), "")
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


def _control(found: ReconstructionSet, judged: Judged) -> dict[str, Any]:
    n = len(found.manifest)
    row = _row(Key(network="", strategy="", attack=found.model), CONTROL)
    return {**row, "n_attacked": n, "n_ok": n, **judged.of([found.model]).means()}


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
