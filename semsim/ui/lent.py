"""Functions of the science that are lent to the pages of the human study."""

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from semsim.base.errors import DataError
from semsim.base.sets.imports import import_names, imported_votes
from semsim.base.stats.ceiling import Ceiling, ceiling_of_votes


def ceiling(votes: pd.DataFrame) -> Ceiling:
    """That of people in a table of votes; where it cannot be told from them, the reason."""
    try:
        return ceiling_of_votes(votes)
    except DataError as error:
        return Ceiling(undefined=str(error).rstrip("."))


def lent(data: Path) -> dict[str, Any]:
    """By name, as `annotation.votes.science.Science` takes it; `data` is the data folder."""
    return {
        "ceiling": ceiling,
        "import_names": partial(import_names, data / "imports"),
        "read_import": partial(imported_votes, data / "imports"),
        "trouble": DataError,
    }
