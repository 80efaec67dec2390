"""`make bench`: every benchmark once, whatever ends it, and every target as it was printed."""

import os
import re
import signal
import subprocess
import sys

import psutil
import pytest
from helpers import until
from sqlalchemy import create_engine, inspect
from study_factory import POSTGRES, empty_database

from benchmarks import bench
from benchmarks.bench import LEFT_OUT, MINUTES, NAMED, PLAN, WITH_DATABASE, Run, targets
from benchmarks.measuring import ROOT, judge

# A benchmark that says what it was called, each time it runs, then does what it was told.
FAKE = """
import pathlib, sys, time
log, name, act = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
with (log / "ran").open("a") as ran:
    print(name, file=ran)
print(name, "took 1 s,", sys.argv[4])
if act == "crash":
    sys.exit("it broke")
if act == "schema":
    from sqlalchemy import create_engine, text
    with create_engine(sys.argv[6]).begin() as connection:
        connection.execute(text("CREATE TABLE kept (n int)"))
        print(connection.execute(text("SELECT current_schema()")).scalar())
while act == "wait" and not (log / "go").exists():
    time.sleep(0.02)
"""


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    (tmp_path / "fake_benchmark.py").write_text(FAKE, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    return tmp_path


def plan(folder, **acts):
    """A plan of fakes by name; what each does."""
    met, missed = judge(1, most=2, unit="s"), judge(3, most=2)
    said = {name: missed if name == "slow" else met for name in acts}
    return {
        name: Run(command=f"fake_benchmark {folder} {name} {act} '{said[name]}'", minutes=1)
        for name, act in acts.items()
    }


def ran(folder):
    return (folder / "ran").read_text(encoding="utf-8").split()


def test_a_crash_stops_nothing_is_named_and_is_all_that_runs_again(fakes, capfd):
    fake = plan(fakes, quick="end", broken="crash", slow="end")
    assert bench.bench(fake, fakes / "kept", 9) == 1
    said = capfd.readouterr().out
    assert "broken ended with 1: it broke (" in said
    assert "2 lines with targets, 1 met:" in said
    assert "met         quick: quick took 1 s, ≤ 2 s: met" in said
    assert "**missed**  slow: slow took 1 s, ≤ 2: **missed**" in said
    assert all(f"  {name}: {why}" in said for name, why in LEFT_OUT.items())
    assert bench.bench(fake, fakes / "kept", 9) == 1
    assert ran(fakes) == ["quick", "broken", "slow", "broken"]
    again = {**fake, **plan(fakes, broken="end")}
    assert bench.bench(again, fakes / "kept", 9) == 0
    assert ran(fakes)[4:] == ["broken"]
    bench.bench(again, fakes / "another commit", 9)
    assert ran(fakes)[5:] == ["quick", "broken", "slow"]


def test_what_was_killed_goes_on_where_it_was(fakes):
    fake = plan(fakes, first="end", second="wait", third="end")
    words = f"bench({fake!r}, Path({str(fakes / 'kept')!r}), 9)"
    imported = "from pathlib import Path; from benchmarks.bench import Run, bench"
    command = [sys.executable, "-c", f"{imported}; {words}"]
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:

        def at_the_second():
            assert process.poll() is None
            return "second" in (ran(fakes) if (fakes / "ran").exists() else ())

        until(at_the_second)
        refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert "A benchmark is running" in refused.stderr
        all_of_it = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGKILL)
        assert psutil.wait_procs(all_of_it)[1] == []
    (fakes / "go").touch()
    assert bench.bench(fake, fakes / "kept", 9) == 0
    assert ran(fakes) == ["first", "second", "second", "third"]


def test_each_that_needs_a_database_has_a_schema_of_its_own_which_goes(fakes, monkeypatch):
    with empty_database("postgresql", fakes):
        pass  # or it says that no server answers
    fake = plan(fakes, one="schema", other="schema")
    monkeypatch.setattr(bench, "WITH_DATABASE", fake)
    assert bench.bench(fake, fakes / "kept", 9, POSTGRES) == 0
    said = [path.read_text(encoding="utf-8") for path in (fakes / "kept").glob("*.txt")]
    named = {re.search(r"bench_\w+", text)[0] for text in said}
    assert len(named) == 2
    engine = create_engine(POSTGRES)
    assert named.isdisjoint(inspect(engine).get_schema_names())
    engine.dispose()


def test_one_that_takes_too_long_is_ended_and_one_that_would_is_not_begun(fakes, capfd):
    fake = plan(fakes, endless="wait")
    fake["endless"] = Run(command=fake["endless"].command, minutes=0.005)
    assert bench.bench({**fake, **plan(fakes, late="end")}, fakes / "kept", 0.5) == 1
    said = capfd.readouterr().out
    assert "endless was ended after" in said
    assert "late not begun: 0 minutes left, and it takes 1" in said
    assert not list((fakes / "kept").glob("*.txt"))


def test_all_of_it_takes_two_hours_at_most_and_what_is_named_is_there():
    assert sum(run.minutes for run in PLAN.values()) <= MINUTES == 120
    for run in (*PLAN.values(), *WITH_DATABASE.values(), *NAMED.values()):
        assert (ROOT / f"{run.command.split()[0].replace('.', '/')}.py").is_file()


@pytest.mark.parametrize(
    ("value", "target", "said"),
    [
        (2.5, {"most": 2.5, "unit": "s"}, "≤ 2.5 s: met"),
        (1.3, {"least": 1.4}, "≥ 1.4: **missed**"),
        (float("nan"), {"most": 1000}, "≤ 1,000: **missed**"),
        (1.0, {}, ""),
    ],
)
def test_a_verdict_is_read_as_it_is_printed(value, target, said):
    assert judge(value, **target) == said
    line = f"| a page | 0.1 | ≤ 3: met | {said} |"
    assert targets(f"Began\n{line}\n") == [(line, "missed" not in said)]
