"""The types of the product, checked while other tests wait."""

import subprocess
import sys

from helpers import ROOT


def test_mypy_finds_nothing():
    done = subprocess.run(
        [sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
