"""The grammar of image names in published trees, and what has been read of a tree."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from semsim.base.alike import written
from semsim.base.folders import shown
from semsim.datasets.folder import MISNAMED, in_utf8, is_utf8
from semsim.errors import DataError
from semsim.images import is_image_file
from semsim.importers.findings import Findings, Unread
from semsim.weights import sha256_of
from semsim.words import counted

_NAME = re.compile(
    r"(?P<id>.+?)_(?P<label>\d+)_(?:(?P<ori>ori)|rec(?:_(?P<wrong>\d+)_(?P<model>\d+))?)"
)


@dataclass(frozen=True, kw_only=True)
class ImageName:
    """What a file name says: id and class number of the original, and what is shown.

    model_index: the number at the end of `<id>_<label>_rec_<k>_<m>`, else None.
    """

    image_id: str
    label: int
    is_original: bool
    model_index: int | None


def image_name(path: Path) -> ImageName | None:
    """What the name of `path` says, or None where it says nothing we know."""
    found = _NAME.fullmatch(path.stem)
    if found is None:
        return None
    model = found["model"]
    return ImageName(
        image_id=written(found["id"]),
        label=int(found["label"]),
        is_original=found["ori"] is not None,
        model_index=None if model is None else int(model),
    )


def id_and_label(stem: str) -> tuple[str, int | None]:
    """The id, and the class number where there is one, of `<id>[_<label>][_ori|_rec|_gt]`."""
    base = re.sub(r"_(ori|rec|gt)$", "", written(stem))
    image_id, _, label = base.rpartition("_")
    return (image_id, int(label)) if image_id and label.isdecimal() else (base, None)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What lies directly in a folder; hidden files are only counted.

    misnamed: what has a name that no record can hold.
    """

    images: tuple[Path, ...]
    folders: tuple[Path, ...]
    others: tuple[Path, ...]
    misnamed: tuple[Path, ...]
    hidden: int


def listing(folder: Path) -> Listing:
    """What lies in `folder`, in order of name; `DataError` where there is no such folder."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder.")
    entries = shown(folder)
    named = [path for path in entries if is_utf8(Path(path.name))]
    files = [path for path in named if not path.is_dir()]
    return Listing(
        images=tuple(path for path in files if is_image_file(path)),
        folders=tuple(path for path in named if path.is_dir()),
        others=tuple(path for path in files if not is_image_file(path)),
        misnamed=tuple(path for path in entries if not is_utf8(Path(path.name))),
        hidden=sum(1 for _ in folder.iterdir()) - len(entries),
    )


def digest_of(path: Path) -> str:
    """The sha256 of a file; "" where it cannot be read, which whoever opens it says."""
    try:
        return sha256_of(path)
    except OSError:
        return ""


@dataclass(kw_only=True)
class Tree:
    """What an importer leaves out of the folder `root`, as far as it has been read."""

    root: Path
    unread: list[Unread] = field(default_factory=list)
    hidden: int = 0

    def leave_out(self, why: str, *paths: Path) -> None:
        """None of `paths` can be imported."""
        self.unread += [Unread(below(path, self.root), why) for path in paths]

    def top(self) -> tuple[Path, ...]:
        """The folders in `root`; images that lie beside them are left out."""
        found = listing(self.root)
        self.leave_out("not an image file", *found.others)
        self.leave_out("not in a folder", *found.images)
        self.leave_out(MISNAMED, *found.misnamed)
        self.hidden += found.hidden
        return found.folders

    def images_in(self, folder: Path) -> tuple[Path, ...]:
        """The images in one of the folders; what else lies there is left out."""
        found = listing(folder)
        self.leave_out("not an image file", *found.others)
        self.leave_out("a folder in a folder", *found.folders)
        self.leave_out(MISNAMED, *found.misnamed)
        self.hidden += found.hidden
        return found.images

    def told(self, found: Findings, *notes: str) -> Findings:
        """`found` with what the tree left out, and with `notes`."""
        return replace(
            found,
            unread=(*self.unread, *found.unread),
            notes=(*hidden_note(self.hidden), *notes),
        )


def below(path: Path, root: Path) -> str:
    """How a report names `path`: from `root` on, or whole where it lies elsewhere."""
    return in_utf8(path.relative_to(root) if path.is_relative_to(root) else path)


def hidden_note(count: int) -> list[str]:
    """What a report says of hidden files, such as those a file manager leaves."""
    told = counted(count, "hidden file was", "hidden files were")
    return [f"{told} not looked at."] if count else []
