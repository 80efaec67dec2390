"""Findings of a benchmark are printed and kept alike, in the one form of results."""

import json
import re
import subprocess
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
from programs import needed
from written_keys import written

from benchmarks import attacks, linear, statistics, suite
from benchmarks.bench import NAMED, PLAN
from benchmarks.claims import RESULTS, SHOWN, kept, pages
from benchmarks.keeping import Finds
from semsim.attacks.linear.copa import Copa
from semsim.attacks.linear.copa_prior import CopaPrior
from semsim.attacks.prior import Prior


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


QUICK_COPA, QUICK_PRIOR = partial(Copa, steps=1, inner=5), partial(CopaPrior, steps=1, inner=5)
PRINTED = "print('1 failed, 30 passed, 2 skipped, 9 warnings in 61.20s (0:01:01)')"
# Small forms of commands of the plan: module, words, and what makes it small.
SMALL = {
    "linear": (
        linear,
        ["--variants", "2", "--rounds", "1"],
        {"ACTIVATIONS": ("tanh",), "Copa": QUICK_COPA, "CopaPrior": QUICK_PRIOR},
    ),
    "attacks-curves": (
        attacks,
        ["--only", "curves"],
        {"CURVES": ("cnn4 tanh",), "CURVES_TRAINED": (), "BUDGETS": (2, 3), "FEW": 1},
    ),
    "attacks-quality": (
        attacks,
        ["--quick", "--only", "quality"],
        {"CONTESTANTS": {"prior": Prior(steps=2)}, "cost": lambda *_: 0.5},
    ),
    "tests": (suite, ["test"], {"MAKE": (sys.executable, "-c", PRINTED), "code": lambda: "a" * 9}),
    "tests-busy": (
        suite,
        ["test-all", "--busy", "1", "--clones", "2"],
        {
            "MAKE": (sys.executable, "-c", PRINTED),
            "code": lambda: "b" * 9,
            "checkouts": lambda clones: nullcontext([Path()] * clones),
        },
    ),
    "votes": (statistics, ["--only", "time"], {"STUDIES": ((700, 5, 1.0, None),)}),
    "few-models": (
        statistics,
        ["--only", "models,difference,ceiling,images"],
        {"FEW": (8,), "simulate": lambda name, _: SIMULATE(name, 20)},
    ),
}
SIMULATE = statistics.simulate
KEPT = {name: run for name, run in {**PLAN, **NAMED}.items() if run.keeps}


@pytest.mark.parametrize("name", SMALL)
def test_a_small_run_of_a_benchmark_writes_the_keys_of_the_plan(name, tmp_path, monkeypatch):
    module, words, made_small = SMALL[name]
    assert KEPT[name].command.split()[0] == module.__name__
    monkeypatch.setattr(sys, "argv", [f"{module.__name__}.py", *words, "--results", name])
    monkeypatch.setattr(module, "Finds", lambda name: Finds(name, tmp_path))
    for what, small in made_small.items():
        monkeypatch.setattr(module, what, small)
    module.main()
    found = kept(name, tmp_path)
    assert set(found) == set(KEPT[name].keeps)
    if name == "linear":
        assert len(found["speed"].value) == 3  # head, rule and tanh
    if name == "tests":
        assert "| `aaaaaaaa` | 30 | 2 | 1 | 0.0 | ≤ 6: met |" in found["runs"].value[2]
    if name == "tests-busy":
        _, _, *runs = found["runs"].value
        assert len(runs) == 2
        assert all("| `bbbbbbbb` | 30 | 2 | 1 | 0.0 | |" in one for one in runs)
        assert all("beside 1 busy processes and 1 other runs" in one for one in runs)


def test_clean_clones_have_the_commit_and_the_environment_of_the_checkout(tmp_path, monkeypatch):
    root = tmp_path / "root"
    (root / ".venv").mkdir(parents=True)
    (root / ".venv" / "run.stamp").touch()
    (root / ".gitignore").write_text(".venv")
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "first"]):
        subprocess.run([needed("git"), *words], cwd=root, check=True)
    (root / "later").touch()
    monkeypatch.setattr(suite, "ROOT", root)
    with suite.checkouts(2) as places:
        assert len(set(places)) == 2
        for one in places:
            assert sorted(path.name for path in one.iterdir()) == [".git", ".gitignore", ".venv"]
            assert (one / ".venv").resolve() == root / ".venv"
            stamp, own = root / ".venv" / "run.stamp", one / ".gitignore"
            assert stamp.stat().st_mtime_ns >= own.stat().st_mtime_ns
    with suite.checkouts(0) as places:
        assert places == [root]


@pytest.mark.parametrize("name", KEPT)
def test_the_code_of_a_benchmark_writes_the_keys_of_the_plan(name):
    patterns = written(KEPT[name].command.split()[0])
    lost = [key for key in KEPT[name].keeps if not any(re.fullmatch(p, key) for p in patterns)]
    assert lost == []


def test_pages_show_of_a_benchmark_what_the_plan_makes():
    shown = {one[:2] for path in pages() for one in SHOWN.findall(path.read_text("utf-8"))}
    for name, run in KEPT.items():
        assert {key for file, key in shown if file == name} <= set(run.keeps), name


def test_what_make_bench_keeps_has_a_file_of_that_name_once_it_is_made():
    """A file that is there has the command of the plan, or one that went before it."""
    for name, run in KEPT.items():
        path = RESULTS / f"{name}.json"
        if path.exists():
            module = run.command.split()[0]
            assert module in json.loads(path.read_text("utf-8"))["command"], name
