"""The grammar of image names in published trees, and what lies in a folder."""

import re
from dataclasses import dataclass
from pathlib import Path

from semsim.errors import DataError
from semsim.images import is_image_file
from semsim.importers.findings import Unread
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
        image_id=found["id"],
        label=int(found["label"]),
        is_original=found["ori"] is not None,
        model_index=None if model is None else int(model),
    )


def id_and_label(stem: str) -> tuple[str, int | None]:
    """The id, and the class number where there is one, of `<id>[_<label>][_ori|_rec|_gt]`."""
    base = re.sub(r"_(ori|rec|gt)$", "", stem)
    image_id, _, label = base.rpartition("_")
    return (image_id, int(label)) if image_id and label.isdecimal() else (base, None)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What lies directly in a folder; hidden files are only counted."""

    images: tuple[Path, ...]
    folders: tuple[Path, ...]
    unread: tuple[Unread, ...]
    hidden: int


def listing(folder: Path, root: Path) -> Listing:
    """The images and folders in `folder`; other files are left out, named from `root` on.

    Raises `DataError` where there is no such folder.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder.")
    entries = sorted(folder.iterdir())
    shown = [path for path in entries if not path.name.startswith(".")]
    files = [path for path in shown if not path.is_dir()]
    return Listing(
        images=tuple(path for path in files if is_image_file(path)),
        folders=tuple(path for path in shown if path.is_dir()),
        unread=tuple(
            Unread(below(path, root), "not an image file")
            for path in files
            if not is_image_file(path)
        ),
        hidden=len(entries) - len(shown),
    )


def below(path: Path, root: Path) -> str:
    """How a report names `path`: from `root` on, or whole where it lies elsewhere."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def hidden_note(count: int) -> list[str]:
    """What a report says of hidden files, such as those a file manager leaves."""
    return (
        [f"{counted(count, 'hidden file was', 'hidden files were')} not looked at."]
        if count
        else []
    )
