"""Gold items: what a researcher says of reconstructions, read from a file."""

from io import StringIO
from pathlib import Path

import pandas as pd

from annotation.design.quality import Gold
from annotation.errors import StudyError
from annotation.formats.spreadsheet import restore

COLUMNS = ("model", "image_id", "answer")


def read_gold(source: Path | StringIO) -> list[Gold]:
    """The rows of a CSV file, or of its text, with the columns `COLUMNS`, one a reconstruction.

    Fields are parted by tabs where the header has one, as what is copied from a spreadsheet.
    Whether there are such reconstructions, and whether they offer the answer, is for
    `annotation.design.quality` to say. Raises `StudyError`.
    """
    name = source.name if isinstance(source, Path) else "Answers of gold items"
    try:
        text = source.read_text("utf-8-sig") if isinstance(source, Path) else source.getvalue()
        sep = "\t" if "\t" in text.partition("\n")[0] else ","
        table = pd.read_csv(StringIO(text), sep=sep, dtype="str", keep_default_na=False)
    except FileNotFoundError:
        raise StudyError(f"{source} is missing.") from None
    except (OSError, ValueError) as error:
        raise StudyError(f"{name} cannot be read: {error}") from error
    table = restore(table)
    if not isinstance(table.index, pd.RangeIndex):
        raise StudyError(f"{name}: a row has more fields than its header; quote what has commas.")
    absent = [column for column in COLUMNS if column not in table.columns]
    if absent:
        raise StudyError(
            f"{name} lacks the columns {', '.join(absent)}; expected {', '.join(COLUMNS)}."
        )
    # The header is line 1.
    rows = enumerate(table[list(COLUMNS)].itertuples(index=False, name=None), start=2)
    return [
        Gold(model=model, image_id=image_id, answer=answer, where=f"{name}, line {line}: ")
        for line, (model, image_id, answer) in rows
    ]
