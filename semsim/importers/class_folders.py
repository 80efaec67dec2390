"""Pictures that nobody has attacked yet: a folder a class, or train and test with these in them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from semsim.base.folders import splits_in
from semsim.base.picture_files import Sight, notes_on
from semsim.datasets.folder import SPLITS, Folder, class_names, namesakes
from semsim.errors import DataError
from semsim.importers.file_names import Tree, below, image_name
from semsim.importers.findings import Findings, FoundPictures, first_problem
from semsim.importers.image_sets import Size, looked_at, sides, sizes_in
from semsim.importers.variant_folders import ORIGINALS, RECONSTRUCTIONS, parted
from semsim.progress import Report, silent
from semsim.words import counted, listed

_LEAST = 2  # classes: with one there is nothing to tell apart
# Behind a name; others that an importer knows, as real, may be of any picture.
_OF_AN_ATTACK = {"ori", "orig", "gt", "rec", "recon", "reconstruction", "reconstructed"}


@dataclass(frozen=True, kw_only=True)
class ClassFolders:
    """Pictures still to be attacked: a folder a class, or train and test with these in them."""

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """The pictures as the data set `folder` reads them; no reconstructions."""
        tree = Tree(root=source)
        files = [path for folder in _classes(tree) for path in tree.images_in(folder)]
        _check_unattacked(files, source)
        sights = looked_at(_of_own_ids(files, tree), report)
        sizes = sizes_in(sights)
        for path, size in sizes.items():
            if isinstance(size, str):
                tree.leave_out(size, path)
        known = {path: size for path, size in sizes.items() if not isinstance(size, str)}
        names = class_names(sorted({path.parent.name for path in known}))
        classes = tuple(sorted(set(names.values())))
        if len(classes) < _LEAST:
            raise DataError(
                f"{source} holds pictures of {counted(len(classes), 'class', 'classes')} in "
                f"<class>/<image>; a classifier needs {_LEAST}. Folders of splits are called train "
                f"and test.{first_problem(tree.unread)}"
            )
        parts = {split: _part(source, split, known) for split in SPLITS}
        counts = {"pictures": len(known), "classes": len(classes)}
        pictures = FoundPictures(root=source, paths=tuple(known), classes=classes)
        found = Findings(pictures=pictures, counts=counts, unread=())
        notes = [_parts_note(parts, source), *_same_note(names), *_sizes_note({*known.values()})]
        notes += notes_on(
            {below(p, source): [s] for p, s in sights.items() if isinstance(s, Sight)}
        )
        return tree.told(found, *notes)


def _classes(tree: Tree) -> list[Path]:
    """The folders of classes; `DataError` where one is named as originals or what came of them."""
    tops = tree.top()
    if splits := splits_in(tree.root):
        beside = [path for path in tops if path not in splits.values()]
        called = " and ".join(path.name for path in splits.values())
        tree.leave_out(f"beside {called}", *beside)
        inner = [Tree(root=path) for path in splits.values()]
        return [folder for one in inner for folder in _below(one, tree)]
    taken = [path.name for path in tops if path.name.lower() in {*ORIGINALS, *RECONSTRUCTIONS}]
    if taken:
        raise DataError(
            f"{tree.root} has a folder {taken[0]}, so that its pictures are taken for those of an "
            "attack. If that is a class, give it another name."
        )
    return list(tops)


def _below(split: Tree, tree: Tree) -> Sequence[Path]:
    folders = split.top()
    for one in split.unread:
        tree.leave_out(one.why, split.root / one.where)
    tree.hidden += split.hidden
    return folders


def _check_unattacked(files: Sequence[Path], source: Path) -> None:
    for path in files:
        if image_name(path) is not None or parted(path.stem)[1] in _OF_AN_ATTACK:
            raise DataError(
                f"{below(path, source)} is named as a picture of an attack; none is still to be "
                "attacked."
            )


def _of_own_ids(files: Sequence[Path], tree: Tree) -> list[Path]:
    """The first of those that the data set would call the same."""
    again = namesakes(files, tree.root)
    for path, first in again.items():
        tree.leave_out(f"it would be called as {below(first, tree.root)} is", path)
    return [path for path in files if path not in again]


def _part(source: Path, split: str, known: dict[Path, Size]) -> int:
    """How many pictures a split has; `DataError` for none."""
    there = sum(path in known for path in Folder(root=str(source)).paths(split))
    if not there:
        raise DataError(f"None of the pictures in {source} that are for the split {split!r} opens.")
    return there


def _parts_note(parts: dict[str, int], source: Path) -> str:
    train, test = (counted(parts[split], "picture") for split in SPLITS)
    usual = f", unless you choose another share than {Folder().test_share:g}"
    share = "" if splits_in(source) else usual
    return f"{train} to train targets on; {test} to test them on and to attack{share}."


def _same_note(names: Mapping[str, str]) -> list[str]:
    """Folders that are one class, as their names are the same word."""
    folders: dict[str, list[str]] = {}
    for folder, name in names.items():
        folders.setdefault(name, []).append(folder)
    told = [f"{' and '.join(one)} are one class" for one in folders.values() if one[1:]]
    return [f"{listed(told)}: their names are the same word."] if told else []


def _sizes_note(sizes: set[Size]) -> list[str]:
    """What becomes of their sizes, (H, W) each."""
    least, most = (find(sizes, key=math.prod) for find in (min, max))
    side = Folder().size
    if sizes == {(side, side)}:
        return []
    several = sides(least) if least == most else f"{sides(least)} to {sides(most)}"
    become = f"each becomes {side}×{side}, whatever its shape, or the size that you choose"
    return [f"They are {several} pixels; {become}."]
