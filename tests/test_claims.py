"""What pages show is what the files of results have, and the cheap results come out again."""

import json
import math
import re

import pandas as pd
import pytest
from helpers import ROOT

from benchmarks import cheap_claims, claims
from benchmarks.claims import RESULTS, Claim, filled, keep
from semsim.reporting import writing
from semsim.reproduce.everything_table import Map, tables


def test_every_number_on_a_page_is_that_of_its_file():
    differing = [
        str(path.relative_to(ROOT))
        for path in claims.pages()
        if filled(text := path.read_text(encoding="utf-8")) != text
    ]
    assert differing == [], "python -m benchmarks.claims writes them"
    assert len(claims.shown_on(claims.pages())) > 20


@pytest.mark.parametrize("name", cheap_claims.MAKERS)
def test_a_cheap_result_comes_out_again(name):
    if name == "published" and not cheap_claims.PUBLISHED.exists():
        pytest.skip(f"the published votes are not here ({cheap_claims.PUBLISHED.name})")
    _, make = cheap_claims.MAKERS[name]
    kept = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["values"]
    found = make()
    assert set(found) == set(kept)
    other = [key for key, one in found.items() if not _alike(one, Claim(**kept[key]))]
    assert other == [], "python -m benchmarks.claims --make writes them"


def _alike(one: Claim, other: Claim) -> bool:
    pairs = ((one.value, other.value), (one.low, other.low), (one.high, other.high))
    numbers = [(a, b) for a, b in pairs if isinstance(a, float) and isinstance(b, float)]
    same = all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) for a, b in numbers)
    return same and one.n == other.n and len(numbers) == sum(a is not None for a, _ in pairs)


@pytest.mark.parametrize(
    ("form", "written"),
    [
        (".2f", "−0.12"),
        (".2f[]", "−0.12 [−0.50, 0.25]"),
        (".1fto", "−0.5 to 0.2"),
        (".0%", "−12 %"),
    ],
)
def test_a_page_takes_a_number_as_it_asks(tmp_path, form, written):
    keep("a", "a command", {"b": Claim(-0.125, -0.5, 0.25, "3 models")}, tmp_path)
    assert filled(f"x <!--=a b {form}-->old<!--/-->.", tmp_path) == (
        f"x <!--=a b {form}-->{written}<!--/-->."
    )


def test_a_page_that_asks_for_what_no_file_has_is_refused(tmp_path):
    keep("a", "a command", {"b": Claim(1.0)}, tmp_path)
    with pytest.raises(LookupError, match="'c'; it has b"):
        filled("<!--=a c .2f-->1<!--/-->", tmp_path)
    with pytest.raises(LookupError, match="interval"):
        filled("<!--=a b .2f[]-->1<!--/-->", tmp_path)


def test_a_result_keeps_its_commit_until_it_changes(tmp_path, monkeypatch):
    commits = []
    for commit, value in (("one", 1.0), ("two", 1.0), ("three", 2.0)):
        monkeypatch.setattr(claims, "code", lambda commit=commit: commit)
        keep("a", "a command", {"b": Claim(value)}, tmp_path)
        commits.append(json.loads((tmp_path / "a.json").read_text())["commit"])
    assert commits == ["one", "one", "three"]


def test_every_file_of_results_names_its_command_and_commit():
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in RESULTS.glob("*.json")}
    assert set(cheap_claims.MAKERS) <= set(found)
    kept = [(name, one) for name, whole in found.items() for one in whole.get("rows", [whole])]
    assert [name for name, one in kept if not (one["command"] and one["commit"])] == []
    assert [name for name, one in kept if re.search(r"/(work|tmp|home)/", str(one))] == []


def test_the_tables_of_the_map_are_made_from_its_file():
    cells, specs = cheap_claims.cells_of_the_map()
    agreement = pd.read_csv(ROOT / "docs/map-agreement.csv")
    made = {one.name: one for one in tables(Map(cells, agreement, specs, {}))}
    page = (ROOT / "docs/map.md").read_text(encoding="utf-8")
    lines = [
        line
        for name in ("people-cnn4", "controls", "reasons")
        for line in writing.markdown(made[name]).splitlines()
        if line.startswith("|")
    ]
    assert len(lines) > 15
    assert [line for line in lines if line not in page] == []
