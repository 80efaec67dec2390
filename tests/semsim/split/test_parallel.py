"""The same experiment by several processes: the same numbers, told as it goes."""

from dataclasses import replace

import pandas as pd
import pytest

from semsim.errors import SettingsError, StopRequestedError
from semsim.grid.processes import checked_workers, each_in_processes
from semsim.split.attacks import ShadowAttack
from semsim.split.parallel import run_spread
from semsim.split.plan import SplitPlan
from semsim.split.session import Place, run_split
from semsim.split.training import SplitTrainSettings

PLAN = SplitPlan(
    name="tiny",
    dataset="digits:size=12,count=120",
    networks=("small:width=2",),
    defences=("single", "ensembler:bodies=2,selected=1"),
    attacks=("adaptive", "one-body"),
    train=SplitTrainSettings(epochs=1, ensemble_epochs=1, batch_size=256),
    shadow=ShadowAttack(epochs=1, decoder_epochs=1, batch_size=256),
    images=4,
    attack_invalid=True,
)


def place(folder):
    return Place(data=folder, checkpoints=folder / "checkpoints", device="cpu")


def test_two_processes_find_what_one_finds(tmp_path):
    told = []
    spread = run_spread(PLAN, place(tmp_path / "two"), 2, told.append)
    alone = run_split(PLAN, place(tmp_path / "one"))
    pd.testing.assert_frame_equal(
        pd.DataFrame(spread["rows"]), pd.DataFrame(alone["rows"]), atol=1e-3
    )
    assert [p.done for p in told] == sorted(p.done for p in told)
    assert told[-1].done == told[-1].total
    assert {"systems trained: 3 of 3", "attacks made: 4 of 4"} <= {p.note for p in told}


def test_a_stop_ends_the_processes(tmp_path):
    def stop(progress):
        raise StopRequestedError("enough")

    with pytest.raises(StopRequestedError):
        run_spread(replace(PLAN, defences=("none",)), place(tmp_path), 2, stop)


def test_what_a_process_raises_is_raised_here():
    with pytest.raises(SettingsError, match="1 or more; got 0"):
        each_in_processes(checked_workers, [0, 1], 2, lambda done: None)
