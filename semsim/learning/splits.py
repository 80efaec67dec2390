"""Splits of labels into training and test of a SemSim: no original is on both sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy

from semsim.base.errors import DataError, SettingsError
from semsim.base.stats.grouping import named_in
from semsim.base.table_files import check_columns
from semsim.base.words import counted
from semsim.learning.triplets import Inventory, take_stock
from semsim.weights import content_key

# What can be left out as a whole; "original" leaves out nothing but originals.
KINDS = ("original", "dataset", "architecture", "strategy", "attack")
NO_STRATEGY = "none named"
_NEEDED = ("dataset", "attack", "model", "image_id", "original", "recognisable")


@dataclass(frozen=True, kw_only=True)
class HoldOut:
    """Choice of the labels kept for the test.

    Attributes:
        kind: Of `KINDS`.
        value: The one left out, such as "convnet8"; empty for "original".
        fraction: Share of the originals in the test, rounded, at least one on either side; without
            effect where a data set is left out, which takes all its originals along.
        seed: Of the choice of originals.
    """

    kind: str = "original"
    value: str = ""
    fraction: float = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingsError(f"Hold out one of {', '.join(KINDS)}; got {self.kind!r}.")
        if bool(self.value) == (self.kind == "original"):
            what = "nothing beside it" if self.kind == "original" else "which one is left out"
            raise SettingsError(f"--hold-out {self.kind} needs {what}; got {self.value!r}.")
        if not 0 < self.fraction < 1:
            raise SettingsError(f"The share held out must lie in (0, 1); got {self.fraction!r}.")
        if self.seed < 0:
            raise SettingsError(f"The seed of the split must be 0 or more; got {self.seed}.")

    @property
    def words(self) -> str:
        """For people: what the test shows that training has not seen."""
        if self.kind == "original":
            return "originals it has not seen"
        if self.kind == "dataset":
            return f"the data set {self.value}, which it has not seen"
        return f"originals and the {self.kind} {self.value}, which it has not seen"


@dataclass(frozen=True, kw_only=True)
class Split:
    """Rows of a table of labels to learn from and to judge by; `unused` are on neither side.

    Unused are reconstructions of test originals by what is trained on, and of training originals
    by what is left out.
    """

    hold_out: HoldOut
    train: pd.DataFrame
    test: pd.DataFrame
    unused: int

    @property
    def n_test_originals(self) -> int:
        return len(self.test[["dataset", "image_id"]].drop_duplicates())


@dataclass(frozen=True, kw_only=True)
class SplitCounts:
    """Counts of a split before anything starts, and, in words, what it lacks.

    Attributes:
        recognisable, unrecognisable: Test reconstructions on which a majority agrees.
        lacking: What makes the training or the test impossible or poor, for people to read.
    """

    training: Inventory
    n_test_originals: int
    n_test_models: int
    recognisable: int
    unrecognisable: int
    unused: int
    lacking: tuple[str, ...]


def parse_hold_out(text: str, fraction: float = 0.25, seed: int = 0) -> HoldOut:
    """The hold-out that "original" or "architecture=convnet8" means."""
    kind, _, value = text.partition("=")
    return HoldOut(kind=kind.strip(), value=value.strip(), fraction=fraction, seed=seed)


def hold_out_text(hold_out: HoldOut) -> str:
    """The text that `parse_hold_out` reads."""
    return f"{hold_out.kind}={hold_out.value}" if hold_out.value else hold_out.kind


def divide(labels: pd.DataFrame, hold_out: HoldOut) -> Split:
    """Labels of a study in a part to learn from and a part to judge by.

    Args:
        labels: One row a reconstruction, with the columns dataset, attack, model, image_id,
            original and recognisable. Two rows are of one original where data set and image agree,
            or where the files of their originals have one content: one picture under two names is
            never on both sides.

    Raises:
        DataError: Where a column is missing, nothing is called `hold_out.value`, or a side is
            empty.
    """
    check_columns(labels, _NEEDED, "The table of labels", DataError)
    left_out = _left_out(labels, hold_out)
    originals = originals_of(labels)
    tested = np.isin(originals, _test_originals(originals, left_out, hold_out))
    train, test = labels[~left_out & ~tested], labels[left_out & tested]
    if hold_out.kind == "original":
        train, test = labels[~tested], labels[tested]
    for side, rows in (("learn from", train), ("test on", test)):
        if rows.empty:
            raise DataError(
                f"Holding out {hold_out_text(hold_out)} leaves nothing to {side}. Hold out "
                "something else, or add reconstructions to the study."
            )
    unused = len(labels) - len(train) - len(test)
    return Split(hold_out=hold_out, train=train, test=test, unused=unused)


def originals_of(labels: pd.DataFrame) -> np.ndarray:
    """(R,) int: the number of the original each row is of, the same for the same picture.

    A number does not depend on the order of rows: it follows the first data set and image id.
    """
    keys = labels["dataset"].astype(str) + "\n" + labels["image_id"].astype(str)
    key, names = pd.factorize(keys, sort=True)
    paths, of = np.unique(labels["original"].astype(str), return_inverse=True)
    file, files = pd.factorize(np.array([*map(content_key, paths)], dtype=object)[of], sort=True)
    size = len(names) + len(files)
    joined = scipy.sparse.coo_array((np.ones(len(labels)), (key, len(names) + file)), (size, size))
    group = scipy.sparse.csgraph.connected_components(joined, directed=False)[1]
    return np.asarray(pd.factorize(group)[0][key])  # numbered as the sorted keys first name them


def choices(labels: pd.DataFrame, kind: str) -> list[str]:
    """The values of `kind` that can be left out: those there are, where there are at least two."""
    if kind == "original":
        return []
    values = sorted(set(_values(labels, kind)))
    return values if len(values) > 1 else []


def count(labels: pd.DataFrame, hold_out: HoldOut) -> SplitCounts:
    """Return the counts of a training and its test; `DataError` as `divide`."""
    split = divide(labels, hold_out)
    verdict = split.test["recognisable"].astype("boolean")
    yes, no = int(verdict.fillna(False).sum()), int((~verdict.fillna(True)).sum())
    training = take_stock(split.train)
    models = len(split.test[["dataset", "attack", "model"]].drop_duplicates())
    return SplitCounts(
        training=training,
        n_test_originals=split.n_test_originals,
        n_test_models=models,
        recognisable=yes,
        unrecognisable=no,
        unused=split.unused,
        lacking=(*_lacking_in_training(training), *_lacking_in_test(yes, no, models)),
    )


def join_labels(tables: Sequence[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """Labels of several studies, by name, as one table.

    Raises `DataError` where two judge the same reconstruction: their votes are of other people,
    and no rule says which majority holds.
    """
    joined = pd.concat([table for _, table in tables], ignore_index=True)
    twice = int(joined.duplicated(["dataset", "attack", "model", "image_id"]).sum())
    if twice:
        names = " and ".join(name for name, _ in tables)
        raise DataError(
            f"{names} have {twice} of the same reconstructions; choose studies that share none."
        )
    return joined


def join_votes(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Votes of several studies as one table, whose people count as different people.

    Args:
        tables: By the prefix of every annotator's name in one.
    """
    apart = [
        votes.assign(annotator=f"{name}/" + votes["annotator"].astype(str))
        for name, votes in tables.items()
    ]
    return pd.concat(apart, ignore_index=True)


def _left_out(labels: pd.DataFrame, hold_out: HoldOut) -> np.ndarray:
    if hold_out.kind == "original":
        return np.ones(len(labels), dtype=bool)
    values = np.array(_values(labels, hold_out.kind), dtype=object)
    found = values == hold_out.value
    if not found.any():
        known = ", ".join(sorted(set(values)))
        raise DataError(f"No {hold_out.kind} here is called {hold_out.value!r}. Known: {known}.")
    return np.asarray(found, dtype=bool)


def _values(labels: pd.DataFrame, kind: str) -> list[str]:
    if kind not in ("architecture", "strategy"):
        return [str(value) for value in labels[kind]]
    place = 0 if kind == "architecture" else 1
    return [one[place] or NO_STRATEGY for one in named_in(labels)]


def _test_originals(originals: np.ndarray, left_out: np.ndarray, hold_out: HoldOut) -> np.ndarray:
    among = np.unique(originals[left_out])
    if hold_out.kind == "dataset":
        return among
    size = min(len(among) - 1, max(1, round(hold_out.fraction * len(among))))
    rng = np.random.default_rng(hold_out.seed)
    return rng.permutation(among)[: max(size, 0)]


def _lacking_in_training(training: Inventory) -> list[str]:
    parts = (
        ("no unrecognisable reconstruction", training.only_recognisable),
        ("no recognisable reconstruction", training.only_unrecognisable),
        ("no reconstruction on which a majority agrees yet", training.undecided),
    )
    found = [
        f"{counted(len(some), 'original has', 'originals have')} {words}"
        for words, some in parts
        if some
    ]
    if not training.usable:
        found.insert(0, "no original has both kinds, so there is nothing to learn from")
    return found


def _lacking_in_test(recognisable: int, unrecognisable: int, models: int) -> list[str]:
    found = []
    if not recognisable or not unrecognisable:
        kind = "unrecognisable" if recognisable else "recognisable"
        found.append(f"the test has no {kind} reconstruction, so it has no AUC")
    if models < 3:
        found.append(f"the test has {counted(models, 'model')}; ρ and τ need at least 3")
    return found
