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
from semsim.base.picture_files import Sight, notes_on
from semsim.datasets.folder import class_names
from semsim.errors import DataError
from semsim.images import look
from semsim.importers.findings import Findings, FoundSet, Pair, Unread, first_problem
from semsim.kept.versions import software_versions
from semsim.progress import Progress, Report
from semsim.sets.image import SetImage
from semsim.sets.writer import picture_format, write_set
from semsim.weights import sha256_of

EVERY = 100  # images between two reports
_LONGEST = 200  # bytes of a folder's name; disks have room for 255
Size = tuple[int, int]
# What each folder of a set holds.
_ONE = {"originals": "original", "reconstructions": "reconstruction", "attacked": "attacked"}


def find_sets(
    pairs: Sequence[Pair],
    *,
    dataset: str,
    attack: str,
    classes: tuple[str, ...],
    report: Report,
) -> Findings:
    """As `sets_of`; raises `DataError` where no pair is left."""
    sets = sets_of(pairs, dataset=dataset, attack=attack, classes=classes, report=report)
    return with_a_set(sets)


def with_a_set(found: Findings) -> Findings:
    """What was found, as it is; `DataError` where no pair of any set is left."""
    if not found.sets:
        raise DataError(
            "No image has both an original and a reconstruction that can be used."
            + first_problem(found.unread)
        )
    return found


def sets_of(
    pairs: Sequence[Pair],
    *,
    dataset: str,
    attack: str,
    classes: tuple[str, ...],
    report: Report,
) -> Findings:
    """One set a model, in order of name, with every pair that has been asked for.

    A set has one size; two may differ. A pair that cannot be judged stays in its set without a
    reconstruction: an image is missing, broken, of more than 8 bits a channel or partly
    transparent, of another size than its original, or than the set, whose size is the commonest. A
    model of which no pair is left is no set, but among the lost.
    """
    names = class_names([*classes, *(pair.class_name for pair in pairs)])
    pairs = [replace(pair, class_name=names[pair.class_name]) for pair in pairs]
    sights = looked_at((path for pair in pairs for path in _files(pair).values()), report)
    sizes = sizes_in(sights)
    usual = _usual(pairs, sizes)
    checked = [_checked(pair, sizes, usual.get(pair.model)) for pair in pairs]
    unread = tuple(
        Unread(f"image {pair.image_id} of {pair.model}", pair.error)
        for pair in checked
        if pair.error
    )
    models = sorted({pair.model for pair in checked if not pair.error})
    folders = _folder_names(models)
    of_model: dict[str, list[Pair]] = {}
    for pair in checked:
        of_model.setdefault(pair.model, []).append(pair)
    sets = tuple(
        FoundSet(
            folder=folders[model],
            model=model,
            dataset=dataset,
            attack=attack,
            classes=tuple(dict.fromkeys(names[one] for one in classes)),
            size=usual[model],
            pairs=tuple(sorted(of_model[model], key=lambda pair: pair.image_id)),
        )
        for model in models
    )
    return Findings(
        sets=sets,
        counts=_counts(sets),
        unread=unread,
        notes=tuple(_notes(checked, sights)),
        lost=_lost(checked, models),
    )


def _notes(pairs: Iterable[Pair], sights: Mapping[Path, Sight | str]) -> list[str]:
    """`notes_on` the pairs that can be used."""
    whole = {f"image {p.image_id} of {p.model}": _files(p).values() for p in pairs if not p.error}
    seen = {name: [sights[path] for path in files] for name, files in whole.items()}
    return notes_on({n: [one for one in s if isinstance(one, Sight)] for n, s in seen.items()})


def _lost(checked: Sequence[Pair], models: Sequence[str]) -> tuple[str, ...]:
    """Each model that is no set, with why its first pair is none."""
    kept = set(models)
    lost = [pair for pair in checked if pair.model not in kept]
    first = {pair.model: pair.error.rstrip(".") for pair in reversed(lost)}
    return tuple(f"Nothing of {model} can be used: {first[model]}." for model in sorted(first))


def _usual(pairs: Sequence[Pair], sizes: Mapping[Path, Size | str]) -> dict[str, Size]:
    """By model, the size of most of its pairs whose images are of one size."""
    found: dict[str, Counter[Size]] = {}
    for pair in pairs:
        known = {sizes[path] for path in _files(pair).values()}
        whole = not _lacking(pair) and len(known) == 1
        if whole and not isinstance(size := known.pop(), str):
            found.setdefault(pair.model, Counter())[size] += 1
    return {model: counts.most_common(1)[0][0] for model, counts in found.items()}


def sizes_in(sights: Mapping[Path, Sight | str]) -> dict[Path, Size | str]:
    """(H, W) of every picture, or why it cannot be used."""
    return {path: one if isinstance(one, str) else one.size for path, one in sights.items()}


def looked_at(paths: Iterable[Path], report: Report) -> dict[Path, Sight | str]:
    """Return facts of every picture, each opened once, or why it cannot be used."""
    files = dict.fromkeys(paths)
    sights: dict[Path, Sight | str] = {}
    for done, path in enumerate(files, start=1):
        sights[path] = _sight(path)
        if done % EVERY == 0 or done == len(files):
            report(Progress(done, len(files), "looking at images"))
    return sights


def _sight(path: Path) -> Sight | str:
    try:
        return look(path)
    except DataError as error:
        return str(error)


def _files(pair: Pair) -> dict[str, Path]:
    """The files of a pair by the folder of the set they go to."""
    files = {
        "originals": pair.original,
        "reconstructions": pair.reconstruction,
        "attacked": pair.attacked,
    }
    return {folder: path for folder, path in files.items() if path is not None}


def _checked(pair: Pair, sizes: Mapping[Path, Size | str], usual: Size | None) -> Pair:
    """The pair as it is where it can be judged, else without what cannot be used, and why.

    usual: the size of its model's pictures; None where no pair has one.
    """
    found = {kind: sizes[path] for kind, path in _files(pair).items()}
    wrong = "; ".join(size for size in found.values() if isinstance(size, str))
    known = {kind: size for kind, size in found.items() if not isinstance(size, str)}
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
    """What is wrong with the sizes of a pair's images; the same words for all that are wrong so."""
    if len(set(found.values())) > 1:
        sizes = ", ".join(f"{_ONE[kind]} {sides(size)}" for kind, size in found.items())
        return f"its pictures are of different sizes: {sizes}"
    if usual is not None and found["originals"] != usual:
        return f"it is {sides(found['originals'])}; a set has one size, here {sides(usual)}"
    return ""


def sides(size: Size) -> str:
    """(H, W) as people say it, width first."""
    return f"{size[1]}×{size[0]}"


def _folder_names(models: Iterable[str]) -> dict[str, str]:
    """A folder name for each model; `DataError` where two would share one."""
    names = {model: slug(model) for model in models}
    taken: dict[str, str] = {}
    for model, name in names.items():
        other = taken.setdefault(alike(name), model)  # some file systems ignore case
        if other != model:
            raise DataError(f"Models {other!r} and {model!r} would share a folder; rename one.")
    return names


def slug(text: str) -> str:
    """`text` as the name of a folder: letters of any script, digits and _ + - . only, else _."""
    kept = "".join(one if _in_a_name(one) else " " for one in written(text))
    name = re.sub(" +", "_", kept).lstrip(".").encode()[:_LONGEST]
    return name.decode(errors="ignore") or "_"


def _in_a_name(sign: str) -> bool:
    return sign.isalnum() or sign in "_+.-" or unicodedata.category(sign).startswith("M")


def copy_set(found: FoundSet, folder: Path, name: str, record: Mapping[str, Any]) -> None:
    """Write `found` as a reconstruction set called `name`; its images become PNG, unchanged.

    record: where the set comes from. Raises `DataError` for an image that has gone since.
    """
    kinds = Counter(_format(path) for pair in found.pairs for path in _files(pair).values())
    run = {
        "name": name,
        "model": found.model,
        "dataset": {"name": found.dataset, "classes": found.classes, "size": found.size},
        "attack": {"name": found.attack},
        "status": "ok",
        "import": {
            **record,
            "source_formats": dict(sorted(kinds.items())),
            "conversion": _conversion(kinds),
            "source_sha256": source_digest(found),
        },
        "versions": software_versions(),
    }
    numbers = {name: number for number, name in enumerate(found.classes)}
    write_set(folder, run, (_image(pair, numbers[pair.class_name]) for pair in found.pairs))


def source_digest(found: FoundSet) -> str:
    """The sha256 of a line "<kind>/<image_id> <sha256>" a file of `found`, in hex."""
    digest = hashlib.sha256()
    for pair in found.pairs:
        for kind, path in _files(pair).items():
            digest.update(f"{kind}/{pair.image_id} {sha256_of(path)}\n".encode())
    return digest.hexdigest()


def _format(path: Path) -> str:
    try:
        return picture_format(path)
    except DataError as error:
        raise DataError(f"{path} could be read before and now cannot: {error}") from error


def _conversion(kinds: Iterable[str]) -> str:
    others = sorted(set(kinds) - {"PNG"})
    if not others:
        return "none: PNG files copied byte for byte"
    return f"{', '.join(others)} decoded as RGB and stored as PNG; what it had lost stays lost"


def _image(pair: Pair, class_id: int) -> SetImage:
    return SetImage(
        image_id=pair.image_id,
        class_id=class_id,
        class_name=pair.class_name,
        original=pair.original,
        reconstruction=pair.reconstruction,
        attacked=pair.attacked,
        error=pair.error,
    )


def labelled_paths(sets: Sequence[FoundSet]) -> list[dict[str, str | None]]:
    """One row a reconstruction that is there, with its paths below the folder of all sets."""
    return [
        {
            "dataset": found.dataset,
            "attack": found.attack,
            "model": found.model,
            "image_id": pair.image_id,
            "class_name": pair.class_name,
            **_paths_below(pair, found.folder),
        }
        for found in sets
        for pair in found.pairs
        if not pair.error
    ]


def _paths_below(pair: Pair, folder: str) -> dict[str, str | None]:
    files = _files(pair)
    return {
        name: f"{folder}/{kind}/{pair.image_id}.png" if kind in files else None
        for kind, name in _ONE.items()
    }


def _counts(sets: Sequence[FoundSet]) -> dict[str, int]:
    pairs = [pair for found in sets for pair in found.pairs]
    return {
        "models": len(sets),
        "originals": len({pair.image_id for pair in pairs if not pair.error}),
        "reconstructions": sum(not pair.error for pair in pairs),
        "failed or missing": sum(bool(pair.error) for pair in pairs),
    }
