"""The grammar of image names in published trees, and what has been read of a tree."""

import re
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from semsim.base.alike import written
from semsim.base.errors import DataError
from semsim.base.storage.folders import files_below, shown
from semsim.base.storage.records import require_folder
from semsim.base.table_files import first_problem
from semsim.base.words import counted
from semsim.datasets.folder import MISNAMED, in_utf8, is_utf8
from semsim.images import is_image_file
from semsim.importers.import_plan import Findings, Unread

K = TypeVar("K")
# Forms of names: <id> and <label>, the class number, are of the original, <m> is of the model.
ORIGINAL, RECONSTRUCTION = "<id>_<label>_ori", "<id>_<label>_rec"
NUMBERED = "<id>_<label>_rec_<k>_<m>"
_PARTS = {
    "<id>": "(?P<id>.+?)",
    "<label>": r"(?P<label>\d+)",
    "<k>": r"\d+",
    "<m>": r"(?P<model>\d+)",
}
_FORMS = {
    form: re.compile(re.sub("<[a-z]+>", lambda part: _PARTS[part.group()], form))
    for form in (ORIGINAL, RECONSTRUCTION, NUMBERED)
}


@dataclass(frozen=True, kw_only=True)
class ImageName:
    """Facts in a file name: id and class number of the original, and the picture shown.

    Attributes:
        model_index: The number at the end of `NUMBERED`, else None.
    """

    image_id: str
    label: int
    is_original: bool
    model_index: int | None


def image_name(path: Path, forms: Sequence[str] = tuple(_FORMS)) -> ImageName | None:
    """Return the facts in the name of `path`, or None where it has none of the `forms`."""
    for form in forms:
        if found := _FORMS[form].fullmatch(path.stem):
            return ImageName(
                image_id=written(found["id"]),
                label=int(found["label"]),
                is_original=form == ORIGINAL,
                model_index=int(found["model"]) if form == NUMBERED else None,
            )
    return None


def id_and_label(stem: str) -> tuple[str, int | None]:
    """The id, and the class number where there is one, of `<id>[_<label>][_ori|_rec|_gt]`."""
    base = re.sub(r"_(ori|rec|gt)$", "", written(stem))
    image_id, _, label = base.rpartition("_")
    return (image_id, int(label)) if image_id and label.isdecimal() else (base, None)


@dataclass(kw_only=True)
class Tree:
    """Parts of the folder `root` that an importer leaves out, as far as it has been read."""

    root: Path
    unread: list[Unread] = field(default_factory=list)
    hidden: int = 0

    def leave_out(self, why: str, *paths: Path) -> None:
        """None of `paths` can be imported."""
        self.unread += [Unread(below(path, self.root), why) for path in paths]

    def take(
        self, files: MutableMapping[K, Path], key: K, path: Path, why: str, *, whole: bool = True
    ) -> None:
        """Put `path` among `files`, or leave it out where another has its key.

        Args:
            why: What is then said of the other, whose path from `root` on is named, or its name
                alone.
        """
        kept = files.setdefault(key, path)
        if kept != path:
            self.leave_out(f"{below(kept, self.root) if whole else kept.name} {why}", path)

    def nothing(self, why: str) -> DataError:
        """The error that the tree holds nothing to import, with the first that was left out."""
        return DataError(f"{why}{first_problem(self.unread)}")

    def named_images(self, folder: Path, *forms: str) -> Iterator[tuple[Path, ImageName]]:
        """The images in a folder whose names have one of the `forms`; others are left out."""
        for path in self.images_in(folder):
            name = image_name(path, forms)
            if name is None:
                self.leave_out(f"expected {' or '.join(forms)} as its name", path)
            else:
                yield path, name

    def top(self, folder: Path | None = None) -> list[Path]:
        """The folders in `root`, or in one below it; images that lie beside them are left out."""
        folders, images = self._sorted(folder or self.root)
        self.leave_out("not in a folder", *images)
        return folders

    def images_in(self, folder: Path) -> list[Path]:
        """The images in one of the folders; what else lies there is left out."""
        folders, images = self._sorted(folder)
        self.leave_out("a folder in a folder", *folders)
        return images

    def _sorted(self, folder: Path) -> tuple[list[Path], list[Path]]:
        """The folders and the images in a folder, in order of name; all else is left out."""
        require_folder(folder, DataError)
        entries = shown(folder)
        self.hidden += sum(1 for _ in folder.iterdir()) - len(entries)
        named = self.named(entries, folder)
        files = [path for path in named if not path.is_dir()]
        self.leave_out("not an image file", *(path for path in files if not is_image_file(path)))
        return [path for path in named if path.is_dir()], list(filter(is_image_file, files))

    def files(self) -> list[Path]:
        """Every file below `root`, in order."""
        there = files_below(self.root)
        self.hidden += there.hidden
        return self.named(there.paths, self.root)

    def named(self, paths: Sequence[Path], folder: Path) -> list[Path]:
        """Those of `paths` whose names, from `folder` on, a record can hold."""
        misnamed = {path for path in paths if not is_utf8(path.relative_to(folder))}
        self.leave_out(MISNAMED, *sorted(misnamed))
        return [path for path in paths if path not in misnamed]

    def told(self, found: Findings, *notes: str) -> Findings:
        """`found` with what the tree left out, and with `notes`."""
        return replace(
            found,
            unread=(*self.unread, *found.unread),
            notes=(*found.notes, *hidden_note(self.hidden), *notes),
        )


def below(path: Path, root: Path) -> str:
    """Return `path` as a report names it: from `root` on, or whole where it lies elsewhere."""
    return in_utf8(path.relative_to(root) if path.is_relative_to(root) else path)


def hidden_note(count: int) -> list[str]:
    """Return a report's note on hidden files, such as those a file manager leaves."""
    words = counted(count, "hidden file was", "hidden files were")
    return [f"{words} not looked at."] if count else []
