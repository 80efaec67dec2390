"""Gold items: what a researcher says of reconstructions, read from a file."""

from pathlib import Path

import pandas as pd

from annotation.errors import StudyError
from annotation.tasks.quality import Gold

COLUMNS = ("model", "image_id", "answer")


def read_gold(path: Path) -> list[Gold]:
    """The rows of a CSV file with the columns `COLUMNS`, one a reconstruction.

    Whether there are such reconstructions, and whether they offer the answer, is for
    `annotation.tasks.quality` to say. Raises `StudyError`.
    """
    try:
        table = pd.read_csv(path, dtype="str", keep_default_na=False, encoding="utf-8-sig")
    except FileNotFoundError:
        raise StudyError(f"{path} is missing.") from None
    except (OSError, ValueError) as error:
        raise StudyError(f"{path} cannot be read: {error}") from error
    absent = [name for name in COLUMNS if name not in table.columns]
    if absent:
        raise StudyError(
            f"{path} lacks the columns {', '.join(absent)}; expected {', '.join(COLUMNS)}."
        )
    # The header is line 1.
    rows = enumerate(table[list(COLUMNS)].itertuples(index=False, name=None), start=2)
    return [
        Gold(model=model, image_id=image_id, answer=answer, where=f"{path}, line {line}: ")
        for line, (model, image_id, answer) in rows
    ]
