"""Predictions of a judge for the pictures of sets, written into them as `predictions.parquet`."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from torch import Tensor

from semsim.base.progress import Progress, Report, silent
from semsim.base.sets.reader import ReconstructionSet, read_set
from semsim.base.sets.set_format import PREDICTIONS, RUN
from semsim.base.storage.atomic import whole_folders
from semsim.base.storage.records import RECONSTRUCTION_SET, write_record
from semsim.device import pick_device
from semsim.distractors.registry import check_classes
from semsim.images import read_image
from semsim.metrics.classifier import load_classifier, predictions
from semsim.sets.writer import write_rows
from semsim.weights import sha256_of


@dataclass(frozen=True, kw_only=True)
class Applied:
    """One set that was judged.

    Attributes:
        before: Who had written the predictions replaced, or "".
    """

    folder: Path
    n_pictures: int
    before: str = ""

    @property
    def said(self) -> str:
        """Outcome in a line."""
        instead = f"; the predictions of {self.before} were overwritten" if self.before else ""
        return f"{self.folder}: {self.n_pictures} pictures judged{instead}"


def judge_new(
    path: Path, folders: Sequence[Path], *, device: str = "cpu", report: Report = silent
) -> list[Applied]:
    """`apply_judge` on those of the sets that this judge has not read as they are."""
    digest = sha256_of(path)
    new = []
    for folder in folders:
        one = read_set(folder)
        predictor = one.run.get("predictor") or {}
        if not judged_by(one) or predictor.get("sha256") != digest:
            new.append(one.folder)
    return apply_judge(path, new, device=device, report=report) if new else []


def apply_judge(
    path: Path, folders: Sequence[Path], *, device: str = "cpu", report: Report = silent
) -> list[Applied]:
    """Let the judge at `path` read all pictures of the sets in `folders`: all sets, or none.

    run.json then says who judged. Raises `DataError` for a set that cannot be read or whose
    classes are not the judge's, `WeightsError` for a file that is no judge.
    """
    judge = load_classifier(path, pick_device(device))
    sets = [read_set(folder) for folder in folders]
    for one in sets:
        dataset = one.run.get("dataset")
        classes = dataset.get("classes", ()) if isinstance(dataset, dict) else ()
        check_classes(judge.classes, path.stem, classes, str(one.folder))
    before = [judged_by(one) for one in sets]
    who = {"name": path.stem, "sha256": sha256_of(path)}
    made = []
    for done, one in enumerate(sets):
        report(Progress(done, len(sets), one.folder.name))
        made.append(predictions(judge, _pictures(one)))
    with whole_folders(*(one.folder for one in sets), replace=True) as parts:
        for one, part, table in zip(sets, parts, made, strict=True):
            shutil.copytree(one.folder, part, dirs_exist_ok=True)
            write_judged(part, one.run, who, table)
    report(Progress(len(sets), len(sets), "written"))
    return [
        Applied(
            folder=one.folder,
            n_pictures=len(table) // len(judge.classes),
            before=instead,
        )
        for one, table, instead in zip(sets, made, before, strict=True)
    ]


def write_judged(
    folder: Path, run: Mapping[str, Any], who: Mapping[str, Any], table: pd.DataFrame
) -> None:
    """Write the predictions `table` and their maker `who` into a set that no process reads yet."""
    write_rows(table, folder / PREDICTIONS)
    write_record(folder / RUN, RECONSTRUCTION_SET, {**run, "predictor": who}, sort=True)


def judged_by(one: ReconstructionSet) -> str:
    """Return the name of the maker of a set's predictions; "" where it has none."""
    if not (one.folder / PREDICTIONS).exists():
        return ""
    return str((one.run.get("predictor") or {}).get("name", "a classifier"))


def _pictures(one: ReconstructionSet) -> Iterator[tuple[str, str, Tensor]]:
    for row in one.manifest.itertuples():
        for subject in ("original", "reconstruction"):
            place = getattr(row, subject)
            if isinstance(place, str):
                yield str(row.image_id), subject, read_image(one.folder / place)
