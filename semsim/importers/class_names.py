"""Names of classes: by number, from a list; or by image, from a table."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from semsim.base.alike import class_names
from semsim.base.errors import DataError
from semsim.base.table_files import ENDINGS, read_plain, read_texts

CLASS_LIST = "File of class names: text, one a line, from class 0 on."  # of the setting `classes`


def read_class_names(path: Path | None) -> tuple[str, ...]:
    """The names in a text file, one a line, the first being class 0; none without a file.

    Raises `DataError` for a file that cannot be read, and for empty or repeated names.
    """
    if path is None:
        return ()
    names = read_lines(path)
    if not names or "" in names or len(set(class_names(names).values())) < len(names):
        raise DataError(f"{path} should hold one class a line, each once, none of them empty.")
    return names


def read_lines(path: Path) -> tuple[str, ...]:
    """The lines of a text file without the white space around them; empty ones at its end go."""
    return tuple(line.strip() for line in read_plain(path, DataError).rstrip().splitlines())


def class_name(label: int, names: tuple[str, ...]) -> str | None:
    """The name of class `label`: its number where no names are known, None beyond the list."""
    if not names:
        return str(label)
    return names[label] if 0 <= label < len(names) else None


def all_classes(names: tuple[str, ...], seen: Iterable[str]) -> tuple[str, ...]:
    """The classes of the data set: the list where there is one, else those seen, in order.

    Args:
        seen: The class of each picture, "" where none is known, which is no class.
    """
    return names or tuple(sorted({*seen} - {""}, key=lambda name: (len(name), name)))


def read_class_table(path: Path) -> dict[str, str]:
    """Class name by image id, from a CSV or Parquet file with the columns image_id, class_name.

    Letters of their names may be large. Raises `DataError` for an absent column, a row without a
    value, and an image with two classes.
    """
    table = read_texts(path, DataError)
    lower = {str(name).lower(): name for name in table.cells}
    names = {lower[name]: name for name in ("image_id", "class_name") if name in lower}
    table = replace(table, cells=table.cells.rename(columns=names))
    rows = table.columns("image_id", "class_name")
    if table.unread or rows.isna().any(axis=None):
        row = table.unread[0] if table.unread else rows.index[rows.isna().any(axis=1)][0]
        raise DataError(f"{path}: every row needs image_id and class_name; see {row}.")
    rows = rows.drop_duplicates()
    twice = rows["image_id"][rows["image_id"].duplicated()]
    if len(twice):
        raise DataError(f"{path} gives image {twice.iloc[0]} two classes.")
    kinds = class_names(rows["class_name"])
    return dict(zip(rows["image_id"], rows["class_name"].map(kinds), strict=True))


def check_classes(path: Path) -> None:
    """`DataError` where `path` is neither a table of classes nor a list of their names."""
    try:
        if path.suffix.lower() in ENDINGS:
            read_class_table(path)
        else:
            read_class_names(path)
    except DataError as error:
        raise DataError(str(error).replace(str(path), path.name)) from error
