"""What is deployed, as tables: what comes back in each row, and which metric ranks it as people do.

Within a row pictures are ranked, since it has few sets; over rows the sets are.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from semsim.analysis.picture_ranks import picture_agreement
from semsim.campaign.plan import Plan
from semsim.campaign.sets import set_folder
from semsim.errors import DataError
from semsim.metrics import MetricSpec, Resources
from semsim.progress import Report, silent
from semsim.reporting.notation import NONE, interval, number, reason
from semsim.reporting.tables import Table
from semsim.reproduce.deployed_plan import Row, Scale
from semsim.reproduce.judged import RANKED, Judged, agreement_table, judge_sets
from semsim.reproduce.simulated_people import CONTROL, TITLES
from semsim.reproduce.simulated_votes import GREY, MEAN, ORIGINAL, SAYS_NOTHING
from semsim.sets.reader import ReconstructionSet, read_set
from semsim.terminal import rows_of

ENOUGH = 0.9  # of the originals: fewer, and simulated people are too blunt to stand for anybody
_OVER = (
    *("metric", "title", "n", "rho", "rho_bw_low", "rho_bw_high", "tau", "tau_score_low"),
    *("tau_score_high", "rho_images_low", "rho_images_high", "interval_undefined", "undefined"),
)
_FACTS = (
    *("row", "title", "network", "strategy", "share", "attack", "n_sets", "n_attacked", "n_ok"),
    *("accuracy_low", "accuracy_high", "at_chance", "reached", "epsilon", "delta", "simulated"),
    *("why", "people", "people_grey", "people_mean"),
)


class Jury(NamedTuple):
    """How many of the originals themselves simulated people recognise by majority, and by votes."""

    n_originals: int
    n_recognised: int
    votes: float

    @property
    def enough(self) -> bool:
        """Whether it is at least `ENOUGH` of them."""
        return self.n_recognised >= ENOUGH * self.n_originals

    def text(self) -> str:
        """In a sentence, with what follows."""
        told = (
            f"The simulated people recognise {self.n_recognised} of {self.n_originals} originals "
            f"by majority ({self.votes:.0%} of their votes)"
        )
        if self.enough:
            return f"{told}, at least nine in ten."
        return f"{told}, fewer than nine in ten: too blunt to stand for people in any row."


class Deployed(NamedTuple):
    """What a scale gave.

    rows: a row a way to share and control, columns `_FACTS` and the mean of each metric;
        people_grey and people_mean are of the grey and the mean picture in its pictures' place.
    within: a row a way to share and metric, `picture_ranks.PICTURE_COLUMNS` over its pictures.
    over: a row a metric, `_OVER`, over the sets of all rows.
    specs: of the metrics that have columns. absent: why others have none.
    """

    rows: pd.DataFrame
    within: pd.DataFrame
    over: pd.DataFrame
    jury: Jury
    specs: tuple[MetricSpec, ...]
    absent: Mapping[str, str]


def deployed_of(
    scale: Scale,
    plans: Mapping[str, Plan],
    data: Path,
    controls: Sequence[Path],
    jury: Sequence[Path],
    resources: Resources,
    report: Report = silent,
) -> Deployed:
    """What the finished sets below `data` say; scores are kept in `data`/scores.

    controls: the folders of `write_controls`. jury: of `data_set_jury`. Raises `DataError`
    where not one picture came back.
    """
    found = {
        name: [read_set(set_folder(data, plan, one)) for one in plan.sets]
        for name, plan in plans.items()
    }
    shown = [one.folder for sets in found.values() for one in sets if not one.pairs.empty]
    if not shown:
        raise DataError("Every attack failed on every image, so there is nothing to rank.")
    judged = judge_sets("deployed", [*shown, *controls], data, jury, resources, report)
    rows = [_row(row, found[row.name], scale, judged) for row in scale.rows]
    rows += [_control(title, judged) for title in TITLES.values()]
    names = [spec.name for spec in judged.specs]
    return Deployed(
        rows=pd.DataFrame(rows).reindex(columns=[*_FACTS, *names]),
        within=_within(scale, found, judged),
        over=judged.agreement(_OVER).assign(simulated=True),
        jury=_jury(judged.labels),
        specs=judged.specs,
        absent=judged.absent,
    )


def _row(
    row: Row, sets: Sequence[ReconstructionSet], scale: Scale, judged: Judged
) -> dict[str, Any]:
    asked = scale.campaign(row)
    targets = [one.run["target"] for one in sets]
    accuracy = [one["accuracy"] for one in targets if one.get("accuracy") is not None]
    errors = [error for one in sets for error in one.manifest["error"] if error]
    own = judged.of([one.model for one in sets])
    ids = set(own.labels["image_id"])
    promised = [one["epsilon"] for one in targets if one.get("epsilon") is not None]
    told = {
        **{"row": row.name, "title": row.title, "network": asked.architectures[0]},
        **{"strategy": row.strategy, "share": row.share, "attack": asked.attacks[0]},
        **{"n_sets": len(sets), "n_attacked": sum(len(one.manifest) for one in sets)},
        **{"n_ok": len(own.labels), "simulated": True},
        "accuracy_low": min(accuracy, default=np.nan),
        "accuracy_high": max(accuracy, default=np.nan),
        "at_chance": any(one.get("at_chance") for one in targets),
        "reached": all(_reached(one) for one in targets),
        "epsilon": max(promised, default=np.nan),
        "delta": next((one["delta"] for one in targets if one.get("delta")), np.nan),
        "why": str(errors[0]).strip().splitlines()[-1] if errors else "",
    }
    if own.labels.empty:
        return told
    guesses = {f"people_{kind}": _share(judged, TITLES[kind], ids) for kind in (GREY, MEAN)}
    return {**told, **own.means(), **guesses}


def _reached(target: Mapping[str, Any]) -> bool:
    """Whether a target got as good as asked before its training was out of epochs."""
    accuracy, until = target.get("accuracy"), target["train"].get("until", 1.0)
    return until == 1.0 or (accuracy is not None and accuracy >= until)


def _share(judged: Judged, model: str, ids: set[str]) -> float:
    votes = judged.of([model]).votes
    return float(votes["recognised"][votes["image_id"].isin(ids)].mean())


def _control(title: str, judged: Judged) -> dict[str, Any]:
    own = judged.of([title])
    n = len(own.labels)
    counts = {"n_sets": 1, "n_attacked": n, "n_ok": n, "simulated": True, "why": ""}
    return {"row": CONTROL, "title": title, **counts, **own.means()}


def _jury(labels: pd.DataFrame) -> Jury:
    own = labels[labels["model"] == TITLES[ORIGINAL]]
    votes = own["n_recognised"].sum() / own["n_votes"].sum()
    return Jury(len(own), int(own["recognisable"].sum()), float(votes))


def _within(
    scale: Scale,
    found: Mapping[str, Sequence[ReconstructionSet]],
    judged: Judged,
) -> pd.DataFrame:
    parts = []
    for row in scale.rows:
        own = judged.of([one.model for one in found[row.name]])
        if own.labels.empty:
            continue
        table = picture_agreement(own.evidence(), own.specs, RANKED)
        parts.append(table.assign(row=row.name, row_title=row.title))
    return pd.concat(parts, ignore_index=True).assign(simulated=True)


def tables(found: Deployed) -> list[Table]:
    """To read: what comes back in each row, agreement within rows by ρ and by τ, and over them."""
    marks = f"{found.jury.text()} {SAYS_NOTHING}"
    return [
        _rows_table(found, marks),
        *(_within_table(found, name, sign, marks) for name, sign in (("rho", "ρ"), ("tau", "τ"))),
        _over_table(found, marks),
    ]


def _rows_table(found: Deployed, marks: str) -> Table:
    lines = [
        [
            *(row["title"], _target(row), _promise(row), f"{row['n_ok']} of {row['n_attacked']}"),
            *(_percent(row[name]) for name in ("people", "people_grey", "people_mean")),
            *(number(row[spec.name], 2) for spec in found.specs),
        ]
        for row in rows_of(found.rows)
    ]
    head = ["row", "target right", "ε at δ", "came back", "people", "grey", "mean picture"]
    titles = [spec.title for spec in found.specs]
    return Table(
        name="rows",
        title="What comes back",
        caption=(
            "People: the share of votes that recognise a picture; grey and mean picture: the same "
            "of a grey and of the mean training picture in its place. °: a target guesses; *: one "
            f"did not get as good as asked. {marks}"
        ),
        frame=found.rows,
        cells=pd.DataFrame(lines, columns=[*head, *titles]),
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


def _within_table(found: Deployed, name: str, sign: str, marks: str) -> Table:
    """Marked are those whose range leaves 0 below it."""
    lines: list[list[str]] = []
    above: set[tuple[int, int]] = set()
    for _, part in found.within.groupby("row", sort=False):
        by = {str(one["metric"]): one for _, one in part.iterrows()}
        line = [str(part["row_title"].iloc[0]), str(part["n"].max())]
        for spec in found.specs:
            if spec.name not in by:
                line.append(NONE)
                continue
            one = by[spec.name]
            if one[f"{name}_low"] > 0:
                above.add((len(lines), len(line)))
            line.append(_cell(one, name))
        lines.append(line)
    titles = [spec.title for spec in found.specs]
    return Table(
        name=f"within-{name}",
        title=f"Does a metric rank a row's pictures as simulated people do? {sign}",
        caption=(
            f"{sign} over the pictures of a row by the share of votes, positive agrees; in "
            "brackets the 95 % interval over originals; bold where all of that is above 0. "
            "Where there is no number it says whose values are all the same; a dash for brackets: "
            f"the ranking hangs on too few originals. {marks}"
        ),
        frame=found.within,
        cells=pd.DataFrame(lines, columns=["row", "pictures", *titles]),
        best=frozenset(above),
    )


def _cell(row: pd.Series, name: str) -> str:
    why = reason(row["undefined"])
    if why is not None:
        return f"{NONE} ({why.partition(':')[0]})" if ":" in why else NONE
    ends = interval(row[f"{name}_low"], row[f"{name}_high"])
    return f"{number(row[name], 2)} {ends}"


def _over_table(found: Deployed, marks: str) -> Table:
    return agreement_table(
        found.over,
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
