"""Training data of federated clients, from images or a table, and its split among them.

A table of one's own has numbers and categories in, one number out, or a number for every image.
What one party makes of the words in its table has to be what another makes of them, so that the
coding can be handed on: which categories each column has, and what the target's unit is.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from pandas.api.types import is_numeric_dtype
from torch import Tensor

from semsim.base.errors import DataError, SettingsError
from semsim.base.registry import unknown
from semsim.base.table_files import in_text, read_frame
from semsim.images import is_image_file, read_images
from semsim.systems.federated import TABLES
from semsim.systems.federated.settings import FederatedSettings, generator
from semsim.targets.train import deviations
from semsim.types import LabelledImages

Coding = Mapping[str, Any]  # ready for JSON
_MOST = 100  # categories of a column: more are names, which say nothing about anybody else
_FEWEST = 5  # rows, of which a fifth are for tests
_MOST_ROWS = 100_000_000
_ENDINGS = (".png", ".jpg", ".jpeg")


@dataclass(frozen=True, kw_only=True)
class OwnTable:
    """A CSV file with a heading, a row an example.

    Attributes:
        path: The file; its columns are parted by commas, semicolons or tabs.
        target: The column that is predicted: numbers, or two words, which are 0 and 1 in
            alphabetical order.
        images: A folder; the first column then names a file in it, with or without its ending, and
            the other columns are not used.
        size: Images are resized to `size` × `size`.
    """

    path: str = ""
    target: str = ""
    images: str = ""
    size: int = 32

    def __post_init__(self) -> None:
        for name, value in (("path", self.path), ("target", self.target)):
            if not value:
                raise SettingsError(f"A table needs {name}=…: table:path=bank.csv,target=y.")

    def read(self, coding: Coding | None = None) -> tuple[Tensor, Tensor, Coding]:
        """Inputs (N, columns) or (N, 3, size, size), targets (N, 1), and the coding they are in.

        Args:
            coding: Another party's, instead of one made from this table.

        Raises:
            DataError: For a table that cannot be read, with what to do about it.
        """
        table = _frame(Path(self.path))
        if self.target not in table:
            raise DataError(
                f"{self.path} has no column {self.target!r}. It has: {', '.join(map(str, table))}."
            )
        wanted = (coding or {}).get("target") or _target_coding(table[self.target])
        targets = torch.as_tensor(_targets(table[self.target], wanted))[:, None]
        rest = table.drop(columns=self.target)
        if rest.empty:
            raise DataError(f"{self.path} has no column except the target {self.target!r}.")
        if self.images:
            first = str(rest.columns[0])
            names = _frame(Path(self.path), texts=(first,))[first]
            paths = [_file(Path(self.images), in_text(name) or "") for name in names]
            size = (self.size, self.size)
            return read_images(paths, size), targets, {"target": wanted}
        columns = (coding or {}).get("columns") or [_column_coding(rest[name]) for name in rest]
        values = np.concatenate([_coded(rest, one) for one in columns], axis=1)
        return torch.as_tensor(values), targets, {"target": wanted, "columns": columns}


def own_table_text(path: Path | None, target: str | None) -> str:
    """The data text of an `OwnTable`; `SettingsError` where one of the two is missing."""
    if path is None or not target:
        raise SettingsError("A table needs --table and --target, the column that is predicted.")
    return f"table:path={path.resolve()},target={target}"


def _frame(path: Path, texts: Sequence[str] = ()) -> pd.DataFrame:
    """The table at `path`; numbers in the columns `texts` stay as they are written."""
    if not path.is_file():
        raise DataError(f"There is no table {path}.")
    found = read_frame(path, DataError, texts=texts, most=_MOST_ROWS)
    if len(found) < _FEWEST:
        raise DataError(f"{path} has {len(found)} rows; {_FEWEST} or more are needed.")
    return found


def _whole(column: pd.Series) -> np.ndarray:
    """A column of numbers; `DataError` where a cell holds none."""
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(float)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        raise DataError(
            f"Column {column.name!r} holds numbers, but {len(wrong)} of its cells do not, first in "
            f"row {wrong[0] + 2}: {column.iloc[wrong[0]]!r}. Fill them in, or leave these rows out."
        )
    return numbers


def _target_coding(column: pd.Series) -> dict[str, Any]:
    if is_numeric_dtype(column):
        numbers = _whole(column)
        if len(np.unique(numbers)) < 2:
            raise DataError(f"The target {column.name!r} is {numbers[0]:g} everywhere.")
        if set(numbers) == {0.0, 1.0}:
            return {"mean": 0.0, "std": 1.0}
        return {"mean": float(numbers.mean()), "std": float(numbers.std(ddof=1))}
    words = sorted(set(column.dropna()))
    if len(words) != 2 or column.hasnans:
        raise DataError(
            f"The target {column.name!r} has {len(words)} different words"
            f"{' and empty cells' if column.hasnans else ''}; it has to be a number, or one of two "
            "words. Classes of images go into folders instead: folder:root=…"
        )
    return {"words": words}


def _targets(column: pd.Series, coding: Coding) -> np.ndarray:
    """0 and 1 for two words, or numbers in standard deviations; 0 and 1 stay what they are."""
    if "words" in coding:
        return _positions(column, coding["words"]).astype(float)
    return (_whole(column) - coding["mean"]) / coding["std"]


def _column_coding(column: pd.Series) -> list[Any]:
    """The column's name, and its categories, or None where it holds numbers."""
    if is_numeric_dtype(column):
        return [column.name, None]
    words = sorted(set(_words(column)))
    if len(words) > _MOST:
        raise DataError(
            f"Column {column.name!r} has {len(words)} different words, as names have; a category "
            f"is one of at most {_MOST}. Leave the column out."
        )
    return [column.name, words]


def _coded(table: pd.DataFrame, coding: Sequence[Any]) -> np.ndarray:
    """One column as (N, 1) numbers, or as (N, categories) zeros and ones."""
    name, words = coding
    if name not in table:
        raise DataError(f"The table has no column {name!r}, which the others' have.")
    if words is None:
        return _whole(table[name])[:, None]
    return np.eye(len(words))[_positions(_words(table[name]), words)]


def _words(column: pd.Series) -> pd.Series:
    """An empty cell is a category of its own."""
    return column.fillna("").astype(str)


def _positions(column: pd.Series, words: Sequence[str]) -> np.ndarray:
    places = pd.Index(words).get_indexer(pd.Index(column))
    if (places < 0).any():
        odd = column[places < 0].iloc[0]
        raise DataError(f"{odd!r} in column {column.name!r} is none of {', '.join(words)}.")
    return np.asarray(places)


def _file(folder: Path, name: str) -> Path:
    """The image of a name; `DataError` says that it, or the folder, is missing."""
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}.")
    for path in (folder / name, *(folder / f"{name}{ending}" for ending in _ENDINGS)):
        if path.is_file() and is_image_file(path):
            return path
    raise DataError(
        f"There is no image {name!r} in {folder}, with or without {', '.join(_ENDINGS)}. The first "
        "column of the table names the files."
    )


_SMALLEST = 1e-300  # a sum of gamma draws, below which their shares are lost to rounding
_TRIES = 100  # draws of a split in which every client gets something


@dataclass(frozen=True, kw_only=True)
class FederatedExamples:
    """One split.

    Attributes:
        inputs: (N, …).
        targets: (N, outputs), one-hot where there are classes.
        labels: (N,) class indices, or None where numbers are predicted.
    """

    inputs: Tensor
    targets: Tensor
    labels: Tensor | None

    def __len__(self) -> int:
        return len(self.inputs)

    def pick(self, indices: Sequence[int]) -> "FederatedExamples":
        """The examples at `indices`, in that order."""
        index = torch.as_tensor(list(indices), dtype=torch.long)
        labels = None if self.labels is None else self.labels[index]
        return FederatedExamples(
            inputs=self.inputs[index], targets=self.targets[index], labels=labels
        )


@dataclass(frozen=True, kw_only=True)
class FederatedData:
    """Training and test examples.

    Attributes:
        mean, std: One value a channel, by which the network normalises; public.
        outputs: Width of the targets.
        classes: Names, empty where numbers are predicted.
        coding: What stands for the words of a table of one's own, ready for JSON, see `own_table`.
    """

    name: str
    train: FederatedExamples
    test: FederatedExamples
    mean: tuple[float, ...]
    std: tuple[float, ...]
    classes: tuple[str, ...] = ()
    coding: Mapping[str, Any] = field(default_factory=dict)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.train.inputs.shape[1:])

    @property
    def outputs(self) -> int:
        """Number of outputs of the network."""
        return self.train.targets.shape[1]


def of_images(train: LabelledImages, test: LabelledImages) -> FederatedData:
    """Images, (N, C, H, W) in [0, 1], with one-hot targets.

    Raises `DataError` where the splits have different classes or sizes.
    """
    if train.classes != test.classes or train.images.shape[1:] != test.images.shape[1:]:
        raise DataError(
            f"Training and test images need the same classes and size; got {len(train.classes)} "
            f"and {len(test.classes)} classes, {tuple(train.images.shape[1:])} and "
            f"{tuple(test.images.shape[1:])}."
        )
    pixels = train.images.double()
    return FederatedData(
        name=train.dataset,
        train=_one_hot(train),
        test=_one_hot(test),
        mean=tuple(pixels.mean((0, 2, 3)).tolist()),
        std=tuple(deviations(pixels, (0, 2, 3))),
        classes=train.classes,
    )


def digest_of(data: FederatedData) -> str:
    """Twelve letters that change with any number of the examples."""
    made = hashlib.sha256()
    for one in (data.train, data.test):
        for numbers in (one.inputs, one.targets):
            made.update(numbers.contiguous().numpy().tobytes())
    return made.hexdigest()[:12]


def of_table(name: str) -> FederatedData:
    """A table that scikit-learn brings along, a fifth of it for tests; one number is predicted.

    "diabetes": 442 people, 10 columns, progress of the disease in standard deviations.
    "breast-cancer": 569 people, 30 columns, 0 or 1 as in the paper's bank marketing data.
    "digit-values": 1,797 handwritten digits, 8 × 8 in three equal channels, the number that is
        written from 0 to 1: an image in, a number out, as in the paper's retina images.
    Columns are standardised with the training rows' mean and deviation.
    """
    return _predicted(name, *_table(name))


def of_own_table(table: OwnTable, coding: Mapping[str, Any] | None = None) -> FederatedData:
    """A table of one's own, or a number for every image, a fifth of it for tests.

    Args:
        coding: Another party's.

    Raises:
        DataError: For a table that cannot be read.
    """
    inputs, targets, own = table.read(coding)
    return replace(_predicted("table", inputs, targets), coding=own)


def _predicted(name: str, inputs: Tensor, targets: Tensor) -> FederatedData:
    order = torch.randperm(len(inputs), generator=generator("table", name))
    held_out = len(inputs) // 5
    train, test = order[held_out:], order[:held_out]
    over = (0,) if inputs.dim() == 2 else (0, 2, 3)  # of a column, or of a channel
    known = inputs[train].double()
    return FederatedData(
        name=name,
        train=FederatedExamples(inputs=inputs[train], targets=targets[train], labels=None),
        test=FederatedExamples(inputs=inputs[test], targets=targets[test], labels=None),
        mean=tuple(known.mean(over).tolist()),
        std=tuple(deviations(known, over)),
    )


def _table(name: str) -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

    if name not in TABLES:
        raise unknown("table", name, TABLES)
    if name == "digit-values":
        digits = load_digits()
        grey = torch.as_tensor(digits.images, dtype=torch.float64)[:, None] / 16
        return grey.expand(-1, 3, -1, -1).clone(), torch.as_tensor(digits.target)[:, None] / 9.0
    table = load_diabetes(scaled=False) if name == "diabetes" else load_breast_cancer()
    inputs = torch.as_tensor(table.data, dtype=torch.float64)
    targets = torch.as_tensor(table.target, dtype=torch.float64)[:, None]
    if name == "diabetes":
        targets = (targets - targets.mean()) / targets.std()
    return inputs, targets


def _one_hot(images: LabelledImages) -> FederatedExamples:
    targets = F.one_hot(images.labels, len(images.classes)).double()
    return FederatedExamples(inputs=images.images, targets=targets, labels=images.labels)


def deal(examples: FederatedExamples, settings: FederatedSettings) -> tuple[tuple[int, ...], ...]:
    """Indices into `examples` for every client; each index goes to exactly one.

    Raises `SettingsError` where a client would get nothing, or "dirichlet" has no classes.
    """
    if len(examples) < settings.clients:
        raise SettingsError(
            f"{settings.clients} clients need as many examples; there are {len(examples)}."
        )
    if settings.split == "iid":
        order = torch.randperm(len(examples), generator=generator("iid", settings.seed))
        return tuple(tuple(part.tolist()) for part in torch.tensor_split(order, settings.clients))
    return _dirichlet(examples, settings)


def batch_of(count: int, step: int, client: int, settings: FederatedSettings) -> list[int]:
    """Positions, among a client's own `count` examples, of its mini-batch number `step`, from 0."""
    per_epoch = math.ceil(count / settings.batch_size)
    epoch, place = divmod(step, per_epoch)
    order = torch.randperm(count, generator=generator("epoch", settings.seed, client, epoch))
    found: list[int] = order.split(settings.batch_size)[place].tolist()
    return found


def _dirichlet(
    examples: FederatedExamples, settings: FederatedSettings
) -> tuple[tuple[int, ...], ...]:
    """Each class's examples in shares drawn from Dir(α) (Hsu et al. 2019, arXiv:1909.06335)."""
    if examples.labels is None:
        raise SettingsError("The split 'dirichlet' needs classes; this data has none. Use 'iid'.")
    rng = generator("dirichlet", settings.seed)
    for _ in range(_TRIES):
        parts = _drawn(examples.labels, settings, rng)
        if all(parts):
            return parts
    raise SettingsError(
        f"In {_TRIES} draws with dirichlet_alpha={settings.dirichlet_alpha:g} some client of "
        f"{settings.clients} got nothing. Take a larger dirichlet_alpha or fewer clients."
    )


def _drawn(
    labels: Tensor, settings: FederatedSettings, rng: torch.Generator
) -> tuple[tuple[int, ...], ...]:
    parts: list[list[int]] = [[] for _ in range(settings.clients)]
    alpha = torch.full((settings.clients,), settings.dirichlet_alpha, dtype=torch.float64)
    for label in labels.unique():
        members = (labels == label).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=rng)]
        weights = torch._standard_gamma(alpha, generator=rng)
        if not float(weights.sum()) > _SMALLEST:  # each is rounded up to the least there is
            winner = torch.randint(settings.clients, (), generator=rng)
            weights = F.one_hot(winner, settings.clients).double()
        ends = (weights.cumsum(0) / weights.sum() * len(members)).round().long()[:-1]
        for part, share in zip(parts, torch.tensor_split(members, ends), strict=True):
            part += share.tolist()
    return tuple(tuple(sorted(part)) for part in parts)
