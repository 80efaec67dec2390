"""Any folder of images as a data set: <root>/<class>/<image>, or <root>/train and <root>/test."""

import hashlib
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from semsim.base.alike import class_names, written
from semsim.base.errors import DataError, SettingsError
from semsim.base.registry import Checked, setting
from semsim.base.storage.folders import shown, splits_in
from semsim.base.storage.pieces import key_of
from semsim.datasets.on_disk import check_split
from semsim.images import is_image_file, read_images, why_unread
from semsim.types import LabelledImages

_log = logging.getLogger(__name__)
LONGEST = 200  # bytes of an image's id; a file's name has 255, and more than the id goes into it
MISNAMED = "its name is not UTF-8; rename it"


@dataclass(frozen=True, kw_only=True)
class Folder(Checked):
    """Images under `root`, one folder a class, resized to `size` × `size`.

    With folders `train` and `test` below `root` these are the splits, also where they are called
    otherwise (`semsim.base.storage.folders.splits_in`). Otherwise `test_share` of
    the images go to the test split, chosen by a hash of each image's path, so that adding images
    moves none of the others.

    Attributes:
        root: Its path on the machine that the studio runs on; in it <class>/<image>, or train and
            test with these.
        size: Pixels of a side, to which every image is brought.
        test_share: Of the images, chosen by their names, that targets are tested and attacked on;
            no matter where there are train and test.
        task: What people are to be asked about the images.
    """

    about: ClassVar[str] = "any images of yours, <root>/<class>/<image>"

    root: str = ""
    size: int = setting(32, least=1)
    test_share: float = 0.2
    task: Literal["recognition", "pair"] = "recognition"

    def present(self) -> bool:
        """Return whether there is such a folder."""
        return bool(self.root) and Path(self.root).is_dir()

    def content(self) -> str:
        """Return a hash of what is in the folder now: path, size and time of change of every image.

        Of both splits, as the classes are; no image is opened. "" where there is no such folder.
        """
        if not self.present():
            return ""
        root = Path(self.root)
        found = [
            (path.relative_to(root).as_posix(), *_size_and_time(path)) for path in _all_images(root)
        ]
        return key_of(found, 20)

    def __call__(self, split: str) -> LabelledImages:
        """The split "train" or "test".

        Raises `SettingsError` without a root, `DataError` where there is nothing to read, where two
        images have one id, for a name that is not UTF-8 or too long, and for a picture that cannot
        be read or is partly transparent.
        """
        check_split(split)
        if not self.root:
            raise SettingsError(
                "The data set 'folder' needs the path of your folder: the field Folder under More, "
                "folder:root=PATH in a terminal."
            )
        import torch  # a list of data sets needs none

        root = Path(self.root)
        paths = self.paths(split)
        _check_names(root)
        top = splits_in(root).get(split, root)
        unread = {path: why_unread(path) for path in shown(top, "*/*")}
        if left := [f"{path.relative_to(top)} {why}" for path, why in unread.items() if why]:
            _log.warning("Left out of %s: %s", root, "; ".join(left))
        names = class_names(sorted({path.parent.name for path in _all_images(root)}))
        classes = tuple(sorted(set(names.values())))
        images = read_images(paths, (self.size, self.size))
        return LabelledImages(
            dataset=root.resolve().name,
            classes=classes,
            ids=tuple(_image_id(path, root) for path in paths),
            images=images,
            labels=torch.tensor([classes.index(names[path.parent.name]) for path in paths]),
        )

    def paths(self, split: str) -> list[Path]:
        """The images of a split, by their names alone; `DataError` where there is none."""
        root = Path(self.root)
        if not root.is_dir():
            raise DataError(f"No folder {root}. Expected <root>/<class>/<image>.")
        if splits := splits_in(root):
            paths = _images_below(splits[split])
            if not paths:
                raise DataError(f"No images in {splits[split]}/<class>/.")
            return paths
        there = _images_below(root)
        paths = [
            path
            for path in there
            if (_fraction(path.relative_to(root)) < self.test_share) == (split == "test")
        ]
        if not paths:
            raise DataError(
                f"No images for the split {split!r} among {len(there)} in {root}/<class>/, of "
                f"which a share of {self.test_share:g} (test_share) is for tests: add images, "
                "change that, or lay them into train/<class>/ and test/<class>/."
            )
        return paths


def _images_below(root: Path) -> list[Path]:
    return [path for path in shown(root, "*/*") if is_image_file(path)]


def _all_images(root: Path) -> list[Path]:
    """Those of both splits."""
    return [path for top in splits_in(root).values() or [root] for path in _images_below(top)]


def _size_and_time(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError:
        return 0, 0  # whoever reads it says what is wrong
    return stat.st_size, stat.st_mtime_ns


def is_utf8(path: Path) -> bool:
    """Check whether a name can stand in tables and records; others come from old machines."""
    return in_utf8(path) == str(path)


def in_utf8(path: Path) -> str:
    """`path` as it can be written; bytes that are not UTF-8 as \\udc and their number."""
    return str(path).encode(errors="backslashreplace").decode()


def _check_names(root: Path) -> None:
    """`DataError` where two images, of whichever split, have one id, or a name cannot be used."""
    every = _all_images(root)
    for path in every:
        if not is_utf8(path.relative_to(root)):
            raise DataError(f"{in_utf8(path)} cannot be read: {MISNAMED}.")
        taken = len(_image_id(path, root).encode())
        if taken > LONGEST:
            raise DataError(
                f"The name of {path}, its class before it, takes {taken} bytes, and the files of a "
                f"set have room for {LONGEST}; shorten it."
            )
    for path, other in namesakes(every, root).items():
        raise DataError(
            f"{other} and {path} would both be called {_image_id(path, root)!r}; rename one."
        )


def namesakes(paths: Iterable[Path], root: Path) -> dict[Path, Path]:
    """Each image below `root` that has the id of one before it, and that one."""
    known: dict[str, Path] = {}
    first = {path: known.setdefault(written(_image_id(path, root)), path) for path in paths}
    return {path: other for path, other in first.items() if other != path}


def _image_id(path: Path, root: Path) -> str:
    """The path below `root` without its suffix, as one name."""
    return "-".join(path.relative_to(root).with_suffix("").parts)


def _fraction(path: Path) -> float:
    """A number in [0, 1) that depends on the name alone."""
    return int(hashlib.sha256(os.fsencode(path.as_posix())).hexdigest()[:8], 16) / 2**32
