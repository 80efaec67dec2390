"""Importers: what others have published, as reconstruction sets and as votes, labels and scores,
and pictures that are still to be attacked.

An importer reads a source and says what it found and what it leaves out (`plan_import`); nothing
is written before `carry_out`. To add one: one file, one line here.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from semsim.base.places import resolved
from semsim.errors import DataError, SettingsError
from semsim.importers.annotator_files import AnnotatorFiles
from semsim.importers.class_folders import ClassFolders
from semsim.importers.findings import Importer, ImportPlan
from semsim.importers.model_folders import ModelFolders
from semsim.importers.recognise import Recognise, recognise
from semsim.importers.table import Table
from semsim.importers.train_with_ori import RELEASED, TrainWithOri
from semsim.importers.variant_folders import VariantFolders
from semsim.progress import Report, silent
from semsim.registry import Registry

IMPORTERS: Registry[Importer] = Registry(
    "importer",
    {
        "train-with-ori": TrainWithOri(),
        "model-folders": ModelFolders(),
        "variant-folders": VariantFolders(),
        "annotator-files": AnnotatorFiles(),
        "table": Table(),
        # The votes behind the paper's CIFAR-100 row, one row a reconstruction.
        "semsim-cifar100": Table(
            image_id="cifar100_test_index0",
            class_name="class_id",
            annotators="ann0,ann1,ann2,ann3,ann4",
            none="-1",
            given=f"{RELEASED}=released_recognizable",
            scores="psnr=psnr,mse=mse_uint8/65025",  # 255²: on the scale [0, 1]
            flags="released_label_inferred",
            dataset="cifar100",
            attack="invgrad",
            votes_per_item=5,
            headline=RELEASED,  # what the paper's own numbers use
        ),
        "class-folders": ClassFolders(),
    },
)


AUTO = "auto"


def plan_import(
    kind: str,
    source: Path,
    name: str,
    settings: Mapping[str, Any] | None = None,
    report: Report = silent,
    room: Path | None = None,
) -> ImportPlan:
    """What importing `source` would write, and what it would leave out; writes nothing.

    kind: of `IMPORTERS`, or `AUTO`, which tries them all; `settings` replace its own. room: the
    folder in which an archive is unpacked; None for that of temporary files. Raises
    `UnknownNameError` for another kind, `SettingsError` for a setting it does not have, `DataError`
    where nothing can be imported.
    """
    source = resolved(source)
    importer = Recognise() if kind == AUTO else IMPORTERS[kind]
    known = [field.name for field in fields(importer)]
    for setting in settings or {}:
        if setting not in known:
            raise SettingsError(f"{kind!r} has no setting {setting!r}. It has: {', '.join(known)}.")
    if isinstance(importer, Recognise):
        return recognise(IMPORTERS, source, name, settings or {}, report, room)
    chosen = replace(importer, **(settings or {}))
    try:
        if not source.exists():
            raise DataError(f"There is nothing at {source}.")
        found = chosen(source, name, report)
    except OSError as error:  # a folder nobody may open, a disk that fails
        raise DataError(f"{source} cannot be read ({error}).") from error
    return ImportPlan(name=name, kind=kind, source=source, settings=asdict(chosen), found=found)
