"""Findings of an importer in a source: what can be imported, and what was left out and why.

Pairs of files become reconstruction sets: every image is looked at before any is copied.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pandas as pd

from semsim.base.alike import alike, class_names, written
from semsim.base.errors import DataError
from semsim.base.picture_files import PictureFacts, notes_on, read_picture
from semsim.base.progress import Progress, Report
from semsim.base.table_files import Unread as Unread
from semsim.base.table_files import first_problem
from semsim.base.words import counted
from semsim.importers.class_names import all_classes

EVERY = 100  # images between two reports
_SHOWN = 5  # classes named of a set
_LONGEST = 200  # bytes of a folder's name; disks have room for 255
Size = tuple[int, int]  # (H, W)
Key = tuple[str, str]  # attack and model
# What each folder of a set holds.
FOLDERS = {"originals": "original", "reconstructions": "reconstruction", "attacked": "attacked"}
MOST_PAIRS = 200_000  # also those that lack a picture: each is told


def check_crossed(models: int, pairs: int) -> None:
    """`DataError` where models crossed with pictures are more pairs than any drop has files for."""
    if pairs > MOST_PAIRS:
        raise DataError(
            f"{counted(models, 'folder')} taken for models make {pairs:,} pairs with the pictures, "
            f"of which most are not there; at most {MOST_PAIRS:,}. Are they classes?"
        )


def sides(size: Size) -> str:
    """(H, W) as people say it, width first."""
    return f"{size[1]}×{size[0]}"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One image of one model. Without a reconstruction, `error` says why there is none.

    Attributes:
        class_name: "" where nothing says the class.
    """

    attack: str
    model: str
    image_id: str
    class_name: str
    original: Path | None
    reconstruction: Path | None
    attacked: Path | None = None
    error: str = ""

    @property
    def files(self) -> dict[str, Path]:
        """Its files that are there, by the folder of the set they go to."""
        found = {folder: getattr(self, name) for folder, name in FOLDERS.items()}
        return {folder: path for folder, path in found.items() if path is not None}

    @property
    def key(self) -> Key:
        """Key of the set that it belongs to."""
        return self.attack, self.model


@dataclass(frozen=True, kw_only=True)
class FoundSet:
    """A reconstruction set to be written.

    Attributes:
        folder: Its name below the folder of all sets.
        size: (H, W) of every image that can be read.
    """

    folder: str
    model: str
    dataset: str
    attack: str
    classes: tuple[str, ...]
    size: Size
    pairs: tuple[Pair, ...]

    def renamed(self, usual: str | None, names: Mapping[str, str]) -> "FoundSet":
        """The same with other `names` of the data set and, where it is `usual`, of the attack."""
        dataset = names.get("dataset", self.dataset)
        attack = names.get("attack", self.attack) if self.attack == usual else self.attack
        pairs = tuple(replace(pair, attack=attack) for pair in self.pairs)
        return replace(self, dataset=dataset, attack=attack, pairs=pairs)

    def worded(self, words: Mapping[str, str]) -> "FoundSet":
        """The same with other classes of the images in `words`."""
        named = [
            replace(one, class_name=words.get(one.image_id, one.class_name)) for one in self.pairs
        ]
        kinds = class_names([*self.classes, *(pair.class_name for pair in named)])
        pairs = tuple(replace(pair, class_name=kinds[pair.class_name]) for pair in named)
        classes = all_classes((), (*self.classes, *(pair.class_name for pair in pairs)))
        return replace(self, pairs=pairs, classes=classes)

    @property
    def whole(self) -> int:
        """Number of pairs that can be read."""
        return sum(not pair.error for pair in self.pairs)

    @property
    def said(self) -> str:
        """Content in words: names, pictures, size and classes."""
        shown = ", ".join(self.classes[:_SHOWN]) + (" …" if len(self.classes) > _SHOWN else "")
        return (
            f"{self.model} by {self.attack} on {self.dataset}: {self.whole} of "
            f"{len(self.pairs)} pairs, {sides(self.size)} pixels, "
            f"{counted(len(self.classes), 'class', 'classes')} ({shown})"
        )


def in_classes(pictures: int, classes: int) -> str:
    """Return in words the number of pictures and that of their classes."""
    return f"{counted(pictures, 'picture')} of {counted(classes, 'class', 'classes')}"


@dataclass(frozen=True, kw_only=True)
class FoundPictures:
    """Pictures that are still to be attacked: `paths` below `root`, in folders of their classes."""

    root: Path
    paths: tuple[Path, ...]
    classes: tuple[str, ...]

    @property
    def said(self) -> str:
        """Content in words: numbers of pictures and classes."""
        return f"{in_classes(len(self.paths), len(self.classes))}, still to be attacked"


@dataclass(frozen=True, kw_only=True)
class HumanTables:
    """Votes, labels and scores in the form a study exports them.

    Paths in `labels` are relative to the folder of all sets; where no images came with the data,
    the columns of paths are absent. `scores` is None where none came with it, `people` where no
    shares of single people did (`SHARE_COLUMNS`).
    """

    votes: pd.DataFrame
    labels: pd.DataFrame
    scores: pd.DataFrame | None
    headline: str
    simulated: bool
    people: pd.DataFrame | None = None


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Findings of an importer: what it can import, how much there is, and all that it leaves out.

    Attributes:
        pictures: Those that are not attacked yet, which come alone.
        lost: A sentence on each model that has reconstructions of which none can be used.
    """

    sets: tuple[FoundSet, ...] = ()
    tables: HumanTables | None = None
    pictures: FoundPictures | None = None
    counts: Mapping[str, int]
    unread: tuple[Unread, ...]
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class Importer(Protocol):
    """A way to read one layout of published data: a dataclass whose fields are its settings."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __call__(self, source: Path, name: str, report: Report) -> Findings:
        """Read `source`, for an import called `name`, and write nothing.

        Raises `DataError` where nothing can be imported, `SettingsError` for settings that do
        not fit the source.
        """


@dataclass(frozen=True, kw_only=True)
class ImportPlan:
    """Everything an import is going to write, and where it comes from.

    Attributes:
        refusals: By importer, why it was not taken, where all were tried.
        held: The archives that were unpacked, which must not go before the plan is carried out.
        stamp: The state of its files, as `semsim.importers.import_job.stamp_of` has it; "" where it
            was not taken.
    """

    name: str
    kind: str
    source: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    found: Findings
    refusals: Mapping[str, str] = field(default_factory=dict)
    held: tuple[Any, ...] = ()
    stamp: str = ""

    def renamed(self, name: str, dataset: str, attack: str) -> "ImportPlan":
        """The same plan under other names of the import, the data set and the attack.

        Args:
            dataset, attack: "" for those that it has; the attack is that which no folder says.

        Raises:
            DataError: Where a name is part of what was found, as in the votes of a table: then the
                source must be read anew.
        """
        asked = {"dataset": dataset, "attack": attack}
        new = {key: to for key, to in asked.items() if to and key in self.settings}
        new = {key: to for key, to in new.items() if to != self.settings[key]}
        models = [one.model == self.name for one in self.found.sets]
        lost = [one.where.endswith(f" of {self.name}") for one in self.found.unread]
        called = name != self.name and any(models + lost)
        of_one = "attack" in new and "attacks" in self.found.counts
        if called or of_one or ((new or name != self.name) and self.found.tables is not None):
            raise DataError("It is called otherwise now, and its names are part of what was found.")
        sets = tuple(one.renamed(self.settings.get("attack"), new) for one in self.found.sets)
        found = replace(self.found, sets=sets)
        return replace(self, name=name, settings={**self.settings, **new}, found=found)

    def worded(self, words: Mapping[str, str]) -> "ImportPlan":
        """The same plan with the class of each image in `words`, by image id."""
        given = {image: word for image, word in words.items() if word}
        if not given:
            return self
        sets = tuple(one.worded(given) for one in self.found.sets)
        return replace(self, found=replace(self.found, sets=sets))

    @property
    def complete(self) -> bool:
        """True if nothing is left out."""
        return not self.found.unread

    def parts(self) -> dict[str, Any]:
        """Return the parts of the report: counts, sets, what was left out, and what refused."""
        sets = [
            {key: getattr(one, key) for key in ("folder", "model", "dataset", "attack", "size")}
            | {"pairs": len(one.pairs), "whole": one.whole, "classes": len(one.classes)}
            for one in self.found.sets
        ]
        return {
            "counts": [{"name": name, "n": n} for name, n in self.found.counts.items()],
            "sets": sets,
            "left_out": [asdict(one) for one in self.found.unread],
            "not_taken": [{"kind": kind, "why": why} for kind, why in self.refusals.items()],
        }

    def text(self) -> str:
        """The report, for a terminal: counts, sets, notes, then every file or row left out."""
        width = max(len(name) for name in self.found.counts)
        unread = self.found.unread
        return "\n".join(
            [
                f"{self.kind} from {self.source}",
                *(f"  {name:{width}}  {n:,}" for name, n in self.found.counts.items()),
                *(f"Set {one.said}" for one in self.found.sets),
                *(f"Note: {note}" for note in (*self.found.notes, *self.found.lost)),
                f"Left out: {len(unread):,}" if unread else "Nothing is left out.",
                *(f"  {one}" for one in unread),
                *(f"Not taken: {kind}: {why}" for kind, why in self.refusals.items()),
            ]
        )


def find_sets(
    pairs: Sequence[Pair], *, dataset: str, classes: tuple[str, ...], report: Report
) -> Findings:
    """One set an attack and model, in order of name, with every pair that has been asked for.

    Args:
        classes: The list of them, where there is one. A set has one size; two may differ. A pair
            that cannot be judged stays in its set without a reconstruction: an image is missing,
            broken, of more than 8 bits a channel or partly transparent, of another size than its
            original, or than the set, whose size is the commonest. A model of which no pair is left
            is no set, but among the lost.

    Raises:
        DataError: Where no pair is left at all.
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


def _notes(pairs: Iterable[Pair], sights: Mapping[Path, PictureFacts]) -> list[str]:
    """`notes_on` the pairs that can be used."""
    seen: dict[str, list[PictureFacts]] = {}
    for pair in (pair for pair in pairs if not pair.error):
        seen.setdefault(_called(pair), []).extend(sights[path] for path in pair.files.values())
    return notes_on(seen)


def _lost(checked: Sequence[Pair], kept: Sequence[Key]) -> tuple[str, ...]:
    """Each model that is no set, with why its first pair is none."""
    first = {pair.key: pair.error.rstrip(".") for pair in reversed(checked) if pair.key not in kept}
    said = (f"Nothing of {key[1]} can be used: {first[key]}." for key in sorted(first))
    return tuple(dict.fromkeys(said))


def _usual(pairs: Sequence[Pair], sights: Mapping[Path, PictureFacts]) -> dict[Key, Size]:
    """By attack and model, the size of most of its pairs whose images are of one size."""
    found: dict[Key, Counter[Size]] = {}
    for pair in pairs:
        seen = [sights.get(path) for path in pair.files.values()]
        sizes = {one.size for one in seen if one is not None}
        if None not in seen and len(sizes) == 1 and not _lacking(pair):
            found.setdefault(pair.key, Counter()).update(sizes)
    return {key: counts.most_common(1)[0][0] for key, counts in found.items()}


def looked_at(
    paths: Iterable[Path], report: Report
) -> tuple[dict[Path, PictureFacts], dict[Path, str]]:
    """Return facts of every picture, each opened once, and why the others cannot be used."""
    files = dict.fromkeys(paths)
    sights: dict[Path, PictureFacts] = {}
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
    pair: Pair, sights: Mapping[Path, PictureFacts], broken: Mapping[Path, str], usual: Size | None
) -> Pair:
    """The pair as it is where it can be judged, else without what cannot be used, and why.

    Args:
        usual: The size of its model's pictures; None where no pair has one.
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

    Args:
        several: Whether there are several attacks, which the names then say too.
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
