"""The rows of an Excel file (ECMA-376, part 1, 18.3 and 18.4)."""

import functools
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree


def first_sheet(book: zipfile.ZipFile) -> tuple[Iterator[tuple[str, list[str]]], int]:
    """Return the rows of the first sheet, each with its place, and how many sheets there are."""
    links = _xml(book, "xl/_rels/workbook.xml.rels")
    targets = {one.get("Id"): str(one.get("Target")) for one in links}
    sheets = _xml(book, "xl/workbook.xml").findall(".//{*}sheet")
    first = next(targets[value] for key, value in sheets[0].items() if key.endswith("}id"))
    shared = []
    if "xl/sharedStrings.xml" in book.namelist():
        shared = [_said(one) for one in _xml(book, "xl/sharedStrings.xml")]
    place = first.lstrip("/") if first.startswith("/") else f"xl/{first}"
    return _rows(_xml(book, place).findall(".//{*}row"), shared), len(sheets)


def _xml(book: zipfile.ZipFile, name: str) -> ElementTree.Element:
    return ElementTree.fromstring(book.read(name))


def _said(cell: ElementTree.Element) -> str:
    """All text in it but how it is read aloud."""
    return "".join(one.text or "" for one in cell.findall("./{*}t") + cell.findall("./{*}r/{*}t"))


def _rows(
    rows: Iterable[ElementTree.Element], shared: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    width = 0
    for number, row in enumerate(rows, start=1):
        cells: dict[int, str] = {}
        for place, one in enumerate(row.findall("./{*}c")):
            letters = re.sub("[^A-Z]", "", one.get("r", ""))
            column = functools.reduce(lambda n, sign: 26 * n + ord(sign) - 64, letters, 0) - 1
            cells[column if letters else place] = _cell(one, shared)
        width = width or 1 + max(cells, default=-1)  # of the header
        last = max(width, 1 + max(cells, default=-1))
        yield f"row {row.get('r', number)}", [cells.get(column, "") for column in range(last)]


def _cell(cell: ElementTree.Element, shared: Sequence[str]) -> str:
    kind, value = cell.get("t"), cell.findtext("./{*}v") or ""
    if kind == "s":
        return shared[int(value)]
    if kind == "inlineStr":
        return "".join(map(_said, cell.findall("./{*}is")))
    return ("false", "true")[int(value)] if kind == "b" else value
