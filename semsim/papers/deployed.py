"""`semsim-studio reproduce deployed`: updates, batch norm and DP-SGD, and who agrees there.

A row is a way to share. Within a row pictures are ranked, since it has few sets; over rows the sets
are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from semsim.attacks.as_text import read_attack, read_shared, threat_of
from semsim.base.cli.terminal import rows_of
from semsim.base.jobs.orders import changed
from semsim.base.sets.reader import ReconstructionSet
from semsim.base.stats.roc import picture_agreement
from semsim.base.words import counted
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.plan import Campaign, Plan
from semsim.metrics import MetricSpec
from semsim.papers.engine import DECLARED, Columns, column, of_preset, table, text_of, titled
from semsim.papers.judged import (
    RANKED,
    Found,
    Judged,
    JudgedScale,
    JudgedTable,
    Sets,
    agreement_table,
    command_of,
    jury_note,
)
from semsim.papers.simulated_votes import CONTROL, SAYS_NOTHING
from semsim.reporting import writing
from semsim.reporting.notation import NONE, interval, number, reason
from semsim.reporting.tables import Table
from semsim.sets.no_attack_baseline import Count, judged_set

_DECLARED = DECLARED["deployed"]
_LR = 0.05  # of a client's steps
_USUAL = ("none", "gradient", "", "")  # strategy, what is shared, changes of network and attack


def scale_of(name: str) -> JudgedScale:
    """The scale called smoke, small or paper; `SettingsError` for another name."""
    told = of_preset(_DECLARED["presets"], name)
    usual = changed(Campaign(name=name), told["campaign"])
    usual = replace(usual, together=usual.images)
    parts = []
    for row, title, strategy, share, network, attack in _rows(told["asked"]):
        own = replace(
            usual,
            name=f"deployed-{name}-{row}",
            architectures=(_with(usual.architectures[0], network),),
            strategies=(strategy,),
            shares=(share,),
            attacks=(_with(usual.attacks[0], attack),),
        )
        parts.append((title, own))
    return JudgedScale(name=name, parts=tuple(parts), jury_epochs=told["jury_epochs"])


def _rows(asked: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the rows: name, title and `_USUAL`.

    Args:
        asked: Of a preset, what rows have in braces.
    """
    told = {**asked}
    for end, pictures in (("", asked["pictures"]), ("_smaller", asked["smaller"])):
        told[f"on{end}"] = f"on {counted(pictures, 'picture')}"
        told[f"batch{end}"] = f"batch={pictures},lr={_LR}"
    for cells in _DECLARED["rows"]:
        for noise in asked["noise"] if "{noise}" in cells[0] else [None]:
            whole = [*cells, *_USUAL[len(cells) - 2 :]]
            yield [cell.format(**{**told, "noise": noise}) for cell in whole]


def _with(text: str, more: str) -> str:
    return f"{text}{',' if ':' in text else ':'}{more}" if more else text


def plans_of(scale: JudgedScale) -> dict[str, Plan]:
    """Return the plan of each row; its sets are called by `set_name`, which a plan cannot know.

    Raises `DataError` where the attacked pictures are not there.
    """
    plans = {}
    for title, campaign in scale.parts:
        plan = plan_of(campaign)
        pairs = zip(plan.sets, campaign.trainings, strict=True)
        sets = tuple(replace(one, model=set_name(title, training)) for one, training in pairs)
        plans[campaign.name] = replace(plan, sets=sets)
    return plans


def set_name(title: str, training: str) -> str:
    """Return the name of a row's set in votes and tables, by its title and a training of it."""
    return f"{title}, {training}" if training else title


_PLANNED: Columns = {
    "row": column("title"),
    "target": column("network"),
    "strategy": column("strategy"),
    "what is shared": column("share"),
    "attack": column("attack"),
    "attacker": column("attacker"),
    "sets": column("n_sets"),
    "pictures": column("n_attacked"),
}


def asked(scale: JudgedScale) -> list[dict[str, Any]]:
    """Return what is computed, a row a way to share."""
    return [
        {
            "row": campaign.name.removeprefix(f"deployed-{scale.name}-"),
            "title": title,
            "network": campaign.architectures[0],
            "strategy": campaign.strategies[0],
            "share": campaign.shares[0],
            "attack": campaign.attacks[0],
            "attacker": threat_of(
                read_attack(campaign.attacks[0]), read_shared(campaign.shares[0])
            ).words,
            "n_sets": len(campaign.trainings),
            "n_attacked": len(campaign.trainings) * campaign.images,
        }
        for title, campaign in scale.parts
    ]


def rows(scale: JudgedScale, sets: Sets, judged: Judged) -> Iterator[dict[str, Any]]:
    """Yield a row a way to share, with the votes on grey and mean pictures in its place."""
    for row, own in zip(asked(scale), sets.values(), strict=True):
        ids = set(judged.of([one.model for one in own]).labels["image_id"])
        yield {**row, **_targets(own), **judged.facts(own), **judged.guesses(ids)}


def _targets(sets: Sequence[ReconstructionSet]) -> dict[str, Any]:
    """Return the facts of a row's targets; `clearer` set by set."""
    targets = [one.run["target"] for one in sets]
    known = {
        name: [one[name] for one in targets if one.get(name) is not None]
        for name in ("accuracy", "epsilon", "delta")
    }
    return {
        "accuracy_low": min(known["accuracy"], default=np.nan),
        "accuracy_high": max(known["accuracy"], default=np.nan),
        "at_chance": any(one.get("at_chance") for one in targets),
        "reached": all(_reached(one) for one in targets),
        "epsilon": max(known["epsilon"], default=np.nan),
        "delta": next(filter(None, known["delta"]), np.nan),
        "clearer": ", ".join(str(Count.of(judged_set(one)).clearer) for one in sets),
    }


def _reached(target: Mapping[str, Any]) -> bool:
    """Tell whether a target got as good as asked before its training was out of epochs."""
    accuracy, until = target.get("accuracy"), target["train"]["until"]
    return until == 1.0 or (accuracy is not None and accuracy >= until)


def _within(scale: JudgedScale, sets: Sets, judged: Judged) -> pd.DataFrame:
    """Return a row a way to share and metric, `PICTURE_COLUMNS` over its pictures."""
    parts = []
    for row, found in zip(asked(scale), sets.values(), strict=True):
        own = judged.of([one.model for one in found])
        if not own.labels.empty:
            ranks = picture_agreement(own.evidence(), own.specs, RANKED.headline)
            parts.append(ranks.assign(row=row["row"], row_title=row["title"]))
    return pd.concat(parts, ignore_index=True)


def text(found: Found, _: Path) -> list[str]:
    """Return the parts of deployed.md."""
    marks = f"{found.note} {SAYS_NOTHING}"
    tables = [
        _rows_table(found.rows, found.specs, marks),
        *(
            _within_table(found.more["within"], found.specs, name, sign, marks)
            for name, sign in (("rho", "ρ"), ("tau", "τ"))
        ),
        _over_table(found.agreement, marks),
    ]
    return [found.note, "", *map(writing.markdown, tables)]


def _rows_table(rows: pd.DataFrame, specs: Sequence[MetricSpec], marks: str) -> Table:
    lines = [
        [
            *(row["title"], row["attacker"], _target(row), _promise(row)),
            f"{row['n_ok']} of {row['n_attacked']}",
            *(_percent(row[name]) for name in ("people", "people_grey", "people_mean")),
            *(number(row[spec.name], 2) for spec in specs),
        ]
        for row in rows_of(rows)
    ]
    head = ["row", "attacker", "target right", "ε at δ", "came back"]
    head += ["people", "grey", "mean picture", *(spec.title for spec in specs)]
    return table(titled("deployed", "rows", marks=marks), rows, head, lines)


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
    within: pd.DataFrame, specs: Sequence[MetricSpec], name: str, sign: str, marks: str
) -> Table:
    """Return a statistic of each row and metric; bold are those whose range lies above 0."""
    parts = [part.set_index("metric") for _, part in within.groupby("row", sort=False)]
    lines: list[list[str]] = []
    above: list[tuple[int, int]] = []
    for place, part in enumerate(parts):
        known = part.to_dict("index")
        found = [known.get(spec.name) for spec in specs]
        facts = [str(part["row_title"].iloc[0]), str(part["n"].max())]
        lines.append([*facts, *(NONE if one is None else _cell(one, name) for one in found)])
        ahead = (one is not None and one[f"{name}_low"] > 0 for one in found)
        above += [(place, 2 + column) for column, marked in enumerate(ahead) if marked]
    told = {**titled("deployed", "within", sign=sign, marks=marks), "name": f"within-{name}"}
    head = ["row", "pictures", *(one.title for one in specs)]
    return table(told, within, head, lines, above)


def _cell(row: Mapping[Any, Any] | pd.Series, name: str) -> str:
    why = reason(row["undefined"])
    if why is not None:
        return f"{NONE} ({why.partition(':')[0]})" if ":" in why else NONE
    return f"{number(row[name], 2)} {interval(row[f'{name}_low'], row[f'{name}_high'])}"


def _over_table(over: pd.DataFrame, marks: str) -> Table:
    columns: Mapping[str, str | tuple[str, str]] = {
        "ρ": "rho",
        "95% of ρ": ("rho_bw_low", "rho_bw_high"),
        "τ": "tau",
        "95% of τ": ("tau_score_low", "tau_score_high"),
        "ρ over originals": ("rho_images_low", "rho_images_high"),
    }
    return agreement_table(over, "sets", columns, titled("deployed", "over", marks=marks))


reproduce_deployed = command_of(
    JudgedTable(
        name="deployed",
        help=(
            "Attack what is deployed, and say which metric still agrees with simulated annotators "
            "there.\n\n"
            "Updates after local steps, with momentum, batch norm in training, clipped and noised "
            "gradients: a row each beside the plain gradient. What was computed before is not "
            "again."
        ),
        aim="rank",
        files=("deployed", "rows", "over"),
        facts=(
            *("row", "title", "network", "strategy", "share", "attack", "attacker", "n_sets"),
            "n_attacked",
            *("n_ok", "accuracy_low", "accuracy_high", "at_chance", "reached", "epsilon", "delta"),
            *("simulated", "why", "clearer", "people", "people_grey", "people_mean"),
        ),
        ranks=(
            *("metric", "title", "n", "rho", "rho_bw_low", "rho_bw_high", "rho_note", "tau"),
            *("tau_score_low", "tau_score_high", "rho_images_low", "rho_images_high"),
            "interval_undefined",
            "undefined",
        ),
        scale_of=scale_of,
        plans_of=plans_of,
        before=lambda scale, _: (
            f"Scale {scale.name}, on {scale.dataset}.\n{text_of(_PLANNED, asked(scale))}"
        ),
        rows_of=rows,
        control=lambda title: {"row": CONTROL, "n_sets": 1, "title": title, "attacker": NONE},
        more=lambda *given: {"within": _within(*given)},
        note=jury_note,
        text=text,
    )
)
