"""Text that a spreadsheet would run as a formula, made harmless in CSV and put back on reading.

A spreadsheet may split a file at semicolons or tabs, whatever parted its cells when it was written.
So an apostrophe goes wherever a cell may begin, in front of = + - @ or a control character, also
where quotes or apostrophes come first: reading takes off exactly what writing put on. A number,
which is what "-1" is, stays as it is: nothing in it can be run.
"""

import re
from collections.abc import Callable

import pandas as pd

_BEGINS = r"(?<![^;\t\r\n])"
# The full-width forms are there because some spreadsheets treat them alike.
_RISKY = "(?=[\"']*[=+\\-@\t\r\n＝＋－＠])"
_ESCAPE, _RESTORE = re.compile(_BEGINS + _RISKY), re.compile(f"{_BEGINS}'{_RISKY}")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def escaped(text: str) -> str:
    """Return a cell in which no spreadsheet finds a formula."""
    return text if _NUMBER.fullmatch(text) else _ESCAPE.sub("'", text)


def restored(text: str) -> str:
    """Return what `escaped` was given."""
    return _RESTORE.sub("", text) if "'" in text else text


def of_table(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """Return `table` with each text in it as `change`, which is one of these two, has it."""

    def changed(cell: object) -> object:
        return change(cell) if isinstance(cell, str) else cell

    texts = {str(name): one for name, one in table.items() if one.dtype.kind == "O"}
    found = {name: one.map(changed).astype(one.dtype) for name, one in texts.items()}
    return table.assign(**found)
