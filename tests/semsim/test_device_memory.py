"""What a process does with memory that it frees, seen from a process of its own."""

import subprocess
import sys

import pytest

MEBIBYTES = 100
KEEP = f"""
from semsim.device import keep_freed_memory

def held():
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * 4096 / 2**20

{{}}
before = held()
block = bytearray(b"x") * ({MEBIBYTES} * 2**20)
del block
print(held() - before)
"""
HEAPS = """
import ctypes, threading
from semsim.device import few_heaps

{}
together = threading.Barrier(20)

def need():
    block = bytearray(10_000)
    together.wait()

threads = [threading.Thread(target=need) for _ in range(20)]
for one in threads:
    one.start()
for one in threads:
    one.join()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
told = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, told)
libc.fflush(told)
"""
on_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="what glibc does, on Linux alone"
)


def told_by(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


@on_linux
@pytest.mark.parametrize("kept", [False, True])
def test_freed_memory_is_kept_where_that_is_asked_for(kept):
    code = KEEP.format("keep_freed_memory()" if kept else "")
    assert (float(told_by(code)) > 0.9 * MEBIBYTES) == kept


@on_linux
@pytest.mark.parametrize("few", [False, True])
def test_twenty_threads_have_two_heaps_where_few_are_asked_for(few):
    heaps = told_by(HEAPS.format("few_heaps()" if few else "")).count("<heap nr=")
    assert (heaps <= 2) == few
