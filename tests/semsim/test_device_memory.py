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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what glibc does, on Linux alone")
@pytest.mark.parametrize("kept", [False, True])
def test_freed_memory_is_kept_where_that_is_asked_for(kept):
    code = KEEP.format("keep_freed_memory()" if kept else "")
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert (float(told) > 0.9 * MEBIBYTES) == kept
