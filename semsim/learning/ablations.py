"""Sets of trainings that differ in one thing or in what they are judged by, each with its table.

A study varies one thing with all else left as it is: Sun et al. 2023, Fig. 7A (how many originals
are labelled), 7B (network), 7C (loss), 9 (margin). Leaving out takes each data set, architecture,
strategy or attack in turn; of data sets that is the paper's Table 1: SemSim learns from all but one
and is judged by that one.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from semsim.base.errors import DataError, SettingsError, TrainingFailedError
from semsim.base.jobs.orders import to_record
from semsim.base.metric_spec import START
from semsim.base.registry import Registry
from semsim.base.storage.pieces import key_of
from semsim.base.words import counted
from semsim.learning.baselines import CLASSIC, SHUFFLED, auc_words, check_controls
from semsim.learning.evaluation import auc_of, judged_of, scope_of, semsim_row
from semsim.learning.settings import TrainSettings, checkpoint_path
from semsim.learning.splits import KINDS, HoldOut, choices, divide
from semsim.learning.triplets import learnable, take_stock

NAME = "semsim"  # of the checkpoint of each training
ALL = "all"  # of the label budget: every original there is
_NOT_PLAIN = re.compile(r"[^0-9A-Za-z.]")
_BUDGETS = (50, 100, 200, 300, 400, 500)
_LEAST = 2  # originals of a budget: one has none beside it that could be kept for validation


@dataclass(frozen=True)
class Ablation:
    """One study: title and the paper's figure, what is varied, and the values it takes at first.

    Attributes:
        setting: The field of `TrainSettings` that is varied; empty for the label budget.
    """

    title: str
    figure: str
    axis: str
    setting: str = ""
    values: tuple[Any, ...] = ()


STUDIES: Registry[Ablation] = Registry(
    "study",
    {
        "budget": Ablation("Label budget", "7A", "labelled originals"),
        "backbone": Ablation(
            "Network", "7B", "network", "backbone", ("lenet", "resnet18", "resnet50")
        ),
        "loss": Ablation("Loss", "7C", "loss", "loss", ("triplet", "contrastive")),
        "margin": Ablation("Margin", "9", "margin", "margin", (0.1, 0.5, 1.0, 2.0, 5.0)),
    },
)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One training of a set of them.

    Attributes:
        facts: What its row says of it.
        folder: Where its checkpoint and its numbers go.
        words: What its reports begin with.
        budget: How many originals it may learn from; None for all.
    """

    facts: Mapping[str, Any]
    folder: Path
    words: str
    settings: TrainSettings
    hold_out: HoldOut
    budget: int | None = None
    controls: str = START


@dataclass(frozen=True, kw_only=True)
class AblationPlan:
    """A study: every value with every seed, all judged by what the hold-out keeps for the test.

    Attributes:
        what: Of `STUDIES`.
        values: What is varied.
        settings: Of every training but for that. A seed decides the training and the choice of test
            originals, so that all values of one seed are judged by the same images.
        controls: Of `semsim.learning.baselines.CHOICES`.

    Raises:
        SettingsError: For no value, no seed or one twice, and for a loss or margin that cannot be
            varied with all else as it is.
    """

    KIND: ClassVar[str] = "learn-study"  # of its job
    ONE_FAILS: ClassVar[tuple[type[Exception], ...]] = (TrainingFailedError,)

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
                replace(self.settings, **{kind.setting: value})  # raises where it cannot be
            elif value != ALL and not (isinstance(value, int) and value >= 1):
                raise SettingsError(f"A budget is a number of originals or all; got {value!r}.")

    @property
    def title(self) -> str:
        """Title of its job."""
        return f"Study of SemSim: {STUDIES[self.what].title.lower()}"

    def variants(self, labels: pd.DataFrame, folder: Path = Path()) -> tuple[Variant, ...]:
        """Every training, seed by seed, below `folder`, whatever the labels."""
        del labels
        setting, names = STUDIES[self.what].setting, plain_names(self.values)
        every = [(seed, value) for seed in self.seeds for value in self.values]
        found = []
        for number, (seed, value) in enumerate(every, 1):
            name, varied = f"{names[value]}-seed-{seed}", {setting: value} if setting else {}
            one = Variant(
                facts={"name": name, "value": value, "seed": seed},
                folder=folder / "arms" / name,
                words=f"{name}, {number} of {len(every)}, ",
                settings=replace(self.settings, seed=seed, **varied),
                hold_out=replace(self.hold_out, seed=seed),
                budget=None if setting or value == ALL else int(value),
                controls=self.controls,
            )
            found.append(one)
        return tuple(found)

    def record(self) -> dict[str, Any]:
        """Return what stands beside the rows of its table."""
        return dict(to_record(self))


@dataclass(frozen=True, kw_only=True)
class LeaveOut:
    """Values left out in turn: `kind` of `semsim.learning.splits.KINDS`, but "original".

    Attributes:
        settings: Of every training; their seed is also that of the originals in the test.
        fraction: Of those, where it counts.
        controls: Of `semsim.learning.baselines.CHOICES`.
    """

    KIND: ClassVar[str] = "learn-leave-out"  # of its job
    # Where one leaves nothing to learn from or to judge by, the others go on.
    ONE_FAILS: ClassVar[tuple[type[Exception], ...]] = (TrainingFailedError, DataError)

    settings: TrainSettings
    kind: str = "dataset"
    fraction: float = 0.25
    controls: str = START

    def __post_init__(self) -> None:
        check_controls(self.controls)
        if self.kind not in KINDS[1:]:
            raise SettingsError(f"Leave out each {', '.join(KINDS[1:])}; got {self.kind!r}.")

    @property
    def title(self) -> str:
        """Title of its job."""
        return f"Leave out each {self.kind}"

    def variants(self, labels: pd.DataFrame, folder: Path = Path()) -> tuple[Variant, ...]:
        """A training for each value in `labels`, below `folder`.

        Raises `DataError` where there are fewer than two values.
        """
        values, seed = choices(labels, self.kind), self.settings.seed
        if not values:
            raise DataError(
                f"There is only one {self.kind} in these labels, so none can be left out. Give the "
                "labels of further studies."
            )
        places = {value: folder / name for value, name in plain_names(values).items()}
        return tuple(
            Variant(
                facts={
                    "left_out": value,
                    "checkpoint": str(checkpoint_path(place, NAME).resolve()),
                },
                folder=place,
                words=f"without {value}: ",
                settings=self.settings,
                hold_out=HoldOut(kind=self.kind, value=value, fraction=self.fraction, seed=seed),
                controls=self.controls,
            )
            for value, place in places.items()
        )

    def record(self) -> dict[str, Any]:
        """Return what stands beside the rows of its table."""
        return {"kind": self.kind}


def default_values(
    what: str,
    labels: pd.DataFrame,
    settings: TrainSettings,
    hold_out: HoldOut | None = None,
    seeds: Sequence[int] = (0,),
) -> tuple[Any, ...]:
    """The values a study takes where none are given; budgets only up to what every seed can learn.

    Args:
        labels: Of all, or where there is no `hold_out` of what is learned from.

    Raises:
        DataError: Where nothing can be learned, or as `divide`.
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
) -> AblationPlan:
    """The plan of a study as people ask for it.

    Args:
        given: Values as `read_values` takes them, None for those of `default_values` on `labels`.
        trainings: Of each value, whose seeds are that of the settings and up. Raises as these two
            and `AblationPlan`.
    """
    seeds = tuple(range(settings.seed, settings.seed + trainings))
    values = (
        default_values(what, labels, settings, hold_out, seeds)
        if given is None
        else read_values(what, given)
    )
    return AblationPlan(what=what, values=values, seeds=seeds, settings=settings, hold_out=hold_out)


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
    labels: pd.DataFrame, budget: int | None, settings: TrainSettings
) -> pd.DataFrame:
    """The rows of `budget` originals that `settings` can learn from.

    They are drawn by the seed of the settings, so that a larger budget holds a smaller one. None
    leaves `labels` whole. Raises `DataError` where there are fewer such originals.
    """
    if budget is None:
        return labels
    usable = [one.key for one in learnable(take_stock(labels), settings.ordering)]
    if budget > len(usable):
        raise DataError(
            f"A budget of {budget} originals is more than the {len(usable)} that can be learned "
            "from; choose a smaller one, or all."
        )
    order = np.random.default_rng(settings.seed).permutation(len(usable))
    chosen = pd.MultiIndex.from_tuples([usable[i] for i in order[:budget]])
    return labels[
        pd.MultiIndex.from_frame(labels[["dataset", "image_id"]].astype(str)).isin(chosen)
    ]


def summary(rows: Sequence[Mapping[str, Any]], scope: str = "") -> pd.DataFrame:
    """One row a value: mean, lowest and highest over seeds of SemSim's AUC and ρ, and the others'.

    seeds: how many trainings that is of. failed: how many more there are, which have no numbers.
    start: the same network with its initial weights. shuffled: the mean over shuffles of the votes.

    Args:
        rows: As `run_ablation` has them.
        scope: Of AUC, "" for the one that all go by. NaN where nothing is defined.
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

    Args:
        outcome: As `run_ablation` returns it.
    """
    table, auc = summary(outcome["rows"]), auc_words(scope_of(*judged_of(outcome["rows"])))
    table["seeds"] = [
        f"{judged} of {judged + failed}" if failed else judged
        for judged, failed in zip(table["seeds"], table["failed"], strict=True)
    ]
    heads = {
        **{"value": STUDIES[outcome["what"]].axis, "seeds": "trainings"},
        **{"n_originals": "originals", "auc": f"SemSim {auc}", "auc_lowest": "lowest"},
        **{
            "auc_highest": "highest",
            "rho": "ρ",
            START: "initial weights",
            SHUFFLED: "shuffled votes",
        },
        **{"mse": "MSE", "psnr": "PSNR", "ssim": "SSIM"},
    }
    lines = [[_text(cell) for cell in line] for line in table[list(heads)].to_numpy().tolist()]
    return list(heads.values()), lines


def failures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each training that failed, with its reason;

    Args:
        rows: As `run_ablation` has them.
    """
    return [f"{row['name']} is in no number: {row['why']}" for row in rows if "why" in row]


def judged_words(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Of how many trainings the numbers are, in a line where that is not all of them."""
    judged = sum("why" not in row for row in rows)
    if judged == len(rows):
        return []
    return [f"Of {counted(len(rows), 'training')} {counted(judged, 'is', 'are')} judged here."]


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
