"""Tables of votes, scores and labels in files, as `compare` takes them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_string_dtype, union_categoricals

from semsim.analysis.evidence import LEAKS
from semsim.base.places import resolved
from semsim.errors import DataError
from semsim.importers.text_table import ESCAPED
from semsim.kept.extras import parquet
from semsim.kept.table_size import check_size

MOST_ROWS = 10_000_000  # of a table; so many scores take 1.6 GB
_FEWER = (
    "More would take more than 1.6 GB of memory. Keep the scores of images that people judged, or "
    "compare fewer metrics at a time."
)
_CHUNK = 500_000  # rows of a CSV whose texts are held as such
_TEXTS = (
    *("study", "dataset", "attack", "model", "metric", "image_id", "class_name", "annotator"),
    *("answer", "weights", LEAKS),
)


def read_table(
    path: Path, columns: Sequence[str] | None = None, where: str | None = None
) -> pd.DataFrame:
    """A table of Parquet or CSV; ids and names stay texts.

    columns: those wanted, of which the table may lack some; texts among them come as categories,
    which take a tenth of the memory. None for all. where: a column without which it is all of them
    after all. Raises `DataError` where it is not readable or has more than `MOST_ROWS` rows.
    """
    path = resolved(path)
    try:
        if path.suffix not in _READERS:
            raise DataError(f"{path} should be a table ending in .parquet or .csv.")
        names, read = _READERS[path.suffix]
        table = read(path, columns if where is None or where in names(path) else None)
    except (OSError, ValueError) as error:  # parsing errors of pandas and pyarrow are ValueErrors
        raise DataError(f"{path} is not a readable table ({error}).") from error
    check_size(path, len(table), MOST_ROWS, "rows", _FEWER)
    return table


def _restored(table: pd.DataFrame) -> pd.DataFrame:
    """Texts without the apostrophe of `ESCAPED`."""
    texts = [name for name in table if name in _TEXTS and is_string_dtype(table[name])]
    return table.assign(
        **{name: table[name].str.replace(ESCAPED, "", regex=True) for name in texts}
    )


def _names_in_csv(path: Path) -> list[str]:
    return [str(name) for name in pd.read_csv(path, nrows=0)]


def _read_csv(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    # Only an empty cell is missing: a model may be called "None" and an image "007".
    told: dict[str, Any] = {"keep_default_na": False, "na_values": [""], "nrows": MOST_ROWS + 1}
    told["dtype"] = dict.fromkeys(_TEXTS, str)
    if columns is None:
        return _restored(pd.read_csv(path, **told))
    with pd.read_csv(path, usecols=lambda name: name in columns, chunksize=_CHUNK, **told) as read:
        # A chunk after the other: read as categories, "007" among the names would become a 7.
        parts = [
            _restored(part).astype(dict.fromkeys({*part} & {*_TEXTS}, "category")) for part in read
        ]
    return pd.DataFrame(
        {
            name: union_categoricals([part[name] for part in parts])
            if name in _TEXTS
            else pd.concat([part[name] for part in parts], ignore_index=True)
            for name in parts[0]
        }
    )


def _names_in_parquet(path: Path) -> list[str]:
    return list(parquet().read_schema(path).names)


def _read_parquet(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    pq = parquet()
    with pq.ParquetFile(path) as file:
        check_size(path, file.metadata.num_rows, MOST_ROWS, "rows", _FEWER)
    if columns is None:
        return pd.read_parquet(path)
    wanted = [name for name in columns if name in _names_in_parquet(path)]
    return pq.read_table(path, columns=wanted, read_dictionary=[*_TEXTS]).to_pandas(
        ignore_metadata=True, self_destruct=True
    )


_READERS = {
    ".parquet": (_names_in_parquet, _read_parquet),
    ".csv": (_names_in_csv, _read_csv),
}
