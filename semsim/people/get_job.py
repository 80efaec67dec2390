"""The job that fetches a source of people's judgements and brings it into the studio."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semsim.base.errors import DataError
from semsim.base.progress import Report, silent
from semsim.base.sets.imports import places_of
from semsim.importers.import_folder import carry_out
from semsim.people import SOURCES
from semsim.people.fetching import fetch_all
from semsim.people.source import Source

PEOPLE_JOB = "people"


@dataclass(frozen=True, kw_only=True)
class PeopleOrder:
    """Job: a source to fetch into the folder `data` of the studio."""

    name: str
    data: Path


def do_people(order: PeopleOrder, folder: Path, report: Report) -> dict[str, Any]:
    """Fetch the source of the order, and write its sets and tables."""
    del folder
    source, places = SOURCES[order.name], places_of(order.name, order.data)
    if not places.tables.is_dir():  # a job that was cut off goes on
        carry_out(source.plan(fetched(source, order.data, report), report), places, report)
    return {"tables": str(places.tables), "sets": str(places.sets)}


def fetched(source: Source, data: Path, report: Report = silent) -> Path:
    """Fetch the files of a source, and return their folder.

    Raises:
        DataError: Where nothing can be fetched, and as `fetch_all`.
    """
    if not source.files:
        raise DataError(
            f"{source.name} cannot be fetched. Name a folder with a copy: --from FOLDER. It has "
            f"{source.marks[0][0]}."
        )
    return fetch_all(source.files, data / "people" / source.name, report)


def brought(outcome: Mapping[str, Any]) -> str:
    """Name the folders that a job wrote."""
    return f"{outcome['tables']}\n{outcome['sets']}"
