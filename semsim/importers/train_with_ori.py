"""The tree in which the SemSim authors published their images and labels.

    train_with_ori/<id>/<id>_<label>_ori.png           the original
    train_with_ori/<id>/<id>_<label>_rec_<k>_<m>.png   by model m, recognisable
    train_with_ori/-<id>/<id>_<label>_rec_<k>_<m>.png  by model m, not recognisable
    class_names.txt, folder_names.txt                  the names of classes and models, if any
    ids.csv                                            in an export of a study; says who voted
    others/                                            further images to train against

k, the number of wrong answers among three annotators, is checked to be there and not used: it
does not decide the folder.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from semsim.base.errors import DataError
from semsim.base.progress import Report, silent
from semsim.base.registry import setting
from semsim.base.table_files import read_texts, truth
from semsim.base.words import counted
from semsim.importers.class_names import CLASS_LIST, class_name, read_class_names, read_lines
from semsim.importers.file_names import Tree, below, image_name
from semsim.importers.human_tables import tables_of_labels
from semsim.importers.image_sets import find_sets, labelled_paths
from semsim.importers.import_plan import Findings, Pair, check_crossed, first_problem

RELEASED = "released"  # the label the folders say
Key = tuple[str, str]  # model and id


@dataclass(frozen=True, kw_only=True)
class TrainWithOri:
    """The SemSim authors' tree: <id>/ recognisable, -<id>/ not, one model number a file."""

    dataset: str = setting("cifar100", text="Name of the data set.")
    attack: str = setting("invgrad", text="Name of the attack.")
    classes: Path | None = setting(None, text=CLASS_LIST)
    folder_names: Path | None = setting(
        None, text="Text file of model names, one a line, from model 1 on."
    )

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """One reconstruction set a model, and the label `human:released` of every image in them."""
        inner = source / "train_with_ori"
        root = inner if inner.is_dir() else source
        names = read_class_names(self.classes or _beside(root, "class_names.txt"))
        listed = self.folder_names or _beside(root, "folder_names.txt")
        models = () if listed is None else read_lines(listed)
        tree = _read(_Published(root=root, names=names, models=models))
        pairs = _pairs(tree, self.attack)
        found = find_sets(pairs, dataset=self.dataset, classes=names, report=report)
        rows = pd.DataFrame(labelled_paths(found.sets))
        keys = zip(rows["model"], rows["image_id"], strict=True)
        released = [not tree.reconstructions[key].parent.name.startswith("-") for key in keys]
        rows[f"human:{RELEASED}"] = released
        rows["simulated"] = _is_simulated(root)
        verdicts = {
            "released as recognisable": sum(released),
            "released as unrecognisable": len(released) - sum(released),
        }
        found = replace(
            found,
            tables=tables_of_labels(rows, name=name, headline=RELEASED),
            counts={**found.counts, **verdicts},
        )
        return tree.told(found, *_others_note(root))


def _beside(root: Path, name: str) -> Path | None:
    """A list of names beside the tree, as exports of studies have it."""
    path = root.parent / name
    return path if root.name == "train_with_ori" and path.is_file() else None


def _is_simulated(root: Path) -> bool:
    """Return whether an export of a study records that programs voted."""
    ids = _beside(root, "ids.csv")
    cells = pd.DataFrame() if ids is None else read_texts(ids, DataError).cells
    return "simulated" in cells and any(map(truth, cells["simulated"]))


@dataclass(kw_only=True)
class _Published(Tree):
    """Content of a published tree, as far as it has been read.

    names, models: the lists of classes and of models, empty where there is none.
    originals: class name and file by id.
    """

    names: tuple[str, ...]
    models: tuple[str, ...]
    originals: dict[str, tuple[str, Path]] = field(default_factory=dict)
    reconstructions: dict[Key, Path] = field(default_factory=dict)


def _pairs(tree: _Published, attack: str) -> list[Pair]:
    """Every original with every model, whether or not there is a file."""
    models = sorted({model for model, _ in tree.reconstructions})
    check_crossed(len(models), len(models) * len(tree.originals))
    return [
        Pair(
            attack=attack,
            model=model,
            image_id=image_id,
            class_name=name,
            original=original,
            reconstruction=tree.reconstructions.get((model, image_id)),
        )
        for model in models
        for image_id, (name, original) in tree.originals.items()
    ]


def _read(tree: _Published) -> _Published:
    """Everything the tree says; `DataError` where it has no original or no reconstruction."""
    found: dict[Key, list[tuple[str, Path]]] = defaultdict(list)
    for folder in tree.top():
        for path in tree.images_in(folder):
            _sort_in(path, tree, found)
    for key, files in found.items():
        _settle(key, files, tree)
    if not tree.reconstructions:
        raise DataError(
            f"{tree.root} holds no <id>/<id>_<label>_ori image with a <id>_<label>_rec_<k>_<m> "
            f"of it.{first_problem(tree.unread)}"
        )
    return tree


def _sort_in(path: Path, tree: _Published, found: dict[Key, list[tuple[str, Path]]]) -> None:
    """Take an original, or put a reconstruction to those of its model and id."""
    parsed = image_name(path)
    if parsed is None or parsed.is_original == (parsed.model_index is not None):
        tree.leave_out("expected <id>_<label>_ori or <id>_<label>_rec_<k>_<m> as its name", path)
    elif parsed.image_id != path.parent.name.removeprefix("-"):
        tree.leave_out(f"is of image {parsed.image_id}, in the wrong folder", path)
    elif (name := class_name(parsed.label, tree.names)) is None:
        tree.leave_out(f"the list of classes has no class {parsed.label}", path)
    elif parsed.is_original:
        kept = tree.originals.setdefault(parsed.image_id, (name, path))[1]
        if kept != path:
            tree.leave_out(f"{below(kept, tree.root)} is an original of it already", path)
    elif (model := _model_name(parsed.model_index, tree.models)) is None:
        tree.leave_out(f"the list of models has no line {parsed.model_index}", path)
    else:
        found[model, parsed.image_id].append((name, path))


def _model_name(index: int | None, models: tuple[str, ...]) -> str | None:
    """The model's line in the list, or its number; None for a line there is not."""
    if not models or not index:
        return f"model-{index:02d}" if index else None
    return models[index - 1] if index <= len(models) else None


def _settle(key: Key, files: Sequence[tuple[str, Path]], tree: _Published) -> None:
    """Take the one file of a model and id, unless something contradicts it.

    files: those there are, each behind the name of the class that it says.
    """
    original = tree.originals.get(key[1])
    for said, path in files:
        others = ", ".join(below(other, tree.root) for _, other in files if other != path)
        if others:
            tree.leave_out(f"the same model and image as {others}", path)
        elif original is None:
            tree.leave_out("its original is missing", path)
        elif said != original[0]:
            tree.leave_out(f"says class {said}, its original {original[0]}", path)
        else:
            tree.reconstructions[key] = path


def _others_note(root: Path) -> list[str]:
    others = root.parent / "others"
    if not others.is_dir():
        return []
    files = counted(sum(path.is_file() for path in others.rglob("*")), "file")
    return [f"others/ beside the tree is not imported: {files} to train against, unlabelled."]
