"""The map as a table: a row a cell, and how metrics rank the cells beside simulated people."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from semsim.analysis.result import AnalysisSettings
from semsim.analysis.run import analyse
from semsim.errors import DataError
from semsim.learning.evaluation import evidence_of
from semsim.metrics import MetricSpec, Resources, find_metric
from semsim.progress import Report, silent
from semsim.reporting import writing
from semsim.reporting.notation import interval, number
from semsim.reporting.tables import Table
from semsim.reproduce.everything_plan import Key, Worked
from semsim.reproduce.simulated_people import CONTROL
from semsim.reproduce.simulated_votes import SAYS_NOTHING, simulated_votes
from semsim.scores.scoring import pair_sets_of_labels, score_sets
from semsim.sets.reader import ReconstructionSet, read_set
from semsim.terminal import rows_of
from semsim.words import counted

# Of single pictures, LPIPS by one of its networks; Fréchet distances need more of them in a set.
METRICS = (
    *("psnr", "ssim", "mse", "psnr-registered", "ssim-registered", "ssim-uniform", "ms-ssim"),
    *("lpips-alex", "recogniser", "semsim:demo"),
)
OK, FAILED, UNFIT = "ok", "failed", "cannot be"
# Ranked by the share of votes: few images make majorities coarse. Nothing reads a p here.
_RANKED = AnalysisSettings(headline="mean-response", permutations=99)
_AGREEMENT = (
    *("metric", "title", "n", "rho", "rho_bw_low", "rho_bw_high"),
    *("rho_images_low", "rho_images_high", "undefined"),
)


Means = Mapping[str, Mapping[str, Any]]


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


def write_tables(
    name: str,
    frames: Mapping[str, pd.DataFrame],
    text: Sequence[str],
    absent: Mapping[str, str],
    folder: Path,
) -> str:
    """Write `frames` as CSV below `folder`, and `text` as NAME.md, which is returned.

    absent: why metrics have no column, which it says at its end.
    """
    for stem, frame in frames.items():
        (folder / f"{stem}.csv").write_text(writing.csv(frame), encoding="utf-8")
    missing = [f"{one} has no column: {absent[one]}" for one in METRICS if one in absent]
    whole = "\n".join([*text, *missing])
    (folder / f"{name}.md").write_text(whole + "\n", encoding="utf-8")
    return whole


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
    means = _means(judged.votes, judged.scores)
    rows = [
        _cell(key, found[key], means) if key in found else _row(key, UNFIT, unfit[key])
        for key in worked.scale.cells()
    ]
    rows += [_control(read_set(folder), means) for folder in controls]
    names = ["people", *(spec.name for spec in judged.specs)]
    table = pd.DataFrame(rows).reindex(columns=[*_COLUMNS, *names])
    return Map(
        cells=table.astype(dict.fromkeys(names, float)),
        agreement=_agreement(judged.labels, judged.votes, judged.scores, judged.specs),
        specs=judged.specs,
        absent=judged.absent,
    )


class Judged(NamedTuple):
    """What simulated people and `METRICS` say of the same sets.

    labels, votes, scores: as `evidence_of` takes them. specs: of the metrics that have scores.
    absent: why others have none.
    """

    labels: pd.DataFrame
    votes: pd.DataFrame
    scores: pd.DataFrame
    specs: tuple[MetricSpec, ...]
    absent: Mapping[str, str]


def judge_sets(
    study: str,
    folders: Sequence[Path],
    data: Path,
    jury: Sequence[Path],
    resources: Resources,
    report: Report = silent,
) -> Judged:
    """Ask the `jury` and every metric of the sets in `folders`; scores are kept in `data`/scores.

    study: what the votes are called. jury: of `data_set_jury`.
    """
    seen = simulated_votes(study, "recognition", folders, jury)
    book = score_sets(pair_sets_of_labels(seen.labels), METRICS, resources, data / "scores", report)
    specs = (find_metric(name).spec for name in METRICS)
    return Judged(
        labels=seen.labels,
        votes=pd.DataFrame(seen.votes),
        scores=book.scores,
        specs=tuple(spec for spec in specs if (book.scores["metric"] == spec.name).any()),
        absent={**book.unavailable, **{name: why for (_, name), why in book.refused.items()}},
    )


_COLUMNS = (
    *("network", "strategy", "attack", "status", "why", "n_attacked", "n_ok"),
    *("target_accuracy", "target_at_chance", "target_epsilon", "simulated"),
)


def _means(votes: pd.DataFrame, scores: pd.DataFrame) -> Means:
    """What people and metrics say of each model on average, by its name."""
    people = votes.groupby("model")["recognised"].mean().rename("people")
    by_metric = scores.groupby(["model", "metric"])["value"].mean().unstack()
    table = pd.concat([people, by_metric], axis=1)
    return {str(row["model"]): row for row in rows_of(table.reset_index(names="model"))}


def _row(key: Key, status: str, why: str = "") -> dict[str, Any]:
    return {**key._asdict(), "status": status, "why": why, "simulated": True}


def _cell(key: Key, found: ReconstructionSet, means: Means) -> dict[str, Any]:
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
    return {**_row(key, OK, why), **facts, **means[found.model]}


def _control(found: ReconstructionSet, means: Means) -> dict[str, Any]:
    n = len(found.manifest)
    row = _row(Key(network="", strategy="", attack=found.model), CONTROL)
    return {**row, "n_attacked": n, "n_ok": n, **means[found.model]}


def _agreement(
    labels: pd.DataFrame, votes: pd.DataFrame, scores: pd.DataFrame, specs: Sequence[MetricSpec]
) -> pd.DataFrame:
    """How each metric ranks the cells, controls aside, as simulated people do."""
    ours, said, scored = (one[one["attack"] != CONTROL] for one in (labels, votes, scores))
    evidence = evidence_of(ours, said, scored, specs)
    return analyse(evidence, specs, _RANKED).agreement[list(_AGREEMENT)]


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
    return [*maps, _controls(found, shown), _rho(found.agreement), _reasons(found.cells)]


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
    lines = [
        [
            *(row["title"], str(row["n"]), number(row["rho"], 2)),
            interval(row["rho_bw_low"], row["rho_bw_high"]),
            interval(row["rho_images_low"], row["rho_images_high"]),
            row["undefined"] or "",
        ]
        for row in rows_of(agreement.fillna({"undefined": ""}))
    ]
    head = ["metric", "cells", "ρ", "95 % over cells", "range over originals", "undefined"]
    return Table(
        name="agreement",
        title="Does a metric rank the cells as simulated people do?",
        caption=(
            "Spearman's ρ over cells with pictures, by the share of votes, positive agrees. The "
            "interval takes cells for a sample, though they share originals and targets; the range "
            f"holds 95 % of resamples of originals. {SAYS_NOTHING}"
        ),
        frame=agreement,
        cells=pd.DataFrame(lines, columns=head),
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
