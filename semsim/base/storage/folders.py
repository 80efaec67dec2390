"""Contents of a folder that a user hands over; what systems leave there is never data."""

import os
import re
from pathlib import Path, PurePath
from typing import NamedTuple

from semsim.base.alike import alike

_SYSTEM = {
    *("__macosx", "thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "$recycle.bin"),
    *("system volume information", "@eadir", "lost+found", "__pycache__", "recycler"),
    *("#recycle", "@recycle", "#snapshot", "@recently-snapshot", "ehthumbs_vista.db"),
    *("network trash folder", "temporary items"),
}
# Folders of a split, by what they are called without "set" or "data" beside it or a year behind.
SPLITS = {
    "train": ("train", "training", "trn"),
    "test": ("test", "testing", "val", "valid", "validation", "dev", "eval", "evaluation"),
}
_BESIDE = "set|data|dataset|images|imgs|split"
_BEHIND = re.compile(f"^({_BESIDE}|[0-9]+)[ _-]|[ _.-]?({_BESIDE}|[0-9]{{4}})?$")


class Files(NamedTuple):
    """Files below a folder, in order, and how many hidden files and folders were passed over."""

    paths: list[Path]
    hidden: int


def is_hidden(path: PurePath) -> bool:
    """Return whether a path, from the folder in hand on, is or lies in what systems leave there."""
    return any(
        part.startswith((".", "~$")) or part.casefold() in _SYSTEM
        for part in path.parts
        if part not in ("..", path.anchor)
    )


def shown(folder: Path, pattern: str = "*") -> list[Path]:
    """Return what lies at `pattern` below a folder, in order, without what is hidden."""
    return sorted(one for one in folder.glob(pattern) if not is_hidden(one.relative_to(folder)))


def files_below(folder: Path) -> Files:
    """Return every file below `folder`, also of folders that are links, but for hidden ones.

    A link that leads nowhere, or back to a folder it lies in, comes as it is.
    """
    found: list[Path] = []
    hidden = 0
    for above, folders, files in os.walk(folder, followlinks=True):
        passed = {name for name in (*folders, *files) if is_hidden(PurePath(name))}
        back = [name for name in folders if _leads_back(Path(above, name))]
        hidden += len(passed)
        folders[:] = [name for name in folders if name not in passed and name not in back]
        found += [Path(above, name) for name in (*files, *back) if name not in passed]
    return Files(sorted(found), hidden)


def _leads_back(path: Path) -> bool:
    if not path.is_symlink():
        return False
    target = path.resolve()
    return any(one.resolve().is_relative_to(target) for one in path.absolute().parents)


def splits_in(root: Path) -> dict[str, Path]:
    """Return the folders "train" and "test" of a data set, however they are called.

    Where there is no folder of tests, that of validation is it. Empty where one of both is absent.
    """
    there = {_BEHIND.sub("", alike(one.name)): one for one in reversed(shown(root)) if one.is_dir()}
    found = {
        split: there[name]
        for split, names in SPLITS.items()
        for name in reversed(names)
        if name in there
    }
    return found if len(found) == len(SPLITS) else {}
