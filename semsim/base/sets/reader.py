"""Reading reconstruction sets, and finding them below a folder."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import DataError
from semsim.base.sets.set_format import ATTACKED, COLUMNS, MANIFEST, PICTURES, RUN
from semsim.base.storage.optional import arrow
from semsim.base.storage.places import resolved
from semsim.base.storage.records import RECONSTRUCTION_SET, guarded, read_record
from semsim.base.table_files import check_columns
from semsim.base.threat import attacker_words
from semsim.base.words import words_of_test


@dataclass(frozen=True)
class ReconstructionSet:
    """One target model attacked on a list of originals; manifest has all of `COLUMNS`."""

    folder: Path
    run: dict[str, Any]
    manifest: pd.DataFrame

    @property
    def name(self) -> str:
        """Return the set's own name; its folder's where it was made without one."""
        return str(self.run.get("name") or self.folder.name)

    @property
    def model(self) -> str:
        """Name of the attacked target model, unique within a study."""
        return str(self.run["model"])

    @property
    def target_words(self) -> str:
        """Quality of the target model at its own task, in words."""
        return words_of_test(self.run.get("target"))

    @property
    def attacker_words(self) -> str:
        """Knowledge of the attacker and the share of parameters seen; "" where not recorded."""
        return attacker_words(self.run)

    @property
    def pairs(self) -> pd.DataFrame:
        """The rows whose attack succeeded, with absolute paths of their images.

        `original` and `reconstruction` always have one; `attacked` is None where it is not known.
        """
        rows = self.manifest[self.manifest["status"] == "ok"].reset_index(drop=True)
        return rows.assign(
            original=[str(self.folder / p) for p in rows["original"]],
            reconstruction=[str(self.folder / p) for p in rows["reconstruction"]],
            attacked=pd.Series(
                [None if pd.isna(p) else str(self.folder / p) for p in rows[ATTACKED]],
                index=rows.index,
                dtype=object,
            ),
        )


def read_set(folder: Path) -> ReconstructionSet:
    """The reconstruction set in `folder`; `DataError` says what is missing or broken."""
    folder = resolved(folder).resolve()
    for name in (RUN, MANIFEST):
        if not (folder / name).is_file():
            within = sorted(one.parent.name for one in folder.glob(f"*/{RUN}"))
            told = f" It holds {len(within)} of them, as {within[0]}: name one." if within else ""
            raise DataError(f"{folder} is not a reconstruction set: {name} is missing.{told}")
    run = read_record(folder / RUN, RECONSTRUCTION_SET, DataError)
    model = run.get("model")
    if not isinstance(model, str):
        got = model if model is None else f"a {type(model).__name__}"
        raise DataError(f"{folder / RUN}: model should be a name; got {got}.")
    arrow()
    with guarded(folder / MANIFEST, DataError):
        manifest = pd.read_parquet(folder / MANIFEST)
    check_columns(manifest, COLUMNS, f"{folder}/{MANIFEST}", DataError)
    _check_paths(folder, manifest)
    return ReconstructionSet(folder, run, manifest)


def _check_paths(folder: Path, manifest: pd.DataFrame) -> None:
    done = manifest["status"].eq("ok").to_numpy()
    for column in ("original", "reconstruction", ATTACKED):
        for number, path in enumerate(manifest[column], start=1):
            unknown = column == ATTACKED and pd.isna(path)
            usable = isinstance(path, str) and "\0" not in path
            if done[number - 1] and not usable and not unknown:
                raise DataError(
                    f"{folder}/manifest.parquet, row {number}: {column} is no path: {path!r}."
                )


def set_choices(roots: Iterable[Path]) -> list[tuple[str, Path]]:
    """Return the choices of a page: the name of each set below `roots`, and its folder.

    A set that cannot be read is offered as such; a user who chooses it learns why.
    """
    return [(_name_of(folder), folder) for folder in set_folders(roots)]


def set_folders(roots: Iterable[Path]) -> list[Path]:
    """Every folder below `roots` that says it is a set, by root and name.

    The folders of pictures are not looked into: there may be tens of thousands of files in them.
    """
    found: list[Path] = []
    for root in roots:
        below = []
        for above, folders, files in os.walk(resolved(root)):
            # What begins with a dot is what a writer has not finished.
            folders[:] = [one for one in folders if one not in PICTURES and one[:1] != "."]
            below += [Path(above)] if RUN in files else []
        found += sorted(below)
    return [folder.resolve() for folder in found]


def _name_of(folder: Path) -> str:
    try:
        found = read_set(folder)
    except DataError:
        return f"{folder.name} (cannot be read)"
    return f"{found.name} · target {found.target_words}"
