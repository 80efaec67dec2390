"""Data sets of other people: where they lie, which images are wanted, how to get them."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from semsim.base.errors import DataError
from semsim.base.registry import check_settings
from semsim.base.storage.atomic import whole_folder
from semsim.base.storage.folders import SPLITS
from semsim.base.storage.pieces import key_of
from semsim.base.storage.places import DATA
from semsim.images import is_image_file

ROOT = "data/datasets"  # in a record: of the data folder, wherever that is
_ASIDE = "fetched"  # where it is unpacked within the folder that is not yet in its place


@runtime_checkable
class OnDisk(Protocol):
    """A data set whose files have to be fetched once.

    Attributes:
        home: The web page of its authors.
        place: Where its files belong below the folder of data sets.
    """

    home: ClassVar[str]
    place: ClassVar[str]

    @property
    def root(self) -> str:
        """The folder of data sets."""
        ...

    @property
    def folder(self) -> Path:
        """Folder of its files."""
        return folder_of(self.root) / self.place

    def present(self) -> bool:
        """Return whether its files seem to be there."""
        return self.folder.is_dir()

    def download(self) -> None:
        """Fetch them below `root`, checksums verified; `DataError` where that fails."""
        ...


def present(dataset: object) -> bool:
    """Check whether a data set's files seem to be on this machine; those built in have none."""
    return bool(getattr(dataset, "present", lambda: True)())


def content_of(dataset: object) -> str:
    """Return a data set's `content`, such as `Folder.content`, for keys of what comes of it.

    "" where its settings say all, as they do of those built in, and of those whose files are all
    named in a list or known by their checksums.
    """
    return str(getattr(dataset, "content", lambda: "")())


def content_below(folder: Path, pattern: str) -> str:
    """A hash of the paths and sizes of the images at `pattern` below `folder`, none opened.

    Unpacked anew they are the same. "" where there is none.
    """
    paths = sorted(path for path in folder.glob(pattern) if is_image_file(path))
    found = [(path.relative_to(folder).as_posix(), path.stat().st_size) for path in paths]
    return key_of(found, 20) if found else ""


def folder_of(root: str) -> Path:
    """The folder that the setting `root` of a data set means."""
    return DATA / "datasets" if root == ROOT else Path(root)


def check_ready(data: OnDisk, name: str, split: str) -> None:
    """Check before the data set called `name` is read.

    Raises `ValueError` for another split than "train" or "test", `SettingsError` as
    `check_settings` does, and `DataError` that says how to get what is not there.
    """
    check_split(split)
    check_settings(data)
    if not data.present():
        raise DataError(
            f"The data set {name!r} is not in {data.folder}. Fetch it with `semsim-studio "
            f"datasets get {name} --root {data.root}`, or from {data.home} by hand."
        )


def fetched(data: OnDisk, fetch: Callable[[Path], object]) -> None:
    """Let `fetch` fill a folder of data sets aside, and put `data.folder` in its place when whole.

    Raises `DataError` that says what to do by hand where that fails, and where something is in the
    place already, which is left alone.
    """
    if data.folder.is_dir() and any(data.folder.iterdir()):
        raise DataError(
            f"{data.folder} holds a part of it. Remove that folder and fetch it anew, or complete "
            f"it by hand from {data.home}."
        )
    try:
        with whole_folder(data.folder) as part:
            aside = part / _ASIDE
            aside.mkdir()
            fetch(aside)
            for path in (aside / data.folder.relative_to(folder_of(data.root))).iterdir():
                path.rename(part / path.name)
            shutil.rmtree(aside)
    except (OSError, RuntimeError, ValueError) as error:  # urllib's URLError is an OSError
        raise DataError(
            f"It could not be fetched: {error} Fetch it from {data.home} by hand and unpack it "
            f"into {data.folder}."
        ) from error


def check_split(split: str) -> None:
    """`ValueError` unless it is "train" or "test"."""
    if split not in SPLITS:
        raise ValueError(f"expected a split of ['test', 'train'], got {split!r}")


def first_of_each(labels: Sequence[int], classes: int, per_class: int | None) -> list[int]:
    """Places of the first `per_class` of each label below `classes`, in their order."""
    taken = [0] * classes
    places = []
    for place, label in enumerate(labels):
        if label < classes and (per_class is None or taken[label] < per_class):
            taken[label] += 1
            places.append(place)
    return places
