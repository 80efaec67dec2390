"""Text that a spreadsheet would run as a formula, made harmless in CSV and put back on reading.

A cell whose text starts with = + - @ or a control character gets an apostrophe in front; so does
one that starts with apostrophes and then such a character, so that reading can take exactly one
off again. A number, which is what "-1" is, stays as it is: nothing in it can be run.
"""

import pandas as pd

# The full-width forms are there because some spreadsheets treat them alike.
RISKY = "'*[=+\\-@\t\r\n＝＋－＠]"
NUMBER = r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"


def escape(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with every text cell harmless; columns that are not text are not touched."""
    return table.assign(
        **{name: _escaped(table[name]) for name in table.columns if _is_text(table[name])}
    )


def restore(table: pd.DataFrame) -> pd.DataFrame:
    """What `escape` was given; only columns of text may have been escaped."""
    return table.assign(
        **{name: _restored(table[name]) for name in table.columns if _is_text(table[name])}
    )


def _is_text(column: pd.Series) -> bool:
    return isinstance(column.dtype, pd.StringDtype)


def _escaped(column: pd.Series) -> pd.Series:
    risky = column.str.match(RISKY, na=False) & ~column.str.fullmatch(NUMBER, na=False)
    return column.where(~risky, "'" + column)


def _restored(column: pd.Series) -> pd.Series:
    escaped = column.str.match(f"'{RISKY}", na=False)
    return column.where(~escaped, column.str.slice(1))
