"""Work beside this process: kept warm, ended when idle, begun anew where it died."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from helpers import ROOT, limit, until

from semsim.base.errors import JobError
from semsim.grid.subprocess_worker import WarmProcess

PID = "os:getpid"
PATIENCE = limit(60)  # seconds


@pytest.fixture
def beside():
    made = WarmProcess()
    yield made
    made.close()


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_process_is_kept_for_what_comes_next(beside):
    first = beside.ask(PID)
    assert beside.ask(PID) == first != os.getpid()
    with pytest.raises(ZeroDivisionError):
        beside.ask("operator:floordiv", 1, 0)
    assert beside.ask(PID) == first


def test_it_ends_when_nobody_asks_and_the_next_one_starts_another():
    soon = WarmProcess(idle=0.1)
    first = soon.ask(PID)
    until(lambda: not is_there(first))
    assert soon.ask(PID) != first
    soon.close()


def test_a_death_in_the_middle_is_told_and_the_next_press_works(beside):
    first = beside.ask(PID)
    with pytest.raises(JobError, match=r"os:_exit ended without a word.*Try it again"):
        beside.ask("os:_exit", 3)
    assert beside.ask(PID) != first


def test_one_that_died_while_nobody_asked_is_replaced(beside):
    first = beside.ask(PID)
    os.kill(first, signal.SIGKILL)
    until(lambda: not is_there(first))
    assert beside.ask(PID) != first


def test_nobody_waits_for_what_another_has_asked(beside, tmp_path):
    pipe, told = tmp_path / "pipe", []
    os.mkfifo(pipe)
    first = beside.ask(PID)
    ask = lambda: told.append(beside.ask("pathlib:Path.read_text", pipe))  # noqa: E731
    slow = threading.Thread(target=ask)
    slow.start()
    with open(pipe, "w", encoding="utf-8") as writer:  # is open once the slow one reads
        second = beside.ask(PID)
        assert second != first
        writer.write("done")
    slow.join(PATIENCE)
    assert told == ["done"]
    assert beside.ask(PID) == first  # the last one free is kept
    until(lambda: not is_there(second))


SERVER = """
if __name__ == "__main__":
    import os
    from semsim.grid.subprocess_worker import apart

    print(apart("os:getpid"), flush=True)
    {end}
"""


ENDS = {"pass": 0}  # how a server ends, and what it then answers
ENDS |= {f"os.kill(os.getpid(), {n:d})": -n for n in (signal.SIGTERM, signal.SIGKILL)}


@pytest.mark.parametrize("end", ENDS)
def test_it_does_not_outlive_the_server(tmp_path, end):
    script = tmp_path / "server.py"
    script.write_text(SERVER.format(end=end), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == ENDS[end]
    until(lambda: not is_there(int(done.stdout)))
