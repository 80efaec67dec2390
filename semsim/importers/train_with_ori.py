"""The tree in which the SemSim authors published their images and labels.

    train_with_ori/<id>/<id>_<label>_ori.png           the original
    train_with_ori/<id>/<id>_<label>_rec_<k>_<m>.png   by model m, recognisable
    train_with_ori/-<id>/<id>_<label>_rec_<k>_<m>.png  by model m, not recognisable
    others/                                            further images to train against

k, the number of wrong answers among three annotators, is checked to be there and not used: it
does not decide the folder.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from semsim.errors import DataError
from semsim.importers.class_names import all_classes, class_name, read_class_names, read_lines
from semsim.importers.file_names import Listing, below, hidden_note, image_name, listing
from semsim.importers.findings import Findings, Pair, Unread
from semsim.importers.human_tables import tables_of_labels
from semsim.importers.image_sets import count_sets, find_sets, labelled_paths
from semsim.progress import Report, silent
from semsim.words import counted

RELEASED = "released"  # the label the folders say


@dataclass(frozen=True, kw_only=True)
class TrainWithOri:
    """The SemSim authors' tree: <id>/ recognisable, -<id>/ not, one model number a file."""

    dataset: str = field(default="cifar100", metadata={"help": "Name of the data set."})
    attack: str = field(default="invgrad", metadata={"help": "Name of the attack."})
    classes: Path | None = field(
        default=None, metadata={"help": "Text file of class names, one a line, from class 0 on."}
    )
    folder_names: Path | None = field(
        default=None, metadata={"help": "Text file of model names, one a line, from model 1 on."}
    )

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """One reconstruction set a model, and the label `human:released` of every image in them."""
        inner = source / "train_with_ori"
        root = inner if inner.is_dir() else source
        names = read_class_names(self.classes)
        models = () if self.folder_names is None else read_lines(self.folder_names)
        tree = _read(_Tree(root=root, names=names, models=models))
        sets, unread = find_sets(
            tree.pairs(),
            dataset=self.dataset,
            attack=self.attack,
            classes=all_classes(names, tree.classes()),
            report=report,
        )
        rows = pd.DataFrame(labelled_paths(sets))
        keys = zip(rows["model"], rows["image_id"], strict=True)
        rows[f"human:{RELEASED}"] = [tree.released[key] for key in keys]
        return Findings(
            sets=sets,
            tables=tables_of_labels(rows, name=name, headline=RELEASED),
            counts={**count_sets(sets), **_verdicts(rows[f"human:{RELEASED}"])},
            unread=(*tree.unread, *unread),
            notes=(*hidden_note(tree.hidden), *_others_note(root)),
        )


@dataclass(kw_only=True)
class _Tree:
    """What has been read of the tree so far; keys are (model, id), or id.

    names, models: the lists of classes and of models, empty where there is none.
    """

    root: Path
    names: tuple[str, ...]
    models: tuple[str, ...]
    originals: dict[str, tuple[str, Path]] = field(default_factory=dict)  # class name, file
    files: dict[tuple[str, str], Path] = field(default_factory=dict)
    released: dict[tuple[str, str], bool] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    hidden: int = 0

    def leave_out(self, path: Path, why: str) -> None:
        self.unread.append(Unread(below(path, self.root), why))

    def look_at(self, folder: Path) -> Listing:
        """What lies in a folder, what is not an image being left out."""
        found = listing(folder, self.root)
        self.unread += found.unread
        self.hidden += found.hidden
        return found

    def classes(self) -> Iterable[str]:
        return (name for name, _ in self.originals.values())

    def pairs(self) -> list[Pair]:
        """Every original with every model, whether or not there is a file."""
        return [
            Pair(
                model=model,
                image_id=image_id,
                class_name=name,
                original=original,
                reconstruction=self.files.get((model, image_id)),
                error="" if (model, image_id) in self.files else "no reconstruction in the source",
            )
            for model in sorted({model for model, _ in self.files})
            for image_id, (name, original) in self.originals.items()
        ]


def _read(tree: _Tree) -> _Tree:
    """Everything the tree says; `DataError` where it has no original or no reconstruction."""
    top = tree.look_at(tree.root)
    for path in top.images:
        tree.leave_out(path, "not in a folder")
    found: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for folder in top.folders:
        inside = tree.look_at(folder)
        for deep in inside.folders:
            tree.leave_out(deep, "a folder in a folder")
        for path in inside.images:
            _sort_in(path, tree, found)
    for key, paths in found.items():
        _settle(key, paths, tree)
    if not tree.files:
        first = f" First problem: {tree.unread[0]}." if tree.unread else ""
        raise DataError(
            f"{tree.root} holds no <id>/<id>_<label>_ori image with a <id>_<label>_rec_<k>_<m> "
            f"of it.{first}"
        )
    return tree


def _sort_in(path: Path, tree: _Tree, found: dict[tuple[str, str], list[Path]]) -> None:
    """Take an original, or put a reconstruction to those of its model and id."""
    parsed = image_name(path)
    if parsed is None or parsed.is_original == (parsed.model_index is not None):
        tree.leave_out(path, "expected <id>_<label>_ori or <id>_<label>_rec_<k>_<m> as its name")
    elif parsed.image_id != path.parent.name.removeprefix("-"):
        tree.leave_out(path, f"is of image {parsed.image_id}, in the wrong folder")
    elif (name := class_name(parsed.label, tree.names)) is None:
        tree.leave_out(path, f"the list of classes has no class {parsed.label}")
    elif parsed.is_original:
        kept = tree.originals.setdefault(parsed.image_id, (name, path))[1]
        if kept != path:
            tree.leave_out(path, f"{below(kept, tree.root)} is an original of it already")
    elif (model := _model_name(parsed.model_index, tree.models)) is None:
        tree.leave_out(path, f"the list of models has no line {parsed.model_index}")
    else:
        found[model, parsed.image_id].append(path)


def _model_name(index: int | None, models: tuple[str, ...]) -> str | None:
    """The model's line in the list, or its number; None for a line there is not."""
    if not models or not index:
        return f"model-{index:02d}" if index else None
    return models[index - 1] if index <= len(models) else None


def _settle(key: tuple[str, str], paths: list[Path], tree: _Tree) -> None:
    """Take the one file of a model and id, unless something contradicts it."""
    for path in paths:
        others = ", ".join(below(other, tree.root) for other in paths if other != path)
        why = f"the same model and image as {others}" if others else _contradiction(path, tree)
        if why:
            tree.leave_out(path, why)
        else:
            tree.files[key] = path
            tree.released[key] = not path.parent.name.startswith("-")


def _contradiction(path: Path, tree: _Tree) -> str:
    """What speaks against a reconstruction: no original, or one of another class."""
    parsed = image_name(path)
    original = None if parsed is None else tree.originals.get(parsed.image_id)
    if parsed is None or original is None:
        return "its original is missing"
    said = class_name(parsed.label, tree.names)
    return "" if said == original[0] else f"says class {said}, its original {original[0]}"


def _verdicts(released: pd.Series) -> dict[str, int]:
    yes = int(released.sum())
    return {"released as recognisable": yes, "released as unrecognisable": len(released) - yes}


def _others_note(root: Path) -> list[str]:
    others = root.parent / "others"
    if not others.is_dir():
        return []
    count = sum(path.is_file() for path in others.rglob("*"))
    files = counted(count, "file")
    return [f"others/ beside the tree is not imported: {files} to train against, unlabelled."]
