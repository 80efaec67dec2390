"""Findings of an importer in a source: what can be imported, and what was left out and why."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pandas as pd

from semsim.base.errors import DataError
from semsim.base.progress import Report
from semsim.base.table_files import Unread as Unread
from semsim.base.words import counted

_SHOWN = 5  # classes named of a set
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


def first_problem(reasons: Iterable[object]) -> str:
    """A sentence with the first of `reasons`, or nothing: what an error says where all failed."""
    return next((f" First problem: {reason}." for reason in reasons), "")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One image of one model. Without a reconstruction, `error` says why there is none."""

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

    folder: its name below the folder of all sets. size: (H, W) of every image that can be read.
    """

    folder: str
    model: str
    dataset: str
    attack: str
    classes: tuple[str, ...]
    size: Size
    pairs: tuple[Pair, ...]

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
    the columns of paths are absent. `scores` is None where none came with it.
    """

    votes: pd.DataFrame
    labels: pd.DataFrame
    scores: pd.DataFrame | None
    headline: str
    simulated: bool


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Findings of an importer: what it can import, how much there is, and all that it leaves out.

    pictures: those that are not attacked yet, which come alone.
    lost: a sentence on each model that has reconstructions of which none can be used.
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

    refusals: by importer, why it was not taken, where all were tried. held: what must not go before
    the plan is carried out, such as the folder an archive was unpacked in.
    """

    name: str
    kind: str
    source: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    found: Findings
    refusals: Mapping[str, str] = field(default_factory=dict)
    held: object = None

    @property
    def complete(self) -> bool:
        """True if nothing is left out."""
        return not self.found.unread

    def rows(self) -> list[dict[str, Any]]:
        """The report as rows: counts, sets, then every file or row left out, and what refused."""
        sets = [
            {key: getattr(one, key) for key in ("folder", "model", "dataset", "attack", "size")}
            | {"pairs": len(one.pairs), "whole": one.whole, "classes": len(one.classes)}
            for one in self.found.sets
        ]
        tables: dict[str, Sequence[dict[str, Any]]] = {
            "counts": [{"name": name, "n": n} for name, n in self.found.counts.items()],
            "sets": sets,
            "left out": [asdict(one) for one in self.found.unread],
            "not taken": [{"kind": kind, "why": why} for kind, why in self.refusals.items()],
        }
        return [{"table": name, **row} for name, rows in tables.items() for row in rows]

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
