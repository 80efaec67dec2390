"""A reconstruction set on disk: the one format every attack ends in and every judge starts from.

    <set>/originals/<image_id>.png         lossless
    <set>/reconstructions/<image_id>.png   lossless; absent where the attack failed
    <set>/attacked/<image_id>.png          optional: what was really attacked, where training
                                           augmentation had changed the original
    <set>/manifest.parquet                 one row an image, columns `MANIFEST_COLUMNS`
    <set>/run.json                         every setting, versions, seed, seconds, status
    <set>/predictions.parquet              optional: an independent classifier's probabilities

`manifest.parquet` may have one more column, `attacked`: the path of the attacked image relative to
the set, equal to `original` where nothing was changed, None where it is not known; and those of
`ATTACK_COLUMNS`.
`predictions.parquet` has the columns image_id, subject ("original" or "reconstruction"),
class_name, probability.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from semsim.errors import DataError

FORMAT = "semsim-reconstruction-set/1"
MANIFEST_COLUMNS = (
    "image_id",  # same id in every set that attacked the same original
    "class_id",
    "class_name",
    "original",  # path relative to the set
    "reconstruction",  # path relative to the set, None where the attack failed
    "status",  # "ok" or "failed"
    "error",  # why it failed, else ""
    "objective",  # the attack's own final objective
    "shift_x",  # what training augmentation did to the attacked image, in pixels
    "shift_y",
    "flipped",
)
ATTACKED = "attacked"
# What campaigns add: the attack's objective without priors for its picture and for a mid-grey one,
# whether its solution blew up, which of its solvers gave the picture (neither is in sets of before
# that was kept), and the shift it estimated where it does; the true one is in `shift_x` and
# `shift_y`.
ATTACK_COLUMNS = (
    "residual",
    "grey_residual",
    "worse_than_grey",
    "blown_up",
    "solver",
    "found_shift_x",
    "found_shift_y",
)


@dataclass(frozen=True)
class ReconstructionSet:
    """One target model attacked on a list of originals."""

    folder: Path
    run: dict[str, Any]
    manifest: pd.DataFrame

    @property
    def model(self) -> str:
        """Name of the attacked target model, unique within a study."""
        return str(self.run["model"])

    @property
    def pairs(self) -> pd.DataFrame:
        """The rows whose attack succeeded, with absolute paths of their images.

        `original` and `reconstruction` always have one; `attacked` is None where it is not known.
        """
        rows = self.manifest[self.manifest["status"] == "ok"].reset_index(drop=True)
        attacked = rows.get(ATTACKED, pd.Series(index=rows.index, dtype=object))
        return rows.assign(
            original=[str(self.folder / p) for p in rows["original"]],
            reconstruction=[str(self.folder / p) for p in rows["reconstruction"]],
            attacked=pd.Series(
                [None if pd.isna(p) else str(self.folder / p) for p in attacked],
                index=rows.index,
                dtype=object,
            ),
        )


def read_set(folder: Path) -> ReconstructionSet:
    """The reconstruction set in `folder`; `DataError` says what is missing or broken."""
    folder = Path(folder).resolve()
    for name in ("run.json", "manifest.parquet"):
        if not (folder / name).is_file():
            raise DataError(f"{folder} is not a reconstruction set: {name} is missing.")
    run = _read_run(folder / "run.json")
    try:
        manifest = pd.read_parquet(folder / "manifest.parquet")
    except (ValueError, OSError, pa.ArrowException) as error:
        raise DataError(f"{folder}/manifest.parquet cannot be read: {error}") from error
    missing = set(MANIFEST_COLUMNS) - set(manifest.columns)
    if missing:
        raise DataError(
            f"{folder}/manifest.parquet lacks the columns {', '.join(sorted(missing))}."
        )
    _check_paths(folder, manifest)
    return ReconstructionSet(folder, run, manifest)


def _read_run(path: Path) -> dict[str, Any]:
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if not isinstance(run, dict):
        raise DataError(f"{path} holds a {type(run).__name__}; expected an object.")
    if run.get("format") != FORMAT:
        raise DataError(f"{path} has format {run.get('format')!r}; expected {FORMAT!r}.")
    model = run.get("model")
    if not isinstance(model, str):
        got = model if model is None else f"a {type(model).__name__}"
        raise DataError(f"{path}: model should be a name; got {got}.")
    return run


def _check_paths(folder: Path, manifest: pd.DataFrame) -> None:
    done = manifest["status"].eq("ok").to_numpy()
    for column in ("original", "reconstruction", ATTACKED):
        for number, path in enumerate(manifest.get(column, ()), start=1):
            unknown = column == ATTACKED and pd.isna(path)
            usable = isinstance(path, str) and "\0" not in path
            if done[number - 1] and not usable and not unknown:
                raise DataError(
                    f"{folder}/manifest.parquet, row {number}: {column} is no path: {path!r}."
                )


def set_choices(roots: Iterable[Path]) -> list[tuple[str, Path]]:
    """What a page offers to choose from: the name of each set below `roots`, and its folder.

    A set that cannot be read is offered as such; whoever chooses it learns why.
    """
    folders = [path.parent for root in roots for path in sorted(Path(root).glob("**/run.json"))]
    return [(_name_of(folder), folder.resolve()) for folder in folders]


def _name_of(folder: Path) -> str:
    try:
        return str(read_set(folder).run.get("name", folder.name))
    except DataError:
        return f"{folder.name} (cannot be read)"


def write_set(folder: Path, run: Mapping[str, Any], rows: list[dict[str, Any]]) -> None:
    """Write `manifest.parquet` and, last, `run.json`, whose presence says the set is complete.

    The columns `attacked` and `ATTACK_COLUMNS` are written where a row has them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    optional = [c for c in (ATTACKED, *ATTACK_COLUMNS) if any(c in row for row in rows)]
    columns = [*MANIFEST_COLUMNS, *optional]
    pd.DataFrame(rows, columns=columns).to_parquet(folder / "manifest.parquet", index=False)
    failed = sum(row["status"] != "ok" for row in rows)
    record = {"format": FORMAT, **run, "n_ok": len(rows) - failed, "n_failed": failed}
    (folder / "run.json").write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
