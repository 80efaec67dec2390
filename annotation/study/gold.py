"""Gold items: what a researcher says of reconstructions, read from a file."""

from io import StringIO
from pathlib import Path

from annotation.design.quality import Gold
from annotation.errors import StudyError
from semsim.base.table_files import read_texts

COLUMNS = ("model", "image_id", "answer")


def read_gold(source: Path | StringIO) -> list[Gold]:
    """The rows of a CSV file, or of its text, with the columns `COLUMNS`, one a reconstruction.

    Whether there are such reconstructions, and whether they offer the answer, is for
    `annotation.design.quality` to say. Raises `StudyError`.
    """
    name = source.name if isinstance(source, Path) else "Answers of gold items"
    table = read_texts(
        source if isinstance(source, Path) else source.getvalue(), StudyError, name=name
    )
    if table.unread:
        raise StudyError(f"{table.unread[0]}; quote cells that hold a separator.")
    rows = table.columns(*COLUMNS).fillna("")
    return [
        Gold(model=model, image_id=image_id, answer=answer, where=f"{name}, {place}: ")
        for place, (model, image_id, answer) in zip(rows.index, rows.to_numpy(), strict=True)
    ]
