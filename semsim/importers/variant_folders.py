"""A folder of originals beside folders of the same file names, one for each variant."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from semsim.errors import DataError
from semsim.importers.class_names import UNKNOWN, all_classes, read_class_table
from semsim.importers.file_names import Tree
from semsim.importers.findings import Findings, Pair
from semsim.importers.image_sets import find_sets
from semsim.progress import Report, silent
from semsim.registry import setting
from semsim.words import counted


@dataclass(frozen=True, kw_only=True)
class VariantFolders:
    """A folder of originals beside folders with images of the same names, one a variant."""

    originals: str = setting("original", text="Name of the originals' folder.")
    dataset: str = setting("unknown", text="Name of the data set.")
    attack: str = setting("unknown", text="Name of the attack.")
    classes: Path | None = setting(None, text="CSV or Parquet file with image_id and class_name.")

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """One reconstruction set a variant, named as its folder."""
        tree, clean = Tree(root=source), source / self.originals
        folders = tree.top()
        if not clean.is_dir():
            raise DataError(
                f"{source} has no folder {self.originals!r}. It has: "
                f"{', '.join(path.name for path in folders) or 'none'}. "
                "Name the one of originals with --originals."
            )
        originals = _by_name(clean, tree)
        classes = {} if self.classes is None else read_class_table(self.classes)
        variants = {f.name: _by_name(f, tree) for f in folders if f != clean}
        pairs = [
            Pair(
                model=model,
                image_id=image_id,
                class_name=classes.get(image_id, UNKNOWN),
                original=originals.get(image_id),
                reconstruction=images.get(image_id),
            )
            for model, images in variants.items()
            for image_id in sorted({*originals, *images})
        ]
        found = find_sets(
            pairs,
            dataset=self.dataset,
            attack=self.attack,
            classes=all_classes((), (pair.class_name for pair in pairs)),
            report=report,
        )
        return tree.told(found, *_class_notes(originals, classes))


def _by_name(folder: Path, tree: Tree) -> dict[str, Path]:
    """The images in `folder` by name without the suffix."""
    found: dict[str, Path] = {}
    for path in tree.images_in(folder):
        kept = found.setdefault(path.stem, path)
        if kept != path:
            tree.leave_out(f"{kept.name} has its name", path)
    return found


def _class_notes(originals: Mapping[str, Path], classes: Mapping[str, str]) -> list[str]:
    without = [image_id for image_id in originals if image_id not in classes]
    strange = sorted(set(classes) - set(originals))
    notes = []
    if without:
        notes.append(
            f"The class of {len(without)} of {counted(len(originals), 'original')} is not known "
            f"({UNKNOWN!r}); people can be asked only if two pictures show the same (pair task)."
        )
    if strange:
        notes.append(f"Classes of images that are not there: {', '.join(strange)}.")
    return notes
