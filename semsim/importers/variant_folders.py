"""Folders of reconstructions and a folder of originals, matched by name.

    [<attack>/][<model>/]<originals>/[<class>/]<name>.png
    [<attack>/]<model>/[<reconstructions>/][<class>/]<name>.png

Originals lie in a folder with one of the names `ORIGINALS`, one for all models or one a model;
where both are there, the nearer counts. `_ori` or `_rec` behind a name says what the picture is
where no folder does; where the folder of originals is named, `_ori` is what was attacked. A class
is a folder below that of the originals, or comes from a table.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from semsim.attacks import ATTACKS
from semsim.base.alike import alike, partners, written
from semsim.base.folders import files_below, shown
from semsim.base.table_files import ENDINGS, read_texts
from semsim.datasets.folder import MISNAMED, is_utf8
from semsim.errors import DataError
from semsim.images import is_image_file
from semsim.importers.class_names import UNKNOWN, all_classes, for_images, read_class_table
from semsim.importers.file_names import Tree, below, digest_of
from semsim.importers.findings import Findings, Pair, Unread, check_crossed, first_problem
from semsim.importers.image_sets import sets_of, slug, with_a_set
from semsim.progress import Report, silent
from semsim.registry import setting
from semsim.words import counted

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
        classes = for_images(said, {name for _, name in tree.originals})
        disputed = _disputed(tree)
        known = {*ATTACKS, *(one.strip() for one in self.attacks.split(","))}
        groups: dict[str, list[Pair]] = {}
        names = _names(tree)
        for folders, wanted in names.items():
            attack, model = _named(folders, known, self.attack)
            pairs = _pairs(tree, folders, wanted, model, classes, disputed)
            groups.setdefault(attack, []).extend(pairs)
        if not any(groups.values()):
            problem = first_problem(tree.unread)
            raise DataError(f"No picture in {source} has an original of its name.{problem}")
        parts = [
            sets_of(
                pairs,
                dataset=self.dataset,
                attack=attack,
                classes=all_classes((), (one.class_name for p in groups.values() for one in p)),
                report=report,
            )
            for attack, pairs in sorted(groups.items())
            if pairs
        ]
        return tree.told(with_a_set(_joined(parts)), *_class_notes(tree, classes, table))


@dataclass(kw_only=True)
class _Variants(Tree):
    """What has been read so far.

    originals: by the folders they are for and their name, the class and file of each. variants: by
    its folders, the files of each name. attacked: as variants, what was attacked, where originals
    lie elsewhere. tables: what may say classes.
    """

    originals: dict[tuple[Folders, str], dict[str, Path]] = field(default_factory=dict)
    variants: dict[Folders, dict[str, Path]] = field(default_factory=dict)
    attacked: dict[Folders, dict[str, Path]] = field(default_factory=dict)
    tables: list[Path] = field(default_factory=list)

    def original(self, folders: Folders, name: str) -> tuple[str, Path] | None:
        """Class and file of the nearest original called `name`; None where there is not one."""
        for depth in range(len(folders), -1, -1):
            found = self.originals.get((folders[:depth], name))
            if found:
                return next(iter(found.items())) if len(found) == 1 else None
        return None


def _names(tree: _Variants) -> dict[Folders, set[str]]:
    """Of each variant every name that it should have, and those it has beside them."""
    by_scope: dict[Folders, set[str]] = {}
    for scope, name in tree.originals:
        by_scope.setdefault(scope, set()).add(name)
    found, total = {}, 0
    for folders, files in tree.variants.items():
        scopes = (by_scope.get(folders[:depth], ()) for depth in range(len(folders) + 1))
        found[folders] = set(files).union(tree.attacked.get(folders, ()), *scopes)
        total += len(found[folders])
        check_crossed(len(tree.variants), total)
    return found


def _read(source: Path, called: str, name: str) -> _Variants:
    if not source.is_dir():
        raise DataError(f"{source} is not a folder.")
    tree, rest = _Variants(root=source), []
    pictures = _pictures(tree)
    apart = None if any(called in folders for folders in pictures.values()) else _elsewhere(called)
    flat = () if apart is None else (name,)  # whose originals lie elsewhere may have no folders
    names = (called,) if called else _names_of_originals(pictures.values())
    for path, inner in _outside(apart, source, pictures).items():
        if (found := _original(inner, path.stem, names, called)) is not None:
            _take_original(tree, *found, path)
        elif not (inner or flat):
            tree.leave_out("not in a folder", path)
        else:
            rest.append((inner or flat, path))
    _take_apart(tree, apart)
    if not tree.originals:
        raise DataError(_without_originals(source, called))
    classes = {alike(name) for files in tree.originals.values() for name in files if name}
    for folders, path in rest:
        _take_variant(tree, folders, classes, path)
    originals = {name for _, name in tree.originals}
    for files in (*tree.variants.values(), *tree.attacked.values()):
        meant = partners(files, originals)
        renamed = {meant.get(name, name): path for name, path in files.items()}
        files.clear()
        files.update(renamed)
    if not any(tree.variants.values()):
        raise DataError(f"{source} holds originals and nothing else.")
    return tree


def _pictures(tree: _Variants) -> dict[Path, Folders]:
    """The folders of every picture below the root; what is none is left out."""
    found = {}
    there = files_below(tree.root)
    tree.hidden += there.hidden
    for path in there.paths:
        inner = path.relative_to(tree.root)
        if not is_utf8(inner):
            tree.leave_out(MISNAMED, path)
        elif is_image_file(path):
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


def _elsewhere(called: str) -> Path | None:
    folder = Path(called).resolve()
    return folder if called and folder.is_dir() else None


def _outside(
    apart: Path | None, source: Path, pictures: Mapping[Path, Folders]
) -> Mapping[Path, Folders]:
    """The pictures that do not lie in the folder of originals, where that is in the source."""
    if apart is None or source.resolve() not in apart.parents:
        return pictures
    return {
        path: folders
        for path, folders in pictures.items()
        if not path.parent.resolve().is_relative_to(apart)
    }


def _take_apart(tree: _Variants, folder: Path | None) -> None:
    """The pictures of another folder are originals for all; a folder in it is their class."""
    if folder is None:
        return
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
    kept = tree.originals.setdefault((scope, name), {}).setdefault(kind, path)
    if kept != path:
        tree.leave_out(f"{kept.name} has its name", path)


def _take_variant(tree: _Variants, folders: Folders, classes: set[str], path: Path) -> None:
    inner = folders[:-1] if len(folders) > 1 and alike(folders[-1]) in classes else folders
    variant = _plain(inner) or inner[-1:]
    name, role = parted(path.stem)
    files = tree.variants.setdefault(variant, {})
    if role in ORIGINALS:
        files = tree.attacked.setdefault(variant, {})
    kept = files.setdefault(name, path)
    if kept != path:
        tree.leave_out(f"{kept.name} has its name", path)


def _without_originals(source: Path, called: str) -> str:
    there = ", ".join(path.name for path in shown(source) if path.is_dir()) or "none"
    wanted = f"{called!r}" if called else f"of originals ({', '.join(ORIGINALS)})"
    return (
        f"{source} has no folder {wanted}. It has: {there}. Name the one of originals with "
        "--originals."
    )


def _named(folders: Folders, attacks: Iterable[str], otherwise: str) -> tuple[str, str]:
    """Attack and model that the folders of a variant stand for."""
    for place in (0, -1):
        if len(folders) > 1 and folders[place] in attacks:
            return folders[place], "/".join(folders[1:] if place == 0 else folders[:-1])
    return otherwise, "/".join(folders)


def _pairs(
    tree: _Variants,
    folders: Folders,
    wanted: Iterable[str],
    model: str,
    classes: Mapping[str, str],
    disputed: Mapping[str, str],
) -> list[Pair]:
    pairs = []
    for name in sorted(wanted):
        found = tree.original(folders, name)
        if found is None:
            why = disputed.get(name, "no original in the source")
            tree.unread.append(Unread(f"image {name} of {model}", why))
            continue
        pairs.append(
            Pair(
                model=model,
                image_id=name,
                class_name=classes.get(name) or found[0] or UNKNOWN,
                original=found[1],
                reconstruction=tree.variants[folders].get(name),
                attacked=tree.attacked.get(folders, {}).get(name),
                error=disputed.get(name, ""),
            )
        )
    return pairs


def _disputed(tree: _Variants) -> dict[str, str]:
    """Names that mean different originals in different folders, with the reason."""
    files: dict[str, dict[str, list[Path]]] = {}
    for (_, name), by_class in tree.originals.items():
        for path in by_class.values():
            if digest := digest_of(path):
                files.setdefault(name, {}).setdefault(digest, []).append(path)
    return {
        name: (
            "several originals have this name: "
            + ", ".join(below(paths[0], tree.root) for paths in found.values())
        )
        for name, found in files.items()
        if len(found) > 1
    }


def _class_table(tree: _Variants) -> Path | None:
    """The only table beside the folders that says classes; it is then no longer left out."""
    found = [path for path in tree.tables if _says_classes(path)]
    if len(found) != 1:
        return None
    tree.unread = [one for one in tree.unread if one.where != found[0].name]
    return found[0]


def _says_classes(path: Path) -> bool:
    try:
        return bool(read_class_table(path))
    except DataError:
        return False


def _joined(parts: Sequence[Findings]) -> Findings:
    """The sets of all attacks as one; a folder says the attack where there are several."""
    if len(parts) == 1:
        return parts[0]
    sets = [
        replace(found, folder=f"{slug(found.attack)}__{found.folder}")
        for part in parts
        for found in part.sets
    ]
    counts = {name: sum(part.counts[name] for part in parts) for name in parts[0].counts}
    originals = {p.image_id for found in sets for p in found.pairs if not p.error}
    return Findings(
        sets=tuple(sets),
        counts={
            "attacks": sum(bool(part.sets) for part in parts),
            **counts,
            "models": len({found.model for found in sets}),
            "originals": len(originals),
        },
        unread=tuple(one for part in parts for one in part.unread),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        lost=tuple(dict.fromkeys(one for part in parts for one in part.lost)),
    )


def _class_notes(tree: _Variants, classes: Mapping[str, str], table: Path | None) -> list[str]:
    names = {name: set(found) for (_, name), found in tree.originals.items()}
    without = [name for name, found in names.items() if name not in classes and found <= {""}]
    strange = sorted(set(classes) - set(names))
    notes = [f"Classes come from {table.name}."] if table in tree.tables and table else []
    if without:
        notes.append(
            f"The class of {len(without)} of {counted(len(names), 'original')} is not known "
            f"({UNKNOWN!r}): people can be asked if two pictures show the same (pair task) or how "
            "much they recognise, not what."
        )
    notes += read_texts(table, DataError).remarks if table else ()
    if strange:
        notes.append(f"Classes of images that are not there: {', '.join(strange)}.")
    return notes
