"""`semsim-studio reproduce deployed`: updates, batch norm and DP-SGD, and who agrees there.

Within a row pictures are ranked, since it has few sets; over rows the sets are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from semsim.base.cli.terminal import rows_of, text_table
from semsim.base.jobs.orders import from_record
from semsim.base.registry import read_plugin
from semsim.base.sets.reader import ReconstructionSet
from semsim.base.stats.roc import picture_agreement
from semsim.base.words import counted
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.plan import Campaign, Plan
from semsim.datasets import DATASETS
from semsim.metrics import MetricSpec
from semsim.papers.engine import (
    DECLARED,
    RANKED,
    Judged,
    JudgedTable,
    Machines,
    Work,
    agreement_table,
    campaign_works,
    command_of,
    first_failure,
    judge_plans,
    of_preset,
    plans_here,
    write_tables,
)
from semsim.papers.simulated_votes import (
    CONTROL,
    GREY,
    MEAN,
    ORIGINAL,
    SAYS_NOTHING,
    TITLES,
    Voters,
)
from semsim.reporting import writing
from semsim.reporting.notation import NONE, interval, number, reason
from semsim.reporting.tables import Table
from semsim.sets.no_attack_baseline import Count, judged_set
from semsim.targets.train_settings import TrainSettings

_LR = 0.05  # of a client's steps
ENOUGH = 0.9  # of the originals: fewer, and simulated people are too blunt to stand for anybody
_OVER = (
    *("metric", "title", "n", "rho", "rho_bw_low", "rho_bw_high", "tau", "tau_score_low"),
    *("tau_score_high", "rho_images_low", "rho_images_high", "interval_undefined", "undefined"),
)
_FACTS = (
    *("row", "title", "network", "strategy", "share", "attack", "n_sets", "n_attacked", "n_ok"),
    *("accuracy_low", "accuracy_high", "at_chance", "reached", "epsilon", "delta", "simulated"),
    *("why", "clearer", "people", "people_grey", "people_mean"),
)


class Deployment(NamedTuple):
    """One way in which clients train and share, and the InvGrad that goes with it.

    Attributes:
        name: Of its folder.
        network, attack: Settings beside the scale's own, as text.
    """

    name: str
    title: str
    strategy: str = "none"
    share: str = "gradient"
    network: str = ""
    attack: str = ""


@dataclass(frozen=True, kw_only=True)
class DeployedScale:
    """The rows, of one architecture on one data set, each attacked by the same attack.

    Attributes:
        architecture, attack: As text, ended by what a row adds.
        trainings: Moments of a training at which its target is attacked, as in `Campaign`.
        jury_epochs: Of simulated people, in tenths of the usual.
    """

    name: str
    rows: tuple[Deployment, ...]
    dataset: str
    architecture: str
    attack: str
    images: int
    train: TrainSettings
    trainings: tuple[str, ...]
    jury_epochs: int

    def campaign(self, row: Deployment) -> Campaign:
        """Return the campaign of one row."""
        return Campaign(
            name=f"deployed-{self.name}-{row.name}",
            datasets=(self.dataset,),
            architectures=(_with(self.architecture, row.network),),
            strategies=(row.strategy,),
            shares=(row.share,),
            attacks=(_with(self.attack, row.attack),),
            images=self.images,
            train=self.train,
            trainings=self.trainings,
            together=self.images,
        )


_DECLARED = DECLARED["deployed"]


def scale_of(name: str) -> DeployedScale:
    """The scale called smoke, small or paper; `SettingsError` for another name."""
    asked = dict(of_preset(_DECLARED["presets"], name))
    rows = tuple(_rows(asked.pop("asked")))
    return replace(
        from_record(DeployedScale, {**asked, "name": name, "rows": ()}, by_hand=True), rows=rows
    )


def _rows(asked: Mapping[str, Any]) -> Iterator[Deployment]:
    """Yield the rows: what papers attack, updates, the same with batch norm, and DP-SGD.

    Args:
        asked: Of a preset, what rows have in braces.
    """
    told = {**asked}
    for end, pictures in (("", asked["pictures"]), ("_smaller", asked["smaller"])):
        told[f"on{end}"] = f"on {counted(pictures, 'picture')}"
        told[f"batch{end}"] = f"batch={pictures},lr={_LR}"
    for cells in _DECLARED["rows"]:
        for noise in asked["noise"] if "{noise}" in cells[0] else [None]:
            yield Deployment(*(cell.format(**{**told, "noise": noise}) for cell in cells))


def plans_of(scale: DeployedScale) -> dict[str, Plan]:
    """Return the plan of each row, by its name; its sets are called by `set_name`.

    Raises `DataError` where the attacked pictures are not there.
    """
    return {row.name: _named(plan_of(scale.campaign(row)), row) for row in scale.rows}


def set_name(row: Deployment, training: str) -> str:
    """Return the name of a row's set in votes and tables;

    Args:
        training: Of `Scale.trainings`.
    """
    return f"{row.title}, {training}" if training else row.title


def _with(text: str, more: str) -> str:
    if not more:
        return text
    return f"{text}{',' if ':' in text else ':'}{more}"


def _named(plan: Plan, row: Deployment) -> Plan:
    """Sets of different rows would else have one name, since a plan tells its own apart alone."""
    trainings = plan.campaign.trainings
    sets = [
        replace(one, model=set_name(row, training))
        for one, training in zip(plan.sets, trainings, strict=True)
    ]
    return replace(plan, sets=tuple(sets))


def rows_text(scale: DeployedScale) -> str:
    """Return what is computed, a line a row."""
    lines = []
    for row in scale.rows:
        asked, sets = scale.campaign(row), len(scale.trainings)
        how = asked.architectures[0], row.strategy, row.share, asked.attacks[0]
        lines.append([row.title, *how, str(sets), str(sets * scale.images)])
    head = ["row", "target", "strategy", "what is shared", "attack", "sets", "pictures"]
    return f"Scale {scale.name}, on {scale.dataset}.\n{text_table(head, lines)}"


def works_of(preset: str, folder: Path, known: bool = False) -> list[Work]:
    """Return the trainings and attacks of a preset; rows share targets.

    Args:
        known: Whether to look what is done below `folder`, which reads the pictures that are here.
    """
    scale = scale_of(preset)
    asked = [(row.title, scale.campaign(row)) for row in scale.rows]
    plans = plans_here(campaign for _, campaign in asked) if known else ()
    return campaign_works(asked, plans, folder)


def planned(preset: str, folder: Path) -> tuple[list[Work], str]:
    """Return `works_of` a preset with what is done, and what is computed in words."""
    return works_of(preset, folder, known=True), rows_text(scale_of(preset))


def jury_text(originals: int, recognised: int, votes: float) -> str:
    """Say how many originals simulated people recognise by majority, and what follows.

    Args:
        votes: The share of their votes that recognise one.
    """
    told = (
        f"The simulated people recognise {recognised} of {originals} originals "
        f"by majority ({votes:.0%} of their votes)"
    )
    if recognised >= ENOUGH * originals:
        return f"{told}, at least nine in ten."
    return f"{told}, fewer than nine in ten: too blunt to stand for people in any row."


def write_deployed(preset: str, folder: Path, machines: Machines) -> tuple[pd.DataFrame, str]:
    """Compute a preset and write its tables below `folder`; the rows, and what deployed.md says.

    rows.csv: a row a way to share and control, columns `_FACTS` and the mean of each metric;
    people_grey, people_mean: of the grey and the mean picture in its place; clearer: set by set.
    within.csv: a row a way to share and metric, `picture_ranks.PICTURE_COLUMNS` over its pictures.
    over.csv: a row a metric, `_OVER`, over the sets of all rows.
    """
    scale = scale_of(preset)
    plans, dataset = plans_of(scale), read_plugin(DATASETS, scale.dataset)
    images = next(iter(plans.values())).images[scale.dataset]
    voters = Voters(dataset, dataset, scale.jury_epochs, images)
    found, judged = judge_plans("deployed", "rank", plans, voters, folder, machines)
    lines = [_row(row, found[row.name], scale, judged) for row in scale.rows]
    control = {"row": CONTROL, "n_sets": 1}
    lines += [{**control, "title": one, **judged.control(one)} for one in TITLES.values()]
    rows = pd.DataFrame(lines).reindex(columns=[*_FACTS, *(spec.name for spec in judged.specs)])
    within = _within(scale, found, judged)
    over = judged.agreement(_OVER).assign(simulated=True)
    jury = _jury_text(judged.labels)
    marks = f"{jury} {SAYS_NOTHING}"
    tables = [
        _rows_table(rows, judged.specs, marks),
        *(_within_table(within, judged.specs, one, marks) for one in (("rho", "ρ"), ("tau", "τ"))),
        _over_table(over, marks),
    ]
    frames = {"rows": rows, "within": within, "over": over}
    text = [jury, "", *map(writing.markdown, tables)]
    return rows, write_tables("deployed", frames, text, judged.absent, folder)


def _row(
    row: Deployment, sets: Sequence[ReconstructionSet], scale: DeployedScale, judged: Judged
) -> dict[str, Any]:
    asked = scale.campaign(row)
    targets = [one.run["target"] for one in sets]
    accuracy = [one["accuracy"] for one in targets if one.get("accuracy") is not None]
    own = judged.of([one.model for one in sets])
    ids = set(own.labels["image_id"])
    promised = [one["epsilon"] for one in targets if one.get("epsilon") is not None]
    told = {
        **{"row": row.name, "title": row.title, "network": asked.architectures[0]},
        **{"strategy": row.strategy, "share": row.share, "attack": asked.attacks[0]},
        **{"n_sets": len(sets), "n_attacked": sum(len(one.manifest) for one in sets)},
        **{"n_ok": len(own.labels), "simulated": True, "why": first_failure(sets)},
        "accuracy_low": min(accuracy, default=np.nan),
        "accuracy_high": max(accuracy, default=np.nan),
        "at_chance": any(one.get("at_chance") for one in targets),
        "reached": all(_reached(one) for one in targets),
        "epsilon": max(promised, default=np.nan),
        "delta": next((one["delta"] for one in targets if one.get("delta")), np.nan),
        "clearer": ", ".join(str(Count.of(judged_set(one)).clearer) for one in sets),
    }
    if own.labels.empty:
        return told
    guesses = {f"people_{kind}": _share(judged, TITLES[kind], ids) for kind in (GREY, MEAN)}
    return {**told, **own.means(), **guesses}


def _reached(target: Mapping[str, Any]) -> bool:
    """Tell whether a target got as good as asked before its training was out of epochs."""
    accuracy, until = target.get("accuracy"), target["train"]["until"]
    return until == 1.0 or (accuracy is not None and accuracy >= until)


def _share(judged: Judged, model: str, ids: set[str]) -> float:
    votes = judged.of([model]).votes
    return float(votes["recognised"][votes["image_id"].isin(ids)].mean())


def _jury_text(labels: pd.DataFrame) -> str:
    own = labels[labels["model"] == TITLES[ORIGINAL]]
    votes = own["n_recognised"].sum() / own["n_votes"].sum()
    return jury_text(len(own), int(own["recognisable"].sum()), float(votes))


def _within(
    scale: DeployedScale, found: Mapping[str, Sequence[ReconstructionSet]], judged: Judged
) -> pd.DataFrame:
    parts = []
    for row in scale.rows:
        own = judged.of([one.model for one in found[row.name]])
        if own.labels.empty:
            continue
        table = picture_agreement(own.evidence(), own.specs, RANKED.headline)
        parts.append(table.assign(row=row.name, row_title=row.title))
    return pd.concat(parts, ignore_index=True).assign(simulated=True)


def _rows_table(rows: pd.DataFrame, specs: Sequence[MetricSpec], marks: str) -> Table:
    lines = [
        [
            *(row["title"], _target(row), _promise(row), f"{row['n_ok']} of {row['n_attacked']}"),
            *(_percent(row[name]) for name in ("people", "people_grey", "people_mean")),
            *(number(row[spec.name], 2) for spec in specs),
        ]
        for row in rows_of(rows)
    ]
    head = ["row", "target right", "ε at δ", "came back", "people", "grey", "mean picture"]
    return Table(
        name="rows",
        title="What comes back",
        caption=(
            "People: the share of votes that recognise a picture; grey and mean picture: the same "
            "of a grey and of the mean training picture in its place. °: a target guesses; *: one "
            f"did not get as good as asked. {marks}"
        ),
        frame=rows,
        cells=pd.DataFrame(lines, columns=[*head, *(spec.title for spec in specs)]),
    )


def _target(row: Mapping[str, Any]) -> str:
    low, high = row["accuracy_low"], row["accuracy_high"]
    if pd.isna(low):
        return NONE
    told = f"{low:.0%}" if low == high else f"{low:.0%}, {high:.0%}"
    return f"{told}{'°' if row['at_chance'] else ''}{'' if row['reached'] else '*'}"


def _promise(row: Mapping[str, Any]) -> str:
    if pd.isna(row["delta"]):
        return NONE
    spent = row["epsilon"]
    told = "∞" if pd.isna(spent) else f"{spent:.3g}" if spent < 100 else f"{spent:,.0f}"
    return f"{told} at {row['delta']:g}"


def _percent(share: float) -> str:
    return NONE if pd.isna(share) else f"{share:.0%}"


def _within_table(
    within: pd.DataFrame, specs: Sequence[MetricSpec], statistic: tuple[str, str], marks: str
) -> Table:
    """Marked are those whose range leaves 0 below it.

    Args:
        statistic: Its name and its sign.
    """
    name, sign = statistic
    lines: list[list[str]] = []
    above: set[tuple[int, int]] = set()
    for _, part in within.groupby("row", sort=False):
        by = {str(one["metric"]): one for _, one in part.iterrows()}
        line = [str(part["row_title"].iloc[0]), str(part["n"].max())]
        for spec in specs:
            if spec.name not in by:
                line.append(NONE)
                continue
            one = by[spec.name]
            if one[f"{name}_low"] > 0:
                above.add((len(lines), len(line)))
            line.append(_cell(one, name))
        lines.append(line)
    return Table(
        name=f"within-{name}",
        title=f"Does a metric rank a row's pictures as simulated people do? {sign}",
        caption=(
            f"{sign} over the pictures of a row by the share of votes, positive agrees; in "
            "brackets the 95 % interval over originals; bold where all of that is above 0. "
            "Where there is no number it says whose values are all the same; a dash for brackets: "
            f"the ranking hangs on too few originals. {marks}"
        ),
        frame=within,
        cells=pd.DataFrame(lines, columns=["row", "pictures", *(one.title for one in specs)]),
        best=frozenset(above),
    )


def _cell(row: pd.Series, name: str) -> str:
    why = reason(row["undefined"])
    if why is not None:
        return f"{NONE} ({why.partition(':')[0]})" if ":" in why else NONE
    ends = interval(row[f"{name}_low"], row[f"{name}_high"])
    return f"{number(row[name], 2)} {ends}"


def _over_table(over: pd.DataFrame, marks: str) -> Table:
    return agreement_table(
        over,
        "sets",
        {
            "ρ": "rho",
            "95 % of ρ": ("rho_bw_low", "rho_bw_high"),
            "τ": "tau",
            "95 % of τ": ("tau_score_low", "tau_score_high"),
            "ρ over originals": ("rho_images_low", "rho_images_high"),
        },
        name="over",
        title="Does a metric rank the sets of all rows as simulated people do?",
        caption=(
            "Spearman's ρ and Kendall's τ-b by the share of votes, positive agrees. The intervals "
            "take sets for a sample, though they share originals and targets; the last range holds "
            f"95 % of resamples of originals. {marks}"
        ),
    )


reproduce_deployed = command_of(
    JudgedTable(
        name="deployed",
        help=(
            "Attack what is deployed, and say which metric still agrees with simulated people "
            "there.\n\n"
            "Updates after local steps, with momentum, batch norm in training, clipped and noised "
            "gradients: a row each beside the plain gradient. What was computed before is not "
            "again."
        ),
        works=works_of,
        planned=planned,
        made=write_deployed,
        written=("deployed.md", "rows.csv", "within.csv", "over.csv"),
    )
)
