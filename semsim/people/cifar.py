"""Judgements of CIFAR's test pictures: CIFAR-10H, and the labels that five people checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from semsim.base.errors import DataError
from semsim.base.storage.records import guarded
from semsim.base.table_files import check_columns
from semsim.people.fetching import raw_file
from semsim.people.source import SELF, SHARES, Judged, Source, paired, picture_files

if TYPE_CHECKING:
    from torch import Tensor

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
COUNTS, COUNTS_ARRAY = "counts.csv", "cifar10h-counts.npy"
LABELS_ARRAY = "cifar10_test_set_original_labels.npy"  # numbers of the true classes
CHECKED = ("cifar10_mturk.json", "cifar100_mturk.json")
_SEEN = "as it is"  # the model of pictures that nobody changed
_DIGITS = 5  # of an index in the test set, as files are called


def _cifar10h(folder: Path) -> Judged:
    """Read `counts.csv`, or the authors' array of counts and that of true classes.

    Pictures, where they are, are `images/<index>.png` or `.jpg`.
    """
    table = _counts(folder)
    counts = table[list(CIFAR10)].to_numpy(dtype=float)
    true = table["class_name"].map(CIFAR10.index).to_numpy()
    shares = pd.DataFrame(
        {
            "model": _SEEN,
            "image_id": table["index"].map(_as_file),
            "class_name": table["class_name"],
            SHARES: counts[np.arange(len(table)), true] / counts.sum(axis=1),
        }
    )
    pictures = picture_files(folder, "images/*")
    shown = {(_SEEN, image_id): path for image_id, path in pictures.items()}
    return Judged(pairs=paired(shares, pictures, shown), shares=shares)


def named_pictures(folder: Path) -> tuple[np.ndarray, np.ndarray, Tensor]:
    """Read the pictures of a copy of CIFAR-10H, and what people said of them.

    Args:
        folder: Of the copy, or one above it.

    Returns:
        (N, 10), how many people said each word; (N,) int, the true words; (N, 3, H, W) in [0, 1].

    Raises:
        DataError: Where there is no copy, or no picture in it.
    """
    from semsim.images import read_images  # with torch: a list of sources needs none

    place = CIFAR_10H.found_in(folder)
    pictures = picture_files(place, "images/*") if place else {}
    if place is None or not pictures:
        raise DataError(
            f"{folder} holds no copy of CIFAR-10H with pictures: `semsim-studio people get "
            f"cifar-10h` fetches {COUNTS_ARRAY}; lay CIFAR-10's test pictures beside it as "
            "images/<index>.png, the index with five digits."
        )
    CIFAR_10H.checked(place)
    table = _counts(place)
    table = table[table["index"].map(_as_file).isin(list(pictures))]
    images = read_images([pictures[_as_file(index)] for index in table["index"]])
    true = table["class_name"].map(CIFAR10.index).to_numpy()
    return table[list(CIFAR10)].to_numpy(dtype=float), true, images


def _counts(folder: Path) -> pd.DataFrame:
    """Return one row a picture: index, class_name, and how many people named each class."""
    if (folder / COUNTS).is_file():
        table = pd.read_csv(folder / COUNTS)
        check_columns(table, ("index", "class_name", *CIFAR10), f"{folder / COUNTS}", DataError)
        return table
    counts, labels = (_array(folder / one) for one in (COUNTS_ARRAY, LABELS_ARRAY))
    if counts.shape != (len(labels), len(CIFAR10)):
        raise DataError(
            f"{folder / COUNTS_ARRAY} should have {len(labels)} rows of {len(CIFAR10)} counts, one "
            f"a label of {LABELS_ARRAY}; it is {counts.shape}."
        )
    names = [CIFAR10[int(label)] for label in labels]
    table = pd.DataFrame(counts, columns=list(CIFAR10))
    return table.assign(index=range(len(names)), class_name=names)


def _array(path: Path) -> np.ndarray:
    with guarded(path, DataError, "is not a readable array ({})."):
        return np.asarray(np.load(path, allow_pickle=False))


def _label_errors(folder: Path) -> Judged:
    """Read how many of five workers see the given label, alone or with the guessed one.

    Pictures, where they are, are `<cifar10 or cifar100>/<index>.png` or `.jpg`.
    """
    shares, pairs = [], []
    for file in (folder / one for one in CHECKED if (folder / one).is_file()):
        dataset = file.name.partition("_")[0]
        rows = pd.DataFrame([_checked(one, file) for one in _entries(file)])
        rows = rows.assign(model=dataset, image_id=f"{dataset}-" + rows["image_id"])
        files = picture_files(folder, f"{dataset}/*").items()
        pictures = {f"{dataset}-{stem:0>{_DIGITS}}": path for stem, path in files}
        shown = {(dataset, image_id): path for image_id, path in pictures.items()}
        shares.append(rows)
        pairs += paired(rows, pictures, shown)
    return Judged(pairs=pairs, shares=pd.concat(shares, ignore_index=True))


def _entries(file: Path) -> list[Any]:
    with guarded(file, DataError, "is not readable JSON ({})."):
        found = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(found, list):
        raise DataError(f"{file} should hold a list; got a {type(found).__name__}.")
    return found


def _checked(entry: Any, file: Path) -> dict[str, Any]:
    try:
        answers = entry["mturk"]
        said = {one: int(answers[one]) for one in ("given", "guessed", "neither", "both")}
        return {
            "image_id": _as_file(entry["id"]),
            "class_name": str(entry["given_original_label_name"]),
            SHARES: (said["given"] + said["both"]) / sum(said.values()),
        }
    except (TypeError, KeyError, ValueError, ZeroDivisionError) as error:
        raise DataError(f"{file}: an entry cannot be read ({error!r}): {entry!r:.200}") from error


def _as_file(index: Any) -> str:
    return f"{int(index):0{_DIGITS}d}"


_REPOSITORY = ("jcpeterson/cifar-10h", "48da312b193b82e6939ec20f23d1f09cbdd849c8")
_ERRORS = ("cleanlab/label-errors", "6d5d6b31a13216290afc40e5c6319399c4d15c06")
CIFAR_10H = Source(
    name="cifar-10h",
    about="about 50 people name each test picture of CIFAR-10, one of 10 words",
    repository=_REPOSITORY[0],
    commit=_REPOSITORY[1],
    licence="CC BY-NC-SA 4.0",
    non_commercial=True,
    citation="Peterson et al. 2019, Human uncertainty makes classification more robust (ICCV)",
    files=(
        raw_file(*_REPOSITORY, f"data/{COUNTS_ARRAY}"),
        raw_file(*_ERRORS, f"original_test_labels/{LABELS_ARRAY}"),
    ),
    megabytes=1,
    tables={
        COUNTS: "4eaebefc2a1839f0a3ef1c3054bb7b7f40f3f9fc2614c39c8834235e10fedd7c",
        COUNTS_ARRAY: "",
        LABELS_ARRAY: "",
    },
    marks=((COUNTS,), (COUNTS_ARRAY, LABELS_ARRAY)),
    read=_cifar10h,
    compares=False,
    note=SELF,
)
LABEL_ERRORS = Source(
    name="label-errors",
    about="5 workers a picture check doubted labels of CIFAR-10 and CIFAR-100",
    repository=_ERRORS[0],
    commit=_ERRORS[1],
    licence="Apache-2.0",
    citation="Northcutt, Athalye and Mueller 2021, Pervasive label errors in test sets (NeurIPS)",
    files=tuple(raw_file(*_ERRORS, f"mturk/{name}") for name in CHECKED),
    megabytes=1,
    tables=dict.fromkeys(CHECKED, ""),  # a half of them goes round under the same names
    marks=tuple((name,) for name in CHECKED),
    read=_label_errors,
    compares=False,
    note=SELF,
)
