"""Tables whose text no spreadsheet runs, see `semsim.base.spreadsheet`."""

from collections.abc import Callable

import pandas as pd

from semsim.base.spreadsheet import escaped, restored


def escape(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with every text cell harmless; columns that are not text are not touched."""
    return _mapped(table, escaped)


def restore(table: pd.DataFrame) -> pd.DataFrame:
    """What `escape` was given; only columns of text may have been escaped."""
    return _mapped(table, restored)


def _mapped(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    texts = {name: one for name, one in table.items() if isinstance(one.dtype, pd.StringDtype)}
    return table.assign(
        **{
            str(name): one.map(change, na_action="ignore").astype(one.dtype)
            for name, one in texts.items()
        }
    )
