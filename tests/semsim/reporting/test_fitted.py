"""Tables that fit on paper hold what they held before."""

import pandas as pd

from semsim.reporting.report import in_blocks, turned
from semsim.reporting.tables import Table


def table_of(cells: dict[str, list[str]], best=frozenset()) -> Table:
    frame = pd.DataFrame(cells)
    return Table(name="t", title="T", caption="", frame=frame, cells=frame, best=best)


def test_a_wide_table_is_cut_and_each_part_begins_with_the_names():
    wide = table_of({"Model": ["m1", "m2"], **{f"c{n}": [f"{n}a", f"{n}b"] for n in range(6)}})
    parts = in_blocks(wide, letters=22)
    assert [part.cells.columns[0] for part in parts] == ["Model"] * len(parts)
    assert len(parts) == 3
    assert [name for part in parts for name in part.cells.columns[1:]] == [
        f"c{n}" for n in range(6)
    ]
    assert in_blocks(wide)[0].cells.equals(wide.cells)


def test_what_is_best_stays_marked_in_its_part():
    wide = table_of({"Model": ["m"], "a": ["x"], "b": ["y"]}, best=frozenset({(0, 2)}))
    first, second = in_blocks(wide, letters=12)
    assert (first.best, second.best) == (frozenset(), frozenset({(0, 1)}))


def test_a_column_wider_than_the_page_has_a_part_of_its_own():
    parts = in_blocks(table_of({"Model": ["m"], "a": ["x" * 99], "b": ["y"]}), letters=10)
    assert [list(part.cells.columns) for part in parts] == [["Model", "a"], ["Model", "b"]]


def test_turning_puts_each_kind_into_a_column():
    long = table_of(
        {"Metric": ["A", "A", "B"], "Rule": ["x", "y", "x"], "ρ": ["1", "2", "3"], "τ": ["-"] * 3}
    )
    wide = turned(long, "Metric", "Rule", {"ρ": "by"})
    assert list(wide.cells.columns) == ["Metric", "by x", "by y"]
    assert wide.cells.to_numpy().tolist() == [["A", "1", "2"], ["B", "3", "–"]]
    assert wide.caption == ""
    assert turned(long, "Metric", "Rule", {"ρ": "by"}, "ρ alone.").caption == "ρ alone."


def test_what_is_best_stays_marked_when_turned():
    cells = {"Metric": ["A", "A", "B"], "Rule": ["x", "y", "x"], "ρ": ["1", "2", "3"]}
    long = table_of({**cells, "τ": ["-"] * 3}, best=frozenset({(1, 2), (2, 2), (0, 3)}))
    wide = turned(long, "Metric", "Rule", {"ρ": ""})
    assert {wide.cells.iloc[row, place] for row, place in wide.best} == {"2", "3"}
    assert wide.best == {(0, 2), (1, 1)}
