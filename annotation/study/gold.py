"""Gold items: what a researcher says of reconstructions, read from a file."""

from io import StringIO
from pathlib import Path

from annotation.design.quality import Gold
from annotation.errors import StudyError
from semsim.base.table_files import whole_texts

COLUMNS = ("model", "image_id", "answer")


def read_gold(source: Path | StringIO) -> tuple[list[Gold], tuple[str, ...]]:
    """The rows of a CSV file, or of its text, and what was taken for granted of it.

    A row, with the columns `COLUMNS`, is of one reconstruction.

    Whether there are such reconstructions, and whether they offer the answer, is for
    `annotation.design.quality` to say. Raises `StudyError`.
    """
    name = source.name if isinstance(source, Path) else "Answers of gold items"
    content = source if isinstance(source, Path) else source.getvalue()
    table = whole_texts(content, StudyError, name=name)
    rows = table.columns(*COLUMNS).fillna("")
    gold = [
        Gold(model=model, image_id=image_id, answer=answer, where=f"{name}, {place}: ")
        for place, (model, image_id, answer) in zip(rows.index, rows.to_numpy(), strict=True)
    ]
    return gold, table.remarks
