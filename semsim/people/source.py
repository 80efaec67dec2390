"""A public source of judgements by people: where it is, who may use it, and how it is read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from semsim.base.columns import IMAGE_KEY, SHARE_COLUMNS
from semsim.base.errors import DataError
from semsim.base.progress import Report, silent
from semsim.base.stats.evidence import GIVEN, GIVEN_ERROR
from semsim.base.stats.vote_rows import Sieve, counted_votes
from semsim.base.words import counted
from semsim.importers.human_tables import labels_found, votes_found
from semsim.importers.import_plan import Findings, ImportPlan, Pair, find_sets, labelled_paths
from semsim.people.fetching import RemoteFile
from semsim.weights import sha256_of

ATTACK = "degradation"  # in place of the name of an attack
SHARES = "people"  # column of the share of people who recognised a picture, and its label
ERRORS = "people_error"  # column of its standard error over people
SELF = "People judged this picture itself: it stands as original and as reconstruction."
_DEEPEST = 2  # folders between the one that is named and that of the source
_PICTURES = (".png", ".jpg", ".jpeg")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Judgements that a source holds: votes, or shares.

    Attributes:
        pairs: Pictures that are there; may be none.
        votes: One row a vote: model, image_id, class_name, annotator, answer, where, rt_ms.
        shares: One row a picture: model, image_id, class_name, `SHARES` and perhaps `ERRORS`.
        people: Shares of single people, where there are no votes: model, annotator, share.
    """

    pairs: Sequence[Pair] = ()
    votes: pd.DataFrame | None = None
    shares: pd.DataFrame | None = None
    people: pd.DataFrame | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """A source of judgements.

    Attributes:
        name: Of its commands, the folder of its import and its data set.
        title: Of its import; its name by default.
        about: Numbers of people and pictures, and what people did.
        repository: Owner and name on GitHub; "" where nothing can be fetched.
        commit: The state of the repository that is read.
        licence: Of the judgements, and of pictures where it differs.
        non_commercial: Whether the licence forbids commercial use, so that users are asked.
        citation: What to cite.
        files: What is fetched.
        megabytes: Of `files` and at most.
        tables: Files of judgements, with the sha256 of each, or "" where no copy of it is known.
        marks: Lists of paths, of which a folder of the source has all of one list.
        read: Reads a folder of the source.
        compares: Whether a picture has an original beside it, so that metrics can compare both.
        note: What a reader must know before a number.
    """

    name: str
    title: str = ""
    about: str
    repository: str = ""
    commit: str = ""
    licence: str
    non_commercial: bool = False
    citation: str
    files: tuple[RemoteFile, ...] = ()
    megabytes: int = 0
    tables: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[tuple[str, ...], ...]
    read: Callable[[Path], Judged | Findings]
    compares: bool = True
    note: str = ""

    @property
    def address(self) -> str:
        """The page of the pinned state of its repository; "" where there is none."""
        return f"https://github.com/{self.repository}/tree/{self.commit}" if self.commit else ""

    def found_in(self, *folders: Path) -> Path | None:
        """Return the source's own folder, one of `folders` or up to two below it; or None."""
        for place in (place for folder in folders for place in _near(folder)):
            if any(all((place / path).exists() for path in needed) for needed in self.marks):
                return place
        return None

    def plan(self, folder: Path, report: Report = silent) -> ImportPlan:
        """Plan the import of the source's files; writes nothing.

        Args:
            folder: Of `found_in`, or one above it.
            report: Told how many pictures were looked at.

        Raises:
            DataError: Where the source is not there, or a file of it cannot be read or is not the
                known one.
        """
        place = self.found_in(folder)
        if place is None:
            wanted = "; or ".join(" and ".join(needed) for needed in self.marks)
            raise DataError(f"{folder} holds no copy of {self.name!r}. A copy has {wanted}.")
        used = self.checked(place)
        held = self.read(place)
        found = held if isinstance(held, Findings) else self._findings(held, report)
        told = (*found.notes, *filter(None, [self.note]), f"Cite {self.citation}.")
        found = replace(found, notes=told)
        return ImportPlan(
            name=self.title or self.name,
            kind=f"people {self.name}",
            source=place,
            settings={"sha256": used},
            found=found,
        )

    def checked(self, place: Path) -> dict[str, str]:
        """Return the sha256 of each of the source's tables in its folder.

        Raises:
            DataError: Where one is not the known file.
        """
        used = {name: sha256_of(place / name) for name in self.tables if (place / name).is_file()}
        for name, found in used.items():
            if self.tables[name] not in ("", found):
                raise DataError(
                    f"{place / name} is not the known file: its sha256 is {found}, not "
                    f"{self.tables[name]}. Copy it again, or fetch the source."
                )
        return used

    def _findings(self, held: Judged, report: Report) -> Findings:
        """Return the sets of what a source holds, and its tables."""
        sets = Findings(counts={}, unread=())
        if held.pairs:
            sets = find_sets(held.pairs, dataset=self.name, classes=(), report=report)
        named = {"dataset": self.name, "attack": ATTACK}
        paths = pd.DataFrame(labelled_paths(sets.sets), columns=[*IMAGE_KEY, *_SIDES])
        if held.votes is not None:
            rows = held.votes.assign(**named)
            facts = rows[[*IMAGE_KEY, "class_name"]].drop_duplicates(IMAGE_KEY)
            tables = votes_found(
                counted_votes(Sieve(rows=rows)),
                name=self.name,
                headline="mean-response",
                votes_per_item=None,
                facts=facts.merge(paths, on=IMAGE_KEY, how="left") if sets.sets else facts,
            )
        else:
            tables = self._of_shares(held, named, paths)
        lacking = tables.counts["reconstructions"] - sum(one.whole for one in sets.sets)
        note = f"{counted(lacking, 'picture is', 'pictures are')} not in this copy of the source."
        return replace(
            tables,
            sets=sets.sets,
            unread=(*sets.unread, *tables.unread),
            notes=(*sets.notes, *tables.notes, *((note,) if lacking else ())),
            lost=sets.lost,
        )

    def _of_shares(self, held: Judged, named: dict[str, str], paths: pd.DataFrame) -> Findings:
        columns = {SHARES: GIVEN + SHARES, ERRORS: GIVEN_ERROR + SHARES}
        rows = pd.DataFrame(held.shares).assign(**named).rename(columns=columns)
        rows = rows.merge(paths, on=IMAGE_KEY, how="left") if len(paths) else rows
        found = labels_found(rows, None, name=self.name, headline=SHARES)
        if held.people is None or found.tables is None:
            return found
        people = held.people.assign(**named)[list(SHARE_COLUMNS)]
        counts = {**found.counts, "annotators": int(people["annotator"].nunique())}
        return replace(found, tables=replace(found.tables, people=people), counts=counts, notes=())


_SIDES = ("original", "reconstruction")


def _near(folder: Path) -> Iterator[Path]:
    """Yield a folder and those below it, the upper ones first."""
    yield folder
    for depth in range(1, _DEEPEST + 1):
        yield from sorted(folder.glob("*/" * depth))


def paired(
    rows: pd.DataFrame, originals: dict[str, Path], shown: dict[tuple[str, str], Path]
) -> list[Pair]:
    """Return the pairs of those rows whose pictures are both there.

    Args:
        rows: Columns model, image_id and class_name.
        originals: Files by image_id.
        shown: Files that people saw, by model and image_id.
    """
    known = rows[["model", "image_id", "class_name"]].astype(str).drop_duplicates()
    return [
        Pair(
            attack=ATTACK,
            model=model,
            image_id=image_id,
            class_name=class_name,
            original=originals[image_id],
            reconstruction=shown[model, image_id],
        )
        for model, image_id, class_name in known.itertuples(index=False)
        if image_id in originals and (model, image_id) in shown
    ]


def picture_files(folder: Path, *patterns: str) -> dict[str, Path]:
    """Return the PNG and JPEG files at `patterns` below a folder by their names without ending."""
    found = (path for pattern in patterns for path in sorted(folder.glob(pattern)))
    return {path.stem: path for path in found if path.suffix.lower() in _PICTURES}
