"""Two hosts whose network is cut: the same bits, and what is computed twice is told."""

import os

import copies
import pytest
from helpers import limit, skip_or_fail

from benchmarks.bench import targets
from benchmarks.dask_hosts import Computed, Trouble, counted, unable
from benchmarks.measuring import ROOT


def test_a_worker_killed_and_a_network_cut_leave_the_same_bits_and_do_nothing_twice(tmp_path):
    if why := unable():
        (pytest.skip if "a root who may" in why else skip_or_fail)(why)
    words = ["--only", "faults", "--cells", "20", "--steps", "40", "--cut", "0.4"]
    with (tmp_path / "told").open("w+b") as told:
        done = copies.begin(
            ["-m", "benchmarks.dask_hosts", *words], cwd=ROOT, env=os.environ, out=told
        )
        ended = done.wait(limit(500))
        told.seek(0)
        out = told.read().decode()
    assert ended == 0, out
    judged = targets(out)
    assert len(judged) == 3
    assert [line for line, met in judged if not met] == []
    assert "20 ok / 0 failed of 20" in out


def test_what_is_computed_again_is_told_apart_from_what_was_lost():
    trouble = Trouble(cluster=None, cells=5, seconds=60, cut=20, healed=80, killed=90, pid=1)
    ledger = [
        Computed("kept", "near", 1, 1),
        Computed("away", "far", 3, 19),
        Computed("away", "near", 1, 50),
        Computed("idle", "near", 1, 30),
        Computed("idle", "near", 1, 40),
        Computed("late", "far", 3, 2),
        Computed("late", "near", 1, 12),
        Computed("back", "far", 4, 85),
        Computed("stray", "stray", 5, 81),
        Computed("stray", "near", 1, 84),
        Computed("dead", "near", 1, 89),
        Computed("dead", "far", 4, 95),
    ]
    kept = {"kept": 5, "away": 51, "idle": 31, "late": 3, "back": 86, "stray": 87, "dead": 96}
    told = counted(ledger, kept, trouble)
    assert (told["killed"], told["cut"], told["sent away"]) == (1, 1, 1)
    assert told["twice"] == 2  # idle, and late: kept before
    assert (told["near"], told["far"], told["healed"]) == (7, 4, 2)
