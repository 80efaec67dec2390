"""Folders of reconstructions and a folder of originals, matched by name.

    [<attack>/][<model>/]<originals>/[<class>/]<name>.png
    [<attack>/]<model>/[<reconstructions>/][<class>/]<name>.png

Originals lie in a folder with one of the names `ORIGINALS`, one for all models or one a model;
where both are there, the nearer counts. `_ori` or `_rec` behind a name says what the picture is
where no folder does; where the folder of originals is named, `_ori` is what was attacked. A class
is a folder below that of the originals, or comes from a table.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from semsim.attacks import ATTACKS
from semsim.base.alike import alike, partners, written
from semsim.base.errors import DataError
from semsim.base.progress import Report, silent
from semsim.base.registry import setting
from semsim.base.storage.folders import shown
from semsim.base.table_files import ENDINGS, read_texts
from semsim.base.words import counted
from semsim.datasets.folder import MISNAMED
from semsim.images import is_image_file
from semsim.importers.class_names import for_images, read_class_table
from semsim.importers.file_names import Tree, below, contents
from semsim.importers.image_sets import find_sets
from semsim.importers.import_plan import Findings, Pair, Unread, check_crossed, first_problem

_SURE = ("original", "originals", "orig", "ori", "gt", "ground_truth", "groundtruth")
# What may be a class as well; below a folder of originals it is one.
_OR_CLASSES = ("clean", "real", "target", "targets", "reference", "references", "input", "inputs")
ORIGINALS = (*_SURE, *_OR_CLASSES)
RECONSTRUCTIONS = (
    *("reconstruction", "reconstructions", "reconstructed", "recon", "rec", "recs"),
    *("output", "outputs", "result", "results"),
)
_STEM = re.compile(r"(?P<name>.+?)(?:[_-](?P<role>[a-z]+))?", re.IGNORECASE)
Folders = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class VariantFolders:
    """Folders of pictures of the same names: one of originals, one for each model or variant."""

    originals: str = setting(
        "", text="Name of the originals' folder, where it is an unusual one or lies elsewhere."
    )
    dataset: str = setting("unknown", text="Name of the data set.")
    attack: str = setting("unknown", text="Name of the attack, where no folder has it.")
    attacks: str = setting("", text="Folders that are attacks by other names, with commas.")
    classes: Path | None = setting(None, text="CSV or Parquet file with image_id and class_name.")

    def __call__(self, source: Path, name: str, report: Report = silent) -> Findings:
        """One reconstruction set a variant, named as its folder."""
        tree = _read(source, self.originals, name)
        table = self.classes or _class_table(tree)
        said = {} if table is None else read_class_table(table)
        classes = for_images(said, tree.names)
        disputed = _disputed(tree)
        known = {*ATTACKS, *(one.strip() for one in self.attacks.split(","))}
        pairs: list[Pair] = []
        for folders in tree.variants:
            named = _named(folders, known, self.attack)
            pairs += _pairs(tree, folders, named, classes, disputed)
        if not pairs:
            problem = first_problem(tree.unread)
            raise DataError(f"No picture in {source} has an original of its name.{problem}")
        found = find_sets(pairs, dataset=self.dataset, classes=(), report=report)
        return tree.told(found, *_class_notes(tree, classes, table))


@dataclass(kw_only=True)
class _Variants(Tree):
    """Content of a tree of variants, as far as it has been read.

    originals: by the folders they are for and their name, the file of each class. variants: by its
    folders, the files of each name. attacked: as variants, what was attacked, where originals lie
    elsewhere. tables: what may say classes. crossed: pairs that were asked for.
    """

    originals: dict[Folders, dict[str, dict[str, Path]]] = field(default_factory=dict)
    variants: dict[Folders, dict[str, Path]] = field(default_factory=dict)
    attacked: dict[Folders, dict[str, Path]] = field(default_factory=dict)
    tables: list[Path] = field(default_factory=list)
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

    def nearest(self, folders: Folders) -> dict[str, dict[str, Path]]:
        """The originals of a variant by name, the file of each class; the nearer ones count."""
        found: dict[str, dict[str, Path]] = {}
        for depth in range(len(folders) + 1):
            found |= self.originals.get(folders[:depth], {})
        return found


def _read(source: Path, called: str, name: str) -> _Variants:
    if not source.is_dir():
        raise DataError(f"{source} is not a folder.")
    tree, rest = _Variants(root=source), []
    pictures = _pictures(tree)
    elsewhere = Path(called).resolve()
    is_apart = called and elsewhere.is_dir() and not any(called in one for one in pictures.values())
    apart = elsewhere if is_apart else None
    flat = () if apart is None else (name,)  # whose originals lie elsewhere may have no folders
    names = (called,) if called else _names_of_originals(pictures.values())
    for path, inner in pictures.items():
        if apart is not None and path.parent.resolve().is_relative_to(apart):
            continue  # `_take_apart` has it
        if (found := _original(inner, path.stem, names, called)) is not None:
            _take_original(tree, *found, path)
        elif not (inner or flat):
            tree.leave_out("not in a folder", path)
        else:
            rest.append((inner or flat, path))
    if apart is not None:
        _take_apart(tree, apart)
    if not tree.originals:
        there = ", ".join(path.name for path in shown(source) if path.is_dir()) or "none"
        wanted = f"{called!r}" if called else f"of originals ({', '.join(ORIGINALS)})"
        raise DataError(
            f"{source} has no folder {wanted}. It has: {there}. Name the one of originals with "
            "--originals."
        )
    _take_variants(tree, rest)
    if not any(tree.variants.values()):
        raise DataError(f"{source} holds originals and nothing else.")
    return tree


def _pictures(tree: _Variants) -> dict[Path, Folders]:
    """The folders of every picture below the root; what is none is left out."""
    found = {}
    for path in tree.files():
        inner = path.relative_to(tree.root)
        if is_image_file(path):
            found[path] = tuple(map(written, inner.parts[:-1]))
        else:
            beside = len(inner.parts) == 1 and path.suffix.lower() in ENDINGS
            tree.tables += [path] if beside else []
            tree.leave_out("not an image file", path)
    return found


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
            below = folders[place + 1 :]
            return _plain(folders[:place]), below[-1] if below else "", name
    return (folders, "", name) if role in ORIGINALS and folders and not called else None


def _take_apart(tree: _Variants, folder: Path) -> None:
    """The pictures of another folder are originals for all; a folder in it is their class."""
    there = _Variants(root=folder)
    pictures = _pictures(there)
    tree.leave_out(MISNAMED, *(folder / one.where for one in there.unread if one.why == MISNAMED))
    no_class = ORIGINALS if len({*pictures.values()}) == 1 else _SURE  # one folder around all
    for path, inner in pictures.items():
        kind = inner[-1] if inner and inner[-1].lower() not in no_class else ""
        _take_original(tree, (), kind, parted(path.stem)[0], path)


def parted(stem: str) -> tuple[str, str]:
    """The name in a file's name, and the word behind it that says what the picture is."""
    stem = written(stem)
    found = _STEM.fullmatch(stem)
    role = (found["role"] or "").lower() if found else ""
    return (found["name"], role) if found and role in (*ORIGINALS, *RECONSTRUCTIONS) else (stem, "")


def _plain(folders: Folders) -> Folders:
    """`folders` without those that only say that reconstructions lie in them."""
    return tuple(one for one in folders if one.lower() not in RECONSTRUCTIONS)


def _take_original(tree: _Variants, scope: Folders, kind: str, name: str, path: Path) -> None:
    kept = tree.originals.setdefault(scope, {}).setdefault(name, {}).setdefault(kind, path)
    if kept != path:
        tree.leave_out(f"{kept.name} has its name", path)


def _take_variants(tree: _Variants, rest: Iterable[tuple[Folders, Path]]) -> None:
    """Take what is no original, by its folders; each is then called as its original is."""
    classes = {alike(kind) for _, kind, _ in tree.every() if kind}
    for folders, path in rest:
        inner = folders[:-1] if len(folders) > 1 and alike(folders[-1]) in classes else folders
        variant = _plain(inner) or inner[-1:]
        name, role = parted(path.stem)
        files = tree.variants.setdefault(variant, {})
        if role in ORIGINALS:
            files = tree.attacked.setdefault(variant, {})
        kept = files.setdefault(name, path)
        if kept != path:
            tree.leave_out(f"{kept.name} has its name", path)
    originals = tree.names
    for place in (tree.variants, tree.attacked):
        for variant, files in place.items():
            meant = partners(files, originals)
            place[variant] = {meant.get(name, name): path for name, path in files.items()}


def _named(folders: Folders, attacks: Iterable[str], otherwise: str) -> tuple[str, str]:
    """Attack and model that the folders of a variant stand for."""
    for place in (0, -1):
        if len(folders) > 1 and folders[place] in attacks:
            return folders[place], "/".join(folders[1:] if place == 0 else folders[:-1])
    return otherwise, "/".join(folders)


def _pairs(
    tree: _Variants,
    folders: Folders,
    named: tuple[str, str],
    classes: Mapping[str, str],
    disputed: Mapping[str, str],
) -> list[Pair]:
    """Every pair that a variant should have, and those it has beside them.

    named: its attack and model.
    """
    originals, files = tree.nearest(folders), tree.variants[folders]
    attacked = tree.attacked.get(folders, {})
    wanted = sorted({*originals, *files, *attacked})
    tree.crossed += len(wanted)
    check_crossed(len(tree.variants), tree.crossed)
    pairs = []
    for name in wanted:
        of_class = originals.get(name, {})
        if len(of_class) != 1:
            why = disputed.get(name, "no original in the source")
            tree.unread.append(Unread(f"image {name} of {named[1]}", why))
            continue
        ((kind, original),) = of_class.items()
        pairs.append(
            Pair(
                attack=named[0],
                model=named[1],
                image_id=name,
                class_name=classes.get(name) or kind,
                original=original,
                reconstruction=files.get(name),
                attacked=attacked.get(name),
                error=disputed.get(name, ""),
            )
        )
    return pairs


def _disputed(tree: _Variants) -> dict[str, str]:
    """Names that mean different originals in different folders, with the reason."""
    files: dict[str, list[Path]] = {}
    for name, _, path in tree.every():
        files.setdefault(name, []).append(path)
    found = {name: contents(paths).values() for name, paths in files.items()}
    return {
        name: "several originals have this name: "
        + ", ".join(below(path, tree.root) for path in differing)
        for name, differing in found.items()
        if len(differing) > 1
    }


def _class_table(tree: _Variants) -> Path | None:
    """The only table beside the folders that says classes; it is then no longer left out."""
    found = []
    for path in tree.tables:
        with suppress(DataError):
            found += [path] if read_class_table(path) else []
    if len(found) != 1:
        return None
    tree.unread = [one for one in tree.unread if one.where != found[0].name]
    return found[0]


def _class_notes(tree: _Variants, classes: Mapping[str, str], table: Path | None) -> list[str]:
    names = tree.names
    without = names - {name for name, kind, _ in tree.every() if kind} - {*classes}
    strange = sorted({*classes} - names)
    notes = [f"Classes come from {table.name}."] if table in tree.tables and table else []
    if without:
        few = f"The class of {len(without)} of {counted(len(names), 'original')} is not known"
        notes.append(
            f"{'No class names found' if without == names else few}: people can be asked if two "
            "pictures show the same (pair task) or how much they recognise, not what."
        )
    notes += read_texts(table, DataError).remarks if table else ()
    if strange:
        notes.append(f"Classes of images that are not there: {', '.join(strange)}.")
    return notes
