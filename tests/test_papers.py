"""Results of the papers: each has one command that makes it anew, or a reason why none does."""

import re

import pandas as pd
import pytest

from benchmarks.bench import PAPERS
from benchmarks.claims import kept
from benchmarks.finding import At, Part, Read
from benchmarks.papers import PARTS


@pytest.mark.parametrize("paper", sorted({part.paper for part in PARTS.values()}))
def test_every_result_of_a_paper_is_made_by_one_command(paper):
    keys = [key for part in PARTS.values() if part.paper == paper for key in part.where]
    assert len(keys) == len(set(keys))
    assert set(kept(paper)) - set(keys) == set()


def test_make_bench_makes_every_part_by_its_name():
    assert set(PAPERS) == set(PARTS)
    for name, run in PAPERS.items():
        assert run.command.split()[:2] == ["benchmarks.papers", name]
        asked = "".join([*PARTS[name].makes, *PARTS[name].orders.values()])
        assert ("{images}" in asked) == ("--images" in run.command)


def test_a_row_that_is_missing_is_named_with_its_key():
    part = Part(
        paper="p",
        makes=(),
        read=lambda _: Read({}, ""),
        where={"a.b": At("rows", "last", "x")},
    )
    rows = pd.DataFrame({"x": [2.0]}, index=["first"])
    said = "a.b is not in this folder: the table rows has no row 'last'; its rows are first."
    with pytest.raises(LookupError, match=re.escape(said)):
        part.found({"rows": rows})
    rows.loc["last"] = 3.0
    assert part.found({"rows": rows})["a.b"].value == 3.0
