"""Tables of votes, scores and labels in files, as `compare` takes them."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from semsim.base.errors import DataError
from semsim.base.storage.optional import arrow
from semsim.base.storage.places import resolved
from semsim.base.table_files import read_frame
from semsim.metrics.scoring import TEXTS

MOST_ROWS = 10_000_000  # of a table; so many scores take 1.6 GB
_FEWER = (
    "More would take more than 1.6 GB of memory. Keep the scores of images that people judged, or "
    "compare fewer metrics at a time."
)


def read_table(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table of Parquet, CSV or Excel; ids and names stay texts.

    columns: those wanted of a row a metric, of which the table may lack some; all for None, and
    where there is no column `metric`. Raises `DataError` where it is not readable or has more than
    `MOST_ROWS` rows.
    """
    path = resolved(path)
    if path.suffix.lower() == ".parquet":
        arrow()
    found = read_frame(path, DataError, texts=TEXTS, columns=columns, most=MOST_ROWS, advice=_FEWER)
    return found if columns is None or "metric" in found else read_table(path)
