"""The release gates for faults at full size: exact votes under a race, and kill after kill.

python -m benchmarks.faults [--seeds 20] [--kills 100] [--items 100] [--database URL]

R1: 20 people in two processes label ITEMS items of five votes each, every fifth answer sent twice;
no item may end with more or fewer than five. R2: a process with four people is killed KILLS times
while they vote; every vote they hold a receipt of must be there, and the database sound. Both use
what the tests use, in which the same runs are smaller.
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from contracts.labelling_process import labelling  # noqa: E402
from contracts.store_invariants import check, make_study  # noqa: E402
from contracts.test_store import PEOPLE, RECEIPT  # noqa: E402
from sqlalchemy import text  # noqa: E402

from annotation.domain import Task  # noqa: E402
from annotation.store import Store  # noqa: E402
from annotation.study import progress  # noqa: E402

K = 5


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20, help="runs of R1")
    parser.add_argument("--kills", type=int, default=100, help="kills of R2")
    parser.add_argument("--items", type=int, default=100, help="items of R1")
    parser.add_argument("--database", help="SQLAlchemy URL; default: an SQLite file made for it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Store(options.database or f"sqlite:///{folder / 'studies.db'}") as store:
            started = time.monotonic()
            wrong = sum(race(store, folder, seed, options.items) for seed in range(options.seeds))
            print(
                f"R1: {options.seeds} races of 20 people for {options.items} items: {wrong} items "
                f"without exactly {K} votes; {time.monotonic() - started:.0f} s"
            )
            started = time.monotonic()
            kept = killed(store, folder, options.kills)
            print(
                f"R2: {options.kills} kills, {kept} acknowledged votes, all there; "
                f"{time.monotonic() - started:.0f} s"
            )
            if store.url.startswith("sqlite"):
                found = store.read(lambda tx: tx.execute(text("PRAGMA integrity_check")).scalar())
                print(f"Integrity check: {found}")


def race(store: Store, folder: Path, seed: int, n_items: int) -> int:
    """How many items of a study have other than K votes when 20 people have raced for them."""
    study = make_study(store, folder, n_items, Task.RECOGNITION, votes_per_item=K, seed=seed)
    teams = [[f"{team}{n}" for n in range(10)] for team in "ab"]
    with ExitStack() as stack:
        running = [
            stack.enter_context(labelling(store.url, study.token, seed, team)) for team in teams
        ]
        receipts = votes_in([line for _, told in running for line in told])
    check(store, study, receipts)
    return n_items - progress(store, study.id).coverage[K]


def killed(store: Store, folder: Path, kills: int) -> int:
    """How many votes were acknowledged between `kills` kills; raises where one is missing."""
    study = make_study(store, folder, 40 * kills, Task.RECOGNITION, votes_per_item=2)
    acknowledged: set[str] = set()
    for kill in range(kills):
        with labelling(store.url, study.token, kill, PEOPLE) as (process, told):
            lines = [told.readline() for _ in range(20)]
            process.kill()
            lines += told.readlines()
        acknowledged |= votes_in(lines)
    check(store, study, acknowledged)
    return len(acknowledged)


def votes_in(lines: list[str]) -> set[str]:
    """The ids in receipts; ends the run with whatever else people were told."""
    wrong = [line for line in lines if not RECEIPT.fullmatch(line)]
    if wrong:
        raise SystemExit("".join(wrong))
    return {line.split()[0] for line in lines}


if __name__ == "__main__":
    main()
