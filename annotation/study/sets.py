"""Reading reconstruction sets: folders with run.json, manifest.parquet and PNG files.

Also which studies ask about them, although each study has its own copy of the pictures.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from annotation import images as kept
from annotation.design.jury import Sight
from annotation.domain import Study, TargetTest
from annotation.errors import StudyError
from annotation.store import Store, studies
from annotation.texts import flaw, shortened
from semsim.base.errors import DataError, SemsimError
from semsim.base.picture_files import read_pixels
from semsim.base.sets import reader
from semsim.base.sets.set_format import JURY_COLUMNS, PREDICTION_COLUMNS
from semsim.base.storage.records import guarded
from semsim.base.table_files import check_columns
from semsim.base.threat import attacker_words

_USED = ["image_id", "class_name", "original", "reconstruction", "attacked"]
_ROUNDING = 1e-5  # by which float32 may pass 1

Logs = Mapping[str, Mapping[str, float]]  # image_id → class → log-probability
Jury = Mapping[tuple[str, str], Sequence[Sight]]  # "original" or "reconstruction", image_id


@dataclass(frozen=True, kw_only=True)
class SetImage:
    """One original and what the attack made of it.

    Attributes:
        attacked: The original as training augmentation left it, None where the set does not have
            it.
        where: What stands before a problem with it, such as the row it comes from.
    """

    image_id: str
    class_name: str
    original: Path
    reconstruction: Path
    attacked: Path | None = None
    where: str = ""


@dataclass(frozen=True, kw_only=True)
class SetFolder:
    """One reconstruction set; failed attacks are only counted.

    Attributes:
        judge: SHA-256 of the weights that made the predictions; empty where they are not known.
    """

    folder: Path
    model: str
    attack: str
    dataset: str
    classes: tuple[str, ...]
    images: tuple[SetImage, ...]
    n_failed: int
    target: TargetTest = field(default_factory=TargetTest)
    predicted_originals: Logs = field(default_factory=dict)
    judge: str = ""
    jury: Jury = field(default_factory=dict)


def read_set(folder: Path) -> SetFolder:
    """The reconstruction set in `folder`; `StudyError` says what is missing or wrong."""
    try:
        found = reader.read_set(folder)
    except DataError as error:
        raise StudyError(str(error)) from error
    folder, run, manifest = found.folder, found.run, found.manifest.reset_index(drop=True)
    ok = manifest[manifest["status"] == "ok"]
    originals = _read_predictions(folder).get("original", {})
    return SetFolder(
        folder=folder,
        model=_name(folder, run, "model"),
        attack=_name(folder, run, "attack", "name"),
        dataset=_name(folder, run, "dataset", "name"),
        classes=_classes(folder, run),
        images=tuple(_images(folder, ok)),
        n_failed=len(manifest) - len(ok),
        target=_target(folder, run),
        predicted_originals=originals,
        judge=_judge(run) if originals else "",
        jury=_read_jury(folder),
    )


def _judge(run: Mapping[str, Any]) -> str:
    predictor = run.get("predictor")
    return str(predictor.get("sha256") or "") if isinstance(predictor, dict) else ""


def _told(value: Any) -> str:
    """Return what came instead, short enough for a message however much it is."""
    if isinstance(value, str):
        return shortened(value)
    return f"a {type(value).__name__}" if isinstance(value, dict | list) else repr(value)


def _entry(folder: Path, run: Mapping[str, Any], *keys: str) -> Any:
    value: Any = run
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            raise StudyError(f"{folder}/run.json lacks the entry {'.'.join(keys)}.")
        value = value[key]
    return value


def _name(folder: Path, run: Mapping[str, Any], *keys: str) -> str:
    value = _entry(folder, run, *keys)
    where = f"{folder}/run.json: {'.'.join(keys)}"
    if not _is_name(value):
        raise StudyError(f"{where} should be a name; got {_told(value)}.")
    if wrong := flaw(str(value)):
        raise StudyError(f"{where} {wrong}")
    return str(value)


def _classes(folder: Path, run: Mapping[str, Any]) -> tuple[str, ...]:
    value = _entry(folder, run, "dataset", "classes")
    where = f"{folder}/run.json: dataset.classes should be a list of names"
    if not isinstance(value, list):
        raise StudyError(f"{where}; got {_told(value)}.")
    odd = [name for name in value if not _is_name(name)]
    if odd:
        raise StudyError(f"{where}; got {_told(odd[0])} as one of them.")
    return tuple(str(name) for name in value)


def _target(folder: Path, run: Mapping[str, Any]) -> TargetTest:
    """Read how good the target was, and what its training gives away of one image, if said."""
    found = run.get("target")
    attacker = attacker_words(run)
    if not isinstance(found, Mapping):
        return TargetTest(attacker=attacker)

    def told(name: str, wanted: str, fits: Callable[[Any], bool], *, must: bool = False) -> Any:
        value = found.get(name)
        if (value is not None or must) and not fits(value):
            raise StudyError(
                f"{folder}/run.json: target.{name} should be {wanted}; got {_told(value)}."
            )
        return value

    share = "a share from 0 to 1"
    accuracy = told("accuracy", share, _is_share)
    # Who says how good it was says the chance.
    chance = told("chance", share, _is_share, must=accuracy is not None)
    n_classes = told("n_classes", "a number of classes", lambda n: isinstance(n, int) and n > 0)
    mark, least = found.get("at_chance"), "a number of 0 or more and"
    return TargetTest(
        accuracy=accuracy,
        n_classes=n_classes,
        at_chance=mark if isinstance(mark, bool) else None,
        epsilon=told("epsilon", f"{least} finite", lambda n: _is_number(n) and 0 <= n < math.inf),
        delta=told("delta", f"{least} below 1", lambda n: _is_number(n) and 0 <= n < 1),
        chance=chance,
        attacker=attacker,
    )


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int | float)  # classes that are called 0, 1, 2 …


def _images(folder: Path, rows: pd.DataFrame) -> Iterator[SetImage]:
    cells = rows[_USED].itertuples(name=None)
    for number, image_id, class_name, original, reconstruction, attacked in cells:
        where = f"{folder}/manifest.parquet, row {number + 1}: "
        if pd.isna(image_id) or pd.isna(class_name):
            raise StudyError(f"{where}image_id and class_name must not be missing.")
        yield SetImage(
            image_id=str(image_id),
            class_name=str(class_name),
            original=_inside(folder, original, f"{where}original"),
            reconstruction=_inside(folder, reconstruction, f"{where}reconstruction"),
            attacked=None if pd.isna(attacked) else _inside(folder, attacked, f"{where}attacked"),
        )


def _read_table(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    with guarded(path, StudyError):
        table = pd.read_parquet(path)
    check_columns(table, columns, str(path), StudyError)
    return table.reset_index(drop=True)


def _read_predictions(folder: Path) -> dict[str, Logs]:
    path = folder / "predictions.parquet"
    if not path.exists():
        return {}
    table = _read_table(path, PREDICTION_COLUMNS)
    found: dict[str, dict[str, dict[str, float]]] = {}
    names = (table[column].tolist() for column in ("image_id", "subject", "class_name"))
    for image_id, subject, name, log in zip(*names, _logs(table, path), strict=True):
        found.setdefault(str(subject), {}).setdefault(str(image_id), {})[str(name)] = float(log)
    return dict(found)


def _read_jury(folder: Path) -> Jury:
    """Return what each juror sees in each picture; nothing where the set has no jury."""
    path = folder / "jury.parquet"
    if not path.exists():
        return {}
    table = _read_table(path, JURY_COLUMNS)
    wrong = ~pd.to_numeric(table["threshold"], errors="coerce").between(0, 1)
    if wrong.any():
        row = int(wrong.argmax())
        raise StudyError(
            f"{path}, row {row + 1}: a threshold is a certainty from 0 to 1; got "
            f"{table['threshold'].tolist()[row]!r}."
        )
    used = ("subject", "image_id", "juror", "threshold", "class_name")
    columns = (table[name].tolist() for name in used)
    logs: dict[tuple[str, str, str], dict[str, float]] = {}
    thresholds: dict[tuple[str, str, str], float] = {}
    for *whose, threshold, name, log in zip(*columns, _logs(table, path), strict=True):
        subject, image_id, juror = map(str, whose)
        logs.setdefault((subject, image_id, juror), {})[str(name)] = float(log)
        thresholds.setdefault((subject, image_id, juror), float(threshold))
    found: dict[tuple[str, str], list[Sight]] = {}
    for key in sorted(logs):
        subject, image_id, juror = key
        sight = Sight(juror=juror, logs=logs[key], threshold=thresholds[key])
        found.setdefault((subject, image_id), []).append(sight)
    return found


def _logs(table: pd.DataFrame, path: Path) -> np.ndarray:
    """Return the log-probabilities, (rows,) float64; `StudyError` names a row that holds none."""
    given = pd.to_numeric(table["log_probability"], errors="coerce").astype(float)
    wrong = ~given.between(-np.inf, _ROUNDING)
    if wrong.any():
        row = int(wrong.argmax())
        raise StudyError(
            f"{path}, row {row + 1}: a log-probability is a number at most 0; got "
            f"{table['log_probability'].astype(object)[row]!r}."
        )
    return given.to_numpy()


def _inside(folder: Path, relative: str, where: str) -> Path:
    try:
        return place_below(folder, relative)
    except StudyError as error:
        raise StudyError(f"{where} {error}") from error


def place_below(folder: Path, relative: str) -> Path:
    """The file that `relative` means from `folder` on, links followed.

    Raises `StudyError`, the end of a sentence, if it lies elsewhere or can be no file.
    """
    try:
        path = (folder / relative).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # such as U+0000, or links in a circle
        raise StudyError(f"is no path: {shortened(relative)} ({error}).") from error
    if not path.is_relative_to(folder):
        raise StudyError(f"points outside of the manifest's folder: {relative}.")
    return path


def users_of(store: Store, images: kept.Shelf, folder: Path) -> list[str]:
    """Names of the studies that ask about the set in `folder`; of one that is broken, none.

    Args:
        images: Where studies keep their images. A set that has the names of another and other
            pictures is not that other set.
    """
    try:
        found = read_set(folder)
        if not found.images:
            return []
        first = found.images[0]
        pixels = read_pixels(first.reconstruction)
    except SemsimError:
        return []
    named = (found.dataset, found.model, found.attack, first.image_id)
    asking = store.read(lambda tx: studies.asking_about(tx, *named))
    return [name for name, digest in asking if _shows(images, digest, pixels)]


def sets_of(
    store: Store, images: kept.Shelf, study: Study, known: Mapping[str, SetFolder]
) -> dict[str, list[str]]:
    """The names of those `known` sets that a study may have been made of, by target model.

    They have the data set, model and attack; where several do, those that show what it shows.
    """
    found: dict[str, list[str]] = {model: [] for model in study.models}
    for model, attack, image_id, digest in store.read(lambda tx: studies.one_of_each(tx, study.id)):
        alike = {
            name: one
            for name, one in known.items()
            if (one.dataset, one.model, one.attack) == (study.dataset, model, attack)
        }
        some = len(alike) > 1
        found[model] = [
            name for name, one in alike.items() if not some or _has(images, one, image_id, digest)
        ]
    return found


def _has(images: kept.Shelf, found: SetFolder, image_id: str, digest: str) -> bool:
    """Return whether a set's reconstruction of an original is that picture, or may be."""
    for one in found.images:
        if one.image_id == image_id:
            try:
                return _shows(images, digest, read_pixels(one.reconstruction))
            except SemsimError:
                return False
    return False


def _shows(images: kept.Shelf, digest: str, pixels: np.ndarray) -> bool:
    """Return whether a picture is just these pixels; one that cannot be had may be."""
    try:
        kept.fetch(images, [digest])
        return np.array_equal(read_pixels(kept.path_of(images, digest)), pixels)
    except SemsimError:
        return True
