"""Reading reconstruction sets: folders with run.json, manifest.parquet and PNG files."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from annotation.errors import StudyError
from annotation.texts import flaw, shortened

FORMAT = "semsim-reconstruction-set/1"
COLUMNS = ("image_id", "class_name", "original", "reconstruction", "status")
PREDICTION_COLUMNS = ("image_id", "subject", "class_name", "probability")

_ROUNDING = 1e-5  # by which float32 may pass 1

Probabilities = Mapping[str, Mapping[str, float]]  # image_id → class → probability


@dataclass(frozen=True, kw_only=True)
class SetImage:
    """One original and what the attack made of it.

    attacked: the original as training augmentation left it, None where the set does not have it.
    where: what stands before a problem with it, such as the row it comes from.
    """

    image_id: str
    class_name: str
    original: Path
    reconstruction: Path
    attacked: Path | None = None
    where: str = ""


@dataclass(frozen=True, kw_only=True)
class SetFolder:
    """One reconstruction set; failed attacks are only counted."""

    folder: Path
    model: str
    attack: str
    dataset: str
    classes: tuple[str, ...]
    images: tuple[SetImage, ...]
    n_failed: int
    predicted_originals: Probabilities = field(default_factory=dict)
    predicted_reconstructions: Probabilities = field(default_factory=dict)


def read_set(folder: Path) -> SetFolder:
    """The reconstruction set in `folder`; `StudyError` says what is missing or wrong."""
    folder = Path(folder).resolve()
    run = _read_run(folder)
    manifest = _read_table(folder / "manifest.parquet", COLUMNS)
    ok = manifest[manifest["status"] == "ok"]
    predictions = _read_predictions(folder)
    return SetFolder(
        folder=folder,
        model=_name(folder, run, "model"),
        attack=_name(folder, run, "attack", "name"),
        dataset=_name(folder, run, "dataset", "name"),
        classes=_classes(folder, run),
        images=tuple(_images(folder, ok)),
        n_failed=len(manifest) - len(ok),
        predicted_originals=predictions.get("original", {}),
        predicted_reconstructions=predictions.get("reconstruction", {}),
    )


def _read_run(folder: Path) -> dict[str, Any]:
    try:
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(f"{folder} is not a reconstruction set: run.json is missing.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise StudyError(f"{folder}/run.json cannot be read: {error}") from error
    kind = run.get("format") if isinstance(run, dict) else run
    if kind != FORMAT or not isinstance(run, dict):
        raise StudyError(f"{folder}/run.json has format {_told(kind)}; expected {FORMAT!r}.")
    return run


def _told(value: Any) -> str:
    """What came instead, short enough for a message however much it is."""
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


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int | float)  # classes that are called 0, 1, 2 …


def _images(folder: Path, rows: pd.DataFrame) -> Iterator[SetImage]:
    attacked = rows.get("attacked", pd.Series(index=rows.index, dtype=object))
    for number, image_id, class_name, original, reconstruction, changed in zip(
        rows.index, *(rows[column] for column in COLUMNS[:4]), attacked, strict=True
    ):
        where = f"{folder}/manifest.parquet, row {number + 1}: "
        yield SetImage(
            image_id=str(image_id),
            class_name=str(class_name),
            original=_inside(folder, original, f"{where}original"),
            reconstruction=_inside(folder, reconstruction, f"{where}reconstruction"),
            attacked=None if pd.isna(changed) else _inside(folder, changed, f"{where}attacked"),
        )


def _read_table(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    try:
        table = pd.read_parquet(path)
    except FileNotFoundError:
        raise StudyError(
            f"{path.parent} is not a reconstruction set: {path.name} is missing."
        ) from None
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StudyError(f"{path} cannot be read: {error}") from error
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise StudyError(f"{path} lacks the columns {', '.join(missing)}.")
    return table.reset_index(drop=True)


def _read_predictions(folder: Path) -> dict[str, Probabilities]:
    path = folder / "predictions.parquet"
    if not path.exists():
        return {}
    table = _read_table(path, PREDICTION_COLUMNS)
    *names, given = (table[column] for column in PREDICTION_COLUMNS)
    chances = pd.to_numeric(given, errors="coerce")
    wrong = ~chances.between(0, 1 + _ROUNDING)
    if wrong.any():
        row = int(wrong.argmax())
        raise StudyError(
            f"{path}, row {row + 1}: a probability is a number from 0 to 1; got {given[row]!r}."
        )
    predictions: dict[str, dict[str, dict[str, float]]] = {}
    for image_id, subject, name, probability in zip(*names, chances, strict=True):
        of_image = predictions.setdefault(str(subject), {}).setdefault(str(image_id), {})
        of_image[str(name)] = float(probability)
    return dict(predictions)


def _inside(folder: Path, relative: Any, where: str) -> Path:
    if not isinstance(relative, str):
        raise StudyError(f"{where} is no path: {relative!r}.")
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
