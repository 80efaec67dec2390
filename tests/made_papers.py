"""Hold what is kept of a paper's reproduction against the folder of a small one."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from benchmarks.claims import SHOWN, kept, pages, written
from benchmarks.finding import At, Read
from benchmarks.papers import PARTS


def check_kept(
    name: str, read: Read, copies: Mapping[str, Mapping[str, str]] | None = None
) -> None:
    """Every result of a part is found in the shape that pages ask for, and a lost row is named.

    copies: by table, the rows that a small run lacks, with the row that stands in for each.
    """
    part, tables = PARTS[name], dict(read.tables)
    for table, rows in (copies or {}).items():
        for row, like in rows.items():
            assert row not in tables[table].index, "a small run has it"
            tables[table].loc[row] = tables[table].loc[like]
    found, before = part.found(tables), kept(part.paper)
    assert list(found) == list(part.where)
    for key, claim in found.items():
        if key in before:
            assert isinstance(claim.value, list) == isinstance(before[key].value, list), key
        if isinstance(claim.value, list):
            assert key not in before or claim.value[0] == before[key].value[0], key
            assert len(claim.value) > 2, f"{key} has no row"
    for page in pages():
        for file, key, form, _ in SHOWN.findall(page.read_text("utf-8")):
            if file == part.paper and key in found and form != "run" and not form.endswith("]"):
                assert written(found[key], form)
    key, at = next((key, find) for key, find in part.where.items() if isinstance(find, At))
    lacking = {**tables, at.table: tables[at.table].iloc[:0]}
    with pytest.raises(LookupError, match=rf"^{re.escape(key)} is not in this folder: .*no row"):
        replace(part, where={key: at}).found(lacking)
