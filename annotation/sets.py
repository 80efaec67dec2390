"""Reading reconstruction sets: folders with run.json, manifest.parquet and PNG files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from annotation.errors import StudyError

FORMAT = "semsim-reconstruction-set/1"
COLUMNS = ("image_id", "class_name", "original", "reconstruction", "status")
PREDICTION_COLUMNS = ("image_id", "subject", "class_name", "probability")

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
    attacked = ok.get("attacked", pd.Series(index=ok.index, dtype=object))
    predictions = _read_predictions(folder)
    return SetFolder(
        folder=folder,
        model=str(_entry(folder, run, "model")),
        attack=str(_entry(folder, run, "attack", "name")),
        dataset=str(_entry(folder, run, "dataset", "name")),
        classes=tuple(str(name) for name in _entry(folder, run, "dataset", "classes")),
        images=tuple(
            SetImage(
                image_id=str(image_id),
                class_name=str(class_name),
                original=_inside(folder, original),
                reconstruction=_inside(folder, reconstruction),
                attacked=None if pd.isna(changed) else _inside(folder, changed),
            )
            for image_id, class_name, original, reconstruction, changed in zip(
                *(ok[column] for column in COLUMNS[:4]), attacked, strict=True
            )
        ),
        n_failed=len(manifest) - len(ok),
        predicted_originals=predictions.get("original", {}),
        predicted_reconstructions=predictions.get("reconstruction", {}),
    )


def _read_run(folder: Path) -> dict[str, Any]:
    try:
        run = json.loads((folder / "run.json").read_text())
    except FileNotFoundError:
        raise StudyError(f"{folder} is not a reconstruction set: run.json is missing.") from None
    except (OSError, ValueError) as error:
        raise StudyError(f"{folder}/run.json cannot be read: {error}") from error
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        got = run.get("format") if isinstance(run, dict) else run
        raise StudyError(f"{folder}/run.json has format {got!r}; expected {FORMAT!r}.")
    return run


def _entry(folder: Path, run: Mapping[str, Any], *keys: str) -> Any:
    value: Any = run
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            raise StudyError(f"{folder}/run.json lacks the entry {'.'.join(keys)}.")
        value = value[key]
    return value


def _read_table(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    try:
        table = pd.read_parquet(path)
    except FileNotFoundError:
        raise StudyError(
            f"{path.parent} is not a reconstruction set: {path.name} is missing."
        ) from None
    except (OSError, ValueError) as error:
        raise StudyError(f"{path} cannot be read: {error}") from error
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise StudyError(f"{path} lacks the columns {', '.join(missing)}.")
    return table


def _read_predictions(folder: Path) -> dict[str, Probabilities]:
    path = folder / "predictions.parquet"
    if not path.exists():
        return {}
    table = _read_table(path, PREDICTION_COLUMNS)
    predictions: dict[str, dict[str, dict[str, float]]] = {}
    for image_id, subject, name, probability in zip(
        *(table[column] for column in PREDICTION_COLUMNS), strict=True
    ):
        of_image = predictions.setdefault(str(subject), {}).setdefault(str(image_id), {})
        of_image[str(name)] = float(probability)
    return dict(predictions)


def _inside(folder: Path, relative: Any) -> Path:
    path = (folder / str(relative)).resolve()
    if not path.is_relative_to(folder):
        raise StudyError(f"{folder}/manifest.parquet points outside of its folder: {relative}.")
    return path
