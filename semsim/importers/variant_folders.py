"""A folder of originals beside folders of the same file names, one for each variant."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from semsim.errors import DataError
from semsim.importers.class_names import UNKNOWN, all_classes, read_class_table
from semsim.importers.file_names import below, hidden_note, listing
from semsim.importers.findings import Findings, Pair, Unread
from semsim.importers.image_sets import count_sets, find_sets
from semsim.progress import Report, silent
from semsim.words import counted


@dataclass(frozen=True, kw_only=True)
class VariantFolders:
    """A folder of originals beside folders with images of the same names, one a variant."""

    originals: str = field(default="original", metadata={"help": "Name of the originals' folder."})
    dataset: str = field(default="unknown", metadata={"help": "Name of the data set."})
    attack: str = field(default="unknown", metadata={"help": "Name of the attack."})
    classes: Path | None = field(
        default=None, metadata={"help": "CSV or Parquet file with image_id and class_name."}
    )

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """One reconstruction set a variant, named as its folder."""
        top = listing(source, source)
        clean = source / self.originals
        if not clean.is_dir():
            raise DataError(
                f"{source} has no folder {self.originals!r}. It has: "
                f"{', '.join(path.name for path in top.folders) or 'none'}. "
                "Name the one of originals with --originals."
            )
        tree = _Tree(root=source, hidden=top.hidden, unread=[*top.unread])
        tree.unread += [Unread(path.name, "not in a folder") for path in top.images]
        originals = tree.images(clean)
        classes = {} if self.classes is None else read_class_table(self.classes)
        pairs = [
            pair
            for folder in top.folders
            if folder != clean
            for pair in _pairs(folder.name, originals, tree.images(folder), classes)
        ]
        sets, unread = find_sets(
            pairs,
            dataset=self.dataset,
            attack=self.attack,
            classes=all_classes((), (pair.class_name for pair in pairs)),
            report=report,
        )
        return Findings(
            sets=sets,
            counts=count_sets(sets),
            unread=(*tree.unread, *unread),
            notes=(*hidden_note(tree.hidden), *_class_notes(originals, classes)),
        )


@dataclass(kw_only=True)
class _Tree:
    root: Path
    unread: list[Unread]
    hidden: int

    def images(self, folder: Path) -> dict[str, Path]:
        """The images in `folder` by name without the suffix."""
        inside = listing(folder, self.root)
        self.unread += inside.unread
        self.unread += [Unread(below(deep, self.root), "a folder") for deep in inside.folders]
        self.hidden += inside.hidden
        found: dict[str, Path] = {}
        for path in inside.images:
            kept = found.setdefault(path.stem, path)
            if kept != path:
                self.unread.append(Unread(below(path, self.root), f"{kept.name} has its name"))
        return found


def _pairs(
    model: str,
    originals: Mapping[str, Path],
    images: Mapping[str, Path],
    classes: Mapping[str, str],
) -> list[Pair]:
    return [
        Pair(
            model=model,
            image_id=image_id,
            class_name=classes.get(image_id, UNKNOWN),
            original=originals.get(image_id),
            reconstruction=images.get(image_id),
            error=_lacking(image_id, originals, images),
        )
        for image_id in sorted({*originals, *images})
    ]


def _lacking(image_id: str, originals: Mapping[str, Path], images: Mapping[str, Path]) -> str:
    if image_id not in originals:
        return "no original in the source"
    return "" if image_id in images else "no reconstruction in the source"


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
