"""The tables of one study, and what they say of how its votes came about."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from semsim.base.sets.imports import read_import
from semsim.base.stats.evidence import stated

PICTURES = ("original", "reconstruction")  # columns of labels; `attacked` may be absent


@dataclass(frozen=True, kw_only=True)
class StudyTables:
    """Votes and labels as a study exports them, or as an import keeps them.

    Attributes:
        labels: None where there are votes only.
        scores: Those that came with the study.
        people: Shares of single people, where there are no single votes.
        name, headline: Of the study, where its tables are not to be asked.
        importer: By what it was brought in.
        own: Metrics whose scores a user brought in beside them, see `own_scores`.
        remarks: On those.
    """

    votes: pd.DataFrame
    labels: pd.DataFrame | None = None
    scores: pd.DataFrame | None = None
    people: pd.DataFrame | None = None
    name: str | None = None
    headline: str | None = None
    importer: str = ""
    own: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name of the study; "" where nothing says it."""
        return self.name or self._stated("study") or ""

    @property
    def protocol(self) -> str | None:
        """The human score that the study's protocol fixed; `DataError` for several."""
        return self.headline or self._stated("headline")

    @property
    def judges(self) -> frozenset[str]:
        """SHA-256 of the weights that ranked the words of its lists, where that is known."""
        return frozenset((self._stated("judges") or "").split())

    @property
    def collection(self) -> str:
        """Sentences for a reader on how the votes came about; may be none."""
        said = [f"The votes were brought in by the importer '{self.importer}'."]
        return " ".join([*(said if self.importer else ()), self._stated("lists") or ""]).strip()

    @property
    def has_pictures(self) -> bool:
        """True where the labels hold the places of the pictures, so that they can be scored."""
        return self.labels is not None and set(PICTURES) <= set(self.labels)

    @property
    def listed(self) -> pd.DataFrame:
        """The reconstructions of the study: its labels, else what it has votes on."""
        if self.labels is not None:
            return self.labels
        kinds = self.votes.get("kind")
        return self.votes if kinds is None else self.votes[kinds == "reconstruction"]

    def _stated(self, column: str) -> str | None:
        tables = [self.votes, *(() if self.labels is None else (self.labels,))]
        found = stated(tables, column, None)
        return None if found is None else str(found)


def imported_tables(folder: Path) -> StudyTables:
    """The tables of an import; `DataError` says what is missing or broken."""
    found = read_import(folder)
    return StudyTables(
        votes=found.votes,
        labels=found.labels,
        scores=found.scores,
        people=found.people,
        name=found.name,
        headline=str(found.record["headline"]),
        importer=str(found.record["kind"]),
    )
