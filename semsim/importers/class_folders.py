"""Pictures that are not attacked yet: a folder a class, or train and test with these in them."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from semsim.base.errors import DataError
from semsim.base.picture_files import notes_on
from semsim.base.progress import Report, silent
from semsim.base.storage.folders import SPLITS, splits_in
from semsim.base.words import counted, listed
from semsim.datasets.folder import Folder, class_names, namesakes
from semsim.importers.file_names import Tree, below, image_name
from semsim.importers.image_sets import looked_at
from semsim.importers.import_plan import Findings, FoundPictures, Size, first_problem, sides
from semsim.importers.variant_folders import ORIGINALS, RECONSTRUCTIONS, parted

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
        for path in files:
            if image_name(path) is not None or parted(path.stem)[1] in _OF_AN_ATTACK:
                raise DataError(
                    f"{below(path, source)} is named as a picture of an attack; none is still to "
                    "be attacked."
                )
        again = namesakes(files, source)
        for path, first in again.items():
            tree.leave_out(f"it would be called as {below(first, source)} is", path)
        known, broken = looked_at((path for path in files if path not in again), report)
        for path, why in broken.items():
            tree.leave_out(why, path)
        names = class_names(sorted({path.parent.name for path in known}))
        classes = tuple(sorted(set(names.values())))
        if len(classes) < _LEAST:
            raise DataError(
                f"{source} holds pictures of {counted(len(classes), 'class', 'classes')} in "
                f"<class>/<image>; a classifier needs {_LEAST}. Folders of splits are called train "
                f"and test.{first_problem(tree.unread)}"
            )
        counts = {"pictures": len(known), "classes": len(classes)}
        pictures = FoundPictures(root=source, paths=tuple(known), classes=classes)
        found = Findings(pictures=pictures, counts=counts, unread=())
        sizes = {sight.size for sight in known.values()}
        notes = [_parts_note(source, known), *_same_note(names), *_sizes_note(sizes)]
        notes += notes_on({below(path, source): [sight] for path, sight in known.items()})
        return tree.told(found, *notes)


def _classes(tree: Tree) -> list[Path]:
    """The folders of classes; `DataError` where one is named as originals or what came of them."""
    tops = tree.top()
    if splits := splits_in(tree.root):
        beside = [path for path in tops if path not in splits.values()]
        called = " and ".join(path.name for path in splits.values())
        tree.leave_out(f"beside {called}", *beside)
        return [folder for split in splits.values() for folder in tree.top(split)]
    taken = [path.name for path in tops if path.name.lower() in {*ORIGINALS, *RECONSTRUCTIONS}]
    if taken:
        raise DataError(
            f"{tree.root} has a folder {taken[0]}, so that its pictures are taken for those of an "
            "attack. If that is a class, give it another name."
        )
    return tops


def _parts_note(source: Path, known: Collection[Path]) -> str:
    """Count the pictures of each split; `DataError` for none."""
    parts = []
    for split in SPLITS:
        there = sum(path in known for path in Folder(root=str(source)).paths(split))
        if not there:
            raise DataError(
                f"None of the pictures in {source} that are for the split {split!r} opens."
            )
        parts.append(counted(there, "picture"))
    usual = f", unless you choose another share than {Folder().test_share:g}"
    share = "" if splits_in(source) else usual
    return f"{parts[0]} to train targets on; {parts[1]} to test them on and to attack{share}."


def _same_note(names: Mapping[str, str]) -> list[str]:
    """Folders that are one class, as their names are the same word."""
    folders: dict[str, list[str]] = {}
    for folder, name in names.items():
        folders.setdefault(name, []).append(folder)
    told = [f"{' and '.join(one)} are one class" for one in folders.values() if one[1:]]
    return [f"{listed(told)}: their names are the same word."] if told else []


def _sizes_note(sizes: set[Size]) -> list[str]:
    """Return a note on the resizing of pictures of `sizes`, (H, W) each; empty for none."""
    least, most = (find(sizes, key=math.prod) for find in (min, max))
    side = Folder().size
    if sizes == {(side, side)}:
        return []
    several = sides(least) if least == most else f"{sides(least)} to {sides(most)}"
    become = f"each becomes {side}×{side}, whatever its shape, or the size that you choose"
    return [f"They are {several} pixels; {become}."]
