"""How much of a table is taken into memory."""

from pathlib import Path

from semsim.errors import DataError


def check_size(path: Path, n: int, most: int, what: str, advice: str) -> None:
    """Raises `DataError` where a table has more than `most` of `what`, such as rows.

    advice: why so many are not taken, and what to do instead.
    """
    if n > most:
        raise DataError(f"{path} has more than {most:,} {what}. {advice}")
