"""Folders of pictures: four layouts, and what each level of folders and each name says in them.

    train-with-ori    [-]<id>/<id>_<label>_ori.png           the original
                      <id>/<id>_<label>_rec_<k>_<m>.png      by model m, recognisable
                      -<id>/<id>_<label>_rec_<k>_<m>.png     by model m, not recognisable; k, the
                      wrong answers among three annotators, does not decide the folder
    model-folders     <model>/<id>_<label>_rec.png           what an attack made
                      <model>[_ori]/<id>_<label>_ori.png     the original, or what was attacked
    variant-folders   [<attack>/][<model>/]<originals>/[<class>/]<name>.png
                      [<attack>/]<model>/[<reconstructions>/][<class>/]<name>.png
    class-folders     [train|test/]<class>/<name>.png        still to be attacked

Each importer takes the pictures of its layout from a `Tree`, which keeps what it leaves out and
why, and pairs reconstructions with originals.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from semsim.attacks import ATTACKS
from semsim.base.alike import alike, class_names, partners, written
from semsim.base.errors import DataError
from semsim.base.picture_files import notes_on
from semsim.base.progress import Report, silent
from semsim.base.registry import setting
from semsim.base.storage.folders import SPLITS, shown, splits_in
from semsim.base.storage.records import require_folder
from semsim.base.table_files import ENDINGS, for_images, read_texts, truth
from semsim.base.words import agreeing, counted, listed
from semsim.datasets.folder import MISNAMED, Folder, namesakes
from semsim.images import is_image_file
from semsim.importers.class_names import (
    CLASS_LIST,
    class_name,
    read_class_names,
    read_class_table,
    read_lines,
)
from semsim.importers.human_tables import tables_of_labels
from semsim.importers.import_plan import (
    Findings,
    FoundPictures,
    Pair,
    Size,
    Unread,
    check_crossed,
    find_sets,
    labelled_paths,
    looked_at,
    sides,
)
from semsim.importers.trees import (
    NUMBERED,
    ORIGINAL,
    RECONSTRUCTION,
    ImageName,
    Tree,
    below,
    id_and_label,
    image_name,
)
from semsim.weights import sha256_of

RELEASED = "released"  # the label that folders of train-with-ori say
_TREE = "train_with_ori"
_SURE = ("original", "originals", "orig", "ori", "gt", "ground_truth", "groundtruth")
# What may be a class as well; below a folder of originals it is one.
_OR_CLASSES = ("clean", "real", "target", "targets", "reference", "references", "input", "inputs")
ORIGINALS = (*_SURE, *_OR_CLASSES)
RECONSTRUCTIONS = (
    *("reconstruction", "reconstructions", "reconstructed", "recon", "rec", "recs"),
    *("output", "outputs", "result", "results"),
)
# Behind a name; others of these words, as real, may be of any picture.
_OF_AN_ATTACK = {"ori", "orig", "gt", "rec", "recon", "reconstruction", "reconstructed"}
_STEM = re.compile(r"(?P<name>.+?)(?:[_-](?P<role>[a-z]+))?", re.IGNORECASE)
_ATTACKED = (
    "the _ori images of it differ between models, so they are what was attacked and not the "
    "original; give the clean ones with --originals"
)
_LEAST = 2  # classes: with one there is nothing to tell apart
Folders = tuple[str, ...]
Key = tuple[str, str]  # model and id
Numbered = tuple[str, int]  # id and class number


def _differing(files: Iterable[tuple[str, Path]]) -> dict[str, list[Path]]:
    """By name, the first file of each content, where those of a name differ.

    A file that cannot be read is passed over: whoever opens it says why.
    """
    contents: dict[str, dict[str, Path]] = {}
    for name, path in files:
        with suppress(OSError):
            contents.setdefault(name, {}).setdefault(sha256_of(path), path)
    return {name: [*paths.values()] for name, paths in contents.items() if len(paths) > 1}


@dataclass(frozen=True, kw_only=True)
class TrainWithOri:
    """The SemSim authors' tree: <id>/ recognisable, -<id>/ not, one model number a file."""

    # Beside the tree may lie class_names.txt and folder_names.txt, the names of classes and models;
    # ids.csv, which in an export of a study says who voted; and others/, images to train against.
    dataset: str = setting("cifar100", text="Name of the data set.")
    attack: str = setting("invgrad", text="Name of the attack.")
    classes: Path | None = setting(None, text=CLASS_LIST)
    folder_names: Path | None = setting(
        None, text="Text file of model names, one a line, from model 1 on."
    )

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """One reconstruction set a model, and the label `human:released` of every image in them."""
        inner = source / _TREE
        root = inner if inner.is_dir() else source
        names = read_class_names(self.classes or _beside(root, "class_names.txt"))
        listed_models = self.folder_names or _beside(root, "folder_names.txt")
        models = () if listed_models is None else read_lines(listed_models)
        tree = _Published(root=root, names=names, models=models)
        tree.read()
        pairs = tree.pairs(self.attack)
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
    return path if root.name == _TREE and path.is_file() else None


def _is_simulated(root: Path) -> bool:
    """Return whether an export of a study records that programs voted."""
    ids = _beside(root, "ids.csv")
    cells = pd.DataFrame() if ids is None else read_texts(ids, DataError).cells
    return "simulated" in cells and any(map(truth, cells["simulated"]))


def _others_note(root: Path) -> list[str]:
    others = root.parent / "others"
    if not others.is_dir():
        return []
    files = counted(sum(path.is_file() for path in others.rglob("*")), "file")
    return [f"others/ beside the tree is not imported: {files} to train against, unlabelled."]


@dataclass(kw_only=True)
class _Published(Tree):
    """Content of a tree of the SemSim authors, as far as it has been read.

    Attributes:
        names, models: The lists of classes and of models, empty where there is none.
        originals: File by id.
        classes: Class name by id, as the original says it.
        reconstructions: File by model and id.
    """

    names: tuple[str, ...]
    models: tuple[str, ...]
    originals: dict[str, Path] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    reconstructions: dict[Key, Path] = field(default_factory=dict)

    def read(self) -> None:
        """Read everything; `DataError` where there is no original or no reconstruction."""
        found: dict[Key, list[tuple[str, Path]]] = defaultdict(list)
        for folder in self.top():
            for path, name in self.named_images(folder, ORIGINAL, NUMBERED):
                self._sort_in(path, name, found)
        for (model, image_id), files in found.items():
            self._settle(model, image_id, files)
        if not self.reconstructions:
            raise self.nothing(
                f"{self.root} holds no <id>/{ORIGINAL} image with a {NUMBERED} of it."
            )

    def _sort_in(
        self, path: Path, parsed: ImageName, found: Mapping[Key, list[tuple[str, Path]]]
    ) -> None:
        """Take an original, or put a reconstruction to those of its model and id."""
        if parsed.image_id != path.parent.name.removeprefix("-"):
            self.leave_out(f"is of image {parsed.image_id}, in the wrong folder", path)
        elif (name := class_name(parsed.label, self.names)) is None:
            self.leave_out(f"the list of classes has no class {parsed.label}", path)
        elif parsed.is_original:
            self.take(self.originals, parsed.image_id, path, "is an original of it already")
            self.classes.setdefault(parsed.image_id, name)
        elif (model := self._model_name(parsed.model_index)) is None:
            self.leave_out(f"the list of models has no line {parsed.model_index}", path)
        else:
            found[model, parsed.image_id].append((name, path))

    def _model_name(self, index: int | None) -> str | None:
        """The model's line in the list, or its number; None for a line there is not."""
        if not self.models or not index:
            return f"model-{index:02d}" if index else None
        return self.models[index - 1] if index <= len(self.models) else None

    def _settle(self, model: str, image_id: str, files: Sequence[tuple[str, Path]]) -> None:
        """Take the one file of a model and id, unless something contradicts it.

        Args:
            files: Those there are, each behind the name of the class that it says.
        """
        known = self.classes.get(image_id)
        for said, path in files:
            others = ", ".join(below(other, self.root) for _, other in files if other != path)
            if others:
                self.leave_out(f"the same model and image as {others}", path)
            elif known is None:
                self.leave_out("its original is missing", path)
            elif said != known:
                self.leave_out(f"says class {said}, its original {known}", path)
            else:
                self.reconstructions[model, image_id] = path

    def pairs(self, attack: str) -> list[Pair]:
        """Every original with every model, whether or not there is a file."""
        models = sorted({model for model, _ in self.reconstructions})
        check_crossed(len(models), len(models) * len(self.originals))
        return [
            Pair(
                attack=attack,
                model=model,
                image_id=image_id,
                class_name=self.classes[image_id],
                original=original,
                reconstruction=self.reconstructions.get((model, image_id)),
            )
            for model in models
            for image_id, original in self.originals.items()
        ]


@dataclass(frozen=True, kw_only=True)
class ModelFolders:
    """A folder a model of <id>_<label>_rec images, with _ori images or a folder of originals."""

    # _ori images are what was attacked, which training augmentation may have changed; with a folder
    # of clean originals they are kept as the attacked images.
    originals: Path | None = setting(
        None, text="Folder of clean originals; _ori images are then the attacked ones."
    )
    dataset: str = setting("unknown", text="Name of the data set.")
    attack: str = setting("unknown", text="Name of the attack.")
    classes: Path | None = setting(None, text=CLASS_LIST)

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """One reconstruction set a model."""
        names = read_class_names(self.classes)
        if self.originals is not None:
            require_folder(self.originals, DataError, " of originals")
        tree = _Models(root=source)
        tree.read(self.originals, names)
        pairs = tree.pairs(self.attack, names)
        if not pairs:
            why = f"{source} holds no <model>/{RECONSTRUCTION} image that can be used."
            raise tree.nothing(why)
        found = find_sets(pairs, dataset=self.dataset, classes=names, report=report)
        return tree.told(found, *tree.unused_note())


@dataclass(kw_only=True)
class _Models(Tree):
    """Files that have been read so far, by model, id and class number.

    Attributes:
        shown: _ori images.
        clean: The originals by id, where they lie apart.
    """

    models: dict[str, dict[Numbered, Path]] = field(default_factory=dict)
    shown: dict[str, dict[Numbered, Path]] = field(default_factory=dict)
    clean: dict[str, Path] | None = None

    def read(self, originals: Path | None, names: tuple[str, ...]) -> None:
        """Read everything, clean originals too;

        Args:
            names: The list of classes.
        """
        folders = self.top()
        called = {folder.name for folder in folders}
        for folder in folders:
            base = folder.name.removesuffix("_ori")
            if base != folder.name and base in called:
                self._read_folder(folder, base)
            elif originals is None or not folder.samefile(originals) or _reconstructs(folder):
                self._read_folder(folder, folder.name)
        for model in [model for model, files in self.models.items() if not files]:
            self.leave_out(f"holds no {RECONSTRUCTION} image", self.root / model)
            del self.models[model], self.shown[model]
        if originals is not None:
            self.clean = self._clean(originals)
        self._drop_contradictions(names)

    def _read_folder(self, folder: Path, model: str) -> None:
        files = self.models.setdefault(model, {})
        shown_files = self.shown.setdefault(model, {})
        for path, name in self.named_images(folder, RECONSTRUCTION, ORIGINAL):
            place = shown_files if name.is_original else files
            self.take(place, (name.image_id, name.label), path, "is the same image")

    def _clean(self, folder: Path) -> dict[str, Path]:
        """Clean originals by id: `<id>[_<label>][_ori]`; reconstructions there are passed over."""
        read_before = folder.name in self.models
        found: dict[str, Path] = {}
        for path in (Tree(root=folder) if read_before else self).images_in(folder):
            name = image_name(path)
            if name is None or name.is_original:
                self.take(found, id_and_label(path.stem)[0], path, "has the same id")
        return found

    def _drop_contradictions(self, names: tuple[str, ...]) -> None:
        """Leave out every image of an id with two class numbers, or with one beyond the list."""
        places = [*self.models.values(), *self.shown.values()]
        said = [id_and_label(path.stem) for path in (self.clean or {}).values()]
        labels: dict[str, set[int]] = defaultdict(set)
        for image_id, number in (*(key for files in places for key in files), *said):
            labels[image_id] |= set() if number is None else {number}
        for files in places:
            for image_id, number in list(files):
                why = ""
                if len(labels[image_id]) > 1:
                    several = ", ".join(map(str, sorted(labels[image_id])))
                    why = f"image {image_id} has the classes {several}"
                elif class_name(number, names) is None:
                    why = f"the list of classes has no class {number}"
                if why:
                    self.leave_out(why, files.pop((image_id, number)))

    @property
    def keys(self) -> list[Numbered]:
        """Ids and class numbers of all reconstructions, each once."""
        return [*dict.fromkeys(key for files in self.models.values() for key in files)]

    def pairs(self, attack: str, names: tuple[str, ...]) -> list[Pair]:
        """Every image that a model was attacked with, for every model."""
        disputed: Collection[str] = ()
        if self.clean is None:
            every = (one for files in self.shown.values() for one in files.items())
            disputed = _differing((image_id, path) for (image_id, _), path in every)
        check_crossed(len(self.models), len(self.models) * len(self.keys))
        return [
            Pair(
                attack=attack,
                model=model,
                image_id=key[0],
                class_name=known,
                original=own.get(key) if self.clean is None else self.clean.get(key[0]),
                reconstruction=self.models[model].get(key),
                attacked=None if self.clean is None else own.get(key),
                error=_ATTACKED if key[0] in disputed else "",
            )
            for model, own in self.shown.items()
            for key in dict.fromkeys([*self.keys, *own])
            if (known := class_name(key[1], names)) is not None
        ]

    def unused_note(self) -> list[str]:
        """Return a note on the clean originals of which there is no reconstruction."""
        clean = self.clean or {}
        unused = len(set(clean) - {image_id for image_id, _ in self.keys})
        have = agreeing(unused, "has", "have")
        said = f"{unused} of {counted(len(clean), 'original')} {have} no reconstruction."
        return [said] if unused else []


def _reconstructs(folder: Path) -> bool:
    """Return whether there is a reconstruction among the files of a folder."""
    names = (image_name(path) for path in folder.iterdir())
    return any(name is not None and not name.is_original for name in names)


@dataclass(frozen=True, kw_only=True)
class VariantFolders:
    """Folders of pictures of the same names: one of originals, one for each model or variant."""

    # Originals lie in a folder with one of the names `ORIGINALS`, one for all models or one each;
    # where both are there, the nearer counts. `_ori` or `_rec` behind a name says what the picture
    # is where no folder does; where the folder of originals is named, `_ori` is what was attacked.
    # A class is a folder below that of the originals, or comes from a table.
    originals: Path | None = setting(
        None, text="Folder of the originals, where its name is unusual or it lies elsewhere."
    )
    dataset: str = setting("unknown", text="Name of the data set.")
    attack: str = setting("unknown", text="Name of the attack, where no folder has it.")
    attacks: str = setting("", text="Folders that are attacks by other names, with commas.")
    classes: Path | None = setting(
        None, text="File of class names: a table of image_id and class_name."
    )

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """One reconstruction set a variant, named as its folder."""
        tree = _Variants(root=source)
        tree.read(str(self.originals or ""), name)
        table = self.classes or tree.class_table()
        tree.classes = for_images({} if table is None else read_class_table(table), tree.names)
        known = {*ATTACKS, *(one.strip() for one in self.attacks.split(","))}
        named = {folders: _named(folders, known, self.attack) for folders in tree.variants}
        pairs = [pair for folders, names in named.items() for pair in tree.pairs(folders, *names)]
        if not pairs:
            raise tree.nothing(f"No picture in {source} has an original of its name.")
        found = find_sets(pairs, dataset=self.dataset, classes=(), report=report)
        return tree.told(found, *tree.class_notes(table))


@dataclass(kw_only=True)
class _Variants(Tree):
    """Content of a tree of variants, as far as it has been read.

    Attributes:
        originals: By the folders they are for and their name, the file of each class.
        variants: By its folders, the files of each name.
        attacked: As variants, what was attacked, where originals lie elsewhere.
        tables: What may say classes.
        classes: As a table says them, by name.
        crossed: Pairs that were asked for.
    """

    originals: dict[Folders, dict[str, dict[str, Path]]] = field(default_factory=dict)
    variants: dict[Folders, dict[str, Path]] = field(default_factory=dict)
    attacked: dict[Folders, dict[str, Path]] = field(default_factory=dict)
    tables: list[Path] = field(default_factory=list)
    classes: Mapping[str, str] = field(default_factory=dict)
    crossed: int = 0

    def every(self) -> Iterator[tuple[str, str, Path]]:
        """Name, class and file of each original."""
        for of_name in self.originals.values():
            for name, of_class in of_name.items():
                for kind, path in of_class.items():
                    yield name, kind, path

    @property
    def names(self) -> set[str]:
        """Names of the originals."""
        return {name for name, _, _ in self.every()}

    def read(self, called: str, name: str) -> None:
        """Read everything; `DataError` where there are no originals or nothing else.

        Args:
            called: The folder of originals by its name, or by its path where it lies elsewhere; ""
                for one of the usual names.
            name: That of the import, and of a model that has no folder.
        """
        require_folder(self.root, DataError)
        rest = []
        pictures = self._pictures()
        elsewhere = Path(called).resolve()
        named = any(called in inner for inner in pictures.values())
        apart = elsewhere if called and elsewhere.is_dir() and not named else None
        flat = () if apart is None else (name,)  # whose originals lie elsewhere may have no folders
        names = (called,) if called else _names_of_originals(pictures.values())
        for path, inner in pictures.items():
            if apart is not None and path.parent.resolve().is_relative_to(apart):
                continue  # `_take_apart` has it
            if (found := _original(inner, path.stem, names, called)) is not None:
                self._take_original(*found, path)
            elif not (inner or flat):
                self.leave_out("not in a folder", path)
            else:
                rest.append((inner or flat, path))
        if apart is not None:
            self._take_apart(apart)
        if not self.originals:
            there = ", ".join(path.name for path in shown(self.root) if path.is_dir()) or "none"
            wanted = f"{called!r}" if called else f"of originals ({', '.join(ORIGINALS)})"
            raise DataError(
                f"{self.root} has no folder {wanted}. It has: {there}. Name the one of originals "
                "with --originals."
            )
        self._take_variants(rest)
        if not any(self.variants.values()):
            raise DataError(f"{self.root} holds originals and nothing else.")

    def _pictures(self) -> dict[Path, Folders]:
        """The folders of every picture below the root; what is none is left out."""
        found = {}
        for path in self.files():
            inner = path.relative_to(self.root)
            if is_image_file(path):
                found[path] = tuple(map(written, inner.parts[:-1]))
            else:
                beside = len(inner.parts) == 1 and path.suffix.lower() in ENDINGS
                self.tables += [path] if beside else []
                self.leave_out("not an image file", path)
        return found

    def _take_original(self, scope: Folders, kind: str, name: str, path: Path) -> None:
        of_class = self.originals.setdefault(scope, {}).setdefault(name, {})
        self.take(of_class, kind, path, "has its name", whole=False)

    def _take_apart(self, folder: Path) -> None:
        """The pictures of another folder are originals for all; a folder in it is their class."""
        there = _Variants(root=folder)
        pictures = there._pictures()
        odd = [folder / one.where for one in there.unread if one.why == MISNAMED]
        self.leave_out(MISNAMED, *odd)
        no_class = ORIGINALS if len({*pictures.values()}) == 1 else _SURE  # one folder around all
        for path, inner in pictures.items():
            kind = inner[-1] if inner and inner[-1].lower() not in no_class else ""
            self._take_original((), kind, parted(path.stem)[0], path)

    def _take_variants(self, rest: Iterable[tuple[Folders, Path]]) -> None:
        """Take what is no original, by its folders; each is then called as its original is."""
        classes = {alike(kind) for _, kind, _ in self.every() if kind}
        for folders, path in rest:
            of_class = len(folders) > 1 and alike(folders[-1]) in classes
            inner = folders[:-1] if of_class else folders
            variant = _plain(inner) or inner[-1:]
            name, role = parted(path.stem)
            files = self.variants.setdefault(variant, {})
            if role in ORIGINALS:
                files = self.attacked.setdefault(variant, {})
            self.take(files, name, path, "has its name", whole=False)
        originals = self.names
        for place in (self.variants, self.attacked):
            for variant, files in place.items():
                meant = partners(files, originals)
                place[variant] = {meant.get(name, name): path for name, path in files.items()}

    @cached_property
    def disputed(self) -> dict[str, str]:
        """Names that mean different originals in different folders, with the reason."""
        found = _differing((name, path) for name, _, path in self.every())
        return {
            name: "several originals have this name: "
            + ", ".join(below(path, self.root) for path in paths)
            for name, paths in found.items()
        }

    def pairs(self, folders: Folders, attack: str, model: str) -> list[Pair]:
        """Every pair that the variant in `folders` should have, and those it has beside them."""
        originals: dict[str, dict[str, Path]] = {}
        for depth in range(len(folders) + 1):  # the nearer ones count
            originals |= self.originals.get(folders[:depth], {})
        files, attacked = self.variants[folders], self.attacked.get(folders, {})
        wanted = sorted({*originals, *files, *attacked})
        self.crossed += len(wanted)
        check_crossed(len(self.variants), self.crossed)
        pairs = []
        for name in wanted:
            of_class = originals.get(name, {})
            if len(of_class) != 1:
                why = self.disputed.get(name, "no original in the source")
                self.unread.append(Unread(f"image {name} of {model}", why))
                continue
            ((kind, original),) = of_class.items()
            pairs.append(
                Pair(
                    attack=attack,
                    model=model,
                    image_id=name,
                    class_name=self.classes.get(name) or kind,
                    original=original,
                    reconstruction=files.get(name),
                    attacked=attacked.get(name),
                    error=self.disputed.get(name, ""),
                )
            )
        return pairs

    def class_table(self) -> Path | None:
        """The only table beside the folders that says classes; it is then no longer left out."""
        found = []
        for path in self.tables:
            with suppress(DataError):
                found += [path] if read_class_table(path) else []
        if len(found) != 1:
            return None
        self.unread = [one for one in self.unread if one.where != found[0].name]
        return found[0]

    def class_notes(self, table: Path | None) -> list[str]:
        """Return notes on where classes come from, and on those that are missing or too many."""
        names = self.names
        without = names - {name for name, kind, _ in self.every() if kind} - {*self.classes}
        strange = sorted({*self.classes} - names)
        notes = [f"Classes come from {table.name}."] if table in self.tables and table else []
        if without:
            few = f"The class of {len(without)} of {counted(len(names), 'original')} is not known"
            notes.append(
                f"{'No class names found' if without == names else few}: people can be asked if "
                "two pictures show the same (pair task) or how much they recognise, not what."
            )
        notes += read_texts(table, DataError).remarks if table else ()
        if strange:
            notes.append(f"Classes of images that are not there: {', '.join(strange)}.")
        return notes


def _names_of_originals(every: Iterable[Folders]) -> tuple[str, ...]:
    """`ORIGINALS` without those that are classes here."""
    lower = {tuple(one.lower() for one in folders) for folders in every}
    classes = {one[-1] for one in lower if {*ORIGINALS} & {*one[:-1]}} & {*_OR_CLASSES}
    return tuple(name for name in ORIGINALS if name not in classes)


def _original(
    folders: Folders, stem: str, names: Sequence[str], called: str
) -> tuple[Folders, str, str] | None:
    """The folders an original is for, its class and its name; None for another picture."""
    name, role = parted(stem)
    for place in range(len(folders) - 1, -1, -1):
        if folders[place] in names or (not called and folders[place].lower() in names):
            inner = folders[place + 1 :]
            return _plain(folders[:place]), inner[-1] if inner else "", name
    return (folders, "", name) if role in ORIGINALS and folders and not called else None


def parted(stem: str) -> tuple[str, str]:
    """The name in a file's name, and the word behind it that says what the picture is."""
    stem = written(stem)
    found = _STEM.fullmatch(stem)
    role = (found["role"] or "").lower() if found else ""
    return (found["name"], role) if found and role in (*ORIGINALS, *RECONSTRUCTIONS) else (stem, "")


def _plain(folders: Folders) -> Folders:
    """`folders` without those that only say that reconstructions lie in them."""
    return tuple(one for one in folders if one.lower() not in RECONSTRUCTIONS)


def _named(folders: Folders, attacks: Iterable[str], otherwise: str) -> tuple[str, str]:
    """Attack and model that the folders of a variant stand for."""
    for place in (0, -1):
        if len(folders) > 1 and folders[place] in attacks:
            return folders[place], "/".join(folders[1:] if place == 0 else folders[:-1])
    return otherwise, "/".join(folders)


@dataclass(frozen=True, kw_only=True)
class ClassFolders:
    """Pictures still to be attacked: a folder a class, or train and test with these in them."""

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """The pictures as the data set `folder` reads them; no reconstructions."""
        tree = Tree(root=source)
        files = [path for folder in _classes(tree) for path in tree.images_in(folder)]
        for path in files:
            if image_name(path) is not None or parted(path.stem)[1] in _OF_AN_ATTACK:
                raise DataError(
                    f"{below(path, source)} is named as a picture of an attack; none is still to "
                    "be attacked."
                )
        again = namesakes(files, source)
        for path, first in again.items():
            tree.leave_out(f"it would be called as {below(first, source)} is", path)
        known, broken = looked_at((path for path in files if path not in again), report)
        for path, why in broken.items():
            tree.leave_out(why, path)
        names = class_names(sorted({path.parent.name for path in known}))
        classes = tuple(sorted(set(names.values())))
        if len(classes) < _LEAST:
            raise tree.nothing(
                f"{source} holds pictures of {counted(len(classes), 'class', 'classes')} in "
                f"<class>/<image>; a classifier needs {_LEAST}. Folders of splits are called train "
                "and test."
            )
        counts = {"pictures": len(known), "classes": len(classes)}
        pictures = FoundPictures(root=source, paths=tuple(known), classes=classes)
        found = Findings(pictures=pictures, counts=counts, unread=())
        sizes = {sight.size for sight in known.values()}
        notes = [_parts_note(source, known), *_same_note(names), *_sizes_note(sizes)]
        notes += notes_on({below(path, source): [sight] for path, sight in known.items()})
        return tree.told(found, *notes)


def _classes(tree: Tree) -> list[Path]:
    """The folders of classes; `DataError` where one is named as originals or what came of them."""
    tops = tree.top()
    if splits := splits_in(tree.root):
        beside = [path for path in tops if path not in splits.values()]
        called = " and ".join(path.name for path in splits.values())
        tree.leave_out(f"beside {called}", *beside)
        return [folder for split in splits.values() for folder in tree.top(split)]
    taken = [path.name for path in tops if path.name.lower() in {*ORIGINALS, *RECONSTRUCTIONS}]
    if taken:
        raise DataError(
            f"{tree.root} has a folder {taken[0]}, so that its pictures are taken for those of an "
            "attack. If that is a class, give it another name."
        )
    return tops


def _parts_note(source: Path, known: Collection[Path]) -> str:
    """Count the pictures of each split; `DataError` for none."""
    parts = []
    for split in SPLITS:
        there = sum(path in known for path in Folder(root=str(source)).paths(split))
        if not there:
            raise DataError(
                f"None of the pictures in {source} that are for the split {split!r} opens."
            )
        parts.append(counted(there, "picture"))
    usual = f", unless you choose another share than {Folder().test_share:g}"
    share = "" if splits_in(source) else usual
    return f"{parts[0]} to train targets on; {parts[1]} to test them on and to attack{share}."


def _same_note(names: Mapping[str, str]) -> list[str]:
    """Folders that are one class, as their names are the same word."""
    folders: dict[str, list[str]] = {}
    for folder, name in names.items():
        folders.setdefault(name, []).append(folder)
    told = [f"{' and '.join(one)} are one class" for one in folders.values() if one[1:]]
    return [f"{listed(told)}: their names are the same word."] if told else []


def _sizes_note(sizes: set[Size]) -> list[str]:
    """Return a note on the resizing of pictures of `sizes`, (H, W) each; empty for none."""
    least, most = (find(sizes, key=math.prod) for find in (min, max))
    side = Folder().size
    if sizes == {(side, side)}:
        return []
    several = sides(least) if least == most else f"{sides(least)} to {sides(most)}"
    become = f"each becomes {side}×{side}, whatever its shape, or the size that you choose"
    return [f"They are {several} pixels; {become}."]
