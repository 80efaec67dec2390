"""What a log gets of reports: a line a stage, whole, and never one a step."""

import pandas as pd
import pytest

from semsim.base.cli.terminal import TerminalBar, text_table, write_table
from semsim.base.errors import DataError
from semsim.base.progress import Progress


def test_a_log_gets_the_last_note_of_each_stage(capsys):
    with TerminalBar("Train") as report:
        for epoch in (1, 2):
            for step in range(3):
                report(Progress(3 * epoch - 3 + step, 6, f"epoch {epoch} of 2"))
            report(Progress(3 * epoch, 6, f"epoch {epoch} of 2: loss 0.{epoch}"))
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "50% epoch 1 of 2: loss 0.1",
        "100% epoch 2 of 2: loss 0.2",
    ]
    assert told.out == ""


def test_a_log_keeps_where_the_work_broke(capsys):
    try:
        with TerminalBar() as report:
            report(Progress(1, 4, "copying"))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert capsys.readouterr().err == "25% copying\n"


def test_columns_of_a_table_are_in_line():
    assert text_table(["a", "long"], [["wide", "1"]]) == "a     long\nwide  1"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_that_cannot_be_finished_leaves_no_file(tmp_path, monkeypatch, ending):
    def full(_, path, **__):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    for name in ("to_csv", "to_parquet"):
        monkeypatch.setattr(pd.DataFrame, name, full)
    with pytest.raises(DataError, match="No space left"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / f"t.{ending}")
    assert list(tmp_path.iterdir()) == []
