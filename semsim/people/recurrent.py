"""Recurrent issues with DNNs: 218 people, 16 degradations of the same objects.

Maniquet, Op de Beeck and Costantino 2024. Each person chose one of eight words; the source has
shares of degradations with standard errors, and the share of each person, no single answers.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from semsim.base.errors import DataError
from semsim.base.table_files import check_columns
from semsim.importers.annotator_files import PickledArray, load_plain
from semsim.people.fetching import archive_of
from semsim.people.source import ERRORS, SHARES, Judged, Source, paired, picture_files

CONTROL = "control"  # the object as it is
RATES, PERSONS = "rates.csv", "people.csv"
VECTORS = "data/processed/perf_vectors.pkl"
CLASSES = ("person", "cat", "bird", "tree", "banana", "firehydrant", "bus", "building")
_OCCLUSIONS = tuple(
    f"occlusion_{size}_{kind}_{level}"
    for size in ("few_large", "many_small")
    for kind in ("deletion", "blobs", "partial_viewing")
    for level in ("low", "high")
)
# In the order of the authors' vectors.
CONDITIONS = (
    *(CONTROL, "clutter_light", "clutter_heavy", "scrambling_highpass", "scrambling_lowpass"),
    *_OCCLUSIONS,
)
# Objects whose control is another picture, so that nothing can be compared with it.
_OTHER_CONTROL = frozenset(
    [f"building{n}" for n in range(1, 11) if n != 4] + [f"bus{n}" for n in (1, 2, 6, 7, 9, 10)]
)
_OBJECT = re.compile(rf"({'|'.join(CLASSES)})[ _-]?0*(\d+)", re.IGNORECASE)


def _read(folder: Path) -> Judged:
    """Read the whole repository, or a folder with `rates.csv` and a folder a condition."""
    known = _rates(folder)
    whole = (folder / VECTORS).is_file()
    pictures = _in_repository(folder / "stimuli") if whole else _in_folders(folder)
    originals = pictures.pop(CONTROL, {})
    shown = {
        (condition, image_id): path
        for condition, files in pictures.items()
        for image_id, path in files.items()
        if image_id in originals and image_id not in _OTHER_CONTROL
    }
    if not shown:
        raise DataError(f"{folder} holds no degraded picture beside one of its object as it is.")
    if unknown := sorted({condition for condition, _ in shown} - {*known.index}):
        raise DataError(f"{folder} has no share of people for {', '.join(unknown)}.")
    rows = pd.DataFrame(list(shown), columns=["model", "image_id"])
    rows = rows.assign(
        class_name=rows["image_id"].str.rstrip("0123456789"),
        **{SHARES: rows["model"].map(known["accuracy"]), ERRORS: rows["model"].map(known["sem"])},
    )
    return Judged(pairs=paired(rows, originals, shown), shares=rows, people=_persons(folder))


def _rates(folder: Path) -> pd.DataFrame:
    """Return the share right and its standard error, columns accuracy and sem, by condition."""
    if (folder / VECTORS).is_file():
        vectors = load_plain(folder / VECTORS)
        columns = {name: _vector(vectors, key) for name, key in _VECTOR_NAMES.items()}
        return pd.DataFrame(columns, index=list(CONDITIONS))
    table = pd.read_csv(folder / RATES)
    check_columns(table, ("condition", "accuracy", "sem"), f"{folder / RATES}", DataError)
    return table.set_index("condition")[["accuracy", "sem"]]


_VECTOR_NAMES = {"accuracy": "accuracy", "sem": "sem accuracy"}


def _vector(vectors: object, key: str) -> np.ndarray:
    found = vectors.get(key) if isinstance(vectors, Mapping) else None
    values = np.asarray(found.values if isinstance(found, PickledArray) else found, dtype=object)
    if values.shape != (len(CONDITIONS),):
        raise DataError(f"{VECTORS} should hold {key!r}, {len(CONDITIONS)} numbers.")
    return values.astype(float)


def _persons(folder: Path) -> pd.DataFrame | None:
    """Return the share of each person in each degradation; None where the copy lacks them."""
    path = folder / PERSONS
    if not path.is_file():
        return None
    table = pd.read_csv(path)
    check_columns(table, ("person", "condition", "accuracy"), f"{path}", DataError)
    named = table.rename(columns={"person": "annotator", "condition": "model", "accuracy": "share"})
    return named.loc[named["model"] != CONTROL, ["annotator", "model", "share"]]


def _in_folders(folder: Path) -> dict[str, dict[str, Path]]:
    named = {CONTROL: "originals", **{one: one for one in CONDITIONS[1:]}}
    found = {one: picture_files(folder, f"{place}/*") for one, place in named.items()}
    return {condition: files for condition, files in found.items() if files}


def _in_repository(stimuli: Path) -> dict[str, dict[str, Path]]:
    """Return pictures by condition and object, which folders and names say in any order."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(one for one in stimuli.rglob("*.*") if one.is_file()):
        place = path.relative_to(stimuli).as_posix().lower().replace("occluder", "partial_viewing")
        named, words = _OBJECT.search(path.stem), set(re.split(r"[^a-z]+", place))
        meant = [one for one in CONDITIONS if set(one.split("_")) <= words]
        if named is not None and len(meant) == 1:
            image_id = f"{named[1].lower()}{named[2]}"
            found.setdefault(meant[0], {})[image_id] = path
    return found


_REPOSITORY = ("TimManiquet/recurrent_issues_DNNs", "a8245984")
RECURRENT = Source(
    name="recurrent",
    title="218 people, 16 degradations",
    about="218 people name one of 8 objects under 16 degradations; shares of degradations",
    repository=_REPOSITORY[0],
    commit=_REPOSITORY[1],
    licence="MIT; the objects were cut from photographs of MS COCO, whose terms stay",
    citation="Maniquet, Op de Beeck and Costantino 2024, bioRxiv 2024.04.02.587669",
    files=archive_of(*_REPOSITORY),
    megabytes=524,
    tables={
        RATES: "30c0f1396a998f1ac3d91a42a60732cbc54df9240940ee854e776907acfced03",
        PERSONS: "47b791f2e963ff9bf5b7eaacf9537383fbd33c8bbda5c2677eb3d285ba2d2603",
        VECTORS: "",
    },
    marks=((RATES, "originals"), (VECTORS, "stimuli")),
    read=_read,
)
