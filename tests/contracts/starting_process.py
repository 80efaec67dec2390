"""Start a server on its database: `starting_process.py URL FOLDER SETS`.

It begins once two have left their mark in the folder.
"""

import os
import sys
from pathlib import Path

from helpers import until

from annotation.store import Store
from annotation.study.builtin import ensure_demo


def main(url: str, folder: Path, *sets: Path) -> None:
    """Open the database and make the built-in studies, once both are ready."""
    with Store(url) as store:
        (folder / f"{os.getpid()}.ready").touch()
        until(lambda: len([*folder.glob("*.ready")]) == 2, 180)
        ensure_demo(store, sets, folder / "images")


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:]))
