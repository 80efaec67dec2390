"""What a benchmark finds is printed and kept alike, in the one form of results."""

import json
import sys

import pytest

from benchmarks import linear
from benchmarks.bench import PLAN
from benchmarks.claims import RESULTS, kept
from benchmarks.keeping import Finds


def test_rows_and_figures_are_printed_and_kept(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["speed.py", "--images", str(tmp_path), "--results", "a"])
    with Finds("a", tmp_path) as finds:
        row = finds.table("speed", "net", "s", "target")
        row("LeNet", "0.50", "≤ 1: met")
        finds.figure("memory", 1.5, "GB")
    assert "| LeNet | 0.50 | ≤ 1: met |" in capsys.readouterr().out
    told = json.loads((tmp_path / "a.json").read_text())
    assert told["command"] == "python -m benchmarks.speed --images FOLDER"
    assert told["values"]["speed"]["rows"] == [["LeNet", ["{:.2f}", 0.5], ["≤ {:d}: met", 1]]]
    assert told["values"]["memory"]["value"] == 1.5
    assert kept("a", tmp_path)["speed"].run


def test_without_a_name_nothing_is_kept_and_an_error_leaves_what_was_found(tmp_path):
    with Finds("", tmp_path) as finds:
        finds.figure("memory", 1.5)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ZeroDivisionError), Finds("a", tmp_path) as finds:  # noqa: PT012
        finds.figure("memory", 1.5)
        raise ZeroDivisionError
    assert set(kept("a", tmp_path)) == {"memory"}


def test_a_small_run_of_a_benchmark_writes_the_keys_that_its_page_shows(tmp_path, monkeypatch):
    words = ["linear.py", "--variants", "2", "--rounds", "1", "--results", "linear"]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(linear, "Finds", lambda name: Finds(name, tmp_path))
    linear.main()
    found = kept("linear", tmp_path)
    assert set(found) == {"speed", "sight"} > set(kept("linear"))
    assert not any(one.by_hand for one in found.values())
    assert len(found["speed"].value) == 4  # head, rule, tanh and leaky ReLU


def test_what_make_bench_keeps_has_a_file_of_that_name_once_it_is_made():
    """A file that is there has the command of the plan, or one that went before it."""
    for name, run in PLAN.items():
        path = RESULTS / f"{name}.json"
        if run.keeps and path.exists():
            module = run.command.split()[0]
            assert module in json.loads(path.read_text("utf-8"))["command"], name
