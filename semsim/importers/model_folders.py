"""A folder of reconstructions a model: `<model>/<id>_<label>_rec.png`, as attacks write them.

Originals are `<id>_<label>_ori.png` in the same folder or in `<model>_ori/`. Those are what was
attacked, which training augmentation may have changed; with a folder of clean originals they
are kept as the attacked images.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from semsim.base.errors import DataError
from semsim.base.progress import Report, silent
from semsim.base.registry import setting
from semsim.base.words import agreeing, counted
from semsim.importers.class_names import CLASS_LIST, class_name, read_class_names
from semsim.importers.file_names import Tree, below, contents, id_and_label, image_name
from semsim.importers.image_sets import find_sets
from semsim.importers.import_plan import Findings, Pair, check_crossed, first_problem

Key = tuple[str, int]  # id and class number


@dataclass(frozen=True, kw_only=True)
class ModelFolders:
    """A folder a model of <id>_<label>_rec images, with _ori images or a folder of originals."""

    originals: Path | None = setting(
        None, text="Folder of clean originals; _ori images are then the attacked ones."
    )
    dataset: str = setting("unknown", text="Name of the data set.")
    attack: str = setting("unknown", text="Name of the attack.")
    classes: Path | None = setting(None, text=CLASS_LIST)

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """One reconstruction set a model."""
        names = read_class_names(self.classes)
        if self.originals is not None and not self.originals.is_dir():
            raise DataError(f"{self.originals} is not a folder of originals.")
        tree = _read(source, self.originals)
        if self.originals is not None:
            tree.clean = _clean(self.originals, tree)
        _drop_contradictions(tree, names)
        disputed = _disputed(tree) if tree.clean is None else {}
        keys = dict.fromkeys(key for files in tree.models.values() for key in files)
        check_crossed(len(tree.models), len(tree.models) * len(keys))
        pairs = [
            Pair(
                attack=self.attack,
                model=model,
                image_id=key[0],
                class_name=known,
                original=own.get(key) if tree.clean is None else tree.clean.get(key[0]),
                reconstruction=tree.models[model].get(key),
                attacked=None if tree.clean is None else own.get(key),
                error=disputed.get(key[0], ""),
            )
            for model, own in tree.shown.items()
            for key in dict.fromkeys([*keys, *own])
            if (known := class_name(key[1], names)) is not None
        ]
        if not pairs:
            raise DataError(
                f"{source} holds no <model>/<id>_<label>_rec image that can be used."
                f"{first_problem(tree.unread)}"
            )
        found = find_sets(pairs, dataset=self.dataset, classes=names, report=report)
        return tree.told(found, *_unused_note(tree.clean or {}, keys))


@dataclass(kw_only=True)
class _Models(Tree):
    """Files that have been read so far, by model and key.

    shown: _ori images. clean: the originals by id, where they lie apart.
    """

    models: dict[str, dict[Key, Path]] = field(default_factory=dict)
    shown: dict[str, dict[Key, Path]] = field(default_factory=dict)
    clean: dict[str, Path] | None = None


def _read(source: Path, originals: Path | None) -> _Models:
    tree = _Models(root=source)
    folders = tree.top()
    names = {folder.name for folder in folders}
    for folder in folders:
        base = folder.name.removesuffix("_ori")
        if base != folder.name and base in names:
            _read_folder(folder, base, tree)
        elif originals is None or not folder.samefile(originals) or _has_reconstruction(folder):
            _read_folder(folder, folder.name, tree)
    for model in [model for model, files in tree.models.items() if not files]:
        tree.leave_out("holds no <id>_<label>_rec image", source / model)
        del tree.models[model], tree.shown[model]
    return tree


def _has_reconstruction(folder: Path) -> bool:
    names = (image_name(path) for path in folder.iterdir())
    return any(name is not None and not name.is_original for name in names)


def _read_folder(folder: Path, model: str, tree: _Models) -> None:
    reconstructions = tree.models.setdefault(model, {})
    shown = tree.shown.setdefault(model, {})
    for path in tree.images_in(folder):
        name = image_name(path)
        if name is None or name.model_index is not None:
            tree.leave_out("expected <id>_<label>_rec or <id>_<label>_ori as its name", path)
            continue
        place = shown if name.is_original else reconstructions
        kept = place.setdefault((name.image_id, name.label), path)
        if kept != path:
            tree.leave_out(f"{below(kept, tree.root)} is the same image", path)


def _clean(folder: Path, tree: _Models) -> dict[str, Path]:
    """Clean originals by id: `<id>[_<label>][_ori]`; reconstructions among them are passed over."""
    read_before = folder.name in tree.models
    found: dict[str, Path] = {}
    for path in (Tree(root=folder) if read_before else tree).images_in(folder):
        name = image_name(path)
        if name is not None and not name.is_original:
            continue
        kept = found.setdefault(id_and_label(path.stem)[0], path)
        if kept != path:
            tree.leave_out(f"{below(kept, tree.root)} has the same id", path)
    return found


def _drop_contradictions(tree: _Models, names: tuple[str, ...]) -> None:
    """Leave out every image of an id that has two class numbers, or of one beyond the list."""
    places = [*tree.models.values(), *tree.shown.values()]
    labels: dict[str, set[int]] = {}
    for image_id, number in (key for files in places for key in files):
        labels.setdefault(image_id, set()).add(number)
    for image_id, path in (tree.clean or {}).items():
        label = id_and_label(path.stem)[1]
        if label is not None:
            labels.setdefault(image_id, set()).add(label)
    for files in places:
        for image_id, number in list(files):
            several = ", ".join(map(str, sorted(labels[image_id])))
            why = f"image {image_id} has the classes {several}"
            if len(labels[image_id]) == 1:
                known = class_name(number, names) is not None
                why = "" if known else f"the list of classes has no class {number}"
            if why:
                tree.leave_out(why, files.pop((image_id, number)))


def _unused_note(clean: Mapping[str, Path], keys: Iterable[Key]) -> list[str]:
    unused = len(set(clean) - {image_id for image_id, _ in keys})
    have = agreeing(unused, "has", "have")
    said = f"{unused} of {counted(len(clean), 'original')} {have} no reconstruction."
    return [said] if unused else []


def _disputed(tree: _Models) -> dict[str, str]:
    """Ids whose _ori images differ between models: they cannot all be the clean original."""
    files: dict[str, list[Path]] = {}
    for shown in tree.shown.values():
        for (image_id, _), path in shown.items():
            files.setdefault(image_id, []).append(path)
    why = (
        "the _ori images of it differ between models, so they are what was attacked and not the "
        "original; give the clean ones with --originals"
    )
    return {image_id: why for image_id, paths in files.items() if len(contents(paths)) > 1}
