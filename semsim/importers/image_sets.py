"""From pairs of files to reconstruction sets: every image is looked at before any is copied."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from semsim.base.alike import alike, written
from semsim.base.errors import DataError
from semsim.base.picture_files import Sight, notes_on, read_picture
from semsim.base.progress import Progress, Report
from semsim.base.storage.versions import software_versions
from semsim.datasets.folder import class_names
from semsim.importers.class_names import all_classes
from semsim.importers.import_plan import (
    FOLDERS,
    Findings,
    FoundSet,
    Key,
    Pair,
    Size,
    Unread,
    first_problem,
    sides,
)
from semsim.sets.image import SetImage
from semsim.sets.writer import picture_format, write_set
from semsim.weights import sha256_of

EVERY = 100  # images between two reports
_LONGEST = 200  # bytes of a folder's name; disks have room for 255


def find_sets(
    pairs: Sequence[Pair], *, dataset: str, classes: tuple[str, ...], report: Report
) -> Findings:
    """One set an attack and model, in order of name, with every pair that has been asked for.

    classes: the list of them, where there is one. A set has one size; two may differ. A pair that
    cannot be judged stays in its set without a reconstruction: an image is missing, broken, of more
    than 8 bits a channel or partly transparent, of another size than its original, or than the set,
    whose size is the commonest. A model of which no pair is left is no set, but among the lost.
    Raises `DataError` where no pair is left at all.
    """
    listed = all_classes(classes, (pair.class_name for pair in pairs))
    names = class_names([*listed, *(pair.class_name for pair in pairs)])
    pairs = [replace(pair, class_name=names[pair.class_name]) for pair in pairs]
    sights, broken = looked_at((path for pair in pairs for path in pair.files.values()), report)
    usual = _usual(pairs, sights)
    checked = [_checked(pair, sights, broken, usual.get(pair.key)) for pair in pairs]
    unread = tuple(Unread(_called(pair), pair.error) for pair in checked if pair.error)
    groups: dict[Key, list[Pair]] = {}
    for pair in sorted(checked, key=lambda pair: pair.image_id):
        groups.setdefault(pair.key, []).append(pair)
    kept = sorted(key for key, own in groups.items() if not all(pair.error for pair in own))
    if not kept:
        raise DataError(
            "No image has both an original and a reconstruction that can be used."
            + first_problem(unread)
        )
    several = len({pair.attack for pair in pairs}) > 1
    folders = _folder_names(kept, several)
    sets = tuple(
        FoundSet(
            folder=folders[key],
            model=key[1],
            dataset=dataset,
            attack=key[0],
            classes=tuple(dict.fromkeys(names[one] for one in listed)),
            size=usual[key],
            pairs=tuple(groups[key]),
        )
        for key in kept
    )
    return Findings(
        sets=sets,
        counts=({"attacks": len({one.attack for one in sets})} if several else {}) | _counts(sets),
        unread=unread,
        notes=tuple(_notes(checked, sights)),
        lost=_lost(checked, kept),
    )


def _called(pair: Pair) -> str:
    return f"image {pair.image_id} of {pair.model}"


def _notes(pairs: Iterable[Pair], sights: Mapping[Path, Sight]) -> list[str]:
    """`notes_on` the pairs that can be used."""
    seen: dict[str, list[Sight]] = {}
    for pair in (pair for pair in pairs if not pair.error):
        seen.setdefault(_called(pair), []).extend(sights[path] for path in pair.files.values())
    return notes_on(seen)


def _lost(checked: Sequence[Pair], kept: Sequence[Key]) -> tuple[str, ...]:
    """Each model that is no set, with why its first pair is none."""
    first = {pair.key: pair.error.rstrip(".") for pair in reversed(checked) if pair.key not in kept}
    said = (f"Nothing of {key[1]} can be used: {first[key]}." for key in sorted(first))
    return tuple(dict.fromkeys(said))


def _usual(pairs: Sequence[Pair], sights: Mapping[Path, Sight]) -> dict[Key, Size]:
    """By attack and model, the size of most of its pairs whose images are of one size."""
    found: dict[Key, Counter[Size]] = {}
    for pair in pairs:
        seen = [sights.get(path) for path in pair.files.values()]
        sizes = {one.size for one in seen if one is not None}
        if None not in seen and len(sizes) == 1 and not _lacking(pair):
            found.setdefault(pair.key, Counter()).update(sizes)
    return {key: counts.most_common(1)[0][0] for key, counts in found.items()}


def looked_at(paths: Iterable[Path], report: Report) -> tuple[dict[Path, Sight], dict[Path, str]]:
    """Return facts of every picture, each opened once, and why the others cannot be used."""
    files = dict.fromkeys(paths)
    sights: dict[Path, Sight] = {}
    broken: dict[Path, str] = {}
    for done, path in enumerate(files, start=1):
        try:
            sights[path] = read_picture(path)[1]
        except DataError as error:
            broken[path] = str(error)
        if done % EVERY == 0 or done == len(files):
            report(Progress(done, len(files), "looking at images"))
    return sights, broken


def _checked(
    pair: Pair, sights: Mapping[Path, Sight], broken: Mapping[Path, str], usual: Size | None
) -> Pair:
    """The pair as it is where it can be judged, else without what cannot be used, and why.

    usual: the size of its model's pictures; None where no pair has one.
    """
    wrong = "; ".join(broken[path] for path in pair.files.values() if path in broken)
    known = {kind: sights[path].size for kind, path in pair.files.items() if path in sights}
    error = pair.error or _lacking(pair) or wrong or _of_another_size(known, usual)
    if not error:
        return pair
    original = pair.original if known.get("originals") == usual else None
    return replace(pair, error=error, original=original, reconstruction=None, attacked=None)


def _lacking(pair: Pair) -> str:
    if pair.reconstruction is None:
        return "no reconstruction in the source"
    return "no original in the source" if pair.original is None else ""


def _of_another_size(found: Mapping[str, Size], usual: Size | None) -> str:
    """Return the fault in the sizes of a pair's images, "" for none; like faults in like words."""
    if len(set(found.values())) > 1:
        sizes = ", ".join(f"{FOLDERS[kind]} {sides(size)}" for kind, size in found.items())
        return f"its pictures are of different sizes: {sizes}"
    if usual is not None and found["originals"] != usual:
        return f"it is {sides(found['originals'])}; a set has one size, here {sides(usual)}"
    return ""


def _folder_names(keys: Iterable[Key], several: bool) -> dict[Key, str]:
    """A folder's name for each attack and model; `DataError` where two would share one.

    several: whether there are several attacks, which the names then say too.
    """
    names = {key: "__".join(map(slug, key if several else key[1:])) for key in keys}
    taken: dict[str, Key] = {}
    for key, name in names.items():
        other = taken.setdefault(alike(name), key)  # some file systems ignore case
        if other != key:
            raise DataError(f"Models {other[1]!r} and {key[1]!r} would share a folder; rename one.")
    return names


def slug(text: str) -> str:
    """`text` as the name of a folder: letters of any script, digits and _ + - . only, else _."""
    kept = "".join(
        one if one.isalnum() or one in "_+.-" or unicodedata.category(one)[0] == "M" else " "
        for one in written(text)
    )
    name = re.sub(" +", "_", kept).lstrip(".").encode()[:_LONGEST]
    return name.decode(errors="ignore") or "_"


def copy_set(found: FoundSet, folder: Path, name: str, record: Mapping[str, Any]) -> None:
    """Write `found` as a reconstruction set called `name`; its images become PNG, unchanged.

    record: where the set comes from. Raises `DataError` for an image that has gone since.
    """
    kinds = Counter(_format(path) for pair in found.pairs for path in pair.files.values())
    others = ", ".join(sorted({*kinds} - {"PNG"}))
    changed = f"{others} decoded as RGB and stored as PNG; what it had lost stays lost"
    run = {
        "name": name,
        "model": found.model,
        "dataset": {"name": found.dataset, "classes": found.classes, "size": found.size},
        "attack": {"name": found.attack},
        "status": "ok",
        "import": {
            **record,
            "source_formats": dict(sorted(kinds.items())),
            "conversion": changed if others else "none: PNG files copied byte for byte",
            "source_sha256": source_digest(found),
        },
        "versions": software_versions(),
    }
    numbers = {name: number for number, name in enumerate(found.classes)}
    same = ("image_id", "class_name", "original", "reconstruction", "attacked", "error")
    images = (
        SetImage(class_id=numbers[pair.class_name], **{name: getattr(pair, name) for name in same})
        for pair in found.pairs
    )
    write_set(folder, run, images)


def source_digest(found: FoundSet) -> str:
    """The sha256 of a line "<kind>/<image_id> <sha256>" a file of `found`, in hex."""
    digest = hashlib.sha256()
    for pair in found.pairs:
        for kind, path in pair.files.items():
            digest.update(f"{kind}/{pair.image_id} {sha256_of(path)}\n".encode())
    return digest.hexdigest()


def _format(path: Path) -> str:
    try:
        return picture_format(path)
    except DataError as error:
        raise DataError(f"{path} could be read before and now cannot: {error}") from error


def labelled_paths(sets: Sequence[FoundSet]) -> list[dict[str, str | None]]:
    """One row a reconstruction that is there, with its paths below the folder of all sets."""
    return [
        {
            "dataset": found.dataset,
            "attack": found.attack,
            "model": found.model,
            "image_id": pair.image_id,
            "class_name": pair.class_name,
            **{
                name: f"{found.folder}/{kind}/{pair.image_id}.png" if kind in pair.files else None
                for kind, name in FOLDERS.items()
            },
        }
        for found in sets
        for pair in found.pairs
        if not pair.error
    ]


def _counts(sets: Sequence[FoundSet]) -> dict[str, int]:
    pairs = [pair for found in sets for pair in found.pairs]
    return {
        "models": len({one.model for one in sets}),
        "originals": len({pair.image_id for pair in pairs if not pair.error}),
        "reconstructions": sum(one.whole for one in sets),
        "failed or missing": sum(bool(pair.error) for pair in pairs),
    }
