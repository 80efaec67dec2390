"""A worker of xdist as a copy: `python copied_worker.py -u -c CODE` is `python -u -c CODE`.

The copy has the libraries that each worker would import anew.
"""

import os
import sys
from pathlib import Path

import copies

if __name__ == "__main__":
    became = copies.begin(
        sys.argv[2:],
        cwd=Path.cwd(),
        env=os.environ,
        out=sys.stdout,
        err=sys.stderr,
        read=sys.stdin,
    )
    for pipe in (0, 1):  # they end with the copy
        os.close(pipe)
    sys.exit(became.wait())
