"""The studies of the SemSim paper: what a training depends on, with all else left as it is.

Sun et al. 2023, Fig. 7A (how many originals are labelled), 7B (network), 7C (loss), 9 (margin).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from semsim.base.errors import DataError, SettingsError
from semsim.base.metric_spec import START
from semsim.base.registry import Registry
from semsim.base.storage.pieces import key_of
from semsim.learning.baselines import CLASSIC, auc_words, check_controls
from semsim.learning.evaluation import auc_of, judged_of, scope_of, semsim_row
from semsim.learning.settings import MIXED, TrainSettings
from semsim.learning.shuffles import SHUFFLED
from semsim.learning.splits import HoldOut, divide
from semsim.learning.triplets import learnable, take_stock

ALL = "all"  # of the label budget: every original there is
_NOT_PLAIN = re.compile(r"[^0-9A-Za-z.]")
_BUDGETS = (50, 100, 200, 300, 400, 500)
_LEAST = 2  # originals of a budget: one has none beside it that could be kept for validation


@dataclass(frozen=True)
class Kind:
    """One study: title and the paper's figure, what is varied, and the values it takes at first.

    setting: the field of `TrainSettings` that is varied; empty for the label budget.
    """

    title: str
    figure: str
    axis: str
    setting: str = ""
    values: tuple[Any, ...] = ()


STUDIES: Registry[Kind] = Registry(
    "study",
    {
        "budget": Kind("Label budget", "7A", "labelled originals"),
        "backbone": Kind("Network", "7B", "network", "backbone", ("lenet", "resnet18", "resnet50")),
        "loss": Kind("Loss", "7C", "loss", "loss", ("triplet", "contrastive")),
        "margin": Kind("Margin", "9", "margin", "margin", (0.1, 0.5, 1.0, 2.0, 5.0)),
    },
)


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """A study: every value with every seed, all judged by what the hold-out keeps for the test.

    what: of `STUDIES`. values: what is varied. settings: of every training but for that.
    A seed decides the training and the choice of test originals, so that all values of one seed
    are judged by the same images. controls: of `semsim.learning.baselines.CHOICES`. Raises
    `SettingsError` for no value, no seed or one twice, and for a loss or margin that cannot be
    varied with all else as it is.
    """

    what: str
    values: tuple[Any, ...]
    settings: TrainSettings
    hold_out: HoldOut = field(default_factory=HoldOut)
    seeds: tuple[int, ...] = (0,)
    controls: str = START

    def __post_init__(self) -> None:
        check_controls(self.controls)
        kind = STUDIES[self.what]
        for name, given in (("values", self.values), ("seeds", self.seeds)):
            if not given or len(set(given)) < len(given):
                raise SettingsError(f"{name} must be given, each once; got {given!r}.")
        for value in self.values:
            if kind.setting:
                varied = replace(self.settings, **{kind.setting: value})
                _check_varied(kind, self.settings, varied)
            elif value != ALL and not (isinstance(value, int) and value >= 1):
                raise SettingsError(f"A budget is a number of originals or all; got {value!r}.")


def _check_varied(kind: Kind, settings: TrainSettings, varied: TrainSettings) -> None:
    """`SettingsError` where one thing cannot be varied with all else as it is."""
    mixed = MIXED in (settings.loss, varied.loss)
    if mixed and (kind.setting == "margin" or settings.loss != varied.loss):
        raise SettingsError(
            f"The loss {MIXED} has no margin and learns in one epoch, so the {kind.axis} cannot be "
            "varied with all else as it is. Take another preset, such as small."
        )


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One training of a study. budget: how many originals it may learn from; None for all."""

    name: str
    value: Any
    seed: int
    settings: TrainSettings
    hold_out: HoldOut
    budget: int | None = None
    controls: str = START


def arms(plan: StudyPlan) -> tuple[Arm, ...]:
    """Every training of the study, seed by seed."""
    setting = STUDIES[plan.what].setting
    names = plain_names(plan.values)
    return tuple(
        Arm(
            name=f"{names[value]}-seed-{seed}",
            value=value,
            seed=seed,
            settings=replace(plan.settings, seed=seed, **({setting: value} if setting else {})),
            hold_out=replace(plan.hold_out, seed=seed),
            budget=None if setting or value == ALL else int(value),
            controls=plan.controls,
        )
        for seed in plan.seeds
        for value in plan.values
    )


def default_values(
    what: str,
    labels: pd.DataFrame,
    settings: TrainSettings,
    hold_out: HoldOut | None = None,
    seeds: Sequence[int] = (0,),
) -> tuple[Any, ...]:
    """The values a study takes where none are given; budgets only up to what every seed can learn.

    labels: of all, or where there is no `hold_out` of what is learned from. Raises `DataError`
    where nothing can be learned, or as `divide`.
    """
    kind = STUDIES[what]
    if kind.setting:
        return kind.values
    tables = [labels]
    if hold_out is not None:
        tables = [divide(labels, replace(hold_out, seed=seed)).train for seed in seeds]
    stocks = [learnable(take_stock(table), settings.ordering) for table in tables]
    usable = min(map(len, stocks))
    steps = [n for n in _BUDGETS if n < usable]
    return (*(steps or [n for n in (usable // 4, usable // 2) if n >= _LEAST]), ALL)


def study_plan(
    what: str,
    given: str | None,
    labels: pd.DataFrame,
    *,
    settings: TrainSettings,
    hold_out: HoldOut,
    trainings: int,
    controls: str,
) -> StudyPlan:
    """The plan of a study as people ask for it.

    given: values as `read_values` takes them, None for those of `default_values` on `labels`.
    trainings: of each value, whose seeds are that of the settings and up. Raises as these two and
    `StudyPlan`.
    """
    seeds = tuple(range(settings.seed, settings.seed + trainings))
    values = (
        default_values(what, labels, settings, hold_out, seeds)
        if given is None
        else read_values(what, given)
    )
    return StudyPlan(
        what=what,
        values=values,
        seeds=seeds,
        settings=settings,
        hold_out=hold_out,
        controls=controls,
    )


def usual_values(what: str) -> tuple[str, ...]:
    """The values of a study as people write them: those it takes at first, or usual budgets."""
    kind = STUDIES[what]
    return tuple(map(str, kind.values if kind.setting else (*_BUDGETS, ALL)))


def read_values(what: str, text: str) -> tuple[Any, ...]:
    """Values with commas between, such as "0.5,1" of the margin or "50,all" of the budget."""
    setting = STUDIES[what].setting
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        if setting == "margin":
            return tuple(float(part) for part in parts)
        return tuple(parts if setting else (p if p == ALL else int(p) for p in parts))
    except ValueError:
        raise SettingsError(f"{text!r} are not values of the study {what}.") from None


def within_budget(
    labels: pd.DataFrame, budget: int | None, seed: int, settings: TrainSettings
) -> pd.DataFrame:
    """The rows of `budget` originals that `settings` can learn from.

    They are drawn so that a larger budget holds a smaller one of the same seed. None leaves
    `labels` whole. Raises `DataError` where there are fewer such originals.
    """
    if budget is None:
        return labels
    usable = [one.key for one in learnable(take_stock(labels), settings.ordering)]
    if budget > len(usable):
        raise DataError(
            f"A budget of {budget} originals is more than the {len(usable)} that can be learned "
            "from; choose a smaller one, or all."
        )
    order = np.random.default_rng(seed).permutation(len(usable))
    chosen = pd.MultiIndex.from_tuples([usable[i] for i in order[:budget]])
    return labels[
        pd.MultiIndex.from_frame(labels[["dataset", "image_id"]].astype(str)).isin(chosen)
    ]


def summary(rows: Sequence[Mapping[str, Any]], scope: str = "") -> pd.DataFrame:
    """One row a value: mean, lowest and highest over seeds of SemSim's AUC and ρ, and the others'.

    seeds: how many trainings that is of. failed: how many more there are, which have no numbers.
    start: the same network before it saw a vote. shuffled: the mean over shuffles of the votes.

    rows: as `run_arm` returns them. scope: of AUC, "" for the one that all go by. NaN where nothing
    is defined.
    """
    scope = scope or scope_of(*judged_of(rows))
    table = pd.DataFrame([_facts(row, scope) for row in rows])
    grouped = table.groupby("value", sort=False)
    found = grouped[["n_originals", "auc", "rho", START, SHUFFLED, *CLASSIC]].mean()
    failed = grouped["failed"].sum()
    found.insert(0, "seeds", grouped.size() - failed)
    found.insert(1, "failed", failed)
    found["auc_lowest"], found["auc_highest"] = grouped["auc"].min(), grouped["auc"].max()
    return found.reset_index()


def study_table(outcome: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The heads and lines of a `summary` as people read it: a line a value, "–" for no number.

    outcome: as `run_study` returns it.
    """
    table, auc = summary(outcome["rows"]), auc_words(scope_of(*judged_of(outcome["rows"])))
    table["seeds"] = [
        f"{judged} of {judged + failed}" if failed else judged
        for judged, failed in zip(table["seeds"], table["failed"], strict=True)
    ]
    heads = {
        **{"value": STUDIES[outcome["what"]].axis, "seeds": "trainings"},
        **{"n_originals": "originals", "auc": f"SemSim {auc}", "auc_lowest": "lowest"},
        **{"auc_highest": "highest", "rho": "ρ", START: "its start", SHUFFLED: "shuffled votes"},
        **{"mse": "MSE", "psnr": "PSNR", "ssim": "SSIM"},
    }
    lines = [[_text(cell) for cell in line] for line in table[list(heads)].to_numpy().tolist()]
    return list(heads.values()), lines


def failures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each training that failed, with its reason; rows: as `run_study` has them."""
    return [f"{row['name']} is in no number: {row['why']}" for row in rows if "why" in row]


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return "–" if np.isnan(cell) else f"{cell:.3g}"
    return str(cell)


def _facts(row: Mapping[str, Any], scope: str) -> dict[str, Any]:
    if "why" in row:
        nothing = ("n_originals", "auc", "rho", START, SHUFFLED, *CLASSIC)
        return {"value": str(row["value"]), "failed": 1, **dict.fromkeys(nothing, np.nan)}
    judged = row["held_out"]
    aucs = {name: auc_of(judged, name, scope) for name in CLASSIC}
    aucs[START] = auc_of(judged, f"{semsim_row(judged)['metric']}.{START}", scope)
    aucs[SHUFFLED] = auc_of(judged, SHUFFLED, scope)
    numbers = {"auc": auc_of(judged, "semsim", scope), "rho": semsim_row(judged)["rho"], **aucs}
    known = {name: np.nan if value is None else value for name, value in numbers.items()}
    return {"value": str(row["value"]), "failed": 0, "n_originals": row["n_originals"], **known}


def plain_names(values: Sequence[Any]) -> dict[Any, str]:
    """Each value as a part of a name of a file, which no other of `values` has."""
    plain = {value: _NOT_PLAIN.sub("-", str(value)) for value in values}
    taken = Counter(name.lower() for name in plain.values())  # some file systems ignore case
    return {
        value: name if taken[name.lower()] == 1 else f"{name}-{key_of(str(value), 8)}"
        for value, name in plain.items()
    }
